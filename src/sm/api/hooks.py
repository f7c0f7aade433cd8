"""What the client itself sends: `POST /hooks/{provider}` and `POST /status/{provider}`, as the client writes it."""

from __future__ import annotations

from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from sm.api.connected import while_connected
from sm.api.routes import answer, backend
from sm.api.security import caller_of, is_number, peer_of
from sm.wire import session_view


async def hook(request: Request) -> Response:
    """Take a hook's payload as the client sends it; the answer is for the client.

    With a session's token it belongs to that session. With the user's token the user started the client, and the
    first hook of a conversation makes it a watched session.
    """
    session = caller_of(request).session
    header = request.headers.get("x-sm-client-pid", "")
    pid = int(header) if is_number(header) else None
    payload = await request.body()
    provider = request.path_params["provider"]
    engine = backend(request).engine
    if session is None:
        return _for_client(await engine.external_clients.answer(provider, payload, pid))
    connected, peer = partial(while_connected, request), peer_of(request)
    return _for_client(await engine.hooks.answer(session, provider, payload, pid, connected, peer))


def _for_client(reply: dict[str, object]) -> Response:
    """Encode a reply in the client's own protocol: the provider's, so there is no struct for it."""
    return Response(msgspec.json.encode(reply), media_type="application/json")


async def status_line(request: Request) -> Response:
    """What the client tells its status line; the answer is the session, null where no session has that conversation."""
    session = caller_of(request).session
    engine = backend(request).engine
    found = engine.external_clients.status(session, request.path_params["provider"], await request.body())
    return answer(session_view(found) if found else None)
