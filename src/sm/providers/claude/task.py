"""What the agent was last asked to do, by its transcript: the newest prompt that says more than to continue."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import msgspec

from sm.core.model.usage_limit import RESUME_WORDS
from sm.providers.claude.authorship import user_text
from sm.providers.claude.limit_notices import CONTINUATIONS
from sm.providers.claude.traits import CLAUDE
from sm.providers.jsonl import decoded, newest_lines

MAX_RECORDS = 50_000
"""Records of the user's side from the end that are looked at: each tool result is one."""
MAX_RECORD_BYTES = 1 << 20


class _Message(msgspec.Struct):
    content: Any = None


class _Record(msgspec.Struct, rename="camel"):
    type: Any = None
    is_meta: Any = None
    is_compact_summary: Any = None
    is_sidechain: Any = None
    message: _Message | None = None


RECORD = msgspec.json.Decoder(_Record)
_SHAPE: dict[str, Any] = {"message": {}}
PROMPT = (b'"type":"user"',)


def newest_task(transcript: Path) -> str:
    prompts = map(_prompt, itertools.islice(newest_lines(transcript, PROMPT, longest=MAX_RECORD_BYTES), MAX_RECORDS))
    return next((text for text in prompts if text and not text.startswith((RESUME_WORDS, *CONTINUATIONS))), "")


def _prompt(line: bytes) -> str:
    if b'"tool_result"' in line:
        return ""
    record = decoded(RECORD, line, _SHAPE)
    if record is None or record.type != "user" or record.message is None:
        return ""
    if True in {record.is_meta, record.is_compact_summary, record.is_sidechain}:
        return ""
    return CLAUDE.as_typed(user_text(record.message.content) or "")
