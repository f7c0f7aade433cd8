"""What Claude Code's transcript says about the context, and the words that end a turn.

The last real reply of the main conversation after the newest compaction is the reading; order is file order, so after
a rewind the abandoned branch counts until the next reply is written. Usage arithmetic has its home here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from sm.core.context import ContextReading, Source
from sm.providers import jsonl
from sm.providers.claude.voices import SYNTHETIC, text
from sm.providers.jsonl import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MARKS = (b'"assistant"', b'"compact_boundary"')
SPEECH = (b'"assistant"', b'"user"')


class _Usage(msgspec.Struct):
    input_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_read_input_tokens: Any = None
    output_tokens: Any = None


class _Message(msgspec.Struct):
    id: Any = None
    model: Any = None
    usage: _Usage | None = None


class _CompactMetadata(msgspec.Struct, rename="camel"):
    pre_tokens: Any = None
    post_tokens: Any = None


class _Record(msgspec.Struct, rename="camel"):
    type: Any = None
    subtype: Any = None
    is_sidechain: Any = None
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


@dataclass(frozen=True, slots=True)
class _Boundary:
    before: int | None
    after: int | None
    """None in older clients' records."""


@dataclass(slots=True)
class _Tally:
    reply: _Reply | None = None
    boundary: _Boundary | None = None
    compacted: bool = False
    """True while the boundary is later than the reply."""
    compactions: int = 0
    replies: jsonl.Replies = field(default_factory=jsonl.Replies)

    @classmethod
    def recall(cls, search: Callable[[jsonl.Words], Iterator[bytes]]) -> _Tally:
        tally = cls()
        for news in map(_news, map(_record, search(MARKS))):
            if isinstance(news, _Reply):
                tally.reply = news
                break
            if news and not tally.boundary:
                tally.boundary, tally.compacted = news, True  # the search goes on for the model
        return tally

    def add(self, line: bytes) -> bool:
        record = _record(line)
        news = _news(record)
        if isinstance(news, _Reply):
            self.reply, self.compacted = news, False
            self.replies.note(news.key, news.output_tokens)
        elif news:
            self.boundary, self.compacted = news, True
            self.compactions += 1
        return record is not None

    def reading(self) -> ContextReading:
        tokens, projected, source = self._size()
        return ContextReading(
            tokens=tokens,
            projected=projected,
            source=source,
            exact=source is Source.USAGE,
            lower_bound=source is Source.BOUNDARY,
            model=self.reply.model if self.reply else None,
            compactions=self.compactions,
            messages=self.replies.messages,
            output_tokens=self.replies.output_tokens,
            boundary=(self.boundary.before, self.boundary.after) if self.boundary else None,
        )

    def _size(self) -> tuple[int | None, int | None, Source]:
        if self.reply and not self.compacted:
            return self.reply.tokens, self.reply.tokens + self.reply.output_tokens, Source.USAGE
        if self.boundary and self.boundary.after:
            return self.boundary.after, self.boundary.after, Source.BOUNDARY
        return None, None, Source.UNKNOWN


class TranscriptReader(jsonl.TranscriptReader):
    tally = _Tally
    words = MARKS


def last_reply_text(path: Path, *, since: int = 0) -> str | None:
    """The text that ends the turn, None if it is not on disk (at Stop it never is: it lands 26 to 92 ms later).

    It stands after every prompt and tool result, so whatever stands before one belongs to an earlier request. Pass as
    `since` the size the file had when the turn began, for a prompt may be missing on disk as well.
    """
    try:
        with jsonl.opened(path) as fd:
            stop = jsonl.after_last_line(fd)
            return _closing_text(jsonl.lines_backward(SPEECH, fd, since, stop, longest=jsonl.LONGEST_REPLY))
    except (OSError, ValueError):
        return None


def _record(line: bytes) -> _Record | None:
    return jsonl.decoded(_RECORD, line, _RECORD_SHAPE)


def _spoken(line: bytes) -> _Spoken | None:
    return jsonl.decoded(_SPOKEN, line, _SPOKEN_SHAPE)


def _news(record: _Record | None) -> _Reply | _Boundary | None:
    """What a record tells about the main conversation's context."""
    if record is None or record.is_sidechain is True:
        return None
    if record.type == "assistant" and record.message:
        return _reply(record.message)
    if record.type == "system" and record.subtype == "compact_boundary":
        return _boundary(record.compact_metadata or _CompactMetadata())
    return None


def _reply(message: _Message) -> _Reply | None:
    usage = message.usage
    if usage is None or message.model == SYNTHETIC:
        return None
    # The nested `cache_creation` repeats cache_creation_input_tokens by lifetime, so it is no further part.
    prompt = (usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens)
    tokens = sum(map(count, prompt))
    model = message.model if isinstance(message.model, str) else None
    return _Reply(message.id, model, tokens, count(usage.output_tokens)) if tokens else None


def _boundary(metadata: _CompactMetadata) -> _Boundary:
    return _Boundary(count(metadata.pre_tokens) or None, count(metadata.post_tokens) or None)


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
