"""The program in the pane of a session with an app-server: runs that and the client's screen, a view on it.

    pane.py SOCKET THREAD-FILE LOG PROGRAM N SETTINGS… SCREEN-ARGUMENTS…

N says how many of the arguments are the app-server's. The screen shows the thread that the file names, and is started
again where the file names another one, or where the screen was killed; where the user has left it, or the app-server
has ended, everything ends. Standard library only: `python -I -S` runs it by its path.

Where this program itself is killed, a second process of it ends what is left: without its terminal an app-server still
works until its turn has ended (Codex 0.171.0), out of sight.
"""

import contextlib
import os
import signal
import subprocess
import sys
import termios
import time

POLL_INTERVAL_S = 0.05
ENDING = (0.3, 2.0)
"""Seconds to wait after each signal before a process is killed."""
RESTART_INTERVAL_S = 1.0
SHOWN_BYTES = 2_000
CLEAR_SCREEN = "\033[?1049l\033[0m\033[2J\033[H\033[?25h\033[?2004l"


class Cleaner:
    """The second process: it ends what was started and has not ended, once the first one is gone."""

    def __init__(self) -> None:
        reading, self.telling = os.pipe()
        if os.fork() == 0:
            os.close(self.telling)
            self.wait(reading)
        os.close(reading)

    def tell(self, pid: int) -> None:
        """Say that a process was started; that it has ended, by its number below zero."""
        with contextlib.suppress(OSError):  # it was killed: nothing is left to tell
            os.write(self.telling, f"{pid}\n".encode())

    @staticmethod
    def wait(reading: int) -> None:
        os.setsid()  # no signal of the terminal reaches it
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        left: list[int] = []
        with os.fdopen(reading) as told:
            for pid in map(int, told):
                if pid > 0:
                    left.append(pid)
                elif -pid in left:
                    left.remove(-pid)
        for pid in left:
            end_other(pid)
        os._exit(0)


class PaneProgram:
    def __init__(self, arguments: list[str]) -> None:
        self.socket, self.thread_file, self.log, self.program, count, *rest = arguments
        self.settings, self.screen_arguments = rest[: int(count)], rest[int(count) :]
        self.leaving = False
        self.cleaner = Cleaner()
        self.terminal = None if not sys.stdin.isatty() else termios.tcgetattr(0)

    def run(self) -> int:
        signal.signal(signal.SIGTERM, self.leave)
        signal.signal(signal.SIGHUP, self.leave)
        signal.signal(signal.SIGINT, lambda *_: None)  # what is ignored stays so in the agent's commands
        with open(self.log, "wb", opener=private) as log:  # no pathlib: 5 ms
            server = subprocess.Popen(
                [self.program, "app-server", "--listen", f"unix://{self.socket}", *self.settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,  # its wrapper in Node cannot end it once it is killed itself
            )
            self.cleaner.tell(server.pid)
            try:
                return self.watch(server)
            finally:
                self.end(server)

    def leave(self, _number: int, _frame: object) -> None:
        self.leaving = True

    def watch(self, server: "subprocess.Popen[bytes]") -> int:
        """Keep the screen on the thread of the file; return the exit code of what has ended."""
        screen, shown, started = None, "", 0.0
        try:
            while not self.leaving and server.poll() is None:
                wanted = self.thread()
                if screen is not None and screen.poll() == 0:
                    return 0
                if screen is not None and (screen.poll() is not None or shown != wanted):
                    self.end(screen)
                    self.restore(CLEAR_SCREEN)
                    screen = None
                    if shown == wanted:
                        time.sleep(max(0.0, started + RESTART_INTERVAL_S - time.monotonic()))
                if screen is None and wanted and os.path.exists(self.socket):  # noqa: PTH110  # no pathlib: 5 ms
                    address = f"unix://{self.socket}"
                    command = [self.program, "resume", "--remote", address, *self.screen_arguments, wanted]
                    screen, shown, started = subprocess.Popen(command), wanted, time.monotonic()
                    self.cleaner.tell(screen.pid)
                time.sleep(POLL_INTERVAL_S)
        finally:
            if screen is not None:
                self.end(screen)
                self.restore("" if server.poll() is None else CLEAR_SCREEN)
        if self.leaving:
            return 0
        self.say("The app-server of Codex has ended.\n" + self.last_words())
        return exit_code(server.returncode) or 1

    def end(self, process: "subprocess.Popen[bytes]") -> None:
        end(process)
        self.cleaner.tell(-process.pid)

    def thread(self) -> str:
        try:
            with open(self.thread_file) as file:  # noqa: PTH123  # no pathlib: 5 ms
                return file.read().strip()
        except OSError:
            return ""

    def restore(self, text: str = "") -> None:
        """Take the terminal back from a screen that was ended in the middle."""
        if self.terminal is not None:
            with contextlib.suppress(termios.error):  # it is gone
                termios.tcsetattr(0, termios.TCSADRAIN, self.terminal)
        self.say(text)

    def last_words(self) -> str:
        try:
            with open(self.log, "rb") as file:  # noqa: PTH123  # no pathlib: 5 ms
                return file.read()[-SHOWN_BYTES:].decode(errors="replace")
        except OSError:
            return ""

    def say(self, text: str) -> None:
        with contextlib.suppress(OSError):  # the terminal is gone
            os.write(1, text.encode())


def exit_code(code: int) -> int:
    """As a shell tells the end by a signal."""
    return 128 - code if code < 0 else code


def private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a process; an app-server that a client is connected to takes the signal twice (Codex 0.171.0)."""
    for wait in ENDING:
        if process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(wait)
        except subprocess.TimeoutExpired:
            continue
    if process.poll() is None:
        kill(process.pid)
        process.wait()


def end_other(pid: int) -> None:
    """The same for a process that another one has started."""
    try:
        for wait in ENDING:
            os.kill(pid, signal.SIGTERM)
            until = time.monotonic() + wait
            while time.monotonic() < until:
                os.kill(pid, 0)
                time.sleep(POLL_INTERVAL_S)
        kill(pid)
    except ProcessLookupError:
        return


def kill(pid: int) -> None:
    """With all of its group, where it leads one."""
    if os.getpgid(pid) == pid:
        os.killpg(pid, signal.SIGKILL)
    else:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(PaneProgram(sys.argv[1:]).run())
