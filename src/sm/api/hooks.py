"""`POST /hooks/{provider}`: a payload as the client sends it, answered within the hook budget."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sm.api.routes import answer, backend
from sm.api.security import caller_of, is_number
from sm.core.errors import error


async def hook(request: Request) -> Response:
    """A hook's payload as the client sends it, with the session's token; the answer is what the client is told."""
    session = caller_of(request).session
    if session is None:
        raise error("forbidden", "Hooks come with a session's token")
    pid = request.headers.get("x-sm-client-pid", "")
    payload = await request.body()
    provider = request.path_params["provider"]
    reply = await backend(request).supervisor.hook(session, provider, payload, int(pid) if is_number(pid) else None)
    return answer(reply)
