"""Runs `sm` in a fork of a process that has it loaded already: a whole process each time, without the wait for imports.

The fork has streams, environment, directory and arguments of its own, gets signals and ends like any interpreter. As a
program this file is the process that forks; it ends with the last process that could ask.
"""

import array
import asyncio
import atexit
import contextlib
import functools
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

MAX_MESSAGE_BYTES = 60_000
"""Bytes of a request, and of what stands on the standard input: they must fit into a socket and a pipe at once."""
KIND = socket.SOCK_SEQPACKET
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


class Warm:
    """The end that asks."""

    def __init__(self) -> None:
        self.socket, other = socket.socketpair(type=KIND)
        with other:
            number = other.fileno()
            command = (sys.executable, "-I", __file__, str(number))
            quiet = subprocess.DEVNULL
            self.process = subprocess.Popen(command, pass_fds=(number,), env=ENV, stdin=quiet, stdout=quiet)

    def close(self) -> None:
        self.socket.close()
        self.process.wait()

    async def run(self, request: bytes, stdin: bytes) -> tuple[int, bytes, bytes]:
        """Exit code, standard output and standard error."""
        ends = [os.pipe() for _ in range(4)]
        (read_in, write_in), *others = ends
        os.write(write_in, stdin)
        os.close(write_in)
        handed = [read_in, *(write for _, write in others)]
        socket.send_fds(self.socket, [request], handed)
        for descriptor in handed:
            os.close(descriptor)
        out, err, report = await asyncio.gather(*(whole(read) for read, _ in others))
        _, code = report.split()
        return int(code), out, err

    def start(self, request: bytes, *streams: int) -> "Forked":
        """Start it with these descriptors as its streams, and return it running."""
        read, write = os.pipe()
        socket.send_fds(self.socket, [request], [*streams, write])
        os.close(write)
        return Forked(os.fdopen(read))

    def completed(self, request: bytes, stdin: str) -> subprocess.CompletedProcess[str]:
        """The same as `subprocess.run` returns it, with texts."""
        with contextlib.ExitStack() as stack:
            words, out, err = (stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3))
            words.write(stdin)
            words.seek(0)
            code = self.start(request, *(stream.fileno() for stream in (words, out, err))).wait()
            for stream in (out, err):
                stream.seek(0)
            return subprocess.CompletedProcess("sm", code, out.read(), err.read())


class Forked:
    """The part of `subprocess.Popen` that tests use, of a process that is a grandchild of the one that forks."""

    def __init__(self, report: TextIO) -> None:
        self.report = report
        self.pid = int(report.readline())
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self.report], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("sm", timeout or 0)
            with self.report as report:
                self.returncode = int(report.read())
        return self.returncode

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@functools.cache
def shared() -> Warm:
    warm = Warm()
    atexit.register(warm.close)
    return warm


def serves(request: bytes, env: Mapping[str, str], stdin: bytes | None) -> bool:
    """Whether the same comes of it as of an interpreter that starts with that environment."""
    at_start = any(name.startswith(("PYTHON", "LANG", "LC_")) for name in env)
    return not at_start and max(len(request), len(stdin or b"")) <= MAX_MESSAGE_BYTES


async def whole(descriptor: int) -> bytes:
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    with os.fdopen(descriptor, "rb", 0) as pipe:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
        try:
            return await reader.read()
        finally:
            transport.close()


def request_for(arguments: Iterable[str | os.PathLike[str]], env: Mapping[str, str], directory: str | Path) -> bytes:
    """TypeError where it is not plain text."""
    plain = [os.fspath(argument) for argument in arguments]
    return json.dumps({"arguments": plain, "env": env, "directory": str(directory)}).encode()


def asked(arguments: Iterable[str | os.PathLike[str]], env: Mapping[str, str], directory: str | Path) -> bytes | None:
    """The same; None where it is not plain text."""
    try:
        return request_for(arguments, env, directory)
    except TypeError:
        return None


def load() -> None:
    """All that any command may need."""
    import sm

    for found in pkgutil.walk_packages(sm.__path__, "sm."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)


def serve(connection: socket.socket) -> None:
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
            os.write(streams[3], f"{child}\n".encode())
            _, status = os.waitpid(child, 0)
            os.write(streams[3], str(os.waitstatus_to_exitcode(status)).encode())
            os._exit(0)
        for stream in streams:
            os.close(stream)


def become(request: Any, streams: "array.array[int]", connection: socket.socket) -> None:
    connection.close()
    for number, stream in enumerate(streams[:3]):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    os.chdir(request["directory"])
    sys.argv = ["sm", *request["arguments"]]


SERVER = ["-m", "sm", "server", "run"]
started = subprocess.Popen


def fork_or_start(command: Any, **options: Any) -> Any:
    """The server that a command starts is a fork of that command; all else is started."""
    if not isinstance(command, list) or command[1:] != SERVER or not options.get("start_new_session"):
        return started(command, **options)
    return ForkedServer(options["stdout"].fileno(), options["cwd"])


class ForkedServer:
    def __init__(self, output: int, directory: str) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                code = become_server(output, directory)
            except BaseException:  # noqa: BLE001  # as the interpreter would: said, and the code is 1
                traceback.print_exc()
            finally:
                atexit._run_exitfuncs()
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)

    def poll(self) -> int | None:
        ended, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if ended else None


def become_server(output: int, directory: str) -> int:
    from sm.cli import guarded

    subprocess.Popen = started  # type: ignore[misc]
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDONLY)
    for number, stream in enumerate((quiet, output, output)):
        os.dup2(stream, number)
    os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), 65_536))
    os.chdir(directory)
    sys.argv = ["sm", "server", "run"]
    return guarded(sys.argv[1:])


if __name__ == "__main__":
    load()
    serve(socket.socket(fileno=int(sys.argv[1])))
    subprocess.Popen = fork_or_start  # type: ignore[assignment,misc]
    from sm.cli import main

    main()
