"""What sessions have used of models, and what that costs."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sm.api.authority import owns
from sm.api.routes import answer, backend
from sm.api.security import caller_of
from sm.core.errors import error
from sm.wire import session_cost_view


async def cost(request: Request) -> Response:
    """Tokens and US dollars of each session by its transcripts, with `since` (UTC seconds) from then on.

    For each of its contexts and, as `tree`, with all its children. With `run` only the sessions of that run. A session
    sees itself and its children.
    """
    caller = caller_of(request)
    found = await backend(request).engine.costs.report(_since(request), request.query_params.get("run", ""))
    return answer([session_cost_view(cost) for cost in found if owns(caller, cost.session)])


def _since(request: Request) -> float:
    given = request.query_params.get("since", "0")
    try:
        since = float(given)
    except ValueError:
        since = -1.0
    if not 0 <= since <= MAX_TIME:
        raise error("bad_request", f"since must be a time in seconds since 1970, not {given!r}")
    return since


MAX_TIME = 1e11
