"""Claude Code's hooks: payload → event, and the answer in the client's own form.

A payload is parsed once, here. Tool input and output are only weighed, never kept. A call with `agent_id` is a
subagent's: its context is its own, so it changes nothing but for a permission it asks for, which no key may answer.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from sm.core import events as ev
from sm.core.model.ask import AskRequest
from sm.core.model.context import ToolWork, ToolWorkKind
from sm.core.model.handoff_signal import signalled_run
from sm.core.ports.provider import HookEvent, HookReply
from sm.core.rules import gate
from sm.providers import hook_payload as common
from sm.providers.claude import asks, limit_notices
from sm.providers.claude.traits import FILE_TOOLS, HANDOFF_TOOL, REPLY_CHARACTERS, SHELL_TOOL, SKILL_TOOL
from sm.providers.lenient import lenient, members_of, text_of

LIMITED = "rate_limit"


class Job(msgspec.Struct):
    """What will wake the session later, by itself: CronCreate, ScheduleWakeup, /loop."""

    id: str = ""
    schedule: str = ""
    prompt: str = ""


class Task(msgspec.Struct):
    id: str = ""
    type: str = ""
    status: str = ""
    description: str | None = None


class Payload(common.CommonPayload):
    """The members we use. Facts: every event carries session_id, hook_event_name and, inside a subagent, agent_id."""

    permission_suggestions: msgspec.Raw = common.NONE
    error: msgspec.Raw = common.NONE
    background_tasks: list[Task] | None = None
    session_crons: list[Job] | None = None


def decode(payload: bytes, at: float, pid: int | None) -> HookEvent:
    """Parse a payload, an odd member of which counts as missing; ValueError if it is no object or names no event."""
    parsed = common.parsed(Payload, payload)
    # Without its conversation an event belongs to nothing that we know.
    event = _event(parsed, at, pid) if parsed.session_id else None
    ask = _ask(parsed) if isinstance(event, ev.PermissionAsked) else None
    return HookEvent(parsed.hook_event_name, parsed.session_id, event, pid, parsed.cwd, parsed.transcript_path, ask)


def _ask(payload: Payload) -> AskRequest | None:
    given, suggestions = bytes(payload.tool_input), bytes(payload.permission_suggestions)
    return asks.request_of(payload.tool_name or "", given, suggestions, payload.agent_id or "")


def _event(payload: Payload, at: float, pid: int | None) -> ev.Event | None:
    maker = MAKERS.get(payload.hook_event_name)
    if maker is None:
        return None
    if payload.agent_id and payload.hook_event_name != "PermissionRequest":
        return None
    return maker(payload, at, pid)


def _before_tool(payload: Payload, at: float, _: int | None) -> ev.Event:
    tool = payload.tool_name or ""
    tool_input = members_of(bytes(payload.tool_input))
    return ev.ToolAsked(at=at, conversation=payload.session_id, tool=tool, permitted=permits(tool, tool_input))


def permits(tool: str, tool_input: Mapping[str, object]) -> bool:
    """Return whether that call serves the handoff, and nothing else."""
    if tool in FILE_TOOLS:
        return gate.is_document(str(tool_input.get("file_path", "")))
    if tool == SHELL_TOOL:
        return gate.serves_handoff(str(tool_input.get("command", "")))
    return tool == HANDOFF_TOOL or (tool == SKILL_TOOL and tool_input.get("skill") in gate.SKILLS)


def _tool(payload: Payload, at: float, _: int | None) -> ev.Event:
    tool = payload.tool_name or ""
    failed = payload.hook_event_name == "PostToolUseFailure"
    written = written_by(bytes(payload.tool_input)) if KINDS.get(tool) is ToolWorkKind.EDIT else ""
    return ev.ToolUsed(
        at=at,
        conversation=payload.session_id,
        tool=tool,
        work=weigh(payload, tool),
        failed=failed,
        mode=payload.permission_mode or "",
        document=written if gate.is_document(written) else "",
        written=written,
    )


KINDS = {
    "Bash": ToolWorkKind.BASH,
    "BashOutput": ToolWorkKind.BASH,
    "Read": ToolWorkKind.READ,
    "Grep": ToolWorkKind.GREP,
    "Glob": ToolWorkKind.GLOB,
    "Edit": ToolWorkKind.EDIT,
    "MultiEdit": ToolWorkKind.EDIT,
    "Write": ToolWorkKind.EDIT,
    "NotebookEdit": ToolWorkKind.EDIT,
    "Agent": ToolWorkKind.AGENT,
    "Task": ToolWorkKind.AGENT,
    "WebFetch": ToolWorkKind.FETCH,
    "WebSearch": ToolWorkKind.SEARCH,
}


class Target(msgspec.Struct):
    file_path: str = ""


def written_by(tool_input: bytes) -> str:
    """The file; what it is to hold is passed over."""
    try:
        return lenient(Target, tool_input).file_path
    except ValueError:
        return ""


def weigh(payload: Payload, tool: str) -> ToolWork:
    """Size of a tool's answer without decoding it: in a JSON string a line end is a backslash and an n."""
    kind = KINDS.get(tool, ToolWorkKind.OTHER)
    raw = bytes(payload.tool_response)
    if kind is ToolWorkKind.BASH:
        return ToolWork(kind, len(raw))
    if kind in {ToolWorkKind.READ, ToolWorkKind.GREP, ToolWorkKind.GLOB}:
        return ToolWork(kind, raw.count(b"\\n") + 1)
    return ToolWork(kind)


def _stop(payload: Payload, at: float, _: int | None) -> ev.Event:
    tasks = tuple(
        ev.BackgroundTask(task.id, task.type, (task.description or "")[:120])
        for task in payload.background_tasks or ()
        if task.status in {"", "running", "pending"}
    )
    continued = bool(payload.stop_hook_active)
    return ev.TurnEnded(
        at=at,
        conversation=payload.session_id,
        background=tasks,
        scheduled=tuple(f"{job.prompt[:40]} ({job.schedule}, {job.id})" for job in payload.session_crons or ()),
        continued=continued,
        text=common.last_line(payload.last_assistant_message or ""),
        signal=signalled_run(payload.last_assistant_message or ""),
    )


def _stop_failure(payload: Payload, at: float, _: int | None) -> ev.Event:
    error = text_of(bytes(payload.error)) or "unknown"
    words = payload.last_assistant_message or ""
    limit = limit_notices.limit_in(words, at) if error == LIMITED else None
    refusal = "" if error == LIMITED else limit_notices.refusal_in(words)
    return ev.TurnFailed(at=at, conversation=payload.session_id, error=error[:80], limit=limit, refusal=refusal)


MAKERS = {
    "SessionStart": common.started,
    "UserPromptSubmit": common.prompted,
    "PreToolUse": _before_tool,
    "PostToolUse": _tool,
    "PostToolUseFailure": _tool,
    "PermissionRequest": common.permission_asked,
    "Stop": _stop,
    "StopFailure": _stop_failure,
    "PreCompact": common.compaction_started,
    "PostCompact": common.compaction_ended,
    "SessionEnd": common.conversation_ended,
}
"""Every hook that is registered, and what it becomes; PreToolUse only for a gate."""
CONTEXT_HOOKS = frozenset({"SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop"})

BLOCKABLE = frozenset({"UserPromptSubmit", "PreCompact"})


def encode(hook: str, reply: HookReply) -> dict[str, object]:
    """The answer to a hook, in the client's form; `{}` where there is nothing to say."""
    if reply.block is not None and hook in BLOCKABLE:
        return {"decision": "block", "reason": reply.block}
    if reply.block is not None and hook == "PreToolUse":
        denied = {"permissionDecision": "deny", "permissionDecisionReason": reply.block}
        return {"hookSpecificOutput": {"hookEventName": hook, **denied}}
    shown: dict[str, object] = {"systemMessage": reply.shown} if reply.shown else {}
    if not reply.context or hook not in CONTEXT_HOOKS:
        return shown
    context = reply.context[:REPLY_CHARACTERS]
    return {**shown, "hookSpecificOutput": {"hookEventName": hook, "additionalContext": context}}
