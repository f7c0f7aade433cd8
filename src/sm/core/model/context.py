"""How full a conversation is: a reading of it, what came since, and the user's configuration of warnings.

A reading belongs to one conversation and is never applied to another. When its agent is warned:
`core/rules/context_thresholds.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from sm.core.model.capacity import CRITICAL, LOWERED, SMALLEST_WINDOW, WARNING, Threshold


class Source(StrEnum):
    """Where a reading comes from, best first."""

    USAGE = "usage"
    """The client's own record of the last reply."""
    BOUNDARY = "boundary"
    """The size a compaction left behind; leaves out system prompt and tools, so it is a lower bound."""
    STATUS = "status"
    """The client's status line."""
    ESTIMATE = "estimate"
    """Counted from what the tools returned; nothing else could be read."""
    UNKNOWN = "unknown"


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    CRITICAL = "critical"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ContextReading:
    """One measurement of one conversation. None means unknown; token counts are never negative."""

    tokens: int | None = None
    """Prompt side of the last request: input + cache creation + cache read."""
    projected: int | None = None
    """What the next request will weigh: tokens + the last reply's output + the estimate of the running call."""
    source: Source = Source.UNKNOWN
    exact: bool = False
    """True if the client itself counted it."""
    stale: bool = False
    """True if a newer request is known to exist that this reading does not show."""
    lower_bound: bool = False
    continues: bool = False
    """True if the last reply calls a tool, so that another request follows."""
    model: str | None = None
    window: int | None = None
    """The model's context window in tokens, where the transcript or the client tells it."""
    assumed: bool = False
    """True if the window is only assumed: neither the client nor a table tells that of this model."""
    compactions: int | None = None
    """Compactions of the main conversation; None until the whole file has been counted."""
    messages: int | None = None
    """Distinct replies of the main conversation; None until counted."""
    output_tokens: int | None = None
    """Output tokens over all those replies; None until counted."""
    malformed: int | None = None
    """Complete lines that were no JSON object; None until counted."""
    boundary: tuple[int | None, int | None] | None = None
    """(tokens before, tokens after) of the newest compaction seen, None if none was."""
    automatic: bool = False
    """True if the client began that compaction by itself."""


class ToolWorkKind(StrEnum):
    """What a tool call brought into the context, as far as its weight is known."""

    READ = "read_per_line"
    BASH = "bash_output_per_char"
    GREP = "grep_per_match"
    GLOB = "glob_per_file"
    EDIT = "edit"
    AGENT = "agent"
    FETCH = "web_fetch"
    SEARCH = "web_search"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ToolWork:
    kind: ToolWorkKind = ToolWorkKind.OTHER
    amount: int = 1
    """Lines, characters, matches or files, by kind; 1 where each call weighs the same."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The user's configuration of warnings. Kept in the session, so that the rules need nothing else."""

    enabled: bool = True
    warning: Threshold = WARNING
    critical: Threshold = CRITICAL
    max_tokens: int | None = None
    """An absolute ceiling: at or past it the level is critical, whatever the window."""
    remind_every: float = 60.0
    """Seconds between repeats of an open critical warning; 0 = once."""
    fallback_tool_count: int = 500
    check_frequency: int = 1
    baseline: bool = True
    """False: the client's own counts are left out, and only what the tools returned is counted."""
    call_base: float = 100.0
    weights: tuple[tuple[str, float], ...] = (
        ("read_per_line", 10.0),
        ("bash_output_per_char", 0.3),
        ("grep_per_match", 5.0),
        ("glob_per_file", 20.0),
        ("edit", 300.0),
        ("agent", 2000.0),
        ("web_fetch", 1500.0),
        ("web_search", 1000.0),
    )
    wait_background: float = 120.0
    """Seconds a handoff waits at turn end for background tasks."""
    primer: bool = True
    gate: bool = False
    """Past the critical level only calls that serve a handoff are let through."""
    max_hold: float = 120.0
    """Seconds a user who types may hold a message back."""
    offer: bool = True
    """Tell a new session which handoff waits in its project."""
    expiry_hours: float = 2.0
    """Hours a handoff is offered; 0 for ever."""
    prompt_hours: float = 24.0
    """The same of a continuation prompt."""
    on_compact: str = "save"
    """Before the client compacts: `save` a document, or `rotate` as well."""
    fork: bool = True
    """Let a fork of the agent's model write the document of an agent that has not handed off before that."""
    min_growth: int = 40_000
    """Tokens by which a context that began from a handoff has to grow before its agent may hand off again."""
    max_without_progress: int = 3
    """Rotations in a row without progress, after which the next one waits for the user; 0 for no limit."""
    leaves_out: tuple[str, ...] = ()
    """Parts of a document made without a model that the user leaves out: `todos git_status recent_files`."""
    assumed_window: int | None = SMALLEST_WINDOW
    """Tokens of a window that neither the client nor a table tells."""
    max_restarts: int = 10
    """Contexts that `sm run` leaves in a row, without progress, before it keeps one."""
    rotate_own: str = "ask"
    """A client that the user started is cleared after they agree (`ask`), or at once (`auto`)."""

    def handing_off_at(self, share: float | None) -> Policy:
        """Return it with that share of the usable context as the threshold to hand off; without one as it is."""
        if share is None:
            return self
        before = self.warning.share is not None and self.warning.share < share
        warning = self.warning if before else Threshold(round(share * LOWERED, 4), self.warning.tokens)
        return replace(self, enabled=True, warning=warning, critical=Threshold(share))


@dataclass(frozen=True, slots=True)
class Monitor:
    """The last measurement of one conversation's context, and the warnings its agent has been given."""

    reading: ContextReading = ContextReading()
    usable: int | None = None
    estimate: int = 0
    """Tokens added by tool calls since `reading`."""
    breakdown: tuple[tuple[str, int], ...] = ()
    """Estimated tokens by tool over the whole conversation."""
    tool_calls: int = 0
    crossed: tuple[tuple[Level, float], ...] = ()
    """Latches: the levels crossed in this conversation, and when."""
    told: float = 0.0
    """When the agent was last told."""
    owed: tuple[str, ...] = ()
    """Notices that wait for a hook to carry them or for the agent to be idle."""
    fallback_told: bool = False
    reported: int | None = None
    """Tokens as the plugin in the client last reported them: they outrank what the transcript shows."""
    saved: float = 0.0
    """When the agent last wrote what only the user can continue from: that ends the repeats."""

    @property
    def progress(self) -> int:
        """Tool calls, or replies where those are more: with a plugin in the client few calls are reported."""
        return max(self.tool_calls, self.reading.messages or 0)

    @property
    def projected(self) -> int | None:
        """What was read, and what came since by weight; where nothing can be read, the weights alone."""
        known = self.reading.projected
        if known is None:
            return self.estimate or None
        return known + self.estimate

    @property
    def estimated(self) -> bool:
        """True if nothing could be read and the weights alone tell."""
        return self.reading.projected is None and self.estimate > 0

    @property
    def source(self) -> Source:
        return Source.ESTIMATE if self.estimated else self.reading.source

    @property
    def stale(self) -> bool:
        """True if more has been requested, or done, than the reading shows."""
        return self.reading.stale or self.estimate > 0

    @property
    def percent(self) -> float | None:
        """Of the usable context; None when unknown, or when the reading proves the window wrong."""
        if self.projected is None or not self.usable or self.exceeds_window:
            return None
        return round(100 * self.projected / self.usable, 1)

    @property
    def exceeds_window(self) -> bool:
        """More was accepted than the assumed window holds, so the window is some other (case A15)."""
        window, tokens = self.reading.window, self.reading.tokens
        return window is not None and tokens is not None and tokens > window

    @property
    def crossed_levels(self) -> frozenset[Level]:
        return frozenset(level for level, _ in self.crossed)
