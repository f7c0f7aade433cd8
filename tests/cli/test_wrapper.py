"""`sm run` around its client: when it starts it again, when it does not, and how it leaves the terminal."""

import contextlib
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest

from sm.processes import alive

ROOT = Path(__file__).resolve().parents[2]
TAKES_TERMINAL = (
    "import fcntl,os,sys,termios; os.setsid(); fcntl.ioctl(0,termios.TIOCSCTTY,0); os.execv(sys.argv[1],sys.argv[1:])"
)
PREAMBLE = """
import os, signal, sys, termios, time, tty
from pathlib import Path
place = Path(os.environ["PLACE"])
def ready(): place.joinpath("ready").touch()
def leave(code):
    termios.tcsetattr(0, termios.TCSANOW, modes)
    sys.stdout.write("\\nFarewell:\\ncome back\\n"); sys.stdout.flush()
    os._exit(code)
modes = termios.tcgetattr(0)
tty.setraw(0)
signal.signal(signal.SIGTERM, lambda *_: leave(143))
"""
WORKS = PREAMBLE + "ready(); time.sleep(60)"
IS_LEFT_BY_ITS_PERSON = PREAMBLE + "signal.signal(signal.SIGTERM, lambda *_: leave(0)); ready(); time.sleep(60)"
WILL_NOT_END = PREAMBLE + (
    "signal.signal(signal.SIGTERM, signal.SIG_IGN); os.write(1, b'\\x1b[?1049h\\x1b[?2004h');"
    "print('started', os.spawnlp(os.P_NOWAIT, 'sleep', 'sleep', '600'), flush=True); ready(); time.sleep(60)"
)
ENDS_SLOWLY = (
    PREAMBLE
    + """
def slowly(*_):
    termios.tcsetattr(0, termios.TCSANOW, modes)
    os.write(1, b"ending")
    time.sleep(1)
    leave(143)
signal.signal(signal.SIGTERM, slowly)
ready()
time.sleep(60)
"""
)
DONE = "print('second client', flush=True)"


class Run:
    def __init__(self, place, *clients):
        self.place = place
        self.got = bytearray()
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        command = ["-m", "tests.cli.wrapping", str(place), json.dumps(clients)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", TAKES_TERMINAL, sys.executable, *command],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm-256color"},
        )
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self):
        with contextlib.suppress(OSError):
            while True:
                self.got.extend(os.read(self.master, 1 << 16))

    def until(self, expected):
        deadline = time.monotonic() + 20
        while not expected():
            assert time.monotonic() < deadline, bytes(self.got)
            time.sleep(0.02)

    def code(self):
        return self.process.wait(20)

    @property
    def told(self):
        path = self.place / "told"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def clients(self):
        return [pid for kind, pid, *_ in self.told if kind == "started"]

    @property
    def modes(self):
        return termios.tcgetattr(self.slave)


@pytest.fixture
def run(tmp_path):
    runs = []

    def start(*clients):
        runs.append(Run(tmp_path, *clients))
        return runs[-1]

    yield start
    for run in runs:
        for pid in (run.process.pid, *run.clients):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        run.process.wait()
        os.close(run.slave)
        os.close(run.master)


@pytest.mark.parametrize(
    ("code", "exit_code", "told"),
    [
        ("raise SystemExit(0)", 0, [0, None]),
        ("raise SystemExit(7)", 7, [7, None]),
        ("raise SystemExit(130)", 130, [130, None]),
        ("import os; os.kill(os.getpid(), 9)", 137, [None, 9]),
        ("import os; os.kill(os.getpid(), 11)", 139, [None, 11]),
    ],
)
def test_the_exit_code_is_the_clients_and_nothing_is_started_again(run, code, exit_code, told):
    wrapped = run(code, DONE)
    assert wrapped.code() == exit_code
    assert wrapped.told[-1] == ["ended", *told]
    assert len(wrapped.clients) == 1


def test_an_order_ends_the_client_and_starts_the_next_and_its_exit_lines_are_taken_back(run):
    wrapped = run(WORKS, DONE)
    assert wrapped.code() == 0
    first, second = wrapped.clients
    assert first != second
    assert b"come back\r\n\r\x1b[3A\x1b[J" in wrapped.got
    assert b"second client" in wrapped.got
    assert wrapped.modes == wrapped.before


def test_a_client_that_ends_as_its_person_wishes_is_not_started_again(run):
    wrapped = run(IS_LEFT_BY_ITS_PERSON, DONE)
    assert wrapped.code() == 0
    assert len(wrapped.clients) == 1
    assert b"\x1b[3A" not in wrapped.got


def test_a_client_that_will_not_end_is_killed_with_what_it_started_and_its_modes_are_switched_off(run):
    wrapped = run(WILL_NOT_END, DONE)
    wrapped.until(lambda: wrapped.clients)
    assert wrapped.code() == 0
    assert b"second client" in wrapped.got
    for mode in (b"1049", b"2004"):
        assert wrapped.got.rfind(b"\x1b[?" + mode + b"l") > wrapped.got.rfind(b"\x1b[?" + mode + b"h")
    assert wrapped.modes == wrapped.before
    assert not alive(int(wrapped.got.split(b"started ")[1].split()[0]))


def test_a_ctrl_c_between_two_clients_ends_it(run):
    wrapped = run(ENDS_SLOWLY, DONE)
    wrapped.until(lambda: b"ending" in wrapped.got)
    os.write(wrapped.master, b"\x03")
    assert wrapped.code() == 130
    assert b"second client" not in wrapped.got


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_goes_on_to_the_client(run, number, code):
    wrapped = run("import time; time.sleep(60)", DONE)
    wrapped.until(lambda: wrapped.clients)
    time.sleep(0.2)
    wrapped.process.send_signal(number)
    assert wrapped.code() == code
    assert not alive(wrapped.clients[0])


def test_a_ctrl_c_is_the_clients_own_business(run):
    hears = "import os,signal,time; signal.signal(2, lambda *_: os.write(1, b'heard'))\n"
    wrapped = run(hears + "print('on', flush=True); time.sleep(2)", DONE)
    wrapped.until(lambda: b"on" in wrapped.got)
    os.write(wrapped.master, b"\x03")
    wrapped.until(lambda: b"heard" in wrapped.got)
    assert wrapped.code() == 0


def test_the_client_gets_the_signals_that_python_ignores(run):
    wrapped = run(["grep", "SigIgn", "/proc/self/status"], DONE)
    assert wrapped.code() == 0
    ignored = int(bytes(wrapped.got).split()[1], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1))


def test_a_next_client_that_cannot_be_started_is_an_error_and_the_terminal_is_back(run):
    wrapped = run(WORKS, ["no-such-client"])
    assert wrapped.code() == 1
    assert wrapped.modes == wrapped.before


def test_a_client_that_is_stopped_stops_sm_run_with_it(run):
    wrapped = run("import os,signal,time; os.kill(os.getpid(), signal.SIGSTOP); print('on again', flush=True)", DONE)
    wrapped.until(lambda: wrapped.clients)
    wrapped.until(lambda: _state(wrapped.process.pid) == "T")
    os.killpg(wrapped.process.pid, signal.SIGCONT)
    assert wrapped.code() == 0
    assert b"on again" in wrapped.got


def _state(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
