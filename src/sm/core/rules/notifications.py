"""Which episodes an event begins and ends, and when the user is notified of them.

An episode is written, and ended, in the transaction of the event that does it, so that a server's next life tells
nothing twice. While a client's state is unknown, as after a start of the server, nothing ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sm.core import events as ev
from sm.core.effects import DropEpisode, EpisodeRecord, OpenEpisode, Record, RecordAsk, RecordMessage
from sm.core.model.ask import AskKind
from sm.core.model.budget import BudgetLevel
from sm.core.model.message import MessageState
from sm.core.model.notification import (
    BY_ACCOUNT,
    LASTING,
    Episode,
    UserNotification,
    digest,
    notification,
    plain_words,
)
from sm.core.model.notify_rules import NotificationKind, NotifyRules
from sm.core.model.rotation import Phase
from sm.core.model.session import Session, Status
from sm.core.model.usage_limit import UsageLimit
from sm.core.rules.hook_delivery import CANCELLED
from sm.core.values import replace

LOST = frozenset({MessageState.UNCONFIRMED, MessageState.EXPIRED, MessageState.FAILED})
AT_WORK_AGAIN = ev.PromptSubmitted | ev.ToolUsed | ev.TurnEnded
"""Events that show that a limit is over."""
CONTINUES = (
    ev.PromptSubmitted,
    ev.ToolUsed,
    ev.TurnEnded,
    ev.ConversationStarted,
    ev.CompactionStarted,
    ev.CompactionEnded,
    ev.SessionLaunched,
)
"""Events that show that a client which had refused to continue does so; its state says `idle` all the time."""
MAX_AT_ONCE = 3
"""More notifications than these at one moment are sent as one."""
DAY_MINUTES = 24 * 60
CLOCK_STEP_S = 1.0
"""A key that was pressed later than this from now on was pressed before the clock was set back: it says nothing."""


# --- what an event means ---------------------------------------------------------------------------------------------


def follow(
    known: Iterable[Episode], before: Session, after: Session, event: ev.Event, records: Iterable[Record]
) -> tuple[EpisodeRecord, ...]:
    """Return the changes to the episodes of the event's session; `known` are those of every session."""
    every = list(known)
    mine = [episode for episode in every if episode.session == after.id]
    open_now = {(episode.kind, episode.subject): episode for episode in mine if episode.kind in LASTING}
    lasting = {(found.kind, found.subject): found for found in _lasting(after, records)}
    ended = [
        episode for key, episode in open_now.items() if key not in lasting and not _unsure(episode.kind, after, event)
    ]
    if _asked_again(before, after) and (old := open_now.get((NotificationKind.ASK, ""))) is not None:
        ended += [] if old in ended else [old]
    if isinstance(event, ev.SessionLaunched):  # it lives again: its end is old news
        ended += [episode for episode in mine if episode.kind is NotificationKind.DIED]
    gone = {episode.id for episode in ended}
    begun = [
        _episode(after, found.kind, event.at, found.said, found.quoted, found.subject)
        for key, found in lasting.items()
        if key not in open_now or open_now[key].id in gone
    ]
    begun += _happened(before, after, event, records)
    limited = open_now.get((NotificationKind.LIMITED, ""))
    if before.limit is not None and after.limit is None and not after.ended and limited is not None and limited.sent:
        begun += _resumed(before.limit, every, after, event)
    return *(DropEpisode(episode.id) for episode in ended), *(OpenEpisode(episode) for episode in begun)


def concerns(before: Session, after: Session, event: ev.Event, records: Iterable[Record]) -> bool:
    """Whether the event can mean anything here: most, as each tool call, change none of what is looked at."""
    same = (
        before.status is after.status
        and before.dialog == after.dialog
        and before.asks is after.asks
        and before.limit == after.limit
        and before.budget is after.budget
        and before.rotation is after.rotation
    )
    return not same or isinstance(event, OCCURRENCES) or any(isinstance(record, RecordMessage) for record in records)


OCCURRENCES = ev.CompactedTooLate | ev.TaskCompleted | ev.ClientExited | ev.SessionLaunched


@dataclass(frozen=True, slots=True)
class Lasting:
    """Something that lasts in a session's state."""

    kind: NotificationKind
    said: str = ""
    quoted: str = ""
    subject: str = ""


def _lasting(session: Session, records: Iterable[Record]) -> Iterator[Lasting]:
    if session.ended:
        return
    yield from _asked(session, records)
    rotation = session.rotation
    if session.status is Status.BLOCKED and not (rotation is not None and rotation.active):
        yield Lasting(NotificationKind.BLOCKED, quoted=session.detail)
    if rotation is not None and (rotation.phase is Phase.FAILED or (rotation.active and rotation.paused)):
        yield Lasting(NotificationKind.ROTATION_FAILED, rotation.note)
    if session.limit is not None and session.limit.asks:
        yield Lasting(NotificationKind.ASK, session.limit.words, subject="limit")
    elif session.limit is not None:
        yield Lasting(NotificationKind.LIMITED, session.limit.words)
    if session.budget.level in {BudgetLevel.WARNED, BudgetLevel.PAUSED}:
        yield Lasting(NotificationKind.BUDGET, session.budget.words, subject=session.budget.level.value)


ASKS = {
    AskKind.PERMISSION: "asks for permission (sm approve {0}, sm deny {0})",
    AskKind.QUESTION: "asks a question (sm answer {0})",
    AskKind.PLAN: "asks to approve a plan (sm approve {0}, sm deny {0})",
}


def _asked(session: Session, records: Iterable[Record]) -> Iterator[Lasting]:
    """Return each thing that the client asks; or else that a dialog is open, as far as its state shows one."""
    requests = {record.ask.id: record.request for record in records if isinstance(record, RecordAsk) and record.request}
    for ask in session.asks:
        request = requests.get(ask.id)
        words = "" if request is None else plain_words(request.input)
        quoted = ": ".join(part for part in (ask.tool, words) if part)
        yield Lasting(NotificationKind.ASK, ASKS[ask.kind].format(ask.id), quoted, ask.id)
    if not session.asks and (session.dialog is not None or session.status is Status.WAITING):
        yield Lasting(NotificationKind.ASK, quoted=session.detail)


def _unsure(kind: NotificationKind, after: Session, event: ev.Event) -> bool:
    """Whether it may last though the session's state does not show it, as after a start of the server."""
    if after.ended or isinstance(event, ev.SessionLaunched):
        return False
    if kind is NotificationKind.BLOCKED:
        return not isinstance(event, CONTINUES)
    return kind is NotificationKind.ASK and after.status is Status.UNKNOWN


def _asked_again(before: Session, after: Session) -> bool:
    """Whether another dialog was asked for while one was open: that one was answered."""
    return before.dialog is not None and after.dialog is not None and before.dialog != after.dialog


def _happened(before: Session, after: Session, event: ev.Event, records: Iterable[Record]) -> list[Episode]:
    found = [
        _episode(after, NotificationKind.UNDELIVERED, event.at, f"message {record.message}: {record.reason}", "")
        for record in records
        if isinstance(record, RecordMessage) and record.state in LOST and record.reason != CANCELLED
    ]
    match event:
        case ev.CompactedTooLate():
            found.append(_episode(after, NotificationKind.TOO_LATE, event.at))
        case ev.TaskCompleted(text=text) if after.parent is None and not _declared(before):
            found.append(_episode(after, NotificationKind.FINISHED, event.at, "", text))
        case ev.ClientExited() if after.status is Status.CRASHED or (after.parent is not None and not _declared(after)):
            found.append(_episode(after, NotificationKind.DIED, event.at, "", after.detail))
    return found


def _declared(session: Session) -> bool:
    return session.report is not None and session.report.done


def _resumed(limit: UsageLimit, every: Iterable[Episode], after: Session, event: ev.Event) -> list[Episode]:
    """Tell the end of a limit once: the sessions of an account continue one after the other."""
    kind = NotificationKind.RESUMED
    known = (episode for episode in every if (episode.kind, episode.account) == (kind, after.config))
    if any(episode.subject == limit.kind and episode.since >= limit.since for episode in known):
        return []
    said = "" if isinstance(event, AT_WORK_AGAIN) else "the limit is over"
    return [_episode(after, kind, event.at, said, "", limit.kind)]


def _episode(  # the fields of the value
    session: Session, kind: NotificationKind, at: float, said: str = "", quoted: str = "", subject: str = ""
) -> Episode:
    account = session.config if kind in BY_ACCOUNT else ""
    which = subject or (said if kind is NotificationKind.UNDELIVERED else "")
    identity = f"{kind.value}-{session.id}-{at:.3f}{which and '-' + which[:40]}"
    return Episode(identity, kind, session.id, session.name, at, said, quoted, account, subject=subject)


# --- when it is sent -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Moment:
    """What is decided by."""

    now: float
    local_offset: float = 0.0
    """Seconds by which the local time is ahead of UTC."""
    last_sent: float | None = None
    typed: Mapping[str, float] = field(default_factory=dict)
    """When the last key was pressed in a terminal that shows a session now, by session."""


@dataclass(frozen=True, slots=True)
class Due:
    ready: tuple[Episode, ...] = ()
    """What is to be sent now."""
    seen: tuple[Episode, ...] = ()
    """What the user knows by now: it is not sent."""
    wait: float | None = None
    """Seconds until it is worth to decide again; None for as long as nothing happens."""


def due(episodes: Iterable[Episode], rules: NotifyRules, moment: Moment) -> Due:
    """Return what is to be sent now: of what was not, and of what a channel could not tell."""
    every = tuple(episodes)
    moment = replace(moment, typed={name: at for name, at in moment.typed.items() if at < moment.now + CLOCK_STEP_S})
    waiting = [episode for episode in every if not episode.sent or episode.pending]
    seen = [episode for episode in waiting if _is_known(episode, every, moment)]
    waits = {episode.id: _wait(episode, rules, moment) for episode in waiting if episode not in seen}
    ready = tuple(episode for episode in waiting if waits.get(episode.id, 1.0) <= 0)
    held = _held(rules, moment) if ready else 0.0
    later = [seconds for seconds in waits.values() if seconds > 0] + ([held] if held > 0 else [])
    return Due(() if held > 0 else ready, tuple(seen), min(later, default=None))


def _is_known(episode: Episode, every: Iterable[Episode], moment: Moment) -> bool:
    """Whether its user was at it, or knows it from another session of the same account."""
    covered = (
        other.account == episode.account and other.sent and not other.pending and other.kind is episode.kind
        for other in every
        if other.id != episode.id and other.kind is NotificationKind.LIMITED
    )
    if episode.kind is NotificationKind.LIMITED and any(covered):
        return True
    return moment.typed.get(episode.session, float("-inf")) >= episode.since


def _wait(episode: Episode, rules: NotifyRules, moment: Moment) -> float:
    """Return the seconds until it may be sent: it has to last, and its user to be away."""
    wanted = episode.since + rules.after
    if episode.session in moment.typed:
        wanted = max(wanted, moment.typed[episode.session] + rules.away_after)
    return max(wanted, episode.retry_at if episode.pending else wanted) - moment.now


def _held(rules: NotifyRules, moment: Moment) -> float:
    """Return the seconds until anything may be sent at all."""
    between = 0.0 if moment.last_sent is None else moment.last_sent + rules.digest - moment.now
    return max(between, quiet_for(rules.quiet, moment.now + moment.local_offset), 0.0)


def quiet_for(quiet: tuple[int, int] | None, local: float) -> float:
    """Return the seconds until the quiet hours end, at that local time in seconds; 0 outside of them."""
    if quiet is None:
        return 0.0
    start, end = quiet
    minute = local / 60 % DAY_MINUTES
    since_start = (minute - start) % DAY_MINUTES
    length = (end - start) % DAY_MINUTES
    return (length - since_start) * 60 if since_start < length else 0.0


def notifications(ready: Iterable[Episode], rules: NotifyRules, channel: str) -> tuple[UserNotification, ...]:
    """Return what a channel is given of that: all but what only others could not tell."""
    groups: dict[tuple[NotificationKind, str], list[Episode]] = {}
    for episode in ready:
        if not episode.pending or channel in episode.pending:
            groups.setdefault((episode.kind, episode.account or episode.session), []).append(episode)
    single = tuple(notification(group) for group in groups.values())
    return (digest(single),) if len(single) > (1 if rules.digest else MAX_AT_ONCE) else single
