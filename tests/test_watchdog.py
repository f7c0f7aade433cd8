"""The watchdog beside a real process with a TCP and a unix socket, stopped and killed from outside."""

import asyncio
import contextlib
import errno
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sm.processes import alive, descendants
from sm.watchdog import STALL_TIMEOUT_S, ListenerErrorHandler, Listeners

SERVER = """
import asyncio, os, socket, sys, time
from pathlib import Path
from sm import watchdog

path = Path(sys.argv[1])
loopback, private = socket.socket(), socket.socket(socket.AF_UNIX)
loopback.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
loopback.bind(("127.0.0.1", int(sys.argv[2])))
private.bind(str(path))
guard = watchdog.start(watchdog.Listeners(loopback, path))
time.sleep(float(sys.argv[3]))

async def answer(reader, writer):
    if await reader.readline() == b"?\\n":
        writer.write(b"here\\n")
    writer.close()

async def main():
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(watchdog.ListenerErrorHandler())
    async with await asyncio.start_server(answer, sock=loopback), await asyncio.start_unix_server(answer, sock=private):
        guard.send_heartbeat(loop)
        print("listening", flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
guard.end()
"""
PATIENCE = 10.0
ACCEPTED = 0.002
"""Seconds between a connection and its request in which the server surely looks at the connection."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def serving(path, port, starts_in=0.0):
    """`starts_in`: seconds it takes from its watchdog to its first heartbeat."""
    command = [sys.executable, "-W", "error", "-c", SERVER, str(path), str(port), str(starts_in)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"listening\n", process.stderr.read()
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)
            process.kill()


@pytest.fixture
def place(tmp_path):
    return tmp_path / "s", free_port()


def knock(place, kind):
    """What a hook meets: an answer, or the error it gets."""
    path, port = place
    family, address = (socket.AF_INET, ("127.0.0.1", port)) if kind == "tcp" else (socket.AF_UNIX, str(path))
    with socket.socket(family) as connection:
        connection.settimeout(PATIENCE)
        try:
            connection.connect(address)
            time.sleep(ACCEPTED)
            connection.sendall(b"?\n")
            return connection.recv(10) or "reset"
        except ConnectionRefusedError:
            return "refused"
        except FileNotFoundError:
            return "refused"
        except ConnectionResetError:
            return "reset"


def until(expected):
    deadline = time.monotonic() + PATIENCE
    while not expected():
        assert time.monotonic() < deadline
        time.sleep(0.01)


MANY = 100


def closed(place):
    """Probed without a connection of its own: one that is queued by a stopped server waits with it."""
    path, port = place
    listening = f"0100007F:{port:04X} 00000000:0000 0A"
    return listening not in Path("/proc/net/tcp").read_text() and not path.exists()


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_a_stopped_server_refuses_and_answers_again_once_it_goes_on(place, kind):
    with serving(*place) as process:
        assert knock(place, kind) == b"here\n"
        os.kill(process.pid, signal.SIGSTOP)
        until(lambda: closed(place))
        assert [knock(place, kind) for _ in range(20)] == ["refused"] * 20
        os.kill(process.pid, signal.SIGCONT)
        until(lambda: knock(place, kind) == b"here\n")


def test_it_does_so_again_and_again(place):
    with serving(*place) as process:
        for _ in range(3):
            os.kill(process.pid, signal.SIGSTOP)
            until(lambda: closed(place))
            os.kill(process.pid, signal.SIGCONT)
            until(lambda: knock(place, "tcp") == knock(place, "unix") == b"here\n")
            assert {knock(place, kind) for kind in ("tcp", "unix") for _ in range(MANY)} == {b"here\n"}


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_a_start_longer_than_a_stall_leaves_the_listeners_whole(place, kind):
    with serving(*place, starts_in=STALL_TIMEOUT_S * 2):
        assert {knock(place, kind) for _ in range(MANY)} == {b"here\n"}


def test_a_port_that_does_not_listen_is_not_shut_down_for_good(place):
    path, port = place
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port))
        listeners = Listeners(listener, path)
        listeners.close()
        listeners.open()
        listeners.close()
        listeners.close()
        listeners.open()
        with socket.create_connection(("127.0.0.1", port)) as knocking, listener.accept()[0] as accepted:
            assert not select.select([accepted], [], [], 0)[0]  # the end of its input would be there to read
            knocking.sendall(b"?")
            assert accepted.recv(1) == b"?"


def test_who_had_already_knocked_when_the_server_stopped_is_let_go(place):
    with serving(*place) as process:
        os.kill(process.pid, signal.SIGSTOP)
        assert knock(place, "tcp") == "reset"


def cpu(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_neither_process_is_busy_while_and_after_the_listeners_are_closed(place):
    with serving(*place) as process:
        (watcher,) = descendants(process.pid)
        os.kill(process.pid, signal.SIGSTOP)
        until(lambda: closed(place))
        before = cpu(process.pid), cpu(watcher)
        os.kill(process.pid, signal.SIGCONT)
        until(lambda: knock(place, "tcp") == b"here\n")
        time.sleep(1.0)
        assert cpu(process.pid) - before[0] < 0.5  # a loop that accepts in vain takes the whole second
        assert cpu(watcher) - before[1] < 0.5


def test_a_killed_server_takes_it_along_and_its_port_is_free(place):
    with serving(*place) as process:
        (watcher,) = descendants(process.pid)
        process.kill()
        process.wait()
        until(lambda: not alive(watcher))
        place[0].unlink()
        with serving(*place):
            assert knock(place, "tcp") == b"here\n"


def test_a_server_killed_while_it_is_stopped_frees_its_port_too(place):
    with serving(*place) as process:
        (watcher,) = descendants(process.pid)
        os.kill(process.pid, signal.SIGSTOP)
        until(lambda: closed(place))
        process.kill()
        process.wait()
        until(lambda: not alive(watcher))
        with serving(*place):
            assert knock(place, "unix") == b"here\n"


def test_a_watchdog_that_was_killed_leaves_the_server_at_work(place):
    with serving(*place) as process:
        (watcher,) = descendants(process.pid)
        os.kill(watcher, signal.SIGKILL)
        until(lambda: not alive(watcher))
        time.sleep(0.5)
        assert knock(place, "tcp") == b"here\n"


def test_it_ends_with_the_server_and_no_signal_to_the_terminals_group_ends_it_first(place):
    with serving(*place) as process:
        (watcher,) = descendants(process.pid)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(watcher, number)
        time.sleep(0.2)
        assert alive(watcher)
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == b""
        assert not alive(watcher)


def test_a_listener_without_descriptors_is_told_of_once():
    told = []
    loop = asyncio.new_event_loop()
    loop.default_exception_handler = told.append
    trouble = ListenerErrorHandler()
    for number in (errno.EMFILE, errno.EINVAL, errno.EMFILE, errno.ENFILE):
        trouble(loop, {"exception": OSError(number, "")})
    loop.close()
    assert [context["exception"].errno for context in told] == [errno.EMFILE]
