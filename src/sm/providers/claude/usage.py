"""What a conversation's requests have used, by its transcript and those of its subagents, read as they grow.

A reply has a record for each of its blocks, with its whole usage or an earlier state of it: the last one counts. The
records that a fork has copied name another session, and count there.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from sm.core.model.cost import TokenCount
from sm.providers import jsonl
from sm.providers.claude.authorship import SYNTHETIC
from sm.providers.jsonl import Bookmark, count

MARKS = (b'"usage"',)
BUCKET_S = 60.0
"""Usage is kept by the minute."""
MAX_RECENT = 256
"""Replies of which another record may still come."""
SUBAGENTS = "subagents"


class _Usage(msgspec.Struct):
    input_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_read_input_tokens: Any = None
    output_tokens: Any = None
    cache_creation: Any = None


class _Message(msgspec.Struct):
    id: Any = None
    model: Any = None
    usage: _Usage | None = None


class _Record(msgspec.Struct, rename="camel"):
    type: Any = None
    session_id: Any = None
    timestamp: Any = None
    message: _Message | None = None


_RECORD = msgspec.json.Decoder(_Record)
_SHAPE: dict[str, Any] = {"message": {"usage": {}}}
Bucket = tuple[float, str]
"""When it began, UTC seconds, and the model."""


@dataclass(slots=True)
class _File:
    session: str
    """Whose records count; empty for any."""
    mark: Bookmark | None = None
    buckets: dict[Bucket, TokenCount] = field(default_factory=dict)
    recent: OrderedDict[str, tuple[Bucket, TokenCount]] = field(default_factory=OrderedDict)

    def catch_up(self, path: Path) -> None:
        """Take in what the file has gained; all of it again if it is another one by now."""
        try:
            with jsonl.opened(path) as fd:
                if self.mark is None or not self.mark.holds(fd):
                    self.mark, self.buckets, self.recent = Bookmark.at(fd, 0), {}, OrderedDict()
                end = self.mark.offset
                for line, line_end in jsonl.lines_forward(MARKS, fd, end):
                    if MARKS[0] in line:
                        self._add(jsonl.decoded(_RECORD, line, _SHAPE))
                    end = line_end
                self.mark = Bookmark.at(fd, end)
        except (OSError, ValueError):
            return  # what is known stays: a transcript may have been deleted

    def _add(self, record: _Record | None) -> None:
        message = record.message if record is not None and record.type == "assistant" else None
        if record is None or message is None or message.usage is None or message.model == SYNTHETIC:
            return
        if self.session and isinstance(record.session_id, str) and record.session_id != self.session:
            return
        model = message.model if isinstance(message.model, str) else "unknown"
        key = message.id if isinstance(message.id, str) else None
        self._note(key, (_minute(record.timestamp), model), _tokens(message.usage))

    def _note(self, key: str | None, bucket: Bucket, used: TokenCount) -> None:
        """Count a reply; one without a usable key cannot be compared with others and counts as a new one."""
        earlier = None if key is None else self.recent.pop(key, None)
        if earlier is not None:
            if earlier[1].output > used.output:
                bucket, used = earlier
            self.buckets[earlier[0]] = self.buckets[earlier[0]].plus(earlier[1], -1)
        self.buckets[bucket] = self.buckets.get(bucket, TokenCount()).plus(used)
        if key is not None:
            self.recent[key] = bucket, used
        if len(self.recent) > MAX_RECENT:
            self.recent.popitem(last=False)


@dataclass(slots=True)
class ClaudeUsage:
    """What one conversation has used. Its methods read files: not for the loop."""

    path: Path
    files: dict[Path, _File] = field(default_factory=dict)

    def read(self, since: float = 0.0) -> dict[str, TokenCount]:
        """Return the tokens by model, from the minute of `since` on, UTC seconds."""
        total: dict[str, TokenCount] = {}
        folder = self.path.with_suffix("") / SUBAGENTS
        for path in (self.path, *sorted(folder.glob("*.jsonl"))):
            found = self.files.setdefault(path, _File(self.path.stem))
            found.catch_up(path)
            for (minute, model), used in found.buckets.items():
                if minute > since - BUCKET_S and used.requests:
                    total[model] = total.get(model, TokenCount()).plus(used)
        return total


def _minute(timestamp: object) -> float:
    try:
        moment = datetime.fromisoformat(str(timestamp))
    except ValueError:
        return 0.0
    at = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return at - at % BUCKET_S


def _tokens(usage: _Usage) -> TokenCount:
    written = count(usage.cache_creation_input_tokens)
    lifetimes = usage.cache_creation if isinstance(usage.cache_creation, dict) else {}
    long = min(written, count(lifetimes.get("ephemeral_1h_input_tokens")))
    reads, output = count(usage.cache_read_input_tokens), count(usage.output_tokens)
    return TokenCount(count(usage.input_tokens), written - long, long, reads, output, 1)
