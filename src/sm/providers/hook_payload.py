"""What the hooks of both clients say in the same words: members of a payload, and the events that they become."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from sm.core import events as ev
from sm.providers.lenient import lenient

NONE = msgspec.Raw(b"")
MAX_LAST_LINE_CHARS = 300
"""Characters of what the agent said last that a notice of its stop may quote."""


class CommonPayload(msgspec.Struct):
    session_id: str = ""
    hook_event_name: str = ""
    transcript_path: str | None = None
    cwd: str = ""
    agent_id: str | None = None
    source: str | None = None
    model: str | None = None
    prompt: str | None = None
    reason: str | None = None
    tool_name: str | None = None
    tool_input: msgspec.Raw = NONE
    tool_response: msgspec.Raw = NONE
    trigger: str | None = None
    stop_hook_active: bool | None = None
    permission_mode: str | None = None
    last_assistant_message: str | None = None


Kind = TypeVar("Kind", bound=CommonPayload)


def parsed(kind: type[Kind], payload: bytes) -> Kind:
    """Parse a payload, an odd member of which counts as missing; ValueError if it is no object or names no event."""
    try:
        found = lenient(kind, payload)
    except ValueError as problem:
        raise ValueError(f"not a hook payload: {problem}") from problem
    if not found.hook_event_name:
        raise ValueError("not a hook payload: hook_event_name is missing")
    return found


def last_line(words: str) -> str:
    return words.rstrip().rpartition("\n")[2][:MAX_LAST_LINE_CHARS]


def started(payload: CommonPayload, at: float, pid: int | None) -> ev.Event:
    try:
        origin = ev.Origin(payload.source or "startup")
    except ValueError:  # a source we don't know yet is a start all the same
        origin = ev.Origin.STARTUP
    return ev.ConversationStarted(
        at=at,
        conversation=payload.session_id,
        transcript=payload.transcript_path,
        origin=origin,
        pid=pid,
        model=payload.model,
    )


def prompted(payload: CommonPayload, at: float, _: int | None) -> ev.Event:
    mode = payload.permission_mode or ""
    return ev.PromptSubmitted(at=at, conversation=payload.session_id, text=payload.prompt or "", mode=mode)


def permission_asked(payload: CommonPayload, at: float, _: int | None) -> ev.Event:
    return ev.PermissionAsked(at=at, conversation=payload.session_id, tool=payload.tool_name or "")


def compaction_started(payload: CommonPayload, at: float, _: int | None) -> ev.Event:
    return ev.CompactionStarted(at=at, conversation=payload.session_id, automatic=payload.trigger != "manual")


def compaction_ended(payload: CommonPayload, at: float, _: int | None) -> ev.Event:
    return ev.CompactionEnded(at=at, conversation=payload.session_id)


def conversation_ended(payload: CommonPayload, at: float, _: int | None) -> ev.Event:
    return ev.ConversationEnded(at=at, conversation=payload.session_id, reason=payload.reason or "")
