"""What Claude Code's transcript says about the context, and the words that end a turn.

The last real reply of the main conversation after the newest compaction is the reading; order is file order, so after
a rewind the abandoned branch counts until the next reply is written. A newer reply without usable counters, as some
gateways write it, makes the reading stale. The counts are of the conversation's own rows: those a fork has copied name
another session. Usage arithmetic has its home here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from sm.core.model.context import ContextReading, Source
from sm.providers import jsonl
from sm.providers.claude.authorship import SYNTHETIC, text
from sm.providers.jsonl import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MARKS = (b'"assistant"', b'"compact_boundary"')
SPEECH = (b'"assistant"', b'"user"')
CONVERSATION = frozenset({"user", "assistant", "system"})
"""Types of the records that a fork copies."""


class _Usage(msgspec.Struct):
    input_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_read_input_tokens: Any = None
    output_tokens: Any = None
    iterations: Any = None
    """The requests that one turn took where a tool of the server's came between; the members above are their sums."""


class _Message(msgspec.Struct):
    id: Any = None
    model: Any = None
    usage: _Usage | None = None
    stop_reason: Any = None


class _CompactMetadata(msgspec.Struct, rename="camel"):
    trigger: Any = None
    pre_tokens: Any = None
    post_tokens: Any = None


class _Record(msgspec.Struct, rename="camel"):
    type: Any = None
    subtype: Any = None
    is_sidechain: Any = None
    session_id: Any = None
    message: _Message | None = None
    compact_metadata: _CompactMetadata | None = None


class _Speech(msgspec.Struct):
    id: Any = None
    model: Any = None
    content: Any = None


class _Spoken(msgspec.Struct, rename="camel"):
    type: Any = None
    is_sidechain: Any = None
    is_meta: Any = None
    message: _Speech | None = None


_RECORD = msgspec.json.Decoder(_Record)
_RECORD_SHAPE: dict[str, Any] = {"message": {"usage": {}}, "compactMetadata": {}}
_SPOKEN = msgspec.json.Decoder(_Spoken)
_SPOKEN_SHAPE: dict[str, Any] = {"message": {}}


@dataclass(frozen=True, slots=True)
class _Reply:
    key: object
    model: str | None
    tokens: int
    output_tokens: int
    """Over all its requests."""
    last_output: int
    """Of its last request alone."""
    calls: bool = False
    """It ends with a tool call, which the client answers by another request."""

    def replaces(self, earlier: _Reply | None) -> bool:
        """False for a copy of a reply that says less than the one before: it was written while that still ran."""
        return earlier is None or earlier.key != self.key or self.output_tokens >= earlier.output_tokens


@dataclass(frozen=True, slots=True)
class _Blank:
    """A reply without usable counters."""

    key: object

    def copies(self, reply: _Reply) -> bool:
        return self.key is not None and self.key == reply.key


@dataclass(frozen=True, slots=True)
class _Boundary:
    before: int | None
    after: int | None
    """None in older clients' records."""
    automatic: bool


@dataclass(slots=True)
class _Accumulator:
    reply: _Reply | None = None
    boundary: _Boundary | None = None
    compacted: bool = False
    """True while the boundary is later than the reply."""
    blank: _Blank | None = None
    """The newest reply, where it has no usable counters."""
    compactions: int = 0
    replies: jsonl.Replies = field(default_factory=jsonl.Replies)
    session: object = None
    """Of the rows that are counted."""

    @classmethod
    def from_newest(cls, search: Callable[[jsonl.Words], Iterator[bytes]]) -> _Accumulator:
        accumulator = cls()
        for news in map(_news, map(_record, search(MARKS))):
            if not accumulator._take_older(news):
                break
        return accumulator

    def _take_older(self, news: _Reply | _Blank | _Boundary | None) -> bool:
        """Take in what is older than everything so far; False once nothing older matters."""
        match news:
            case _Reply():
                if self.reply is not None and news.key != self.reply.key:
                    return False
                if self.reply is None or not self.reply.replaces(news):
                    self.reply = news  # further copies of it are close together
            case _Boundary():
                if self.reply is not None:
                    return False
                if self.boundary is None:
                    self.boundary, self.compacted = news, True  # the search continues for the model
            case _Blank() if self.reply is None and self.boundary is None:
                self.blank = self.blank or news
        return True

    def add(self, line: bytes) -> bool:
        record = _record(line)
        if record is not None and record.type in CONVERSATION:
            self._count_from(record.session_id)
        match _news(record):
            case _Reply() as reply:
                self.replies.note(reply.key, reply.output_tokens)
                if reply.replaces(self.reply):
                    self.reply, self.compacted, self.blank = reply, False, None
            case _Boundary() as boundary:
                self.boundary, self.compacted, self.blank = boundary, True, None
                self.compactions += 1
            case _Blank() as blank:
                self.blank = blank
        return record is not None

    def _count_from(self, session: object) -> None:
        """What came before the conversation's own rows was copied from another."""
        if isinstance(session, str) and session != self.session:
            if self.session is not None:
                self.replies, self.compactions = jsonl.Replies(), 0
            self.session = session

    def reading(self) -> ContextReading:
        tokens, projected, source = self._size()
        return ContextReading(
            tokens=tokens,
            projected=projected,
            source=source,
            exact=source is Source.USAGE,
            lower_bound=source is Source.BOUNDARY,
            stale=self.blank is not None and not (self.reply and self.blank.copies(self.reply)),
            continues=self.reply is not None and self.reply.calls,
            model=self.reply.model if self.reply else None,
            compactions=self.compactions,
            messages=self.replies.messages,
            output_tokens=self.replies.output_tokens,
            boundary=(self.boundary.before, self.boundary.after) if self.boundary else None,
            automatic=self.boundary is not None and self.boundary.automatic,
        )

    def _size(self) -> tuple[int | None, int | None, Source]:
        if self.reply and not self.compacted:
            return self.reply.tokens, self.reply.tokens + self.reply.last_output, Source.USAGE
        if self.boundary and self.boundary.after:
            return self.boundary.after, self.boundary.after, Source.BOUNDARY
        return None, None, Source.UNKNOWN


class TranscriptReader(jsonl.TranscriptReader):
    accumulator = _Accumulator
    words = MARKS


def last_reply_text(path: Path, *, since: int = 0) -> str | None:
    """The text that ends the turn, None if it is not on disk (at Stop it never is: it lands 26 to 92 ms later).

    It comes after every prompt and tool result, so a text before one of those belongs to an earlier request. Pass as
    `since` the size the file had when the turn began, for a prompt may be missing on disk as well.
    """
    return _closing_text(jsonl.newest_lines(path, SPEECH, start=since, longest=jsonl.MAX_REPLY_BYTES))


def _record(line: bytes) -> _Record | None:
    return jsonl.decoded(_RECORD, line, _RECORD_SHAPE)


def _spoken(line: bytes) -> _Spoken | None:
    return jsonl.decoded(_SPOKEN, line, _SPOKEN_SHAPE)


def _news(record: _Record | None) -> _Reply | _Blank | _Boundary | None:
    """What a record tells about the main conversation's context."""
    if record is None or record.is_sidechain is True:
        return None
    if record.type == "assistant" and record.message and record.message.model != SYNTHETIC:
        return _reply(record.message)
    if record.type == "system" and record.subtype == "compact_boundary":
        return _boundary(record.compact_metadata or _CompactMetadata())
    return None


def _reply(message: _Message) -> _Reply | _Blank:
    usage = message.usage or _Usage()
    tokens, last_output = _last_request(usage)
    if not tokens:
        return _Blank(message.id)
    model = message.model if isinstance(message.model, str) else None
    calls = message.stop_reason == "tool_use"
    return _Reply(message.id, model, tokens, max(count(usage.output_tokens), last_output), last_output, calls)


def _last_request(usage: _Usage) -> tuple[int, int]:
    """Prompt and output tokens of the request that the next one continues from."""
    iterations = usage.iterations if isinstance(usage.iterations, list) else []
    messages = [found for found in iterations if isinstance(found, dict) and found.get("type") == "message"]
    for message in reversed(messages):
        if tokens := sum(count(message.get(name)) for name in PROMPT):
            return tokens, count(message.get("output_tokens"))
    return sum(count(getattr(usage, name)) for name in PROMPT), count(usage.output_tokens)


PROMPT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""The nested `cache_creation` repeats the second by lifetime, so it is no further part."""


def _boundary(metadata: _CompactMetadata) -> _Boundary:
    before, after = count(metadata.pre_tokens) or None, count(metadata.post_tokens) or None
    return _Boundary(before, after, metadata.trigger == "auto")


def _closing_text(newest_first: Iterator[bytes]) -> str | None:
    parts: list[str] = []
    key = None
    for spoken in map(_spoken, newest_first):
        if spoken is None or _asks(spoken):
            break
        if spoken.type != "assistant" or spoken.is_sidechain is True or not (message := spoken.message):
            continue
        if parts and message.id != key:
            break
        key = message.id
        parts.append("" if message.model == SYNTHETIC else text(message.content))
    return "\n".join(filter(None, reversed(parts))) or None


def _asks(spoken: _Spoken) -> bool:
    """True for a prompt or tool result, which the model has yet to answer."""
    return spoken.type == "user" and spoken.is_sidechain is not True and spoken.is_meta is not True
