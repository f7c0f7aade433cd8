"""Whether a message has reached the agent, by the newest records of the transcript.

What a hook's reply carried stands there as an attachment within 0.2 s, in the middle of parallel tools too; what was
typed while the client worked as a queued command or, once its turn begins, as a prompt (2.1.328). The agent's own calls
and what they print are not looked at: `sm inbox` shows the same ids.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import msgspec

from sm.clock import parse_iso
from sm.providers.jsonl import after_last_line, lines_backward, opened

LOOK_BACK = 2_000
"""Records from the end that are looked at."""
STRETCH = 16 << 20
"""Bytes of them."""
LONGEST = 1 << 20
ROUNDED = 0.005
"""Seconds: records have their time in milliseconds."""
DISORDER = 60.0
"""Seconds by which a record may be older than the one before it: a queued prompt has the time it was typed."""


class _Record(msgspec.Struct, rename="camel"):
    type: Any = None
    timestamp: Any = None
    attachment: dict[str, Any] | None = None
    message: dict[str, Any] | None = None


RECORD = msgspec.json.Decoder(_Record)


def shown(transcript: Path, marks: tuple[str, ...], since: float) -> frozenset[str] | None:
    """Which of the marks were told to the agent and not before `since`; None if the file cannot be read."""
    found: set[str] = set()
    try:
        with opened(transcript) as descriptor:
            stop = after_last_line(descriptor)
            start = max(0, os.fstat(descriptor).st_size - STRETCH)
            lines = lines_backward((b'"attachment"', b'"user"'), descriptor, start, stop, longest=LONGEST)
            for record in filter(None, map(_decoded, itertools.islice(lines, LOOK_BACK))):
                early = since - ROUNDED - _time(record, since)
                if early > DISORDER or len(found) == len(set(marks)):
                    break
                if early <= 0:
                    text = _told(record)
                    found.update(mark for mark in marks if mark in text)
    except FileNotFoundError:
        return frozenset()  # the client begins it with the first prompt
    except (OSError, ValueError):
        return None
    return frozenset(found)


def _decoded(line: bytes) -> _Record | None:
    try:
        return RECORD.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _time(record: _Record, unknown: float) -> float:
    try:
        return parse_iso(str(record.timestamp))
    except ValueError:
        return unknown


def _told(record: _Record) -> str:
    if record.type == "user":
        return _text((record.message or {}).get("content"))
    attachment = record.attachment or {}
    if record.type != "attachment" or attachment.get("type") not in {"hook_additional_context", "queued_command"}:
        return ""
    return _text(attachment.get("content", attachment.get("prompt")))


def _text(content: object) -> str:
    """The words of a text, of several texts, or of blocks; a tool's result is none of them."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part if isinstance(part, str) else str(part.get("text", "")) for part in parts if part)
