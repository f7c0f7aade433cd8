"""Whether a turn runs in a thread, by the end of its rollout, which is read as it grows (Codex 0.171.0).

A turn begins with `task_started` and ends with `task_complete`, behind its Stop hooks, or with `turn_aborted`; so do
a compaction on request and a command that the user runs. A client that was killed leaves a turn without its end: one
from before the thread was opened is over. What the agent asks in a dialog of its own is a call without an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sm.providers.codex.records import MAX_RECORD_BYTES, RolloutRecord, rollout_record
from sm.providers.codex.turns import ENDS, STARTED
from sm.providers.jsonl import after_last_line, lines_backward, opened

QUESTION_TOOL = "request_user_input"
QUESTION = b'"request_user_input"'
CLOCK_SLACK_S = 0.05
"""The time of a file may be a few milliseconds behind the clock."""


@dataclass(slots=True)
class RolloutTurn:
    """The newest turn of one rollout."""

    rollout: Path
    running: bool = False
    since: float = 0.0
    """When it began or ended, UTC seconds; 0 before the first."""
    question: str = ""
    """The call with which the agent asks its user something now."""
    _inode: int = 0
    _read: int = 0
    """Bytes that were looked at."""

    def runs(self, opened_at: float) -> bool:
        """Return whether it runs in a thread that was opened then."""
        return self.running and self.since >= opened_at - CLOCK_SLACK_S

    def follow(self) -> None:
        """Read what has been added; what cannot be read leaves all as it was."""
        try:
            status = self.rollout.stat()
            if (status.st_ino, status.st_size) == (self._inode, self._read):
                return
            if status.st_ino != self._inode or status.st_size < self._read:
                self._inode, self._read = status.st_ino, 0
            with opened(self.rollout) as fd:
                self._follow(fd)
        except (OSError, ValueError):
            return

    def _follow(self, fd: int) -> None:
        stop = after_last_line(fd)
        news: list[RolloutRecord] = []
        for line in lines_backward((*ENDS, QUESTION), fd, self._read, stop, longest=MAX_RECORD_BYTES):
            record = rollout_record(line)
            if record is not None and (_turns(record) or record.payload.get("name") == QUESTION_TOOL):
                news.append(record)
                if _turns(record):
                    break  # what was before it tells nothing of this turn
        for record in reversed(news):
            self._note(record)
        if self.question and self._is_answered(fd, stop):
            self.question = ""
        self._read = stop

    def _note(self, record: RolloutRecord) -> None:
        if _turns(record):
            self.running, self.since, self.question = record.event == STARTED, record.at or 0.0, ""
        elif isinstance(record.payload.get("call_id"), str):
            self.question = record.payload["call_id"]

    def _is_answered(self, fd: int, stop: int) -> bool:
        for line in lines_backward((self.question.encode(),), fd, self._read, stop, longest=MAX_RECORD_BYTES):
            record = rollout_record(line)
            if record is not None and record.response == "function_call_output":
                return True
        return False


def _turns(record: RolloutRecord) -> bool:
    return isinstance(record.event, str) and f'"{record.event}"'.encode() in ENDS
