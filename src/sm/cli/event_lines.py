"""The lines of `sm tail` for events: prompts, tools, readings, warnings, handoffs; internal steps only with --all."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sm.archive.redaction.redact import redacted
from sm.core.rules.session.status import ASKS
from sm.providers.claude.asks import KINDS
from sm.providers.claude.transcript_lines import TranscriptLines

Data = dict[str, Any]
MIN_PERCENT_STEP = 5
"""In percent points: a reading that differs less from the last shown one is not shown."""
INTERNAL_EVENTS = frozenset({
    "ActivityChanged", "AlarmRang", "BoxFree", "BudgetRead", "ComposerHeld", "ComposerReady", "ConversationEnded",
    "DocumentKept", "LatchesReset", "LimitsChanged", "MessagesFetched", "MessagesSought", "PolicyChanged",
    "PromptMissing", "ReplyLost", "RestartTaken", "SnapshotTaken", "ToolAsked", "TranscriptMoved", "Typed",
    "TypingRefused", "WindowTold",
})  # fmt: skip
"""Events of sm's own work, not of the agent's."""
CONTEXT_ORIGINS = {
    "startup": "new context: the client has started",
    "clear": "new context: cleared",
    "compact": "the client has compacted the context",
    "resume": "continues its conversation",
    "fork": "continues a copy of its conversation",
}


def _exit(data: Data) -> str:
    if data.get("signal") is not None:
        return f"the client was ended by signal {data['signal']}"
    return str(data.get("reason") or f"the client has ended (exit code {data.get('code')})")


def _warned(data: Data) -> str:
    tokens, percent = data.get("tokens"), data.get("percent")
    size = "" if tokens is None else f": {tokens:,} tokens"
    share = "" if percent is None else f" (~{percent:.0f}%)"
    return f"{'again, ' if data.get('repeated') else ''}{data.get('level')}{size}{share}"


def _size(data: Data) -> str:
    """Return the size of a text; an event stores nothing else of it."""
    return f"({data['text_size']} characters)" if data.get("text_size") else ""


def _dialog(data: Data) -> str:
    kind = KINDS.get(str(data.get("tool")))
    return ASKS[kind] if kind is not None else f"asks for permission: {data.get('tool') or 'a dialog is open'}"


def _ask_answered(data: Data) -> str:
    by = f" by session {data['by']}" if data.get("by") else ""
    words = {"allow": "allowed", "deny": "denied"}.get(str(data.get("decision")), "answered")
    return f"{words}{by}: {data.get('ask')}"


EVENT_WORDS: dict[str, tuple[str, Callable[[Data], str]]] = {
    "SessionLaunched": (
        "started",
        lambda data: f"the client, in permission mode {data['mode']}" if data.get("mode") else "the client",
    ),
    "ConversationStarted": ("context", lambda data: CONTEXT_ORIGINS.get(str(data.get("origin")), "new context")),
    "PermissionAsked": ("waiting", _dialog),
    "AskOpened": ("asks", lambda data: f"{data.get('tool')}: sm asks {data.get('ask')}"),
    "AskAnswered": ("asks", _ask_answered),
    "AskExpired": ("asks", lambda data: f"answer it in the terminal: {data.get('reason')}"),
    "AskWithdrawn": ("asks", lambda data: f"{data.get('reason')}: {data.get('ask')}"),
    "TurnEnded": ("turn", lambda _: "ended"),
    "TurnFailed": ("turn", lambda data: f"failed: {data.get('error')}"),
    "CompactionStarted": ("compaction", lambda _: "the client starts to compact"),
    "CompactionEnded": ("compaction", lambda _: "the client has compacted the context"),
    "CompactedTooLate": ("compaction", lambda _: "came before a handoff"),
    "AgentWarned": ("warned", _warned),
    "LimitShared": (
        "limit",
        lambda data: f"usage limit ({data.get('limit', {}).get('kind')}) met by another session of the account",
    ),
    "LimitEnded": ("limit", lambda data: "over: the agent continues" if data.get("resumes") else "over"),
    "ResumeAsked": ("limit", lambda _: "over; waits for you: sm limits --resume"),
    "LimitTold": ("limit", lambda data: f"usage limit ({data.get('kind')})"),
    "DriverChanged": (
        "driver",
        lambda data: " ".join(part for part in (data.get("driver"), data.get("reason")) if part),
    ),
    "ClientBlocked": ("blocked", lambda data: str(data.get("reason"))),
    "ClientExited": ("exited", _exit),
    "HandoffRequested": ("handoff", lambda data: f"requested: {data['handoff']['path']}"),
    "DocumentForked": (
        "handoff",
        lambda data: (
            f"not written by a copy of the model: {data['problem']}"
            if data.get("problem")
            else "written by a copy of the agent's model"
        ),
    ),
    "HandoffWithdrawn": ("handoff", lambda data: f"withdrawn: {data.get('reason')}"),
    "HandoffCancelled": ("handoff", lambda _: "cancelled"),
    "HandoffRetried": ("handoff", lambda _: "tried again"),
    "DocumentGone": ("handoff", lambda _: "the document is gone"),
    "MessageQueued": ("message", lambda _: "queued"),
    "MessageCancelled": ("message", lambda data: f"cancelled: {data.get('id')}"),
    "ClearRequested": ("clear", lambda _: "requested"),
    "StatusReported": ("report", _size),
    "TaskCompleted": ("done", _size),
    "LaunchFailed": ("failed", lambda data: f"the client did not start: {data.get('reason')}"),
    "SessionRenamed": ("renamed", lambda data: f"to {data.get('name')}"),
    "SessionKilled": ("killed", lambda data: str(data.get("reason") or "").removeprefix("killed").strip()),
    "ServerStarted": ("server", lambda _: "started"),
}


@dataclass(slots=True)
class EventLines:
    transcripts: set[str] = field(default_factory=set)
    transcript_lines: TranscriptLines = field(default_factory=lambda: TranscriptLines(redacted))
    percent: float | None = None
    """Of the last reading that was shown."""
    wait_for_prompt: Callable[[float], bool] = lambda _: False
    """Waits a moment for the prompt submitted at that time to be in the transcript; False once it is too late."""
    answer_of: Callable[[str], str] = lambda _: ""
    """Returns the words with which an ask was answered: no event holds them."""

    def line(self, event: Data) -> str | None:
        """Return the line of an event; None for one that is not shown."""
        kind, data = event["kind"], event.get("data") or {}
        if data.get("transcript"):
            self.transcripts.add(data["transcript"])
        if kind in INTERNAL_EVENTS:
            return None
        if kind == "ContextRead":
            reading = data["reading"]
            size = reading["projected"] if reading["projected"] is not None else reading["tokens"]
            return self._reading(size, data["usable"])
        if kind == "ContextReported":
            return self._reading(data["tokens"], data["usable"])
        label, words = self._said(kind, data, event["at"])
        return f"{label:<10} {words}".rstrip()

    def _said(self, kind: str, data: Data, at: float) -> tuple[str, str]:
        if kind == "PromptSubmitted":
            return "prompt", self._prompt(at) or f"({data.get('text_size', 0)} characters)"
        if kind == "ToolUsed":
            self._read()
            called = f"{data['tool']}  {self.transcript_lines.call(data['tool'], at)}".rstrip()
            return "tool", called + (" (failed)" if data.get("failed") else "")
        if kind in EVENT_WORDS:
            label, words = EVENT_WORDS[kind]
            answer = self.answer_of(str(data.get("ask"))) if kind == "AskAnswered" else ""
            return label, words(data) + (f": {answer}" if answer else "")
        return _words_of(kind), raw(data)

    def _prompt(self, at: float) -> str:
        """Return the prompt from the transcript: the client writes it there after its hook has returned."""
        self._read()
        while not (found := self.transcript_lines.prompt(at)) and self.transcripts and self.wait_for_prompt(at):
            self._read()
        return found

    def _read(self) -> None:
        for path in self.transcripts:
            self.transcript_lines.read(path)

    def _reading(self, size: int | None, usable: int | None) -> str | None:
        if size is None or not usable:
            return None
        percent = 100 * size / usable
        if self.percent is not None and abs(percent - self.percent) < MIN_PERCENT_STEP:
            return None
        self.percent = percent
        return f"{'context':<10} {percent:.0f}% full, {size:,} tokens"


HIDDEN_MEMBERS = frozenset({"conversation", "config", "transcript", "epoch"})


def raw(data: Data) -> str:
    """Return all members that are not empty, as `--all` shows them."""
    said = {name: value for name, value in data.items() if value not in (None, "", [], {}, False)}
    return " ".join(f"{name}={value}" for name, value in said.items() if name not in HIDDEN_MEMBERS)


def _words_of(kind: str) -> str:
    """Return `context warned` for `ContextWarned`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).lower()
