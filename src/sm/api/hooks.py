"""What the client itself sends: `POST /hooks/{provider}` and `POST /status/{provider}`, as the client writes it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sm.api.routes import answer, backend
from sm.api.security import caller_of, is_number
from sm.engine import adopting
from sm.wire import session_view


async def hook(request: Request) -> Response:
    """A hook's payload as the client sends it; the answer is what the client is told.

    With a session's token it is that session's; with the user's the client is one that the person started, and the
    first hook of a conversation adopts it.
    """
    session = caller_of(request).session
    header = request.headers.get("x-sm-client-pid", "")
    pid = int(header) if is_number(header) else None
    payload = await request.body()
    provider = request.path_params["provider"]
    supervisor = backend(request).supervisor
    if session is None:
        return answer(await adopting.hook(supervisor, provider, payload, pid))
    return answer(await supervisor.hook(session, provider, payload, pid))


async def status_line(request: Request) -> Response:
    """What the client tells its status line; the answer is the session, null where no session has that conversation."""
    session = caller_of(request).session
    supervisor = backend(request).supervisor
    found = adopting.status(supervisor, session, request.path_params["provider"], await request.body())
    return answer(session_view(found) if found else None)
