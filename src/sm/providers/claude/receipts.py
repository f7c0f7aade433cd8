"""Whether a message has reached the agent, by the newest records of the transcript.

A hook's reply is written there as an attachment within 0.2 s, between parallel tool calls too; what the plugin adds,
with the request that carries it (2.1.328), or at once as the client's own words, which the next request carries
(2.1.290). What was typed while the client worked is written as a queued command or, once its turn begins, as a prompt.
The agent's own calls and their output do not count: `sm inbox` prints the same ids.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from sm.providers.jsonl import after_last_line, lines_backward, opened

MAX_RECORDS = 2_000
"""Records from the end that are looked at."""
MAX_BYTES = 16 << 20
"""Bytes of them."""
MAX_RECORD_BYTES = 1 << 20


class _Record(msgspec.Struct, rename="camel"):
    type: Any = None
    attachment: dict[str, Any] | None = None
    message: dict[str, Any] | None = None
    is_meta: Any = None


TOLD = frozenset({"hook_additional_context", "plugin_note", "queued_command"})
"""Types of attachments that carry words to the agent."""
NOTE = "<system-reminder>"
"""How the plugin begins what it adds."""
RECORD = msgspec.json.Decoder(_Record)


def shown(transcript: Path, marks: Mapping[str, int]) -> frozenset[str] | None:
    """Return the marks that the agent has received; None if the file cannot be read.

    Each mark has the size of the file when it was handed over: what is before that offset belongs to another message.
    Timestamps would not do, since they are from the client's clock.
    """
    found: set[str] = set()
    try:
        with opened(transcript) as descriptor:
            stop = after_last_line(descriptor)
            start = max(0, os.fstat(descriptor).st_size - MAX_BYTES)
            for position in sorted(set(marks.values()), reverse=True):
                wanted = [mark for mark in marks if marks[mark] == position]
                found.update(_found(descriptor, wanted, max(start, position), stop))
    except FileNotFoundError:
        return frozenset()  # the client begins it with the first prompt
    except (OSError, ValueError):
        return None
    return frozenset(found)


def _found(descriptor: int, wanted: Sequence[str], start: int, stop: int) -> set[str]:
    found: set[str] = set()
    asked = False
    lines = lines_backward((b'"attachment"', b'"user"'), descriptor, start, stop, longest=MAX_RECORD_BYTES)
    for record in filter(None, map(_decoded, itertools.islice(lines, MAX_RECORDS))):
        text = _told(record)
        if record.is_meta is True and text.startswith(NOTE):
            text = text if asked else ""  # no request since then: the reply that was under way has not read it
        elif record.type == "user":
            asked = True
        found.update(mark for mark in wanted if mark in text)
        if len(found) == len(wanted):
            break
    return found


def _decoded(line: bytes) -> _Record | None:
    try:
        return RECORD.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _told(record: _Record) -> str:
    if record.type == "user":
        return _text((record.message or {}).get("content"))
    attachment = record.attachment or {}
    if record.type != "attachment" or attachment.get("type") not in TOLD:
        return ""
    return _text(attachment.get("content", attachment.get("prompt")))


def _text(content: object) -> str:
    """The words of a text, of several texts, or of blocks; a tool's result is none of them."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part if isinstance(part, str) else str(part.get("text", "")) for part in parts if part)
