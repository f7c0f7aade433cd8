"""What a Codex rollout says about the context, and where the client compacts it.

The later of `token_usage_record` and `token_count` is the reading: the record is on disk first, the event repeats it
once the tools have run. Only `last_token_usage` counts, for `total_token_usage` is what the thread has cost so far.
After a compaction only a `token_count` counts, and one without input is the size that the compaction left behind. The
counts are of the thread's own rows: what a fork has copied behind its first record was written at the fork's start. A
fork of 0.171.0 copies nothing, and names the rollout that it continues instead.

Where the model refuses a request as too long, the client counts the whole window, without input as after a compaction;
only behind a `compacted` such a count is what a compaction has left (0.171.0).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from sm.clock import parse_iso
from sm.core.model.capacity import ClientLimits
from sm.core.model.context import ContextReading, Source
from sm.providers import jsonl
from sm.providers.jsonl import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MARKS = (
    *(b'"token_count"', b'"token_usage_record"', b'"compacted"', b'"task_started"', b'"turn_context"'),
    *(b'"function_call"', b'"custom_tool_call"', b'"task_complete"', b'"turn_aborted"'),
)
FORK_COPY_S = 1.0
"""Seconds from a fork's first record within which it writes its copies."""
REPORTED_SHARE, COMPACTED_SHARE = 95, 90
"""Percent of a model's window: what the client reports as the window, and where it compacts."""
MODEL_MARKS = (b'"turn_context"',)
WINDOW_MARKS = (b'"task_started"', b'"token_count"')


RECORD_TYPES = frozenset(
    {"session_meta", "turn_context", "event_msg", "response_item", "compacted", "token_usage_record", "world_state"}
)


def is_rollout(head: bytes) -> bool:
    """Whether a file that begins like this is a rollout: its first whole record has a type and a payload of Codex."""
    for line in head.split(b"\n"):
        try:
            record = _RECORD.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        return record.type in RECORD_TYPES and record.payload is not None
    return False


class _Usage(msgspec.Struct):
    input_tokens: Any = None
    """Cached tokens included."""
    output_tokens: Any = None
    total_tokens: Any = None


class _Info(msgspec.Struct):
    last_token_usage: _Usage | None = None
    total_token_usage: _Usage | None = None
    model_context_window: Any = None


class _Payload(msgspec.Struct):
    type: Any = None
    model: Any = None
    response_id: Any = None
    usage: _Usage | None = None
    info: _Info | None = None
    model_context_window: Any = None
    forked_from_id: Any = None
    history_base: Any = None


class _Record(msgspec.Struct):
    type: Any = None
    timestamp: Any = None
    payload: _Payload | None = None


_RECORD = msgspec.json.Decoder(_Record)
_SHAPE: dict[str, Any] = {"payload": {"usage": {}, "info": {"last_token_usage": {}, "total_token_usage": {}}}}


@dataclass(frozen=True, slots=True)
class _Size:
    tokens: int | None
    total: int | None
    source: Source


UNKNOWN = _Size(None, None, Source.UNKNOWN)


@dataclass(slots=True)
class _Accumulator:
    size: _Size = UNKNOWN
    model: str | None = None
    window: int | None = None
    boundary: tuple[int | None, int | None] | None = None
    awaiting_count: bool = False
    """True from a compaction to the first token_count after it."""
    compactions: int = 0
    writes_records: bool = False
    """Clients before token_usage_record tell of their replies by token_count alone."""
    replies: jsonl.Replies = field(default_factory=jsonl.Replies)
    stale: bool = False
    """True while a reply without usable counters is the newest."""
    called: bool = False
    """A tool was called since the last record of a reply."""
    continues: bool = False
    """The newest reply calls a tool: another request follows."""
    copied_until: float | None = None
    """Records of a fork that were written before this are copies; None for a thread that is no fork."""

    @classmethod
    def from_newest(cls, search: Callable[[jsonl.Words], Iterator[bytes]]) -> _Accumulator:
        accumulator = cls()
        for kind, payload in reversed(_since_last_size(_records(search(MARKS)))):
            accumulator.note(kind, payload)
        accumulator.model = accumulator.model or _told(search(MODEL_MARKS)).model
        accumulator.window = accumulator.window or _told(search(WINDOW_MARKS)).window
        return accumulator

    def add(self, line: bytes) -> bool:
        record = _record(line)
        if record:
            payload = record.payload or _Payload()
            copied = payload.forked_from_id is not None and payload.history_base is None
            if record.type == "session_meta" and copied:
                self.copied_until = _time(record.timestamp, 0.0) + FORK_COPY_S
            self.note(record.type, payload)
            if self.copied_until is not None and record.type != "session_meta":
                self._begin_own(record)
        return record is not None

    def _begin_own(self, record: _Record) -> None:
        """Forget the counts of what was copied, until the first record that is the thread's own."""
        until = self.copied_until or 0.0
        if _time(record.timestamp, math.inf) <= until:
            self.replies, self.compactions = jsonl.Replies(), 0
        else:
            self.copied_until = None

    def note(self, kind: object, payload: _Payload) -> None:
        match kind, payload.type:
            case "turn_context", _:
                self.model = payload.model if isinstance(payload.model, str) else self.model
            case "token_usage_record", _:
                self._note_record(payload)
            case "compacted", _:
                self._note_compaction()
            case "response_item", "function_call" | "custom_tool_call":
                self.called = True
            case "event_msg", "task_complete" | "turn_aborted":
                self.called = self.continues = False
            case "event_msg", "token_count":
                self._note_count(payload.info or _Info())
            case "event_msg", "task_started":
                self.window = count(payload.model_context_window) or self.window

    def reading(self) -> ContextReading:
        return ContextReading(
            tokens=self.size.tokens,
            projected=self.size.total,
            source=self.size.source,
            exact=self.size.source is Source.USAGE,
            stale=self.stale,
            lower_bound=self.size.source is Source.BOUNDARY,
            continues=self.continues,
            model=self.model,
            window=self.window,
            compactions=self.compactions,
            messages=self.replies.messages,
            output_tokens=self.replies.output_tokens,
            boundary=self.boundary,
        )

    def _note_record(self, payload: _Payload) -> None:
        usage = payload.usage or _Usage()
        size = _size(usage)
        self.stale = size is UNKNOWN
        if size is UNKNOWN:
            return
        self.writes_records = True
        self.continues, self.called = self.called, False
        self.replies.note(payload.response_id, count(usage.output_tokens))
        if not self.awaiting_count:  # else it may be the compaction's own request
            self.size = size

    def _note_compaction(self) -> None:
        self.boundary = (self.size.total, None)
        self.size, self.awaiting_count = UNKNOWN, True
        self.compactions += 1

    def _note_count(self, info: _Info) -> None:
        self.window = count(info.model_context_window) or self.window
        usage = info.last_token_usage or _Usage()
        size = _size(usage)
        if size is UNKNOWN:
            self.stale = self.stale or info.last_token_usage is not None
            return
        left = self.awaiting_count
        self.size, self.awaiting_count, self.stale = size, False, False
        if size.source is Source.BOUNDARY:
            self.boundary = (self.boundary[0], size.total) if left and self.boundary else self.boundary
        elif not self.writes_records and info.total_token_usage:
            # The event comes again when rate limits change; the sum over the thread tells one reply from the next.
            self.replies.note(count(info.total_token_usage.total_tokens), count(usage.output_tokens))


def compacts_at(window: int | None, limits: ClientLimits) -> int | None:
    """Return the tokens at which the client compacts, of a window as it reports it; None if nothing tells.

    It reports 95 % of the model's window and compacts at 90 % of it, or at `model_auto_compact_token_limit` if that is
    less: at the start of a turn exactly there, within one some tokens earlier, as it adds what its tools have returned
    since it last counted. A configured window is cut to what the model can have (0.171.0).
    """
    own = None if window is None else window * COMPACTED_SHARE // REPORTED_SHARE
    return min((tokens for tokens in (own, limits.auto_compact) if tokens is not None), default=None)


class TranscriptReader(jsonl.TranscriptReader):
    accumulator = _Accumulator
    words = MARKS


def _record(line: bytes) -> _Record | None:
    return jsonl.decoded(_RECORD, line, _SHAPE)


def _records(lines: Iterator[bytes]) -> Iterator[tuple[object, _Payload]]:
    return ((record.type, record.payload or _Payload()) for record in map(_record, lines) if record)


def _since_last_size(newest_first: Iterator[tuple[object, _Payload]]) -> list[tuple[object, _Payload]]:
    """The newest records, newest first, back to the one that makes all before it void."""
    taken = []
    for kind, payload in newest_first:
        taken.append((kind, payload))
        counted = payload.info is not None and _size(payload.info.last_token_usage).source is Source.USAGE
        if kind == "compacted" or (kind == "event_msg" and counted):
            break
    return taken


def _told(newest_first: Iterator[bytes]) -> _Accumulator:
    """The newest model or window; both are written at the start of every turn."""
    accumulator = _Accumulator()
    for kind, payload in _records(newest_first):
        accumulator.note(kind, payload)
        if accumulator.model or accumulator.window:
            break
    return accumulator


def _time(stamp: object, unknown: float) -> float:
    try:
        return parse_iso(str(stamp))
    except ValueError:
        return unknown


def _size(usage: _Usage | None) -> _Size:
    if usage is None:
        return UNKNOWN
    tokens = count(usage.input_tokens)
    total = count(usage.total_tokens) or tokens + count(usage.output_tokens)
    if tokens:
        return _Size(tokens, total, Source.USAGE)
    return _Size(total, total, Source.BOUNDARY) if total else UNKNOWN
