"""Whether a tool call has come back: the client writes its result to the transcript as soon as it ends (2.1.328)."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from sm.core.model.ask import AskRequest
from sm.providers import jsonl

MAX_LOOK_BYTES = 4 << 20
MARKS = (b'"tool_result"', b'"tool_use"')


class _Block(msgspec.Struct):
    type: str = ""
    id: str = ""
    tool_use_id: str = ""
    name: str = ""
    input: Any = None


class _Message(msgspec.Struct):
    content: list[_Block]


class _Record(msgspec.Struct):
    message: _Message
    timestamp: datetime


_RECORD = msgspec.json.Decoder(_Record)


def came_back(transcript: Path, request: AskRequest, since: float) -> bool:
    """Return whether a call as in the request has had its result since then."""
    returned: set[str] = set()
    given = msgspec.json.decode(request.input)
    for line in jsonl.newest_lines(transcript, MARKS, within=MAX_LOOK_BYTES):
        for block in _blocks(line, since, returned):
            if (block.name, block.input) == (request.tool, given):
                return True
    return False


def _blocks(line: bytes, since: float, returned: set[str]) -> list[_Block]:
    """Note the calls whose results a line has; return those calls that it makes and that are noted."""
    try:
        record = _RECORD.decode(line)
    except (ValueError, RecursionError):
        return []
    if record.timestamp.timestamp() >= since:
        returned |= {block.tool_use_id for block in record.message.content if block.type == "tool_result"}
    return [block for block in record.message.content if block.type == "tool_use" and block.id in returned]
