"""The states of what a client asks its user: answered through `sm`, or known to be answered elsewhere, or gone.

The client's own state shows whether a dialog is open, not which one: of several at once, those that were answered in
the terminal are known once the last one is closed.
"""

from __future__ import annotations

from enum import StrEnum

from sm.core import events as ev
from sm.core.effects import Outcome, RecordAsk
from sm.core.model.ask import Ask, AskState
from sm.core.model.client_traits import ClientTraits
from sm.core.model.session import DIALOG_DELAY_S, Session
from sm.core.values import replace


class AskVerdict(StrEnum):
    """What an event means to one ask where its kind alone does not decide."""

    NO_DIALOG = "no dialog is open"
    OWN_TURN_OVER = "asked by the main agent, whose turn is over"


AskRow = tuple[AskState, type[ev.Event]] | tuple[AskState, type[ev.Event], AskVerdict]
ASK_EVENTS = (ev.AskOpened, ev.AskAnswered, ev.AskExpired, ev.AskWithdrawn)
STANDING = (AskState.OPEN, AskState.EXPIRED)
"""A dialog may be open for these."""
TURN_OVER = (ev.TurnEnded, ev.TurnFailed, ev.PromptSubmitted, ev.ConversationStarted)
CLIENT_OVER = (ev.ClientExited, ev.SessionKilled, ev.SessionLaunched, ev.LaunchFailed)
ASK_AFTER: dict[AskRow, AskState] = {
    (AskState.OPEN, ev.AskAnswered): AskState.ANSWERED,
    (AskState.OPEN, ev.AskExpired): AskState.EXPIRED,
    (AskState.OPEN, ev.ServerStarted): AskState.EXPIRED,
    (AskState.EXPIRED, ev.AskOpened): AskState.OPEN,
    **{(state, ev.AskWithdrawn): AskState.WITHDRAWN for state in STANDING},
    **{(state, ev.ActivityChanged, AskVerdict.NO_DIALOG): AskState.WITHDRAWN for state in STANDING},
    **{(state, kind, AskVerdict.OWN_TURN_OVER): AskState.WITHDRAWN for state in STANDING for kind in TURN_OVER},
    **{(state, kind): AskState.WITHDRAWN for state in STANDING for kind in CLIENT_OVER},
}
"""The state after an event; without a row it stays as it is."""
IN_TERMINAL = "answered or left in its terminal"
RESTARTED = "the server was restarted"
REASONS: dict[type[ev.Event], str] = {
    ev.ServerStarted: RESTARTED,
    ev.ActivityChanged: IN_TERMINAL,
    ev.TurnEnded: IN_TERMINAL,
    ev.TurnFailed: IN_TERMINAL,
    ev.PromptSubmitted: IN_TERMINAL,
    ev.ConversationStarted: "the context is over",
    ev.ClientExited: "the client has ended",
    ev.SessionKilled: "the session was killed",
    ev.SessionLaunched: "the client has ended",
    ev.LaunchFailed: "the client has ended",
}


def follow_asks(session: Session, event: ev.Event, _: ClientTraits) -> Outcome:
    if isinstance(event, ev.AskOpened):
        return _opened(session, event)
    if not session.asks:
        return session, ()
    after = tuple(_moved(ask, event) for ask in _seen(session.asks, event))
    if after == session.asks:
        return session, ()
    words, answers = (event.text, event.answers) if isinstance(event, ev.AskAnswered) else ("", ())
    moved = (new for old, new in zip(session.asks, after, strict=True) if new.state is not old.state)
    records = tuple(RecordAsk(new, None, words, answers) for new in moved)
    return replace(session, asks=tuple(ask for ask in after if ask.state in STANDING)), records


def _opened(session: Session, event: ev.AskOpened) -> Outcome:
    known = next((ask for ask in session.asks if ask.id == event.ask), None)
    if known is None:
        seen = bool(event.agent) and any(not other.unseen for other in session.asks)  # not known whose dialog it is
        ask = Ask(
            event.ask,
            event.kind,
            event.tool,
            event.at,
            event.agent,
            seen,
            changed=event.at,
            reason=event.reason,
            hidden=event.request.hidden,
        )
        asks = (*session.asks, ask)
    else:
        ask = _moved(known, event)
        asks = tuple(ask if other.id == ask.id else other for other in session.asks)
    return replace(session, asks=asks), (RecordAsk(ask, event.request),)


def ask_news(before: Session, after: Session, event: ev.Event) -> tuple[ev.Event, ...]:
    """Return the events that say which asks another event has ended: they change nothing more."""
    if before.asks == after.asks or isinstance(event, ASK_EVENTS):
        return ()
    news: list[ev.Event] = []
    for ask in _seen(before.asks, event):
        moved = _moved(ask, event)
        if moved.state is not ask.state:
            kind = ev.AskExpired if moved.state is AskState.EXPIRED else ev.AskWithdrawn
            news.append(kind(at=event.at, ask=ask.id, reason=moved.reason))
    return tuple(news)


def _seen(asks: tuple[Ask, ...], event: ev.Event) -> tuple[Ask, ...]:
    """Mark what subagents ask once a dialog is open that is not the main agent's."""
    shows = isinstance(event, ev.ActivityChanged) and event.activity is ev.Activity.WAITING
    if not shows or not all(ask.agent for ask in asks):
        return asks
    return tuple(ask if ask.seen else replace(ask, seen=True) for ask in asks)


def _moved(ask: Ask, event: ev.Event) -> Ask:
    state = ASK_AFTER.get(_ask_row(ask, event))
    if state is None:
        return ask
    if isinstance(event, ev.AskAnswered):
        return replace(
            ask, state=state, changed=event.at, decision=event.decision, always=event.always, by=event.by, reason=""
        )
    own = event.reason if isinstance(event, ev.AskOpened | ev.AskExpired | ev.AskWithdrawn) else ""
    return replace(ask, state=state, changed=event.at, reason=own or REASONS.get(type(event), ""))


def _ask_row(ask: Ask, event: ev.Event) -> AskRow:
    """Return what the table has, or has not, for the event."""
    match event:
        case ev.AskOpened() | ev.AskAnswered() | ev.AskExpired() | ev.AskWithdrawn():
            return (ask.state, type(event)) if event.ask == ask.id else (ask.state, ev.Event)
        case ev.ActivityChanged(at=at, activity=activity) if is_closed(ask, activity, at):
            return ask.state, ev.ActivityChanged, AskVerdict.NO_DIALOG
        case ev.TurnEnded() | ev.TurnFailed() | ev.PromptSubmitted() | ev.ConversationStarted() if not ask.agent:
            return ask.state, type(event), AskVerdict.OWN_TURN_OVER
    return ask.state, type(event)


def is_closed(ask: Ask, activity: ev.Activity, at: float) -> bool:
    """Return whether a client in this state has no dialog open for it: one that is about to open may not show yet."""
    opens = ask.asked if ask.seen or not ask.agent else ask.changed  # not before `sm` has let go
    return activity in {ev.Activity.IDLE, ev.Activity.BUSY} and not ask.unseen and at >= opens + DIALOG_DELAY_S
