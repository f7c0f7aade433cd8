"""The parts of a transcript's record for a reader: prompts, replies, tool calls with what they were given, results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from sm.clock import parse_iso
from sm.core.ports.provider import PartKind, TranscriptPart
from sm.providers.claude import authorship
from sm.providers.jsonl import decoded, well_formed
from sm.providers.tool_input import named_members

SPEAKERS = (b'"user"', b'"assistant"', b'"compact_boundary"', b'"queued_command"')
MAX_CHARS = 200_000
"""Characters of one part."""


class _Message(msgspec.Struct):
    content: Any = None
    model: Any = None


class _Record(msgspec.Struct, rename="camel"):
    type: Any = None
    subtype: Any = None
    is_meta: Any = None
    is_sidechain: Any = None
    is_compact_summary: Any = None
    timestamp: Any = None
    message: _Message | None = None
    attachment: Any = None


_RECORD = msgspec.json.Decoder(_Record)
_SHAPE: dict[str, Any] = {"message": {}}


def parts(line: bytes) -> tuple[TranscriptPart, ...]:
    if not any(speaker in line for speaker in SPEAKERS):
        return ()
    record = decoded(_RECORD, line, _SHAPE)
    if record is None or record.is_sidechain is True:
        return ()
    return tuple(part for part in _parts(record, _time(record.timestamp)) if part.text.strip() or part.tool)


def _parts(record: _Record, at: float | None) -> Iterator[TranscriptPart]:
    if record.type == "system" and record.subtype == "compact_boundary":
        yield TranscriptPart(PartKind.COMPACTED, "The client has compacted the context", at)
    elif record.type == "attachment" and isinstance(record.attachment, dict):
        if record.attachment.get("type") == "queued_command":
            yield _spoken(record, authorship.text(record.attachment.get("prompt")), at)
    elif record.message is not None and record.type == "assistant":
        yield from _reply(record.message.content, at)
    elif record.message is not None and record.type == "user":
        yield from _prompt(record, record.message.content, at)


def _reply(content: object, at: float | None) -> Iterator[TranscriptPart]:
    if isinstance(content, str):
        yield TranscriptPart(PartKind.AGENT, _cut(content), at)
    for block in authorship.blocks(content):
        if block.get("type") == "text":
            yield TranscriptPart(PartKind.AGENT, _cut(block.get("text")), at)
        elif block.get("type") == "tool_use":
            name, call = _cut(block.get("name")) or "tool", _cut(block.get("id"))
            yield TranscriptPart(PartKind.CALL, _given(block.get("input")), at, name, call)


def _prompt(record: _Record, content: object, at: float | None) -> Iterator[TranscriptPart]:
    for block in authorship.blocks(content):
        if block.get("type") == "tool_result":
            call, said = _cut(block.get("tool_use_id")), _cut(authorship.text(block.get("content")))
            yield TranscriptPart(PartKind.RESULT, said, at, "result", call, block.get("is_error") is True)
    for words in authorship.texts(content):
        yield _spoken(record, words, at)


def _spoken(record: _Record, words: str, at: float | None) -> TranscriptPart:
    clients = True in (record.is_meta, record.is_compact_summary) or words.startswith(authorship.MACHINE_WORDS)
    return TranscriptPart(PartKind.CLIENT if clients else PartKind.USER, _cut(words), at)


def _given(value: object) -> str:
    """Return what a tool was given: a lone text as it is, members with their names otherwise."""
    members = value if isinstance(value, dict) else {"input": value}
    return _cut(named_members(members))


def _cut(text: object) -> str:
    return well_formed(text[:MAX_CHARS]) if isinstance(text, str) else ""


def _time(stamp: object) -> float | None:
    try:
        return parse_iso(stamp) if isinstance(stamp, str) else None
    except ValueError:
        return None
