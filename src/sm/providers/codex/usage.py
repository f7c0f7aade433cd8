"""What a thread's requests have used, by its rollouts and those of its subagents, read as they grow (Codex 0.171.0).

Each request has a `token_usage_record`, those for compactions too; `token_count` repeats it, and older clients have
that alone: there the sum over the thread tells one request from the next. What the user has gone back from was used all
the same. A fork copies nothing, and a subagent no such records; older clients copied, within a moment of the fork's
start, and that counts in the parent. The model is that of the turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sm.core.model.cost import TokenCount
from sm.providers import jsonl
from sm.providers.codex.files import family, thread_of
from sm.providers.codex.records import Json, RolloutRecord, member, rollout_record
from sm.providers.codex.transcript import FORK_COPY_S
from sm.providers.jsonl import Bookmark, count

MARKS = (b'"token_usage_record"', b'"token_count"', b'"turn_context"', b'"session_meta"')
BUCKET_S = 60.0
"""Usage is kept by the minute."""
MAX_RECENT = 256
"""Requests of which the same record may come again."""
Bucket = tuple[float, str]
"""When it began, UTC seconds, and the model."""


@dataclass(slots=True)
class _Counts:
    thread: str
    buckets: dict[Bucket, TokenCount] = field(default_factory=dict)
    model: str = "unknown"
    writes_records: bool = False
    recent: dict[str | int, None] = field(default_factory=dict)
    copied_until: float = 0.0

    def add(self, record: RolloutRecord | None) -> None:
        if record is None:
            return
        payload = record.payload
        if record.type == "session_meta" and payload.get("forked_from_id") and "history_base" not in payload:
            self.copied_until = (record.at or 0.0) + FORK_COPY_S
        elif record.type == "turn_context":
            model = payload.get("model")
            self.model = model if isinstance(model, str) else self.model
        elif record.type == "token_usage_record":
            self.writes_records = True
            if not self.thread or payload.get("thread_id", self.thread) == self.thread:
                self._note(record, payload.get("response_id"), member(payload, "usage"))
        elif record.event == "token_count" and not self.writes_records and (record.at or 0.0) >= self.copied_until:
            info = member(payload, "info")
            spent = member(info, "total_token_usage").get("total_tokens")
            self._note(record, spent, member(info, "last_token_usage"))

    def _note(self, record: RolloutRecord, key: object, usage: Json) -> None:
        """Count a request; one without a usable key cannot be compared with others and counts as a new one."""
        used, at = _tokens(usage), record.at or 0.0
        if isinstance(key, str | int):
            if key in self.recent:
                return
            self.recent[key] = None
            if len(self.recent) > MAX_RECENT:
                del self.recent[next(iter(self.recent))]
        if used.total:
            bucket = at - at % BUCKET_S, self.model
            self.buckets[bucket] = self.buckets.get(bucket, TokenCount()).plus(used)


@dataclass(slots=True)
class _File:
    counts: _Counts
    mark: Bookmark | None = None

    def catch_up(self, path: Path) -> None:
        """Take in what the file has gained; all of it again if it is another one by now."""
        try:
            with jsonl.opened(path) as fd:
                if self.mark is None or not self.mark.holds(fd):
                    self.mark, self.counts = Bookmark.at(fd, 0), _Counts(self.counts.thread)
                end = self.mark.offset
                for line, line_end in jsonl.lines_forward(MARKS, fd, end):
                    if any(mark in line for mark in MARKS):
                        self.counts.add(rollout_record(line))
                    end = line_end
                self.mark = Bookmark.at(fd, end)
        except (OSError, ValueError):
            return  # what is known stays: a rollout may have been deleted


@dataclass(slots=True)
class CodexUsage:
    """What one thread has used. Its methods read files: not for the loop."""

    path: Path
    files: dict[Path, _File] = field(default_factory=dict)

    def read(self, since: float = 0.0) -> dict[str, TokenCount]:
        """Return the tokens by model, from the minute of `since` on, UTC seconds."""
        total: dict[str, TokenCount] = {}
        for path in {**self.files, **dict.fromkeys(family(self.path))}:
            found = self.files.setdefault(path, _File(_Counts(thread_of(path))))
            found.catch_up(path)
            for (minute, model), used in found.counts.buckets.items():
                if minute > since - BUCKET_S:
                    total[model] = total.get(model, TokenCount()).plus(used)
        return total


def _tokens(usage: Json) -> TokenCount:
    """Those that were cached, or were put into the cache, are part of the input."""
    reads, writes = count(usage.get("cached_input_tokens")), count(usage.get("cache_write_input_tokens"))
    fresh = max(0, count(usage.get("input_tokens")) - reads - writes)
    return TokenCount(fresh, writes, 0, reads, count(usage.get("output_tokens")), 1)
