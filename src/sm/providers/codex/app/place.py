"""Where a session's app-server listens, and the file that says which thread its client is in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sm.paths import atomic_write, make_private


@dataclass(frozen=True, slots=True)
class AppPlace:
    socket: Path
    thread_file: Path
    log: Path
    """What the app-server writes on its standard streams."""

    def thread(self) -> str:
        """Return the thread's id; empty before there is one."""
        try:
            return self.thread_file.read_text().strip()
        except OSError:
            return ""

    def enter(self, thread: str) -> None:
        atomic_write(self.thread_file, thread.encode())

    @property
    def goal_file(self) -> Path:
        """It is there while a goal pauses that is to be active again."""
        return self.thread_file.with_suffix(".goal")

    def prepare(self, thread: str) -> None:
        """Say which thread the next client begins in; a new one for an empty id."""
        make_private(self.thread_file.parent)
        if thread:
            self.enter(thread)
        else:
            self.thread_file.unlink(missing_ok=True)
            self.goal_file.unlink(missing_ok=True)
