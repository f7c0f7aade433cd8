"""What is known of a session, and of the conversation its client is in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sm.core import events as ev
from sm.core.model import budget as budgets
from sm.core.model import usage_limit
from sm.core.model.ask import Ask
from sm.core.model.budget import BudgetUse
from sm.core.model.capacity import NO_LIMITS, ClientLimits, Lesson
from sm.core.model.compaction import CompactionHold
from sm.core.model.context import Monitor, Policy
from sm.core.model.foreground import Foreground
from sm.core.model.handoff import Handoff
from sm.core.model.handoff_offer import Offer
from sm.core.model.loop_guard import LoopGuard
from sm.core.model.message_queue import MessageQueue
from sm.core.model.report import Report
from sm.core.model.rotation import UNDER_WAY, Rotation
from sm.core.model.usage_limit import UsageLimit
from sm.core.values import replace


class Status(StrEnum):
    STARTING = "starting"
    IDLE = "idle"
    WORKING = "working"
    WAITING = "waiting"
    """A permission or other dialog is open."""
    COMPACTING = "compacting"
    LIMITED = "limited"
    """A usage limit of the account is met; shown only, what the client does beside it stays known."""
    ROTATING = "rotating"
    BLOCKED = "blocked"
    """The client refuses to continue, as at its context limit."""
    SILENT = "silent"
    """It works, but no hook has arrived for SILENCE seconds."""
    EXITED = "exited"
    CRASHED = "crashed"
    UNKNOWN = "unknown"


ENDED = frozenset({Status.EXITED, Status.CRASHED})
LIMITABLE = frozenset({Status.IDLE, Status.UNKNOWN, Status.STARTING})
"""What a client that waits for the end of a limit says of itself."""
SILENCE_TIMEOUT_S = 120.0
DIALOG_DELAY_S = 1.0
"""Seconds from PermissionRequest until the dialog surely shows in the client's state (seen: at most 0.55)."""


@dataclass(frozen=True, slots=True)
class Conversation:
    id: str
    transcript: str | None = None
    started: float = 0.0
    epoch: int = 0
    """Counts compactions within the conversation: a reading of an older epoch is dropped."""
    boundary: tuple[int | None, int | None] | None = None
    """The newest compaction the transcript has shown."""
    looked: bool = False
    """True once the transcript was read: only then is a boundary news."""
    monitor: Monitor = Monitor()
    hold: CompactionHold = CompactionHold()
    """How long its compaction has been put off."""
    ordered: bool = False
    """The compaction that comes was ordered, as by /compact: no handoff is late then."""
    resting: bool = False
    """It came at the prompt, as of a client that compacts an idle conversation: its size is no limit."""
    start: int | None = None
    """Tokens of its first request, or of the first after a compaction."""
    log_end: int | None = None
    """Bytes the terminal had shown when the client said that it leaves this conversation."""
    turns: int = 0
    """Turns that have ended in it."""


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    name: str
    provider: str
    directory: str
    created: float
    model: str | None = None
    parent: str | None = None
    status: Status = Status.STARTING
    detail: str = ""
    """Why the status is what it is, in words for the user."""
    since: float = 0.0
    """When the status began, UTC seconds; 0 for its first one."""
    evidence: str = ""
    """What the status was last known by, in words for the user."""
    said: str = ""
    """The last line that its agent has said, bounded; it may hold a secret."""
    dialog: float | None = None
    """When a permission was asked for that is not known to be answered."""
    asks: tuple[Ask, ...] = ()
    """What its client asks the user, oldest first, as long as a dialog may be open for it."""
    conversation: Conversation | None = None
    past: tuple[str, ...] = ()
    """Earlier conversations, oldest first."""
    pane: str | None = None
    """None if nothing can be typed to its client."""
    foreground: Foreground | None = None
    """Where its client runs if that is the user's own terminal."""
    pid: int | None = None
    rotation: Rotation | None = None
    rotations: int = 0
    too_late: int = 0
    """Compactions that came before a handoff."""
    outbox: MessageQueue = MessageQueue()
    background: tuple[ev.BackgroundTask, ...] = ()
    scheduled: tuple[str, ...] = ()
    """Jobs that the client will run later, as its last Stop named them."""
    mode: str = ""
    """The client's permission mode, as its last hook told, or its start."""
    report: Report | None = None
    """What the agent last said of itself."""
    at_prompt: bool = False
    """The main turn is over by the client's own hooks; only background tasks can keep it busy."""
    fresh: bool = False
    """Its client has started and submitted no prompt: it may hold one back until it has loaded all, and say that it is
    idle."""
    prompted: float = 0.0
    """When its client told last that it takes a prompt, UTC seconds."""
    driver: ev.DrivenBy = ev.DrivenBy.KEYS
    driver_note: str = ""
    """Why the keys drive it, and not the plugin, where there should be one."""
    step: int = 0
    last_activity: float = 0.0
    adopted: bool = False
    """An external client, which the user started: measured and warned, never typed to, rotated or ended."""
    config: str = ""
    """The client's configuration directory."""
    asked: tuple[tuple[str, str], ...] = ()
    """What its launch says about where the client compacts."""
    limits: ClientLimits = NO_LIMITS
    """That, and what the client's settings say."""
    limit: UsageLimit | None = None
    """The limit of the account that it has met and that is not known to be over."""
    resumed: bool = False
    """`sm` has continued what the last limit interrupted, and no turn has failed since. The client's own wait for the
    limit's end may continue: a plugin's prompt does not end it."""
    budget: BudgetUse = BudgetUse()
    """What it has used of its budgets."""
    lesson: Lesson | None = None
    """Where the client was seen to compact by itself."""
    window: int | None = None
    """The model's window in tokens, where the client's status line has told it."""
    policy: Policy = Policy()
    guard: LoopGuard = LoopGuard()
    offer: Offer | None = None
    """Documents that the notice in its first context is still to name."""
    kept: Handoff | None = None
    """A document of it that no rotation continues from: made for it, or kept when it was killed."""
    told: str = ""
    """The handoff its context was given; empty again once a compaction is about to take it away."""
    untold: str = ""
    """The handoff whose document was in an answer that the hook did not wait for: the next hook's answer carries it."""
    failed_starts: tuple[float, ...] = ()
    """When its client ended by itself, the newest last, since a turn of it last ended: what a loop restores in vain."""
    attempt: str = ""
    """The attempt of a run that it works on, as RUN/ISSUE/NUMBER; empty for every other session."""
    scope: str = ""
    """What that attempt is about: each new context gets it with the document that it begins from."""
    handoff_at: float | None = None
    """The share of the usable context at which its agent hands off, over what is configured."""
    wants_context: bool = False
    """Its work continues in a fresh context, for which a document is being made."""
    interrupted: bool = False
    """Its client ended in the middle of a turn, and no prompt has come since: nothing continues that turn by itself."""

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def next_provider(self) -> str:
        """Whose client the session is started with again."""
        unfinished = self.rotation is not None and self.rotation.unfinished
        switch = self.rotation.switch if self.rotation is not None and unfinished else None
        return self.provider if switch is None else switch.to

    @property
    def only_watched(self) -> bool:
        """Whether the user started the client, and no plugin in it answers: nothing can be done in it."""
        return self.adopted and self.driver is not ev.DrivenBy.MOD

    @property
    def takes_prompts(self) -> bool:
        """Whether it can be cleared and given prompts: by keys in its pane, or by the plugin in its client."""
        return self.pane is not None or self.driver is ev.DrivenBy.MOD

    @property
    def may_have_plugin(self) -> bool:
        """Whether its client has the plugin, or was just started with it."""
        return self.driver is ev.DrivenBy.MOD or self.driver_note == ev.AWAITED

    @property
    def can_be_told(self) -> bool:
        """Whether the plugin in the client can tell the agent something now, so that the next request carries it.

        What it tells a turn that ends without one waits for the next prompt.
        """
        in_turn = self.status in {Status.WORKING, Status.SILENT, Status.WAITING}
        continues = self.conversation is not None and self.conversation.monitor.reading.continues
        return self.driver is ev.DrivenBy.MOD and in_turn and continues

    @property
    def can_fork(self) -> bool:
        """Whether a fork of the agent's model can write a document, as far as is known."""
        return self.driver is ev.DrivenBy.MOD and self.policy.fork and not self.adopted

    @property
    def was_held(self) -> bool:
        """Whether its client was kept from compacting for a fork, and has not compacted since."""
        return self.conversation is not None and self.conversation.hold.fork_asked > 0

    @property
    def shown_detail(self) -> str:
        waits = self.rotation.note if self.rotation is not None and self.rotation.paused else ""
        limited = self.limit.words if self.limit is not None and self.shown_status is Status.LIMITED else ""
        used = self.budget.words
        who = "" if self.asked_unseen is None or not self.asked_unseen.agent else "a subagent "
        asked = "" if self.asked_unseen is None else f"{who}asks for permission: {self.asked_unseen.tool}"
        return limited or (used if self.budget.paused else "") or asked or self.detail or waits or used

    @property
    def shown_since(self) -> float:
        """When the status that is shown began, UTC seconds."""
        shown = self.shown_status
        if self.rotation is not None and shown is Status.ROTATING:
            return self.rotation.since
        if self.limit is not None and shown is Status.LIMITED:
            return self.limit.since
        return (self.since or self.created) if self.asked_unseen is None else self.asked_unseen.asked

    @property
    def shown_evidence(self) -> str:
        if self.status is self.shown_status:
            return self.evidence
        return {Status.ROTATING: "the handoff", Status.LIMITED: "the client's words"}.get(self.shown_status, "its hook")

    @property
    def asked_unseen(self) -> Ask | None:
        """What is asked for which the client shows no dialog, as by a subagent while it works on or rests."""
        found = next((ask for ask in self.asks if ask.unseen), None)
        return found if self.status in {Status.IDLE, Status.WORKING} else None

    @property
    def left_alone(self) -> str:
        """Why nothing is sent to it, submitted or rotated now; empty if it is not left alone.

        A limit of its account does not hold what another client is to continue.
        """
        if self.limit is not None and self.next_provider == self.provider:
            return usage_limit.HELD_REASON
        return budgets.HELD_REASON if self.budget.paused else ""

    @property
    def shown_status(self) -> Status:
        """What the user is shown: a rotation in progress, unless something more pressing holds."""
        if self.limit is not None and self.status in LIMITABLE:
            return Status.LIMITED
        if self.asked_unseen is not None:
            return Status.WAITING
        under_way = self.rotation is not None and self.rotation.phase in UNDER_WAY
        return Status.ROTATING if under_way and self.status in {Status.IDLE, Status.WORKING} else self.status


def changed(session: Session, **values: object) -> Session:
    """The session with these fields; itself where nothing differs, which spares most of a tool call's copies."""
    for name, value in values.items():
        if getattr(session, name) != value:
            return replace(session, **values)  # type: ignore[arg-type]  # the fields' own types
    return session
