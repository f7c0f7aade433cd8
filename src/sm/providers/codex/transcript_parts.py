"""The parts of a rollout's record for a reader: prompts, replies, plans, tool calls, results (Codex 0.171.0)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from sm.core.ports.provider import PartKind, TranscriptPart
from sm.providers.codex.records import RolloutRecord, rollout_record, string, text
from sm.providers.codex.utterances import CALLS, RESULTS, USER_SHELL, command_line
from sm.providers.tool_input import named_members

SPEAKERS = (b'"item_completed"', b'"function_call', b'"custom_tool_call', b'"compacted"')
MAX_CHARS = 200_000
"""Characters of one part."""


def parts(line: bytes) -> tuple[TranscriptPart, ...]:
    record = rollout_record(line) if any(speaker in line for speaker in SPEAKERS) else None
    if record is None:
        return ()
    return tuple(part for part in _parts(record) if part.text.strip() or part.tool)


def _parts(record: RolloutRecord) -> Iterator[TranscriptPart]:
    item, payload, at = record.item, record.payload, record.at
    if record.type == "compacted":
        yield TranscriptPart(PartKind.COMPACTED, "The client has compacted the context", at)
    elif item.get("type") == "UserMessage":
        yield TranscriptPart(PartKind.USER, text(item.get("content"))[:MAX_CHARS], at)
    elif item.get("type") == "AgentMessage":
        yield TranscriptPart(PartKind.AGENT, text(item.get("content"))[:MAX_CHARS], at)
    elif item.get("type") == "Plan":
        yield TranscriptPart(PartKind.AGENT, string(item, "text")[:MAX_CHARS], at)
    elif item.get("source") == USER_SHELL:
        yield TranscriptPart(PartKind.CALL, command_line(item), at, "shell of the user", string(item, "id"))
        yield TranscriptPart(PartKind.RESULT, string(item, "aggregated_output"), at, "result", string(item, "id"))
    elif record.response in CALLS:
        given = _given(string(payload, "arguments") or string(payload, "input"))
        yield TranscriptPart(PartKind.CALL, given, at, string(payload, "name") or "tool", string(payload, "call_id"))
    elif record.response in RESULTS:
        said = text(payload.get("output"))[:MAX_CHARS]
        yield TranscriptPart(PartKind.RESULT, said, at, "result", string(payload, "call_id"))


def _given(arguments: str) -> str:
    """Return a call's arguments with their names; as they are where they are no object."""
    try:
        members = msgspec.json.decode(arguments)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        members = None
    if not isinstance(members, dict):
        return arguments[:MAX_CHARS]
    return named_members(members)[:MAX_CHARS]
