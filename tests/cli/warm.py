"""Runs `sm` in a fork of a process that has it loaded already: a whole process each time, without the wait for imports.

The fork has streams, environment, directory and arguments of its own and ends like any interpreter. As a program this
file is the process that forks; it ends when nobody is left who could ask.
"""

import array
import asyncio
import atexit
import functools
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys

MAX_MESSAGE_BYTES = 60_000
"""Bytes of a request, and of what stands on the standard input: they must fit into a socket and a pipe at once."""
KIND = socket.SOCK_SEQPACKET
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


class Warm:
    """The end that asks."""

    def __init__(self):
        self.socket, other = socket.socketpair(type=KIND)
        with other:
            number = other.fileno()
            command = (sys.executable, "-I", __file__, str(number))
            quiet = subprocess.DEVNULL
            self.process = subprocess.Popen(command, pass_fds=(number,), env=ENV, stdin=quiet, stdout=quiet)

    def close(self):
        self.socket.close()
        self.process.wait()

    async def run(self, request, stdin):
        """Exit code, standard output and standard error."""
        ends = [os.pipe() for _ in range(4)]
        (read_in, write_in), *others = ends
        os.write(write_in, stdin)
        os.close(write_in)
        handed = [read_in, *(write for _, write in others)]
        socket.send_fds(self.socket, [request], handed)
        for descriptor in handed:
            os.close(descriptor)
        out, err, code = await asyncio.gather(*(whole(read) for read, _ in others))
        return int(code), out, err


@functools.cache
def shared():
    warm = Warm()
    atexit.register(warm.close)
    return warm


def serves(request, env, stdin):
    """Whether the same comes of it as of an interpreter that starts with that environment."""
    at_start = any(name.startswith(("PYTHON", "LANG", "LC_")) for name in env)
    return not at_start and max(len(request), len(stdin or b"")) <= MAX_MESSAGE_BYTES


async def whole(descriptor):
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    with os.fdopen(descriptor, "rb", 0) as pipe:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
        try:
            return await reader.read()
        finally:
            transport.close()


def asked(arguments, env, directory):
    """None where it is not plain text."""
    try:
        return json.dumps({"arguments": [*map(os.fspath, arguments)], "env": env, "directory": str(directory)}).encode()
    except TypeError:
        return None


def load():
    """All that any command may need."""
    import sm

    for found in pkgutil.walk_packages(sm.__path__, "sm."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)


def serve(connection):
    """Return in a new process for each request, which is then that command."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits here for those who wait
    while True:
        request, rights, _, _ = connection.recvmsg(
            MAX_MESSAGE_BYTES * 2, socket.CMSG_SPACE(4 * array.array("i").itemsize)
        )
        if not request:
            os._exit(0)
        streams = array.array("i", b"".join(data for _, _, data in rights))
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if (child := os.fork()) == 0:
                return become(json.loads(request), streams, connection)
            for stream in streams[:3]:
                os.close(stream)
            _, status = os.waitpid(child, 0)
            os.write(streams[3], str(os.waitstatus_to_exitcode(status)).encode())
            os._exit(0)
        for stream in streams:
            os.close(stream)


def become(request, streams, connection):
    connection.close()
    for number, stream in enumerate(streams[:3]):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["directory"])
    sys.argv = ["sm", *request["arguments"]]


if __name__ == "__main__":
    load()
    serve(socket.socket(fileno=int(sys.argv[1])))
    from sm.cli import main

    main()
