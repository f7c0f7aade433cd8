"""The program in the pane of a session with an app-server: runs that and the client's screen, a view on it.

    pane.py SOCKET THREAD-FILE LOG PROGRAM N SETTINGS… SCREEN-ARGUMENTS…

N says how many of the arguments are the app-server's. The screen shows the thread that the file names, and is started
again where the file names another one, or where the screen was killed; where the user has left it, or the app-server
has ended, everything ends. Standard library only: `python -I -S` runs it by its path.
"""

import os
import signal
import subprocess
import sys
import termios
import time

POLL_INTERVAL_S = 0.05
GRACE_S = 2.0
RESTART_INTERVAL_S = 1.0
SHOWN_BYTES = 2_000
CLEAR_SCREEN = "\033[?1049l\033[0m\033[2J\033[H\033[?25h\033[?2004l"


class PaneProgram:
    def __init__(self, arguments: list[str]) -> None:
        self.socket, self.thread_file, self.log, self.program, count, *rest = arguments
        self.settings, self.screen_arguments = rest[: int(count)], rest[int(count) :]
        self.leaving = False
        self.terminal = None if not sys.stdin.isatty() else termios.tcgetattr(0)

    def run(self) -> int:
        signal.signal(signal.SIGTERM, self.leave)
        signal.signal(signal.SIGHUP, self.leave)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with open(self.log, "wb", opener=private) as log:  # no pathlib: 5 ms
            server = subprocess.Popen(
                [self.program, "app-server", "--listen", f"unix://{self.socket}", *self.settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            try:
                return self.watch(server)
            finally:
                end(server, signal.SIGTERM)

    def leave(self, _number: int, _frame: object) -> None:
        self.leaving = True

    def watch(self, server: "subprocess.Popen[bytes]") -> int:
        """Keep the screen on the thread of the file; return the exit code of what has ended."""
        screen, shown, started = None, "", 0.0
        try:
            while not self.leaving:
                if server.poll() is not None:
                    self.say("The app-server of Codex has ended.\n" + self.last_words())
                    return exit_code(server.returncode) or 1
                wanted = self.thread()
                if screen is not None and screen.poll() == 0:
                    return 0
                if screen is not None and (screen.poll() is not None or shown != wanted):
                    end(screen, signal.SIGTERM)
                    self.restore()
                    screen = None
                    if shown == wanted:
                        time.sleep(max(0.0, started + RESTART_INTERVAL_S - time.monotonic()))
                if screen is None and wanted and os.path.exists(self.socket):  # noqa: PTH110  # no pathlib: 5 ms
                    address = f"unix://{self.socket}"
                    command = [self.program, "resume", "--remote", address, *self.screen_arguments, wanted]
                    screen, shown, started = subprocess.Popen(command), wanted, time.monotonic()
                time.sleep(POLL_INTERVAL_S)
            return 0
        finally:
            if screen is not None:
                end(screen, signal.SIGTERM)

    def thread(self) -> str:
        try:
            with open(self.thread_file) as file:  # noqa: PTH123  # no pathlib: 5 ms
                return file.read().strip()
        except OSError:
            return ""

    def restore(self) -> None:
        """Take the terminal back from a screen that was ended in the middle."""
        if self.terminal is not None:
            termios.tcsetattr(0, termios.TCSADRAIN, self.terminal)
        self.say(CLEAR_SCREEN)

    def last_words(self) -> str:
        try:
            with open(self.log, "rb") as file:  # noqa: PTH123  # no pathlib: 5 ms
                return file.read()[-SHOWN_BYTES:].decode(errors="replace")
        except OSError:
            return ""

    def say(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def exit_code(code: int) -> int:
    """As a shell tells the end by a signal."""
    return 128 - code if code < 0 else code


def private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def end(process: "subprocess.Popen[bytes]", number: int) -> None:
    """End a process; an app-server that a client is connected to takes the signal twice (Codex 0.171.0)."""
    for wait in (0.3, GRACE_S):
        if process.poll() is not None:
            return
        process.send_signal(number)
        try:
            process.wait(wait)
        except subprocess.TimeoutExpired:
            continue
    if process.poll() is None:
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(PaneProgram(sys.argv[1:]).run())
