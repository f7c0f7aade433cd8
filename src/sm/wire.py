"""The answers of the API, each as a struct that a route encodes, a test compares and a reader decodes.

A member keeps its name, type and position. A member that an answer may leave out is UNSET there, which is not the same
as null. States and kinds are plain text, so that a reader can decode the answer of a newer server. What the API
takes is in `api/bodies.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from sm.core.errors import Refused
from sm.core.events import DrivenBy
from sm.core.model.ask import AskDetails, StoredAsk
from sm.core.model.budget import BudgetUse
from sm.core.model.context import Level, Monitor
from sm.core.model.cost import Spending
from sm.core.model.handoff import StoredHandoff
from sm.core.model.handoff_offer import Offer
from sm.core.model.history import Artefact, Hit
from sm.core.model.message import MessageState
from sm.core.model.reminder import Kind, Reminder
from sm.core.model.report import Report
from sm.core.model.rotation import Rotation
from sm.core.model.session import Session, Status
from sm.core.model.session_cost import SessionCost
from sm.core.model.usage_limit import UsageLimit
from sm.core.rules.context_thresholds import level, thresholds, turns_left
from sm.core.rules.loop_guard import needed_tokens
from sm.core.rules.reminders import has_nothing_ahead
from sm.core.rules.session.status import lost_at

T = TypeVar("T")


class ErrorAnswer(msgspec.Struct):
    """The answer to every refused request."""

    error: str
    code: str
    """One of `api/errors.py`."""
    hint: str


class HealthAnswer(msgspec.Struct):
    """`GET /health`."""

    version: str
    pid: int
    home: str
    sessions: int = 0
    uptime: float = 0.0
    problems: list[str] | UnsetType = UNSET
    """Problems of the server itself, for the user alone; left out without any."""


class WebLink(msgspec.Struct):
    """`POST /web/links`: how one browser logs in, once."""

    path: str
    """Behind the server's address; it holds the code."""
    host: str
    """The name of this server alone among those of loopback; its port is the server's."""
    hosts: list[str]
    """The hosts that are configured in `server.hosts`."""
    expires: float
    read_only: bool


class DeviceView(msgspec.Struct):
    """A browser that is logged in."""

    id: str
    name: str
    created: float
    seen: float
    """When it last sent a request, exact to a minute."""
    read_only: bool
    revoked: float | None
    this: bool
    """It is the one that asks."""
    notified: bool = False
    """It is sent notifications while no page is open."""


class PushView(msgspec.Struct):
    """How the device that asks is notified."""

    key: str
    """Of this server, as a browser's `applicationServerKey`."""
    notified: bool


class LinkOrder(msgspec.Struct, omit_defaults=True):
    """Something for the plugin in a client to do."""

    id: int
    kind: str
    text: str = ""
    as_user: bool = False


class LinkDocument(msgspec.Struct):
    """A document, for the part of it that is in a hook's reply."""

    whole: str
    part: str


class LinkAnswer(msgspec.Struct, omit_defaults=True):
    orders: list[LinkOrder]
    document: LinkDocument | None = None
    reply: dict[str, object] | None = None
    """To the hook, in the client's own form."""
    over: bool = False
    """What the client asks its user is over: nothing is left to wait for."""
    rotate: str = ""
    """Whether a client that the user has started is cleared at once (`auto`) or after they agree (`ask`)."""


class AskOptionView(msgspec.Struct):
    label: str
    description: str


class AskQuestionView(msgspec.Struct):
    text: str
    options: list[AskOptionView]
    several: bool
    """More than one may be chosen."""


class AskView(msgspec.Struct):
    """What a client asks its user."""

    id: str
    session: str
    name: str
    """The session's."""
    kind: str
    """`permission`, `question` or `plan`."""
    tool: str
    agent: str
    """The subagent that asks; empty for the main agent."""
    state: str
    """`open`, `answered`, `expired` or `withdrawn`."""
    asked: float
    changed: float
    reason: str
    """Why it is over, if it was not answered, or why it is open again."""
    input: dict[str, object]
    """What the tool was given: as the client has it while the ask is open, afterwards without secrets."""
    questions: list[AskQuestionView]
    always: list[str]
    """What is allowed from then on, if it is allowed for always."""
    decision: str | None
    """`allow`, `deny` or `answer`."""
    for_always: bool
    by: str
    """The session that answered; empty for the user."""
    answer: str
    """Its words, without secrets."""


def ask_view(stored: StoredAsk, name: str, details: AskDetails | None) -> AskView:
    ask = stored.ask
    questions = details.questions if details else ()
    return AskView(
        id=ask.id,
        session=stored.session,
        name=name,
        kind=ask.kind.value,
        tool=ask.tool,
        agent=ask.agent,
        state=ask.state.value,
        asked=ask.asked,
        changed=ask.changed,
        reason=ask.reason,
        input=msgspec.json.decode(stored.request.input, type=dict[str, Any]),
        questions=[
            AskQuestionView(
                question.text,
                [AskOptionView(option.label, option.description) for option in question.options],
                question.several,
            )
            for question in questions
        ],
        always=list(details.always if details else ()),
        decision=ask.decision.value if ask.decision else None,
        for_always=ask.always,
        by=ask.by,
        answer=stored.answer,
    )


class StopAnswer(msgspec.Struct):
    """That the server is stopping."""

    status: str = "stopping"


class ChannelTest(msgspec.Struct):
    """Whether a notification channel took a test."""

    channel: str
    ok: bool
    problem: str


class SpendingView(msgspec.Struct):
    """What requests have used. `usd` is null where no price is known, and too little where `unpriced` names a model."""

    requests: int
    tokens: int
    input: int
    cache_writes: int
    long_cache_writes: int
    cache_reads: int
    output: int
    usd: float | None
    unpriced: list[str]


class ContextCostView(msgspec.Struct):
    number: int
    conversation: str
    started: float
    spent: SpendingView


class SessionCostView(msgspec.Struct):
    """What a session has used; `tree` is that with all its children."""

    id: str
    name: str
    parent: str | None
    attempt: str | None
    """The attempt of a run that it works on."""
    spent: SpendingView
    tree: SpendingView
    contexts: list[ContextCostView]


class Notified(msgspec.Struct):
    """The run whose end was noted; it is sent by the channels that are set."""

    run: str


class TextAnswer(msgspec.Struct):
    """The text of a pane."""

    text: str


class AttachAnswer(msgspec.Struct):
    """The command that shows a pane."""

    argv: list[str]
    name: str


class LimitView(msgspec.Struct):
    """A usage limit that the session has met."""

    kind: str
    resets_at: float | None
    since: float
    interrupted: bool
    """It has ended a turn of this session."""
    asks: bool
    """It has reset, and the user decides whether the work that it interrupted continues."""


class BudgetView(msgspec.Struct):
    """What the session has used of its budgets."""

    level: str
    """`warned`, `paused`, or `unknown` where a part of it has no price."""
    text: str


class UsedShareView(msgspec.Struct):
    """How much of one usage limit an account has used."""

    kind: str
    percent: float
    resets_at: float | None


class LimitedSession(msgspec.Struct):
    """A session that waits for the end of a usage limit."""

    id: str
    name: str
    status: str
    detail: str
    limit: LimitView | None


class AccountView(msgspec.Struct):
    """An account: a configuration directory of a client."""

    provider: str
    config: str
    limit: LimitView | None
    """The usage limit that it has met and that has not reset yet."""
    used: list[UsedShareView]
    """As its clients have reported it; empty where none has."""
    sessions: list[LimitedSession]


class LimitsAnswer(msgspec.Struct):
    """`GET /limits`."""

    resume: str
    """`limits.resume` of the configuration."""
    patience: float
    """`limits.patience` of the configuration, in seconds."""
    accounts: list[AccountView]


class ReportView(msgspec.Struct):
    """What an agent reported with `sm status` or `sm done`."""

    text: str
    at: float
    done: bool


class ContextView(msgspec.Struct):
    """How full a context is; null for unknown values. Without a conversation only the first four are set."""

    tokens: int | None
    projected: int | None
    source: str
    level: str
    exact: bool | UnsetType = UNSET
    stale: bool | UnsetType = UNSET
    lower_bound: bool | UnsetType = UNSET
    compactions: int | UnsetType | None = UNSET
    malformed: int | UnsetType | None = UNSET
    model: str | UnsetType | None = UNSET
    window: int | UnsetType | None = UNSET
    window_assumed: bool | UnsetType = UNSET
    usable: int | UnsetType | None = UNSET
    percent: float | UnsetType | None = UNSET
    messages: int | UnsetType | None = UNSET
    output_tokens: int | UnsetType | None = UNSET
    breakdown: dict[str, int] | UnsetType | None = UNSET
    """Estimated tokens by tool; like the number of calls unknown where the plugin in the client counts the context."""
    tool_calls: int | UnsetType | None = UNSET
    crossed_at: dict[str, float] | UnsetType = UNSET
    """When each level was crossed."""
    handoffs_too_late: int | UnsetType = UNSET
    limit: LimitView | UnsetType | None = UNSET
    conversation: str | UnsetType = UNSET
    transcript: str | UnsetType | None = UNSET


class ContextMark(msgspec.Struct):
    """What happened to a context."""

    at: float
    words: str


class ContextHistoryView(msgspec.Struct):
    """How full a session's context was over its whole life, oldest first; of many readings the highest of each few."""

    at: list[float]
    tokens: list[int]
    usable: list[int | None]
    """Tokens at which the client would have compacted; null where that was not known."""
    marks: list[ContextMark]
    warning: int | None
    """Tokens at which its agent is warned now, and at which it is to hand off; null where that is not known."""
    critical: int | None


class ContextBrief(msgspec.Struct):
    """The part of a context that its session's answer has; null for unknown values."""

    tokens: int | None
    projected: int | None
    usable: int | None
    percent: float | None
    level: str
    source: str
    stale: bool | None
    window_assumed: bool | None
    crossed_at: dict[str, float] | None
    warning: int | None
    """Tokens at which its agent is warned, and at which it is to hand off; null where that is not known."""
    critical: int | None
    turns_left: int | None
    """Turns until then, if they grow as the context has grown so far; null where that is not known."""


class RotationView(msgspec.Struct):
    """A session's handoff and its phase. Without one only the first two are set, both null."""

    phase: str | None
    path: str | None
    id: str | UnsetType | None = UNSET
    copy: str | UnsetType | None = UNSET
    since: float | UnsetType = UNSET
    note: str | UnsetType = UNSET
    attempts: int | UnsetType = UNSET
    snapshot: str | UnsetType | None = UNSET
    stopped: float | UnsetType | None = UNSET
    finished: float | UnsetType | None = UNSET
    to: str | UnsetType | None = UNSET
    """The provider whose client continues from it, where that is another one."""


class ScheduledAnswer(msgspec.Struct, kw_only=True):
    """A handoff that was scheduled."""

    status: str = "scheduled"
    id: str
    copy: str


class HandoffView(msgspec.Struct):
    """A handoff in the store."""

    id: str
    state: str
    held_by: str | None
    """The session that holds it."""
    holder: str | None
    """That session with its name."""
    session: str
    conversation: str
    channel: str
    dir: str
    branch: str | None
    type: str
    created: float
    changed: float
    consumed: float | None
    path: str
    copy: str
    reason: str
    here: bool | UnsetType = UNSET
    """Whether it is of the work tree in the request, not of another one of its channel; in a list by directory."""
    document: str | UnsetType = UNSET
    """Its text; in the answer for one handoff."""


class ClearedAnswer(msgspec.Struct):
    """The handoffs that were dismissed."""

    cleared: list[str]


class OfferedHandoff(msgspec.Struct):
    id: str
    path: str
    created: float


class OfferedPrompt(msgspec.Struct):
    path: str
    written: float


class ForeignDocument(msgspec.Struct):
    path: str
    written: float
    tracked: bool


class OfferView(msgspec.Struct):
    """The handoff, prompt and documents found in the project at the start of a session."""

    handoff: OfferedHandoff | None
    prompt: OfferedPrompt | None
    foreign: list[ForeignDocument]


class PublicSession(msgspec.Struct):
    """What another session may see of a session."""

    id: str
    name: str
    status: str
    parent: str | None
    report: ReportView | None


class EndedSession(msgspec.Struct):
    id: str
    name: str


class LaunchView(msgspec.Struct):
    """How `sm run` starts its client."""

    argv: list[str]
    conversation: str
    config: str
    asked: list[tuple[str, str]]
    auto_compact: int | None
    """Null; an `sm run` that is older than the server reads it."""
    farewell: list[str]
    plugin: bool
    """With the plugin that drives it from inside; reported back with the client's start, as is why not."""
    no_plugin: str
    env: dict[str, str] | UnsetType = UNSET
    """Of the first client; later ones have the same."""


class LoopGuardView(msgspec.Struct):
    """Whether the session's agent may hand off; null for unknown values."""

    start: int | None
    """Tokens with which the context began."""
    needed: int | None
    """Tokens that it has to hold before its agent may hand off again; null if it may."""
    without_progress: int
    """Rotations in a row without progress."""
    limit: int
    """How many of them make the next one wait for the user; 0 for any number."""
    paused: bool
    """The next one waits now; the handoff's note says why."""


class SessionView(msgspec.Struct):
    """A session as its owner sees it. Members after `last_activity` are in the answers of some routes only."""

    id: str
    name: str
    provider: str
    status: str
    detail: str
    """Why the status is what it is."""
    limit: LimitView | None
    budget: BudgetView | None
    """Null below 80 % of each budget, and without one."""
    adopted: bool
    dir: str
    pid: int | None
    pane: str | None
    foreground: bool
    driver: str
    """`keys`: it is cleared and given prompts by keys in its pane, or restarted in the user's own terminal. `mod`: by
    the plugin in the client, or by its app-server.
    """
    driver_note: str
    """Why the keys have taken over from the plugin."""
    parent: str | None
    model: str | None
    mode: str | None
    report: ReportView | None
    conversation: str | None
    transcript: str | None
    past_conversations: list[str]
    context: ContextBrief
    handoff: RotationView
    offer: OfferView | None
    rotations: int
    handoffs_too_late: int
    queued: int
    created: float
    last_activity: float
    loop_guard: LoopGuardView
    attempt: str | None
    """The attempt of a run that it works on, as RUN/ISSUE/NUMBER."""
    at_rest: bool
    """A turn of it has ended, and nothing of it runs, waits or rotates."""
    interrupted: bool
    """Its client ended in the middle of a turn, and no prompt has come since."""
    lost_at: float | None
    """When the client in its pane ended without an order to, as with tmux or the machine; null otherwise."""
    since: float
    """When the status began."""
    evidence: str
    """What the status is known by, in words."""
    seen: float
    """When that was last seen or heard."""
    said: str = ""
    """The last line that its agent has said, bounded, without secrets; in answers that show sessions, as the next."""
    branch: str | None = None
    """What is checked out in its directory."""
    paused_with: list[str] | UnsetType = UNSET
    """The sessions with which it has exchanged too many messages; in answers that show sessions."""
    children: list[PublicSession] | UnsetType = UNSET
    """In the answer for one session."""
    ended: list[EndedSession] | UnsetType = UNSET
    """Sessions that a kill has ended."""
    token: str | UnsetType = UNSET
    """With `launch`: to `sm run`, which starts the client itself."""
    launch: LaunchView | UnsetType = UNSET


class SentMessage(msgspec.Struct):
    """A message that was queued."""

    id: str
    state: str
    target: str
    name: str


class UnsentMessage(msgspec.Struct):
    """One of several targets, with the error that refused it."""

    name: str
    error: str
    code: str
    hint: str


class MessageView(msgspec.Struct):
    """A message's receipt."""

    id: str
    target: str
    sender: str
    """A session's id; empty for the user and for `sm` itself."""
    mode: str
    command: bool
    state: str
    channel: str
    queued: float
    delivered: float | None
    confirmed: float | None
    changed: float
    expires: float | None
    reason: str
    """Why it is in its state; if queued, why its target takes no message now."""
    notify_on_stop: bool
    wait: float | None
    size: int
    """Bytes."""
    text: str | UnsetType = UNSET
    """Its beginning; in lists."""
    named_sender: str | None = msgspec.field(name="from", default=None)
    """The sender's name in the line above the message; null for `sm` itself."""
    to: str = ""
    """Name and id of the target."""


class ReminderView(msgspec.Struct):
    id: str
    kind: str
    owner: str
    target: str
    about: str
    """Name and id of the target."""
    created: float
    due: float | None
    every: float | None
    deadline: float | None
    text: str | None


class CancelledReminder(msgspec.Struct):
    id: str


class WaitAnswer(msgspec.Struct):
    """The session that is waited for, as it is now."""

    target: str
    name: str
    idle: bool
    ended: bool


class OrderView(msgspec.Struct):
    """The client that `sm run` has to end and start again."""

    session: str
    step: int
    pid: int
    born: str


class OrderAnswer(msgspec.Struct):
    order: OrderView | None
    ended: bool


class ArtefactView(msgspec.Struct):
    """A file of the archive."""

    session: str
    contexts: list[int]
    kind: str
    path: str
    size: int
    at: float


class PrunedAnswer(msgspec.Struct):
    removed: bool
    """False: these files would be removed."""
    files: list[ArtefactView]


class HitView(msgspec.Struct):
    """A passage that holds what was searched for."""

    at: float
    session: str
    name: str | None
    context: int | None
    kind: str
    path: str
    line: str
    marks: list[tuple[int, int]]
    """Where in the line the words are."""


class EventView(msgspec.Struct):
    """An event of a session; `data` is what the store keeps of it, without secrets."""

    number: int
    at: float
    kind: str
    data: msgspec.Raw


class EventsAnswer(msgspec.Struct):
    session: str
    events: list[EventView]
    last: int
    """Number of the newest event; 0 without any."""


class ReplayedEvent(msgspec.Struct):
    """An event of the feed that a reader has missed; also the notice that its number is from another database."""

    number: int
    session: str | None
    """Null for an event of no session."""
    at: float
    kind: str
    data: msgspec.Raw


class LiveEvent(msgspec.Struct):
    """An event of the feed as it happens, with its session's status and phase after it."""

    number: int
    session: str
    kind: str
    at: float
    status: str
    phase: str | None
    data: msgspec.Raw


def error_answer(refused: Refused) -> ErrorAnswer:
    return ErrorAnswer(refused.message, refused.code, refused.hint)


def artefact_view(artefact: Artefact) -> ArtefactView:
    return ArtefactView(
        session=artefact.session,
        contexts=list(artefact.contexts),
        kind=artefact.kind,
        path=artefact.path,
        size=artefact.size,
        at=artefact.at,
    )


def hit_view(hit: Hit, name: str | None) -> HitView:
    return HitView(
        at=hit.at,
        session=hit.session,
        name=name,
        context=hit.context,
        kind=hit.kind,
        path=hit.path,
        line=hit.line,
        marks=list(hit.marks),
    )


def context_view(session: Session) -> ContextView:
    """Return the answer for `sm context`; null for unknown values."""
    current = session.conversation
    if current is None:
        return ContextView(tokens=None, projected=None, source="unknown", level=Level.UNKNOWN.value)
    monitor = current.monitor
    reading = monitor.reading
    proved_wrong = monitor.exceeds_window
    counts_calls = session.driver is DrivenBy.KEYS or not session.policy.baseline
    return ContextView(
        tokens=reading.tokens,
        projected=monitor.projected,
        source=monitor.source.value,
        level=level(monitor, session.policy).value,
        exact=reading.exact,
        stale=monitor.stale,
        lower_bound=reading.lower_bound or monitor.estimated,
        compactions=reading.compactions,
        malformed=reading.malformed,
        model=reading.model or session.model,
        window=None if proved_wrong else reading.window,
        window_assumed=reading.assumed and not proved_wrong,
        usable=None if proved_wrong else monitor.usable,
        percent=monitor.percent,
        messages=reading.messages,
        output_tokens=reading.output_tokens,
        breakdown=dict(monitor.breakdown) if counts_calls else None,
        tool_calls=monitor.tool_calls if counts_calls else None,
        crossed_at={crossed.value: at for crossed, at in monitor.crossed},
        handoffs_too_late=session.too_late,
        limit=limit_view(session.limit),
        conversation=current.id,
        transcript=current.transcript,
    )


def _brief(session: Session) -> ContextBrief:
    context = context_view(session)
    warning, critical = thresholds(session.conversation.monitor if session.conversation else Monitor(), session.policy)
    return ContextBrief(
        tokens=context.tokens,
        projected=context.projected,
        usable=_known(context.usable),
        percent=_known(context.percent),
        level=context.level,
        source=context.source,
        stale=_known(context.stale),
        window_assumed=_known(context.window_assumed),
        crossed_at=_known(context.crossed_at),
        warning=warning,
        critical=critical,
        turns_left=turns_left(session),
    )


def _known(value: T | UnsetType) -> T | None:
    return None if value is UNSET else value


def limit_view(limit: UsageLimit | None) -> LimitView | None:
    if limit is None:
        return None
    return LimitView(limit.kind, limit.resets_at, limit.since, limit.interrupted, limit.asks)


def budget_view(use: BudgetUse) -> BudgetView | None:
    return BudgetView(use.level.value, use.words) if use.words else None


def limited_session(session: Session) -> LimitedSession:
    shown = session.shown_status.value
    return LimitedSession(session.id, session.name, shown, session.shown_detail, limit_view(session.limit))


def rotation_view(rotation: Rotation | None) -> RotationView:
    if rotation is None:
        return RotationView(phase=None, path=None)
    handoff = rotation.handoff
    return RotationView(
        phase=rotation.phase.value,
        path=handoff.path if handoff else None,
        id=handoff.id if handoff else None,
        copy=handoff.copy if handoff else None,
        since=rotation.since,
        note=rotation.note,
        attempts=rotation.attempts,
        snapshot=rotation.snapshot,
        stopped=rotation.stopped,
        finished=rotation.finished,
        to=rotation.switch.to if rotation.switch else None,
    )


def handoff_view(entry: StoredHandoff, who: Callable[[str], str]) -> HandoffView:
    handoff = entry.handoff
    return HandoffView(
        id=handoff.id,
        state=entry.state.value,
        held_by=entry.holder or None,
        holder=who(entry.holder) if entry.holder else None,
        session=handoff.session,
        conversation=handoff.conversation,
        channel=handoff.channel,
        dir=handoff.directory,
        branch=handoff.branch or None,
        type=handoff.type.value,
        created=handoff.created,
        changed=entry.changed,
        consumed=entry.consumed,
        path=handoff.path,
        copy=handoff.copy,
        reason=entry.reason,
    )


def offer_view(offer: Offer | None) -> OfferView | None:
    """Return None for an empty offer."""
    if not offer:
        return None
    waiting, prompt = offer.waiting, offer.prompt
    return OfferView(
        handoff=None if waiting is None else OfferedHandoff(waiting.id, waiting.copy, waiting.created),
        prompt=None if prompt is None else OfferedPrompt(prompt.path, prompt.written),
        foreign=[ForeignDocument(found.path, found.written, found.tracked) for found in offer.foreign],
    )


def session_view(session: Session) -> SessionView:
    current = session.conversation
    return SessionView(
        id=session.id,
        name=session.name,
        provider=session.provider,
        status=session.shown_status.value,
        detail=session.shown_detail,
        limit=limit_view(session.limit),
        budget=budget_view(session.budget),
        adopted=session.adopted,
        dir=session.directory,
        pid=session.pid,
        pane=session.pane,
        foreground=session.foreground is not None,
        driver=session.driver.value,
        driver_note=session.driver_note,
        parent=session.parent,
        model=session.model,
        mode=session.mode or None,
        report=report_view(session.report),
        conversation=current.id if current else None,
        transcript=current.transcript if current else None,
        past_conversations=list(session.past),
        context=_brief(session),
        handoff=rotation_view(session.rotation),
        offer=offer_view(session.offer),
        rotations=session.rotations,
        handoffs_too_late=session.too_late,
        queued=session.outbox.waiting,
        created=session.created,
        last_activity=session.last_activity,
        loop_guard=loop_guard_view(session),
        attempt=session.attempt or None,
        at_rest=has_nothing_ahead(session),
        interrupted=session.interrupted,
        lost_at=lost_at(session),
        since=session.shown_since,
        evidence=session.shown_evidence,
        seen=max(session.shown_since, session.last_activity),
    )


def loop_guard_view(session: Session) -> LoopGuardView:
    return LoopGuardView(
        start=session.conversation.start if session.conversation else None,
        needed=needed_tokens(session),
        without_progress=session.guard.without_progress,
        limit=session.policy.max_without_progress,
        paused=session.rotation is not None and session.rotation.paused,
    )


def report_view(report: Report | None) -> ReportView | None:
    return None if report is None else ReportView(report.text, report.at, report.done)


def message_view(row: Mapping[str, Any], who: Callable[[str], str], waits: str = "") -> MessageView:
    """Return the receipt of a stored message; `waits` is why its target takes none now."""
    queued = row["state"] == MessageState.QUEUED.value
    shown = {name: value for name, value in row.items() if name not in {"frame", "reason"}}
    reason = row["reason"] or (waits if queued else "")
    return MessageView(**shown, reason=reason, named_sender=row["frame"] or None, to=who(row["target"]))


def why_it_waits(session: Session, *, whole: bool) -> str:
    """Return why the session takes no message now; with `whole` also what only its owner may see."""
    if session.ended:
        return f"{session.name} has ended"
    if session.shown_status is Status.LIMITED:
        return f"{session.name} is limited: {session.shown_detail}"
    if session.budget.paused:
        return f"{session.name} is paused" + (f": {session.budget.words}" if whole else "")
    note = session.outbox.note if session.status is Status.IDLE else session.detail
    shown = "" if session.status is Status.IDLE else f"{session.name} is {session.shown_status.value}"
    return ": ".join(part for part in (shown, note if whole else "") if part)


def public_view(session: Session) -> PublicSession:
    """Return what another session may see of this one."""
    return PublicSession(
        session.id, session.name, session.shown_status.value, session.parent, report_view(session.report)
    )


def reminder_view(reminder: Reminder, who: Callable[[str], str]) -> ReminderView:
    return ReminderView(
        id=reminder.id,
        kind=reminder.kind.value,
        owner=reminder.owner,
        target=reminder.target,
        about=who(reminder.target),
        created=reminder.created,
        due=reminder.due,
        every=reminder.every or None,
        deadline=reminder.deadline,
        text=reminder.text if reminder.kind in {Kind.ONCE, Kind.EVERY} else None,
    )


def session_cost_view(cost: SessionCost) -> SessionCostView:
    contexts = [
        ContextCostView(
            found.context.number, found.context.conversation, found.context.started, spending_view(found.spent)
        )
        for found in cost.contexts
    ]
    session = cost.session
    return SessionCostView(
        session.id,
        session.name,
        session.parent,
        session.attempt or None,
        spending_view(cost.spent),
        spending_view(cost.tree),
        contexts,
    )


def spending_view(spent: Spending) -> SpendingView:
    tokens = spent.tokens
    priced = tokens.requests == 0 or spent.usd > 0 or not spent.unpriced
    return SpendingView(
        requests=tokens.requests,
        tokens=tokens.total,
        input=tokens.input,
        cache_writes=tokens.cache_writes,
        long_cache_writes=tokens.long_cache_writes,
        cache_reads=tokens.cache_reads,
        output=tokens.output,
        usd=round(spent.usd, 6) if priced else None,
        unpriced=list(spent.unpriced),
    )
