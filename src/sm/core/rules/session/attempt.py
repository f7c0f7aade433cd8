"""When the work on an attempt continues in a fresh context though its agent has handed nothing off.

It has asked for one by a line of its last message, or its client refuses to continue. The document is then made
without a model, and the rotation begins with it.
"""

from __future__ import annotations

from sm.core import events as ev
from sm.core.effects import MakeDocument, Outcome
from sm.core.model.client_traits import ClientTraits
from sm.core.model.handoff import HandoffType
from sm.core.model.session import Session, changed


def follow_attempt(session: Session, event: ev.Event, _: ClientTraits) -> Outcome:
    """Have a document made, once; again by a server that started before it was there."""
    if not session.attempt:
        return session, ()
    match event:
        case ev.TurnEnded(signal=run) if run == session.attempt.partition("/")[0]:
            return _continued(session)
        case ev.ClientBlocked() if not session.wants_context:
            return _continued(session)
        case ev.ServerStarted() if session.wants_context:
            return _continued(session)
        case ev.DocumentKept() | ev.PromptSubmitted() | ev.ConversationStarted() | ev.ClientExited():
            return changed(session, wants_context=False), ()
    return session, ()


def _continued(session: Session) -> Outcome:
    rotates = session.rotation is not None and session.rotation.active
    if rotates:
        return changed(session, wants_context=False), ()
    return changed(session, wants_context=True), (MakeDocument(rotate=True, kind=HandoffType.AUTO),)
