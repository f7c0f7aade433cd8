"""The floor for hooks: a bare asyncio server in a process of its own that reads a request and answers `{}`.

What its times show beyond some tenths of a millisecond is the machine and the measuring.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\r\n{}"


@contextmanager
def running() -> Iterator[str]:
    """The server's url while the block lasts."""
    command = [sys.executable, "-m", __name__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as bare:
        assert bare.stdout is not None
        assert bare.stdin is not None
        try:
            yield bare.stdout.readline().strip()
        finally:
            bare.stdin.close()


class Answerer(asyncio.Protocol):
    def __init__(self) -> None:
        self.data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        head, end, body = self.data.partition(b"\r\n\r\n")
        if end and len(body) >= int(head.partition(b"Content-Length: ")[2].split(b"\r\n", 1)[0]):
            self.data = b""
            self.transport.write(ANSWER)


def end_with_parent() -> None:
    if not os.read(0, 1):
        os._exit(0)


async def main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Answerer, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    sys.stdout.write(f"http://{host}:{port}\n")
    sys.stdout.flush()
    loop.add_reader(0, end_with_parent)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
