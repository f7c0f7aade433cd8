"""Which conversation of its client a session is in."""

from __future__ import annotations

from collections.abc import Callable

from sm.core import events as ev
from sm.core.effects import Outcome, RecordContext
from sm.core.model.client_traits import ClientTraits
from sm.core.model.session import Conversation, Session
from sm.core.rules.session.context import read_context
from sm.core.values import replace


def follow_conversation(session: Session, event: ev.Event, _: ClientTraits) -> Outcome:
    handler = CONVERSATION_HANDLERS.get(type(event))
    return (session, ()) if handler is None else handler(session, event)


def _launched(session: Session, event: ev.SessionLaunched) -> Outcome:
    fresh = Conversation(event.conversation, event.transcript, event.at)
    same = session.conversation is not None and session.conversation.id == event.conversation
    stays = same or not event.conversation
    if event.provider and event.provider != session.provider:
        session = _of_other_client(session, event.provider)
    told_again = event.pid == session.pid and session.driver is ev.DrivenBy.MOD
    moved = replace(
        session if stays else _move(session, fresh),
        config=event.config,
        asked=event.asked,
        limits=event.limits,
        adopted=event.adopted,
        foreground=event.foreground,
        pane=event.pane,
        pid=event.pid,
        driver=ev.DrivenBy.MOD if told_again else ev.DrivenBy.KEYS,
        driver_note="" if told_again else ev.AWAITED if event.plugin else event.no_plugin,
        dialog=None,
        background=(),
        scheduled=(),
    )
    return moved, () if stays else (_recorded(moved, fresh, event.log_end),)


def _of_other_client(session: Session, provider: str) -> Session:
    """What is known of a client holds for no other; what is the session's own stays."""
    return replace(
        session,
        provider=provider,
        model=None,
        window=None,
        lesson=None,
        limit=None,
        resumed=False,
        interrupted=False,
    )


def _started(session: Session, event: ev.ConversationStarted) -> Outcome:
    session = replace(session, pid=event.pid or session.pid, model=event.model or session.model)
    current = session.conversation
    if current is None or current.id != event.conversation:
        fresh = Conversation(event.conversation, event.transcript, event.at)
        begins = event.log_end if current is None or current.log_end is None else current.log_end
        return _move(session, fresh), (_recorded(session, fresh, begins),)
    epoch = current.epoch + (event.origin is ev.Origin.COMPACT)
    known, current = current, replace(current, transcript=event.transcript or current.transcript, epoch=epoch)
    news = (_recorded(session, current, event.log_end),) if current.transcript != known.transcript else ()
    return replace(session, conversation=replace(current, log_end=None)), news


def _ended(session: Session, event: ev.ConversationEnded) -> Outcome:
    """The next context's first bytes come after this: the client reports that it leaves before it wipes the screen."""
    current = session.conversation
    if current is None or current.id != event.conversation:
        return session, ()
    return replace(session, conversation=replace(current, log_end=event.log_end)), ()


def _transcript_moved(session: Session, event: ev.TranscriptMoved) -> Outcome:
    if session.conversation is None:
        return session, ()
    moved = replace(session.conversation, transcript=event.transcript)
    return replace(session, conversation=moved), (_recorded(session, moved, 0), read_context(moved, settle=False))


def _recorded(session: Session, conversation: Conversation, log_start: int) -> RecordContext:
    known = conversation.id, conversation.transcript, conversation.started
    return RecordContext(*known, log_start, session.provider)


def _move(session: Session, conversation: Conversation) -> Session:
    old = session.conversation
    past = session.past if old is None else (*(known for known in session.past if known != old.id), old.id)
    return replace(session, conversation=conversation, past=past)


CONVERSATION_HANDLERS: dict[type[ev.Event], Callable[[Session, ev.Event], Outcome]] = dict(
    (
        ev.on(ev.SessionLaunched, _launched),
        ev.on(ev.ConversationStarted, _started),
        ev.on(ev.ConversationEnded, _ended),
        ev.on(ev.TranscriptMoved, _transcript_moved),
    )
)
