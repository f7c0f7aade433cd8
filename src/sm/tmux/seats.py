"""The engine's view of tmux: sessions and panes by our own ids, errors as one kind."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sm.core.ids import SESSION_VARIABLE
from sm.core.ports import Clock, Launch, PaneError, PaneStatus, View
from sm.core.session import Session
from sm.processes import alive, carrying, descendants
from sm.tmux.client import TmuxError
from sm.tmux.facts import Facts
from sm.tmux.panes import Key, NewPane, PaneGoneError, Panes, Program

POLL = 0.05


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    try:
        yield
    except (TmuxError, OSError) as problem:
        raise PaneError(str(problem)) from problem


@dataclass(frozen=True, slots=True)
class PaneSeat:
    panes: Panes
    pane_id: str
    clock: Clock

    async def look(self) -> View:
        async with _translated():
            screen = await self.panes.snapshot(self.pane_id, joined=False, escapes=True)
        facts = screen.facts
        typed_ago = None
        if facts.attached:
            typed_ago = max(0.0, self.clock.now() - (facts.last_activity or 0))
        return View(tuple(screen.text.split("\n")), (facts.cursor_x, facts.cursor_y), facts.dead, typed_ago)

    async def paste(self, text: str) -> None:
        async with _translated():
            await self.panes.type_text(self.pane_id, text)

    async def press(self, key: str, times: int = 1) -> None:
        async with _translated():
            await self.panes.press(self.pane_id, Key(key), times=times)

    async def chord(self, keys: tuple[str, ...]) -> None:
        async with _translated():
            await self.panes.press(self.pane_id, *map(Key, keys))

    async def history(self) -> str:
        async with _translated():
            return (await self.panes.snapshot(self.pane_id, history=True)).text


@dataclass(frozen=True, slots=True)
class TmuxSeats:
    panes: Panes
    clock: Clock

    async def create(self, session: Session, launch: Launch, log: Path) -> PaneStatus:
        program = Program(launch.argv, Path(session.directory), launch.env, log)
        async with _translated():
            pane = await self.panes.create(NewPane(session.id, session.name, program))
        return PaneStatus(pane.pane_id, pane.pid, session.id, dead=False)

    async def status(self, pane: str) -> PaneStatus | None:
        try:
            async with _translated():
                return _status(await self.panes.facts(pane))
        except PaneError as problem:
            if isinstance(problem.__cause__, PaneGoneError):
                return None
            raise

    async def all(self) -> dict[str, PaneStatus]:
        async with _translated():
            return {facts.sm_session: _status(facts) for facts in await self.panes.list() if facts.sm_session}

    async def end(self, pane: str, grace: float) -> None:
        """End the client and all it started: asked first, by force after `grace` seconds, and then the pane."""
        status = await self.status(pane)
        if status is None:
            return
        if not status.dead:
            family = await asyncio.to_thread(_family, status)
            _signal(family, signal.SIGTERM)
            await _until_gone(family, grace)
            _signal([*family, *await asyncio.to_thread(_family, status)], signal.SIGKILL)
        with suppress(PaneError):
            async with _translated():
                await self.panes.kill(pane)

    def pane(self, pane: str) -> PaneSeat:
        return PaneSeat(self.panes, pane, self.clock)

    async def attach(self, pane: str, *, inside_tmux: bool) -> list[str]:
        if await self.status(pane) is None:
            raise PaneError("the pane is gone")
        return self.panes.attach_command(pane, inside_tmux=inside_tmux)


def _status(facts: Facts) -> PaneStatus:
    return PaneStatus(facts.pane_id, facts.pid, facts.sm_session, facts.dead, facts.exit_status, facts.exit_signal)


def _family(status: PaneStatus) -> list[int]:
    """The client and all it has started, also what has left its process group and its parents (case A56)."""
    ours = {os.getpid(), *descendants(os.getpid())}  # a server that was started in a session must not end itself
    found = dict.fromkeys([status.pid, *descendants(status.pid), *carrying(SESSION_VARIABLE, status.session)])
    return [pid for pid in found if pid not in ours]


def _signal(family: list[int], number: signal.Signals) -> None:
    for pid in family:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


async def _until_gone(family: list[int], grace: float) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + grace
    while loop.time() < deadline and any(map(alive, family)):
        await asyncio.sleep(POLL)
