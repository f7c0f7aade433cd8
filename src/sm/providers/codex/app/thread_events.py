"""What an app-server tells of a thread, as the events of its session.

An item that the agent has finished is a tool call, a turn that is completed its stop. Threads of subagents, and those
without a file, as for a title, are other threads: what they tell is passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sm.core import events as ev
from sm.core.model.context import ToolWork, ToolWorkKind
from sm.core.model.handoff_signal import signalled_run
from sm.core.model.usage_limit import UsageLimit
from sm.core.ports.provider import HookEvent
from sm.core.rules import gate
from sm.providers.codex.app import schema
from sm.providers.codex.app.rpc import ServerMessage
from sm.providers.codex.traits import PATCH_TOOL, SHELL_TOOL
from sm.providers.hook_payload import last_line

TOO_LONG = "contextWindowExceeded"
LIMITED = frozenset({"usageLimitExceeded", "sessionBudgetExceeded"})
LIMIT_KINDS = {300: "five_hour", 10_080: "seven_day"}
"""By the minutes of its window."""
FULL_PERCENT = 100
RATE_LIMIT = "rate_limit"
"""In the words of the rules."""


@dataclass(slots=True)
class ThreadEvents:
    """Follows one thread. Its methods take what the server says and the time, UTC seconds."""

    thread: str
    transcript: str | None = None
    turn: str = ""
    """The turn that runs; empty for none."""
    mode: str = ""
    started: dict[str, schema.ThreadItem] = field(default_factory=dict)
    """Items that are under way, by id: an approval names the one that it is about."""
    said: str = ""
    """The agent's newest words in this turn."""
    resets: dict[str, float] = field(default_factory=dict)
    """When the used-up limits of the account reset, by kind, UTC seconds."""

    def take(self, message: ServerMessage, at: float) -> HookEvent | None:
        """Return the event of a notification of this thread; None for what changes nothing."""
        match message.method:
            case "turn/started":
                self.turn, self.said = message.read(schema.TurnStartedNotification).turn.id, ""
            case "item/started":
                begun = message.read(schema.ItemStartedNotification)
                self.turn = begun.turn_id or self.turn
                return self._begun(begun.item, at)
            case "item/completed":
                finished = message.read(schema.ItemCompletedNotification)
                self.turn = finished.turn_id or self.turn
                return self._finished(finished.item, at)
            case "turn/completed":
                return self._turn_over(message.read(schema.TurnCompletedNotification).turn, at)
            case "account/rateLimits/updated":
                self._limits(message.read(schema.AccountRateLimitsUpdatedNotification).rate_limits)
        return None

    def began(self, origin: ev.Origin, at: float, pid: int, model: str | None) -> HookEvent:
        event = ev.ConversationStarted(
            at=at, conversation=self.thread, transcript=self.transcript, origin=origin, pid=pid, model=model
        )
        return self._told("SessionStart", event)

    def left(self, at: float) -> HookEvent:
        return self._told("SessionEnd", ev.ConversationEnded(at=at, conversation=self.thread, reason="clear"))

    def _told(self, hook: str, event: ev.Event) -> HookEvent:
        return HookEvent(hook, self.thread, event, transcript=self.transcript)

    def _begun(self, item: schema.ThreadItem, at: float) -> HookEvent | None:
        self.started[item.id] = item
        if item.type == "contextCompaction":
            return self._told("PreCompact", ev.CompactionStarted(at=at, conversation=self.thread))
        return None

    def _finished(self, item: schema.ThreadItem, at: float) -> HookEvent | None:
        self.started.pop(item.id, None)
        match item.type:
            case "userMessage":
                return self._prompt(item, at)
            case "agentMessage":
                self.said = item.text
            case "contextCompaction":
                return self._told("PostCompact", ev.CompactionEnded(at=at, conversation=self.thread))
            case "commandExecution" | "fileChange" | "mcpToolCall" | "dynamicToolCall" | "webSearch" | "imageView":
                return self._told("PostToolUse", self._tool(item, at))
        return None

    def _prompt(self, item: schema.ThreadItem, at: float) -> HookEvent:
        text = words_of(item)
        event = ev.PromptSubmitted(at=at, conversation=self.thread, text=text, mode=self.mode)
        return self._told("UserPromptSubmit", event)

    def _tool(self, item: schema.ThreadItem, at: float) -> ev.Event:
        written = _written(item)
        return ev.ToolUsed(
            at=at,
            conversation=self.thread,
            tool=tool_of(item),
            work=_work(item),
            failed=item.status in {"failed", "declined"},
            mode=self.mode,
            document=written if gate.is_document(written) else "",
            written=written,
        )

    def _turn_over(self, turn: schema.Turn, at: float) -> HookEvent | None:
        self.turn = ""
        self.started.clear()
        match turn.status:
            case "completed":
                last = last_line(self.said)
                signal = signalled_run(self.said)
                return self._told("Stop", ev.TurnEnded(at=at, conversation=self.thread, text=last, signal=signal))
            case "failed":
                return self._told("StopFailure", self._failure(turn.error or schema.TurnError(), at))
        return None  # interrupted: what the thread is now tells it

    def _failure(self, error: schema.TurnError, at: float) -> ev.TurnFailed:
        words, info = error.message or "unknown", error.codex_error_info
        named = _named(info)
        limit = self._limit(at) if named in LIMITED else None
        refusal = words if named == TOO_LONG else ""
        kind = named if named != "other" and named else words
        return ev.TurnFailed(at=at, conversation=self.thread, error=kind[:80], limit=limit, refusal=refusal)

    def _limit(self, at: float) -> UsageLimit:
        """The connection is the client's own, so no agent has made it up."""
        known = {kind: reset for kind, reset in self.resets.items() if reset > at}
        kind = max(known, key=lambda name: known[name], default="usage")
        return UsageLimit(kind, known.get(kind), since=at, proven=True)

    def _limits(self, snapshot: schema.RateLimitSnapshot) -> None:
        for window in (snapshot.primary, snapshot.secondary):
            if window is None or window.resets_at is None:
                continue
            kind = LIMIT_KINDS.get(window.window_duration_mins or 0, "usage")
            if window.used_percent >= FULL_PERCENT:
                self.resets[kind] = float(window.resets_at)
            else:
                self.resets.pop(kind, None)


def _named(info: object) -> str:
    """Return the client's word for a failure; empty for none that says something."""
    match info:
        case "rateLimitExceeded" | {"responseTooManyFailedAttempts": {"httpStatusCode": 429}}:
            return RATE_LIMIT
        case str():
            return info
    return ""


def words_of(item: schema.ThreadItem) -> str:
    """Return the text of a user's message; images and files are not text."""
    return "\n".join(part.text for part in item.content if part.type == "text")


def tool_of(item: schema.ThreadItem) -> str:
    match item.type:
        case "commandExecution":
            return SHELL_TOOL
        case "fileChange":
            return PATCH_TOOL
        case "mcpToolCall":
            return f"mcp__{item.server}__{item.tool}"
        case "dynamicToolCall":
            return item.tool
    return item.type


def _written(item: schema.ThreadItem) -> str:
    """The file that a patch has changed, the handoff document first; empty for any other call."""
    paths = [change.path for change in item.changes]
    return next((path for path in paths if gate.is_document(path)), paths[0] if paths else "")


def _work(item: schema.ThreadItem) -> ToolWork:
    match item.type:
        case "commandExecution":
            return ToolWork(ToolWorkKind.BASH, len(item.aggregated_output or ""))
        case "fileChange":
            return ToolWork(ToolWorkKind.EDIT)
        case "webSearch":
            return ToolWork(ToolWorkKind.SEARCH)
    return ToolWork(ToolWorkKind.OTHER)


WAITS = {"waitingOnApproval": "asks for permission", "waitingOnUserInput": "asks a question"}


def activity_of(status: schema.ThreadStatus) -> tuple[ev.Activity, str]:
    """Return what a thread's status says of the client, and in words what it waits for."""
    if status.type != "active":
        return ev.Activity.IDLE, ""
    flags = status.active_flags
    return (ev.Activity.WAITING, WAITS.get(flags[0], "asks something")) if flags else (ev.Activity.BUSY, "")
