"""What every route shares: the engine behind it, bodies, answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from sm.api.context_history import ContextHistories
from sm.api.security import is_number
from sm.archive.redaction.redact import OwnTokens
from sm.archive.terminal.printer import LogPrinter
from sm.core.errors import error
from sm.engine.actor import Actor
from sm.engine.archive_service import Archiving
from sm.engine.engine import Engine
from sm.engine.feed import Feed
from sm.store.sessions import SqliteStore
from sm.wire import HealthAnswer

Body = TypeVar("Body")


@dataclass(frozen=True, slots=True)
class Backend:
    engine: Engine
    store: SqliteStore
    feed: Feed
    health: HealthAnswer
    """What of it stays the same."""
    started: float
    archiving: Archiving
    printing: LogPrinter
    own_tokens: OwnTokens
    histories: ContextHistories = field(default_factory=ContextHistories)
    problems: Callable[[], list[str]] = list
    """What the user should know of the server itself, in words."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The server's own: of a client that is started from a browser, which has none."""


def backend(request: Request) -> Backend:
    found = request.app.state.backend
    assert isinstance(found, Backend)
    return found


def target(request: Request) -> Actor:
    """The session that the path names, by id or name; looked up once, so that the one checked is the one acted on."""
    found = request.scope.get("sm.target")
    if found is None:
        found = request.scope["sm.target"] = backend(request).engine.sessions.find(request.path_params["session"])
    assert isinstance(found, Actor)
    return found


async def body(request: Request, kind: type[Body]) -> Body:
    raw = await request.body()
    try:
        return msgspec.json.decode(raw or b"{}", type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise error("bad_request", f"Bad body: {problem}") from problem
    except RecursionError as problem:
        raise error("bad_request", "Bad body: nested too deeply") from problem


def answer(value: msgspec.Struct | Sequence[msgspec.Struct] | None, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def count(request: Request, name: str, default: int, most: int) -> int:
    given = request.query_params.get(name)
    if given is None:
        return default
    if not is_number(given) or not 0 < int(given) <= most:
        raise error("bad_request", f"{name} must be a number from 1 to {most}")
    return int(given)
