"""A program that takes a notification from its standard input, in bounded time and an allow-listed environment."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO

from sm.core.ports.notifier import ChannelError, HangingError

TIMEOUT_S = 30.0
ALLOWED_VARIABLES = (
    *("HOME", "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR"),
    *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE"),
    *("SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
)
"""Of the server's environment: the second line is what a desktop notification needs, the others what the web does."""
MAX_ERROR_BYTES = 300
MAX_READ_BYTES = 1_000_000
"""Of its standard error, at 64 KiB each read: whoever writes more is ended."""
ERROR_GRACE_S = 0.2
"""For the last words of a program that has ended, whose children may keep its standard error open."""


async def run(argv: Sequence[str], given: bytes, environ: Mapping[str, str]) -> tuple[int, str]:
    """Return exit code and last words of standard error; ChannelError if it cannot be started or does not end."""
    environment = {name: environ[name] for name in ALLOWED_VARIABLES if name in environ}
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb", buffering=0) as errors:
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=pipe,
                stdout=nothing,
                stderr=theirs,  # not PIPE: asyncio would wait for whatever the program leaves running
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:
            raise ChannelError(f"{argv[0]} cannot be started: {_why(problem)}") from problem
        finally:
            os.close(theirs)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                said = await _talk(process, argv[0], given, errors)
        except TimeoutError:
            raise HangingError(f"{argv[0]} did not end within {TIMEOUT_S:.0f} s") from None
        finally:
            _end(process.pid)
            await process.wait()
    return process.returncode or 0, said


def _why(problem: OSError | ValueError) -> str:
    match problem:
        case FileNotFoundError():
            return "no such program; give its whole path, or one on the PATH of the server"
        case PermissionError():
            return "it is not executable; chmod +x, or put its interpreter first"
        case OSError(strerror=str(words)):
            return words
    return str(problem)


async def _talk(process: asyncio.subprocess.Process, program: str, given: bytes, errors: IO[bytes]) -> str:
    """Return the last words of its standard error."""
    assert process.stdin is not None
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), errors
    )
    try:
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(_last_bytes(stream, process.pid))
            with suppress(BrokenPipeError, ConnectionResetError):  # it does not read
                process.stdin.write(given)
                await process.stdin.drain()
            process.stdin.close()
            await process.wait()
            await asyncio.wait([reading], timeout=ERROR_GRACE_S)
            reading.cancel()
    finally:
        transport.close()
    words = b"" if reading.cancelled() else reading.result()
    if words is None:
        raise ChannelError(
            f"{program} was ended: it wrote more than {MAX_READ_BYTES // 1_000_000} MB to standard error"
        )
    return " ".join(words.decode("utf-8", "replace").split())


async def _last_bytes(stream: asyncio.StreamReader, pid: int) -> bytes | None:
    """Return how the stream ends; None if it is too long, and what writes it is ended."""
    last, read = b"", 0
    while chunk := await stream.read(65_536):
        last, read = (last + chunk)[-MAX_ERROR_BYTES:], read + len(chunk)
        if read > MAX_READ_BYTES:
            _end(pid)
            return None
    return last


def _end(pid: int) -> None:
    """End a program with whatever it has left running."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
