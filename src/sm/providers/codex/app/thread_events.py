"""What an app-server tells of a thread, as the events of its session.

An item that the agent has finished is a tool call, a turn that is completed its stop. Threads of subagents, and those
without a file, as for a title, are other threads: what they tell is passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sm.core import events as ev
from sm.core.model.context import ToolWork, ToolWorkKind
from sm.core.model.handoff_signal import signalled_run
from sm.core.model.usage_limit import UsageLimit
from sm.core.ports.provider import HookEvent
from sm.core.rules import gate
from sm.providers.codex.traits import PATCH_TOOL, SHELL_TOOL

MAX_LAST_LINE_CHARS = 300
TOO_LONG = "contextWindowExceeded"
LIMITED = frozenset({"usageLimitExceeded", "sessionBudgetExceeded"})
LIMIT_KINDS = {300: "five_hour", 10_080: "seven_day"}
"""By the minutes of its window."""
FULL_PERCENT = 100


@dataclass(slots=True)
class ThreadEvents:
    """Follows one thread. Its methods take a notification's params and the time, UTC seconds."""

    thread: str
    transcript: str | None = None
    turn: str = ""
    """The turn that runs; empty for none."""
    mode: str = ""
    started: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Items that are under way, by id: an approval names the one that it is about."""
    said: str = ""
    """The agent's newest words in this turn."""
    resets: dict[str, float] = field(default_factory=dict)
    """When the used-up limits of the account reset, by kind, UTC seconds."""

    def take(self, method: str, params: dict[str, Any], at: float) -> HookEvent | None:
        """Return the event of a notification of this thread; None for what changes nothing."""
        self.turn = str(params.get("turnId") or self.turn)
        match method:
            case "turn/started":
                self.turn, self.said = str(params.get("turn", {}).get("id", "")), ""
            case "item/started":
                return self._begun(params.get("item", {}), at)
            case "item/completed":
                return self._finished(params.get("item", {}), at)
            case "turn/completed":
                return self._turn_over(params.get("turn", {}), at)
            case "account/rateLimits/updated":
                self._limits(params.get("rateLimits", {}))
        return None

    def began(self, origin: ev.Origin, at: float, pid: int, model: str | None) -> HookEvent:
        event = ev.ConversationStarted(
            at=at, conversation=self.thread, transcript=self.transcript, origin=origin, pid=pid, model=model
        )
        return self._told("SessionStart", event)

    def _told(self, hook: str, event: ev.Event) -> HookEvent:
        return HookEvent(hook, self.thread, event, transcript=self.transcript)

    def _begun(self, item: dict[str, Any], at: float) -> HookEvent | None:
        self.started[str(item.get("id", ""))] = item
        if item.get("type") == "contextCompaction":
            return self._told("PreCompact", ev.CompactionStarted(at=at, conversation=self.thread))
        return None

    def _finished(self, item: dict[str, Any], at: float) -> HookEvent | None:
        self.started.pop(str(item.get("id", "")), None)
        match item.get("type"):
            case "userMessage":
                return self._prompt(item, at)
            case "agentMessage":
                self.said = str(item.get("text", ""))
            case "contextCompaction":
                return self._told("PostCompact", ev.CompactionEnded(at=at, conversation=self.thread))
            case "commandExecution" | "fileChange" | "mcpToolCall" | "dynamicToolCall" | "webSearch" | "imageView":
                return self._told("PostToolUse", self._tool(item, at))
        return None

    def _prompt(self, item: dict[str, Any], at: float) -> HookEvent:
        text = words_of(item)
        event = ev.PromptSubmitted(at=at, conversation=self.thread, text=text, mode=self.mode)
        return self._told("UserPromptSubmit", event)

    def _tool(self, item: dict[str, Any], at: float) -> ev.Event:
        written = _written(item)
        return ev.ToolUsed(
            at=at,
            conversation=self.thread,
            tool=tool_of(item),
            work=_work(item),
            failed=item.get("status") in {"failed", "declined"},
            mode=self.mode,
            document=written if gate.is_document(written) else "",
            written=written,
        )

    def _turn_over(self, turn: dict[str, Any], at: float) -> HookEvent | None:
        self.turn = ""
        self.started.clear()
        match turn.get("status"):
            case "completed":
                last = self.said.rstrip().rpartition("\n")[2][:MAX_LAST_LINE_CHARS]
                signal = signalled_run(self.said)
                return self._told("Stop", ev.TurnEnded(at=at, conversation=self.thread, text=last, signal=signal))
            case "failed":
                return self._told("StopFailure", self._failure(turn.get("error") or {}, at))
        return None  # interrupted: what the thread is now tells it

    def _failure(self, error: dict[str, Any], at: float) -> ev.TurnFailed:
        words, info = str(error.get("message") or "unknown"), error.get("codexErrorInfo")
        limit = self._limit(at) if info in LIMITED else None
        refusal = words if info == TOO_LONG else ""
        kind = info if isinstance(info, str) and info != "other" else words
        return ev.TurnFailed(at=at, conversation=self.thread, error=kind[:80], limit=limit, refusal=refusal)

    def _limit(self, at: float) -> UsageLimit:
        """The connection is the client's own, so no agent has made it up."""
        known = {kind: reset for kind, reset in self.resets.items() if reset > at}
        kind = max(known, key=lambda name: known[name], default="usage")
        return UsageLimit(kind, known.get(kind), since=at, proven=True)

    def _limits(self, snapshot: dict[str, Any]) -> None:
        for window in (snapshot.get("primary"), snapshot.get("secondary")):
            if not isinstance(window, dict) or not isinstance(window.get("resetsAt"), int | float):
                continue
            kind = LIMIT_KINDS.get(window.get("windowDurationMins") or 0, "usage")
            if window.get("usedPercent", 0) >= FULL_PERCENT:
                self.resets[kind] = float(window["resetsAt"])
            else:
                self.resets.pop(kind, None)


def words_of(item: dict[str, Any]) -> str:
    """Return the text of a user's message; images and files are not text."""
    parts = item.get("content")
    texts = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return "\n".join(str(part.get("text", "")) for part in texts if part.get("type") == "text")


def tool_of(item: dict[str, Any]) -> str:
    match item.get("type"):
        case "commandExecution":
            return SHELL_TOOL
        case "fileChange":
            return PATCH_TOOL
        case "mcpToolCall":
            return f"mcp__{item.get('server')}__{item.get('tool')}"
        case "dynamicToolCall":
            return str(item.get("tool"))
    return str(item.get("type"))


def _written(item: dict[str, Any]) -> str:
    """The file that a patch has changed, the handoff document first; empty for any other call."""
    changes = item.get("changes")
    paths = [str(change.get("path", "")) for change in changes] if isinstance(changes, list) else []
    return next((path for path in paths if gate.is_document(path)), paths[0] if paths else "")


def _work(item: dict[str, Any]) -> ToolWork:
    match item.get("type"):
        case "commandExecution":
            return ToolWork(ToolWorkKind.BASH, len(item.get("aggregatedOutput") or ""))
        case "fileChange":
            return ToolWork(ToolWorkKind.EDIT)
        case "webSearch":
            return ToolWork(ToolWorkKind.SEARCH)
    return ToolWork(ToolWorkKind.OTHER)
