"""Codex's hooks: payload → event, and the answer in the client's own form (Codex 0.171.0).

A payload is parsed once, here; tool input and output are only weighed. One with `agent_id` is a subagent's, whose
context is its own: it changes nothing but for a permission that it asks for. `Stop` comes before the turn has ended:
the client is at work until its hooks have returned, and several may come with one turn. An interrupted turn has no
`Stop`: the end of its rollout shows it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import msgspec

from sm.core import events as ev
from sm.core.model.ask import AskAnswer, AskKind, AskRequest, Decision
from sm.core.model.context import ToolWork, ToolWorkKind
from sm.core.model.handoff_signal import signalled_run
from sm.core.ports.provider import HookEvent, HookReply
from sm.core.rules import gate
from sm.providers import hook_payload as common
from sm.providers.lenient import members_of, text_of

SHELL_TOOL = "Bash"
"""How `exec_command` is named to a hook."""
PATCH_TOOL = "apply_patch"
HANDOFF_TOOL = "mcp__sm__handoff"
HELD_HOOK = "PermissionRequest"
DENIED = "The user does not want this."
REPLY_BYTES = 10_000
"""Of additional context: of more the agent reads a beginning, an end, and in which file the rest is."""
PATCHED = re.compile(r"^\*\*\* (?:Add File|Update File|Move to|Delete File): (.+?)\s*$", re.MULTILINE)
EXIT_CODE = re.compile(r"Exit code: (\d+)")


class HookPayload(common.CommonPayload):
    """The members we use. Every payload has session_id, cwd and hook_event_name."""

    turn_id: str = ""

    @property
    def thread(self) -> str:
        """Whose payload it is: the main agent's thread, or a subagent's own."""
        return self.agent_id or self.session_id

    @property
    def command(self) -> str:
        """What a tool was given: a command, a patch, or all of it where it is neither; without the blanks around."""
        command = members_of(bytes(self.tool_input)).get("command")
        return command.strip() if isinstance(command, str) else bytes(self.tool_input).decode(errors="replace")


def parse(payload: bytes) -> HookPayload:
    """Parse a payload, an odd member of which counts as missing; ValueError if it is no object or names no event."""
    return common.parsed(HookPayload, payload)


def decode(payload: bytes, at: float, pid: int | None, *, holds: bool = False) -> HookEvent:
    """Return what a payload says; with `holds` a permission may be answered through `sm`.

    The client shows its dialog only once the hook has returned: as long as `sm` waits, its user cannot answer there.
    """
    return hook_event(parse(payload), at, pid, holds=holds)


def hook_event(payload: HookPayload, at: float, pid: int | None, *, holds: bool = False) -> HookEvent:
    # Without its conversation an event belongs to nothing that we know.
    event = _event(payload, at, pid) if payload.session_id else None
    ask = _ask(payload) if holds and isinstance(event, ev.PermissionAsked) else None
    # What a subagent's payload names is the subagent's own rollout.
    transcript = None if payload.agent_id else payload.transcript_path
    return HookEvent(payload.hook_event_name, payload.session_id, event, pid, payload.cwd, transcript, ask)


def _event(payload: HookPayload, at: float, pid: int | None) -> ev.Event | None:
    maker = MAKERS.get(payload.hook_event_name)
    if maker is None or (payload.agent_id and payload.hook_event_name != HELD_HOOK):
        return None
    return maker(payload, at, pid)


def _before_tool(payload: HookPayload, at: float, _: int | None) -> ev.Event:
    tool = payload.tool_name or ""
    tool_input = members_of(bytes(payload.tool_input))
    return ev.ToolAsked(at=at, conversation=payload.session_id, tool=tool, permitted=permits(tool, tool_input))


def permits(tool: str, tool_input: Mapping[str, object]) -> bool:
    """Return whether that call serves the handoff, and nothing else."""
    command = str(tool_input.get("command", ""))
    if tool == SHELL_TOOL:
        return gate.serves_handoff(command)
    if tool == PATCH_TOOL:
        files = PATCHED.findall(command)
        return bool(files) and all(map(gate.is_document, files))
    return tool == HANDOFF_TOOL


def _tool(payload: HookPayload, at: float, _: int | None) -> ev.Event:
    tool = payload.tool_name or ""
    failed = _failed(payload) if tool == PATCH_TOOL else False
    written = written_by(payload) if tool == PATCH_TOOL else ""
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
    SHELL_TOOL: ToolWorkKind.BASH,
    "write_stdin": ToolWorkKind.BASH,
    PATCH_TOOL: ToolWorkKind.EDIT,
    "spawn_agent": ToolWorkKind.AGENT,
    "wait_agent": ToolWorkKind.AGENT,
    "web_search": ToolWorkKind.SEARCH,
}


def written_by(payload: HookPayload) -> str:
    """Return the file that a patch has written: the handoff's document if it is among them, else the first."""
    found = [str(PurePosixPath(payload.cwd, path)) for path in PATCHED.findall(payload.command)]
    return next(filter(gate.is_document, found), next(iter(found), ""))


def _failed(payload: HookPayload) -> bool:
    """A patch that did not apply says so in its answer; of a command no answer tells how it ended."""
    found = EXIT_CODE.match(text_of(bytes(payload.tool_response)))
    return found is not None and int(found[1]) != 0


def weigh(payload: HookPayload, tool: str) -> ToolWork:
    kind = KINDS.get(tool, ToolWorkKind.OTHER)
    return ToolWork(kind, len(bytes(payload.tool_response))) if kind is ToolWorkKind.BASH else ToolWork(kind)


def _stop(payload: HookPayload, at: float, _: int | None) -> ev.Event:
    words = payload.last_assistant_message or ""
    return ev.TurnEnded(
        at=at,
        conversation=payload.session_id,
        continued=bool(payload.stop_hook_active),
        text=common.last_line(words),
        signal=signalled_run(words),
    )


MAKERS = {
    "SessionStart": common.started,
    "UserPromptSubmit": common.prompted,
    "PreToolUse": _before_tool,
    "PostToolUse": _tool,
    HELD_HOOK: common.permission_asked,
    "Stop": _stop,
    "PreCompact": common.compaction_started,
    "PostCompact": common.compaction_ended,
    "SessionEnd": common.conversation_ended,
}
"""Every hook that means something, and what it becomes. SessionStart comes with a thread's first prompt, SessionEnd a
minute after its thread was left, or with the client's end. No PostToolUse follows a patch that the agent applies by a
shell command, nor a tool that the client takes itself."""
CONTEXT_HOOKS = frozenset({"SessionStart", "UserPromptSubmit", "PostToolUse"})


# --- replies ---------------------------------------------------------------------------------------------------------


def encode(hook: str, reply: HookReply) -> dict[str, object]:
    """The answer to a hook, in the client's form; `{}` where there is nothing to say.

    A block after a tool would take the place of its answer, and one before a compaction would end the turn.
    """
    if reply.block is not None and hook == "UserPromptSubmit":
        return {"decision": "block", "reason": reply.block}
    if reply.block is not None and hook == "PreToolUse":
        denied = {"permissionDecision": "deny", "permissionDecisionReason": reply.block}
        return {"hookSpecificOutput": {"hookEventName": hook, **denied}}
    shown: dict[str, object] = {"systemMessage": reply.shown} if reply.shown else {}
    if reply.context and hook == "Stop":  # it takes no context, only a reason to continue the turn
        return {**shown, "decision": "block", "reason": reply.context}
    if not reply.context or hook not in CONTEXT_HOOKS:
        return shown
    return {**shown, "hookSpecificOutput": {"hookEventName": hook, "additionalContext": whole(reply.context)}}


def whole(text: str) -> str:
    """Return as much of a text as the agent reads without a gap in it."""
    return text.encode(errors="replace")[:REPLY_BYTES].decode(errors="ignore")


# --- what the client asks its user -----------------------------------------------------------------------------------


def _ask(payload: HookPayload) -> AskRequest | None:
    """Return what is asked; None for what cannot be read as a whole, and so is answered in the terminal alone."""
    try:
        given = msgspec.json.decode(bytes(payload.tool_input), type=dict[str, Any])
    except (ValueError, RecursionError):
        return None
    tool = payload.tool_name or ""
    text = msgspec.json.encode(given).decode()
    return AskRequest(AskKind.PERMISSION, tool, text, agent=payload.agent_id or "", hidden=True) if tool else None


def answered(answer: AskAnswer) -> dict[str, object]:
    """Return the reply to the hook that asks. It takes neither other input nor lasting permissions."""
    decision: dict[str, object] = {"behavior": "allow"}
    if answer.decision is Decision.DENY:
        decision = {"behavior": "deny", "message": answer.text or DENIED}
    return {"hookSpecificOutput": {"hookEventName": HELD_HOOK, "decision": decision}}
