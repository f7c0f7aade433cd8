"""What all open pages show of the fleet: one picture, made again at most ten times a second, of which each page gets
the parts that changed since it last heard.

A part is a row or an ask, as HTML with an id. Each keeps the version at which it last changed, so that a page that was
away gets what it missed and no more. While no page is open nothing is made.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sse_starlette import ServerSentEvent

from sm.api.routes import Backend
from sm.core.errors import SmError
from sm.engine.errors import logged
from sm.fleet import Row
from sm.runner.known_runs import KnownRun, ReadAnswer
from sm.web.pages import fleet
from sm.web.pages.fleet import FleetPicture
from sm.web.pages.run_reader import RunReader

MIN_INTERVAL_S = 0.1
"""Between two pictures."""
MAX_INTERVAL_S = 1.0
"""A picture is made so often also where no event tells of a change."""
BEAT_INTERVAL_S = 2.0
COST_INTERVAL_S = 30.0
RUNS_INTERVAL_S = 3.0
RETRY_INTERVAL_MS = 1000
ORDER = "order"


@dataclass(frozen=True, slots=True)
class Part:
    html: str
    version: int


@dataclass(slots=True)
class Live:
    backend: Backend
    reader: RunReader
    boot: str = field(default_factory=lambda: secrets.token_hex(4))
    """Of this server: versions of another one mean nothing."""
    version: int = 0
    picture: FleetPicture = field(default_factory=FleetPicture)
    parts: dict[str, Part] = field(default_factory=dict)
    touched: dict[str, int] = field(default_factory=dict)
    """At which version something last happened to each session."""
    pending: set[str] = field(default_factory=set)
    """Sessions of which an event has come since the last picture."""
    asks_changed: bool = True
    costs: list[dict[str, Any]] = field(default_factory=list)
    runs: tuple[KnownRun, ...] = ()
    runs_problem: str = ""
    """Why some of them are missing."""
    runs_known: bool = False
    """They were read once."""
    pages: int = 0
    making: asyncio.Lock = field(default_factory=asyncio.Lock)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced by a new one, at each version."""

    @property
    def closed(self) -> bool:
        """Whether the server stops."""
        return self.backend.feed.closed

    @property
    def mark(self) -> str:
        return f"{self.boot}-{self.version}"

    async def stream(self, mark: str, session: str = "", run: str = "") -> AsyncIterator[ServerSentEvent]:
        """Yield what has changed since the mark, and from then on what changes; a sign of life every 2 s."""
        seen = self._version_of(mark)
        with self._open():
            yield ServerSentEvent(comment="subscribed", retry=RETRY_INTERVAL_MS)
            yield self._beat()
            while not self.closed:
                changed = self.changed
                if seen < self.version:
                    for event in self._since(seen, session, run):
                        yield event
                    seen = self.version
                    continue
                try:
                    async with asyncio.timeout(BEAT_INTERVAL_S):
                        await changed.wait()
                except TimeoutError:
                    yield self._beat()

    async def refresh(self) -> FleetPicture:
        """Make the picture of now; a part that reads as before keeps its version."""
        async with self.making:
            return await self._made()

    async def _made(self) -> FleetPicture:
        pending, self.pending = self.pending, set()
        read, self.asks_changed = self.asks_changed or not self.pages, False
        asks = await fleet.open_asks(self.backend) if read else None
        shown = self.picture.asks if asks is None else asks
        new = fleet.picture(self.backend, self.picture, shown, self.costs, self.runs)
        html = fleet.changed_parts(self.picture, new)
        gone = [name for name in self.parts if name != ORDER and name not in new.keys]
        order = fleet.order(new.rows, new.asks, new.runs)
        moved = ORDER not in self.parts or self.parts[ORDER].html != order
        self.picture = new
        if html or gone or moved or pending:
            self.version += 1
            self.touched.update(dict.fromkeys(pending, self.version))
            self.parts.update({name: Part(text, self.version) for name, text in html.items()})
            for name in gone:
                del self.parts[name]
            if moved:
                self.parts[ORDER] = Part(order, self.version)
            before, self.changed = self.changed, asyncio.Event()
            before.set()
        return new

    async def read_runs(self) -> None:
        """Read this machine's runs; where that fails those before stay, with why."""
        try:
            answer = await self.reader.read()
        except SmError as problem:
            answer = ReadAnswer(problem=problem.refused.message)
        if answer.runs is not None:
            self.runs = answer.runs
        self.runs_problem, self.runs_known = answer.problem, True
        self.wake.set()

    def row(self, session: str) -> Row | None:
        return next((row for row in self.picture.rows if row.id == session), None)

    def _version_of(self, mark: str) -> int:
        boot, _, version = mark.rpartition("-")
        known = boot == self.boot and version.isdecimal() and int(version) <= self.version
        return int(version) if known else -1

    def _since(self, seen: int, session: str, run: str) -> Iterator[ServerSentEvent]:
        if run:
            if self._changed_since(f"run-{run}", seen) or seen < 0:
                yield ServerSentEvent(data=run, event="touched", id=self.mark)
            return
        if session:
            yield from self._of_session(seen, session)
            return
        html = "\n".join(part.html for part in self.parts.values() if part.version > seen)
        if html:
            yield ServerSentEvent(data=html, event="fleet", id=self.mark)

    def _of_session(self, seen: int, session: str) -> Iterator[ServerSentEvent]:
        """Yield what one session's page needs: what it asks, and that the rest is to be asked for again."""
        asks = [ask for ask in self.picture.asks if ask["session"] == session]
        if self._changed_since(ORDER, seen):
            own = [self.parts[f"ask-{ask['id']}"] for ask in asks]
            html = [part.html for part in own if part.version > seen]
            yield ServerSentEvent(data="\n".join([*html, fleet.order([], asks, [])]), event="fleet", id=self.mark)
        if self.touched.get(session, 0) > seen or self._changed_since(f"row-{session}", seen) or seen < 0:
            yield ServerSentEvent(data=session, event="touched", id=self.mark)

    def _changed_since(self, name: str, seen: int) -> bool:
        return name in self.parts and self.parts[name].version > seen

    def _beat(self) -> ServerSentEvent:
        return ServerSentEvent(data=f"{self.backend.engine.ports.clock.now():.3f}", event="beat")

    @contextmanager
    def _open(self) -> Iterator[None]:
        self.pages += 1
        if self.pages == 1:
            self.asks_changed = True
            self.backend.engine.tasks.spawn(self._run())
        try:
            yield
        finally:
            self.pages -= 1
            self.wake.set()

    async def _run(self) -> None:
        """Make pictures while a page is open."""
        async with asyncio.TaskGroup() as group:
            beside = [group.create_task(work()) for work in (self._listen, self._read_costs, self._read_runs)]
            while self.pages and not self.closed:
                try:
                    async with asyncio.timeout(MAX_INTERVAL_S):
                        await self.wake.wait()
                except TimeoutError:
                    pass
                self.wake.clear()
                await self.refresh()
                await asyncio.sleep(MIN_INTERVAL_S)
            for task in beside:
                task.cancel()

    async def _read_costs(self) -> None:
        """Read what has been used, now and then: it may take seconds, and no row waits for it."""
        while True:
            with logged("costs not read"):
                self.costs = await fleet.spent(self.backend)
            await asyncio.sleep(COST_INTERVAL_S)

    async def _read_runs(self) -> None:
        while True:
            await self.read_runs()
            await asyncio.sleep(RUNS_INTERVAL_S)

    async def _listen(self) -> None:
        with self.backend.feed.subscribed() as items:
            async for item in items:
                self.pending.add(item.session)
                self.asks_changed = self.asks_changed or item.kind in fleet.ASK_EVENTS
                self.wake.set()
        self.changed.set()
        self.wake.set()
