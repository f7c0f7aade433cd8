"""What the page of the fleet holds: the asks that wait, a row for each session, the runs, and in which order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from sm.api.asks import shown_ask
from sm.api.routes import Backend
from sm.api.sessions import owner_view
from sm.core.model.session import Session
from sm.fleet import Row, rows, title
from sm.runner.known_runs import KnownRun
from sm.web.pages.runs import RunView, run_views
from sm.web.pages.templates import environment
from sm.wire import session_cost_view

ASK_EVENTS = frozenset({
    "AskOpened", "AskAnswered", "AskExpired", "AskWithdrawn", "PermissionAsked", "ServerStarted", "ClientExited",
    "SessionKilled", "SessionRenamed", "TurnEnded",
})  # fmt: skip
"""Kinds of events after which other asks may be open."""
EVIDENCE_STEP_S = 10
MAX_SOURCE_AGE_S = 2.0
"""What of a view is not in the session itself, as the branch, is looked at again after this."""
Key = Row | tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RowSource:
    """What a row was made of."""

    session: Session
    at: float
    view: dict[str, Any]


@dataclass(frozen=True, slots=True)
class FleetPicture:
    """The fleet at one moment."""

    at: float = 0.0
    sources: dict[str, RowSource] = field(default_factory=dict)
    """By session."""
    costs: list[dict[str, Any]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    asks: list[dict[str, Any]] = field(default_factory=list)
    runs: list[RunView] = field(default_factory=list)
    keys: dict[str, Key] = field(default_factory=dict)
    """By the id of each part: what it shows."""

    @property
    def title(self) -> str:
        return title(self.rows)

    def view(self, session: str) -> dict[str, Any]:
        """Return a session as the API answers."""
        return self.sources[session].view


async def open_asks(backend: Backend) -> list[dict[str, Any]]:
    standing = await backend.store.asks(standing=True)
    known = (stored for stored in standing if stored.session in backend.engine.sessions.actors)
    return [msgspec.to_builtins(shown_ask(backend, stored)) for stored in known]


async def spent(backend: Backend) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(session_cost_view(cost)) for cost in await backend.engine.costs.report()]


def picture(
    backend: Backend,
    before: FleetPicture,
    asks: list[dict[str, Any]],
    costs: list[dict[str, Any]],
    runs: Iterable[KnownRun],
) -> FleetPicture:
    """Return the picture of now. A session of which nothing has changed since `before` costs next to nothing."""
    now = backend.engine.ports.clock.now()
    sources = {
        actor.session.id: _source(backend, before.sources.get(actor.session.id), actor.shown, now)
        for actor in backend.engine.sessions.actors.values()
    }
    found = rows([source.view for source in sources.values()], asks, costs)
    keys: dict[str, Key] = {f"row-{row.id}": _key(row) for row in found}
    keys.update({f"ask-{ask['id']}": (ask["state"], ask["name"], ask["reason"]) for ask in asks})
    shown = run_views(runs, found)
    keys.update({f"run-{run.name}": run.key for run in shown})
    return FleetPicture(now, sources, costs, found, asks, shown, keys)


def _source(backend: Backend, before: RowSource | None, session: Session, now: float) -> RowSource:
    if before is not None and before.session is session and 0 <= now - before.at < MAX_SOURCE_AGE_S:
        return before
    return RowSource(session, now, msgspec.to_builtins(owner_view(backend, session)))


def _key(row: Row) -> Key:
    """Return what of a row is news: of newer evidence for the same only every 10 s."""
    return replace(row, seen=None if row.seen is None else row.seen // EVIDENCE_STEP_S)


def changed_parts(before: FleetPicture, after: FleetPicture) -> dict[str, str]:
    """Return the HTML of each part that reads otherwise than before."""
    row_item = environment().get_template("_row.html").module.row_item  # type: ignore[attr-defined]  # a macro of it
    ask_item = environment().get_template("_ask.html").module.ask_item  # type: ignore[attr-defined]
    run_item = environment().get_template("_run.html").module.run_item  # type: ignore[attr-defined]
    parts = (
        *((f"row-{row.id}", row_item, row) for row in after.rows),
        *((f"ask-{ask['id']}", ask_item, ask) for ask in after.asks),
        *((f"run-{run.name}", run_item, run) for run in after.runs),
    )
    return {name: str(item(of, after.at)) for name, item, of in parts if before.keys.get(name) != after.keys[name]}


def order(shown: list[Row], asks: list[dict[str, Any]], runs: list[RunView]) -> str:
    """Return what says which rows, asks and runs there are, in order, and how many need the user."""
    macro = environment().get_template("_order.html").module.order  # type: ignore[attr-defined]  # a macro of it
    return str(macro(title(shown), shown, asks, runs))
