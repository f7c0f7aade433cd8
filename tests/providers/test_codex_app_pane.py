"""The program in the pane of a session with an app-server: a process on a terminal, with a stand-in for the client."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from sm.providers.codex.app import pane
from sm.providers.codex.app.launch import argv
from sm.providers.codex.app.place import AppPlace

STAND_IN = """
import os, signal, socket, sys, time, tty
place = os.environ["STAND_IN"]
orders = lambda: open(f"{place}/{os.getpid()}").read() if os.path.exists(f"{place}/{os.getpid()}") else ""
def note(*words):
    with open(f"{place}/log", "a") as log:
        log.write(" ".join(map(str, (words[0], os.getpid(), *words[1:]))) + "\\n")
signals, takes_interrupts = [], signal.getsignal(signal.SIGINT) is signal.default_int_handler
signal.signal(signal.SIGHUP, lambda *_: signals.append("HUP"))
signal.signal(signal.SIGTERM, lambda *_: signals.append("TERM"))
if sys.argv[1] == "app-server":
    with socket.socket(socket.AF_UNIX) as listening:
        time.sleep(float(os.environ.get("LATE", 0)))
        listening.bind(sys.argv[3].removeprefix("unix://"))
        print("said by the server", flush=True)
        note("server", *sys.argv[4:], "interruptible" if takes_interrupts else "deaf")
        while signals.count("TERM") < int(os.environ.get("TERMS", 2)):
            if code := orders():
                sys.exit(int(code))
            time.sleep(0.005)
else:
    tty.setraw(0)
    print("\\033[?1049h", "shows", sys.argv[-1], flush=True)
    note("screen", *sys.argv[2:])
    while "TERM" not in signals:
        if code := orders():
            sys.exit(int(code))
        time.sleep(0.005)
"""
TAKES_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


class Terminal:
    """A pane with the program in it."""

    def __init__(self, directory, **env):
        self.directory = directory
        self.place = AppPlace(directory / "s.sock", directory / "thread", directory / "log-of-server")
        program = directory / "codex"
        program.write_text(f"#!{sys.executable} -IS\n{STAND_IN}")
        program.chmod(0o700)
        command = argv(sys.executable, pane.__file__, str(program), self.place, ("-c", "a=1"), ("-C", "/p"))
        self.master, slave = pty.openpty()
        self.modes = termios.tcgetattr(slave)
        self.slave = slave
        starts = (sys.executable, "-IS", "-c", TAKES_TERMINAL, *command)
        env = {"PATH": os.environ["PATH"], "STAND_IN": str(directory), **env}
        self.process = subprocess.Popen(starts, stdin=slave, stdout=slave, stderr=slave, env=env)
        os.set_blocking(self.master, False)
        self.printed = b""

    def started(self, kind):
        """Pid and arguments of each one, in their order."""
        log = self.directory / "log"
        lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        return [(int(pid), arguments) for name, pid, *arguments in lines if name == kind]

    def screen(self, count=1):
        """The newest screen, once there are as many."""
        pid, arguments = until(lambda: self.started("screen")[count - 1 :])[0]
        return pid, arguments[-1]

    @property
    def server(self):
        return until(lambda: self.started("server"))[0][0]

    def order(self, pid, code):
        """End one with a code, in one step."""
        scratch = self.directory / "order"
        scratch.write_text(str(code))
        scratch.rename(self.directory / str(pid))

    def output(self):
        with contextlib.suppress(OSError):
            self.printed += os.read(self.master, 1 << 16)
        return self.printed.decode()

    def ended(self, seconds=20):
        return until(lambda: [self.process.poll()] if self.process.poll() is not None else None, seconds)[0]

    def is_empty(self):
        everyone = [pid for kind in ("server", "screen") for pid, _ in self.started(kind)]
        return not any(map(lives, everyone))

    def close(self):
        for pid in [pid for kind in ("server", "screen") for pid, _ in self.started(kind)]:
            if lives(pid):
                os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        for descriptor in {self.master, self.slave} - {-1}:
            os.close(descriptor)


@pytest.fixture
def terminal(tmp_path):
    made = []

    def start(thread="t-1", **env):
        if thread:
            (tmp_path / "thread").write_text(thread + "\n")
        made.append(Terminal(tmp_path, **env))
        return made[0]

    yield start
    for one in made:
        one.close()


def test_the_screen_shows_the_thread_of_the_file_by_the_servers_socket(terminal):
    shown = terminal()
    _, server = until(lambda: shown.started("server"))[0]
    _, screen = until(lambda: shown.started("screen"))[0]
    assert server == ["-c", "a=1", "interruptible"]
    assert screen == ["--remote", f"unix://{shown.place.socket}", "-C", "/p", "t-1"]
    assert "said by the server" not in shown.output()
    assert shown.place.log.read_text() == "said by the server\n"
    assert shown.place.log.stat().st_mode & 0o777 == 0o600


def test_the_screen_waits_for_the_server_and_for_a_thread(terminal):
    shown = terminal(thread="", LATE="0.3")
    assert shown.server
    time.sleep(0.2)
    assert not shown.started("screen")
    shown.place.enter("t-9")
    assert shown.screen()[1] == "t-9"


def test_another_thread_is_shown_in_a_new_screen_on_a_clean_terminal(terminal):
    shown = terminal()
    first, _ = shown.screen()
    shown.place.enter("t-2")
    second, thread = shown.screen(2)
    assert (thread, lives(first), lives(second)) == ("t-2", False, True)
    text = until(lambda: shown.output() if "shows t-2" in shown.output() else "")
    assert "has ended" not in text
    assert "\033[?1049l" in text[text.index("shows t-1") : text.index("shows t-2")]
    assert len(shown.started("server")) == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_killed_screen_comes_back(terminal, number):
    shown = terminal()
    first, _ = shown.screen()
    os.kill(first, number)
    second, thread = shown.screen(2)
    assert (thread, lives(second), lives(shown.server)) == ("t-1", True, True)


def test_a_screen_that_fails_comes_back_no_faster_than_once_a_second(terminal):
    shown = terminal()
    for count in (1, 2, 3):
        shown.order(shown.screen(count)[0], 1)
    begun = time.monotonic()
    shown.screen(4)
    assert time.monotonic() - begun >= 0.5


def test_a_screen_that_the_user_has_left_ends_everything(terminal):
    shown = terminal()
    shown.order(shown.screen()[0], 0)
    assert shown.ended() == 0
    assert shown.is_empty()


@pytest.mark.parametrize(("code", "told"), [(0, 1), (3, 3)])
def test_a_server_that_has_ended_ends_everything_with_its_last_words(terminal, code, told):
    shown = terminal()
    shown.screen()
    shown.order(shown.server, code)
    assert shown.ended() == told
    assert "said by the server" in shown.output()
    assert shown.is_empty()


def test_a_killed_server_ends_everything(terminal):
    shown = terminal()
    shown.screen()
    os.kill(shown.server, signal.SIGKILL)
    assert shown.ended() == 128 + signal.SIGKILL
    assert shown.is_empty()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("terms", ["1", "2", "99"])
def test_a_signal_ends_everything_however_often_the_server_wants_it(terminal, number, terms):
    shown = terminal(TERMS=terms)
    shown.screen()
    os.kill(shown.process.pid, number)
    assert shown.ended() == 0
    assert shown.is_empty()


def test_a_key_for_an_interrupt_is_for_the_screen_alone(terminal):
    shown = terminal()
    shown.screen()
    os.kill(shown.process.pid, signal.SIGINT)
    time.sleep(0.2)
    assert shown.process.poll() is None


def test_a_terminal_that_is_gone_ends_everything(terminal):
    shown = terminal()
    shown.screen()
    os.close(shown.slave)
    os.close(shown.master)
    shown.slave = shown.master = -1
    shown.ended()
    until(shown.is_empty)


@pytest.mark.parametrize("terms", ["1", "2", "99"])
def test_whatever_is_left_ends_where_the_program_is_killed(terminal, terms):
    shown = terminal(TERMS=terms)
    shown.screen()
    os.kill(shown.process.pid, signal.SIGKILL)
    until(shown.is_empty)


@pytest.mark.parametrize("end", ["left", "another", "server", "term"])
def test_the_terminal_has_its_modes_back(terminal, end):
    shown = terminal()
    screen, _ = shown.screen()
    assert termios.tcgetattr(shown.slave) != shown.modes
    match end:
        case "left":
            shown.order(screen, 0)
        case "another":
            os.kill(screen, signal.SIGKILL)
            until(lambda: termios.tcgetattr(shown.slave) == shown.modes)
            return
        case "server":
            shown.order(shown.server, 1)
        case "term":
            os.kill(shown.process.pid, signal.SIGTERM)
    shown.ended()
    assert termios.tcgetattr(shown.slave) == shown.modes


def test_the_screen_is_in_the_foreground_and_the_server_is_not(terminal):
    shown = terminal()
    fields = [
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in (shown.screen()[0], shown.server)
    ]
    (_, _, of_screen, _, _, foreground, *_), (_, _, of_server, *_) = fields
    assert of_screen == foreground != of_server
