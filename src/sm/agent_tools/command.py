"""One run of `sm` for an agent: a process of its own, with a chosen environment, a time limit and a limited output."""

from __future__ import annotations

import os
import signal
import sys
import threading

TYPE_CHECKING = False  # `typing` costs 3 ms
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence
    from typing import IO

MAX_OUTPUT_BYTES = 256 * 1024
TIMEOUT_S = 120.0
"""Longer than any command waits for the server."""
PASSED = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "TMPDIR", "XDG_STATE_HOME"),
    *("SM_HOME", "SM_CONFIG", "SM_URL", "SM_SOCKET", "SM_SESSION_TOKEN", "CLAUDE_SESSION_MANAGER_ID", "CODEX_HOME"),
)
"""What a command gets of our environment; a child session gets it from the command."""


class Command:
    """A process that can be ended from another thread, also before it was started."""

    def __init__(self) -> None:
        self.cancelled = False
        self.timed_out = False
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def cancel(self) -> None:
        with self._lock:
            self.cancelled = True
            self._kill()

    def run(self, arguments: Sequence[str], given: bytes) -> tuple[str, int]:
        """Return what `sm` prints, to both of its outputs, and its exit code; OSError or ValueError if none starts."""
        process = self._started(arguments)
        timer = threading.Timer(TIMEOUT_S, self._time_out)
        timer.daemon = True
        timer.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            with process.stdout as output:
                _give(process.stdin, given)
                text = _read(output)
        finally:
            timer.cancel()
            self._reap(process)
        return text, process.returncode

    def _started(self, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        import subprocess  # noqa: PLC0415  # 4 ms, for the first call only

        with self._lock:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-m", "sm", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={name: os.environ[name] for name in PASSED if name in os.environ} | {"NO_COLOR": "1"},
                process_group=0,
            )
            if self.cancelled:
                self._kill()
            return self._process

    def _time_out(self) -> None:
        with self._lock:
            self.timed_out = True
            self._kill()

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def _reap(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for the end, and free the pid only while no other thread can send a signal to it."""
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            process.wait()


def _give(target: IO[bytes], content: bytes) -> None:
    try:
        with target:
            target.write(content)
    except BrokenPipeError:
        pass  # a command that does not read it


def _read(output: IO[bytes]) -> str:
    kept, size = b"", 0
    while piece := output.read(1 << 16):
        size += len(piece)
        kept += piece[: MAX_OUTPUT_BYTES - len(kept)]
    more = f"\n({size - len(kept):,} more bytes are left out)" if size > len(kept) else ""
    return kept.decode("utf-8", "replace") + more
