"""Handoffs: schedule, look at, take back, try again. Self-directed: a session rotates itself and no other."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sm.api.routes import answer, backend, body, target
from sm.api.security import caller_of, only_self
from sm.core.errors import error
from sm.wire import HandoffBody, handoff_view

SELF_ONLY = "sm handoff is self-directed only — requester must equal target session"


async def schedule(request: Request) -> Response:
    """Schedule the rotation of the caller's own context; at most one waits, the last call wins."""
    actor = target(request)
    wanted = await body(request, HandoffBody)
    caller = caller_of(request)
    claimed = wanted.requester_session_id
    if claimed != actor.session.id or (not caller.is_user and caller.session != claimed):
        raise error("not_self", SELF_ONLY)
    handoff = await backend(request).supervisor.hand_off(actor.session.id, wanted.file_path, wanted.reason)
    return answer({"status": "scheduled", "id": handoff.id, "copy": handoff.copy})


async def show(request: Request) -> Response:
    """The session's handoff and the phase of its rotation."""
    actor = target(request)
    only_self(request, actor.session.id)
    return answer(handoff_view(actor.session.rotation))


async def cancel(request: Request) -> Response:
    """Take a pending handoff back."""
    actor = target(request)
    only_self(request, actor.session.id)
    await backend(request).supervisor.cancel_handoff(actor.session.id)
    return answer(handoff_view(actor.session.rotation))


async def retry(request: Request) -> Response:
    """Try a failed or waiting rotation again."""
    actor = target(request)
    only_self(request, actor.session.id)
    await backend(request).supervisor.retry_handoff(actor.session.id)
    return answer(handoff_view(actor.session.rotation))


async def list_handoffs(request: Request) -> Response:
    """Handoffs, newest first: the user's all, a session's own."""
    caller = caller_of(request)
    return answer(await backend(request).store.handoffs(caller.session))
