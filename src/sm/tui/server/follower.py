"""When the picture of all sessions is taken again: soon after an event, as seldom as its cost asks, and never trusted
for longer than the server is heard of.

A picture is taken after the stream of events is open, so that no change falls between. Several events share one, which
asks only for the sessions that they are about; every few seconds all are asked for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sm.client import Client, UnavailableError
from sm.core.errors import SmError
from sm.core.ports.clock import Clock
from sm.tui.server.requests import Api, SeenEvent

RETRY_INTERVAL_S = 0.5
MIN_INTERVAL_S, MAX_INTERVAL_S = 0.1, 0.8
"""Between two pictures; with the time to take one, a change is shown within a second."""
COST_FACTOR = 60.0
"""A picture is followed by this many times its cost in processor time, so that many sessions take little of it."""
IDLE_INTERVAL_S = 5.0
"""A picture is taken that often without an event: a server that hangs sends none."""
WHOLE_INTERVAL_S = 5.0
"""What no event of a session tells is read that often: its branch, a limit of its account."""
MAX_NAMED = 100
"""Of more sessions all are asked for: an address has an end."""
COST_INTERVAL_S = 30.0
"""The server reads transcripts for what sessions have used."""
BEGINS_ASK = frozenset({"AskOpened", "PermissionAsked"})
"""Events after which an ask may be open where none was."""
NO_SERVER = "no server"


@dataclass(frozen=True, slots=True)
class Picture:
    """All sessions and asks, as the server had them at a moment or later."""

    sessions: tuple[dict[str, Any], ...] = ()
    asks: tuple[dict[str, Any], ...] = ()
    costs: tuple[dict[str, Any], ...] = ()
    at: float = 0.0


@dataclass(slots=True)
class Follower:
    connect: Callable[[], Client | None]
    """Returns a client for the server that is announced; None without one."""
    clock: Clock
    show: Callable[[Picture], None]
    lose: Callable[[str], None]
    """Is called with why no picture can be taken."""
    happened: Callable[[SeenEvent], None]
    picture: Picture = Picture()
    api: Api | None = None
    last: int | None = None
    """The number of the newest event."""
    _wanted: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: set[str] = field(default_factory=set)
    """Sessions that an event was about since the last picture."""
    _asks_wanted: bool = True
    _whole_at: float = float("-inf")
    _costs_at: float = float("-inf")

    async def follow(self) -> None:
        """Follow the server for good; whatever it does or does not, this only ends when it is cancelled."""
        while True:
            client = self.connect()
            if client is None:
                self.lose(NO_SERVER)
            else:
                await self._follow(Api(client))
            await asyncio.sleep(RETRY_INTERVAL_S)

    async def _follow(self, api: Api) -> None:
        self.want()
        self._costs_at = float("-inf")
        try:
            async with asyncio.TaskGroup() as tasks:
                opened = asyncio.Event()
                tasks.create_task(self._read_events(api, opened))
                tasks.create_task(self._take_pictures(api, opened))
        except* UnavailableError as group:
            self.lose(_words(group, "the server does not answer"))
        except* SmError as group:
            self.lose(_words(group, ""))
        finally:
            self.api = None

    def want(self) -> None:
        """Take a picture soon, as after an order."""
        self._asks_wanted, self._whole_at = True, float("-inf")
        self._wanted.set()

    async def _read_events(self, api: Api, opened: asyncio.Event) -> None:
        async for event in api.events(self.last):
            opened.set()
            if event is None:
                continue
            self.last = event.number
            self._asks_wanted = self._asks_wanted or event.kind in BEGINS_ASK or bool(self.picture.asks)
            if event.session is None:
                self._whole_at = float("-inf")
            else:
                self._changed.add(event.session)
            self._wanted.set()
            self.happened(event)
        raise UnavailableError

    async def _take_pictures(self, api: Api, opened: asyncio.Event) -> None:
        if not await _set_within(opened, IDLE_INTERVAL_S):
            raise UnavailableError
        while True:
            self._wanted.clear()
            begun = time.process_time()
            await self._take(api)
            await asyncio.sleep(MIN_INTERVAL_S)  # it is drawn by then
            rest = min(MAX_INTERVAL_S, COST_FACTOR * (time.process_time() - begun)) - MIN_INTERVAL_S
            await asyncio.sleep(max(0.0, rest))
            if not await _set_within(self._wanted, IDLE_INTERVAL_S):
                self.want()

    async def _take(self, api: Api) -> None:
        at, asks_wanted, self._asks_wanted = self.clock.now(), self._asks_wanted, False
        sessions = await self._sessions(api)
        asks = tuple(await api.get("/asks")) if asks_wanted else self.picture.asks
        costs = self.picture.costs
        if at >= self._costs_at + COST_INTERVAL_S:
            costs, self._costs_at = tuple(await api.get("/cost")), at
        self.api, self.picture = api, Picture(sessions, asks, costs, at)
        self.show(self.picture)

    async def _sessions(self, api: Api) -> tuple[dict[str, Any], ...]:
        changed, self._changed = self._changed, set()
        at = time.monotonic()
        if at >= self._whole_at + WHOLE_INTERVAL_S or len(changed) > MAX_NAMED:
            self._whole_at = at
            return tuple(await api.get("/sessions"))
        if not changed:
            return self.picture.sessions
        found = {session["id"]: session for session in await api.get(f"/sessions?ids={','.join(sorted(changed))}")}
        kept = [found.pop(s["id"], s) for s in self.picture.sessions if s["id"] in found or s["id"] not in changed]
        return (*kept, *found.values())


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


def _words(group: BaseExceptionGroup[SmError], unavailable: str) -> str:
    problem = group.exceptions[0]
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    return unavailable or problem.refused.message
