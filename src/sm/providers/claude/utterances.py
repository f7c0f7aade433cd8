"""What the records of a transcript say in words: prompts, replies, tool calls and what came back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from sm.clock import parse_iso
from sm.core.ports.provider import Utterance
from sm.providers.jsonl import decoded, well_formed

SPEAKERS = (b'"user"', b'"assistant"')
MAX_CHARS = 200_000
"""Characters of one utterance."""


class _Message(msgspec.Struct):
    content: Any = None


class _Record(msgspec.Struct, rename="camel"):
    type: Any = None
    is_meta: Any = None
    timestamp: Any = None
    message: _Message | None = None


_RECORD = msgspec.json.Decoder(_Record)
_SHAPE: dict[str, Any] = {"message": {}}


def utterance(line: bytes) -> Utterance | None:
    if not any(speaker in line for speaker in SPEAKERS):
        return None
    record = decoded(_RECORD, line, _SHAPE)
    if record is None or record.type not in {"user", "assistant"} or record.is_meta is True or record.message is None:
        return None
    text = well_formed("\n".join(_said(record.message.content))[:MAX_CHARS])
    return Utterance(text, _time(record.timestamp)) if text.strip() else None


def _said(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield from _block(block)


def _block(block: dict[str, Any]) -> Iterator[str]:
    kind = block.get("type")
    if kind == "text":
        yield str(block.get("text", ""))
    elif kind == "tool_use":
        given = block.get("input")
        values = given.values() if isinstance(given, dict) else ()
        yield "\n".join([str(block.get("name", "")), *(value for value in values if isinstance(value, str))])
    elif kind == "tool_result":
        yield from _said(block.get("content"))


def _time(stamp: object) -> float | None:
    try:
        return parse_iso(stamp) if isinstance(stamp, str) else None
    except ValueError:
        return None
