"""The engine's panes on tmux: sessions and panes by our own ids, every error as a PaneError."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sm.core.ids import SESSION_VARIABLE
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.panes import Launch, PaneError, PaneStatus, Terminal, View
from sm.processes import alive, descendants, is_read_out, pids_with_variable
from sm.tmux.client import TmuxError
from sm.tmux.pane_facts import PaneFacts, is_death_notice
from sm.tmux.panes import NewPane, PaneGoneError, PaneOperations, Program

POLL_INTERVAL_S = 0.05


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    try:
        yield
    except (TmuxError, OSError) as problem:
        raise PaneError(str(problem)) from problem


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip(" ") for line in text.split("\n"))


@dataclass(frozen=True, slots=True)
class TmuxPane:
    panes: PaneOperations
    pane_id: str
    clock: Clock
    typed: dict[str, float] = field(default_factory=dict)
    """By pane: when the user last typed there without a terminal that shows it, as in a browser."""

    async def look(self) -> View:
        async with _translated():
            screen = await self.panes.snapshot(self.pane_id, joined=False, escapes=True)
        facts = screen.facts
        typed_ago = None
        if facts.attached or self.pane_id in self.typed:
            last = max(facts.last_activity or 0, self.typed.get(self.pane_id, 0))
            typed_ago = max(0.0, self.clock.now() - last)
        behind = not facts.dead and not is_read_out(facts.tty)
        cursor = (facts.cursor_x, facts.cursor_y)
        return View(tuple(screen.text.split("\n")), cursor, facts.dead, typed_ago, behind, (facts.width, facts.height))

    async def paste(self, text: str) -> None:
        async with _translated():
            await self.panes.type_text(self.pane_id, text)

    async def press(self, key: str, times: int = 1) -> None:
        async with _translated():
            await self.panes.press(self.pane_id, key, times=times)

    async def chord(self, keys: tuple[str, ...]) -> None:
        async with _translated():
            await self.panes.press(self.pane_id, *keys)

    async def user_typed(self, data: bytes) -> None:
        self.typed[self.pane_id] = self.clock.now()
        async with _translated():
            await self.panes.send_bytes(self.pane_id, data)

    async def history(self) -> str:
        """Return all text, without trailing spaces that joining leaves: a narrower terminal would wrap them."""
        async with _translated():
            text = (await self.panes.snapshot(self.pane_id, history=True)).text
        return await asyncio.to_thread(_trimmed, text)

    async def printed(self) -> list[str]:
        text = await self.history()
        return [line for line in text.splitlines() if line.strip() and not is_death_notice(line)]


@dataclass(frozen=True, slots=True)
class TmuxPanes:
    panes: PaneOperations
    clock: Clock
    typed: dict[str, float] = field(default_factory=dict)

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

    async def resume_log(self, pane: str, log: Path) -> None:
        async with _translated():
            await self.panes.resume_log(pane, log)

    async def end(self, session: str, grace: float) -> None:
        """End the processes first: they are found without tmux, which may not answer."""
        await _end_all(lambda: _processes_of(session), grace)
        await self.clear(session, grace)

    async def empty(self, session: str, grace: float) -> None:
        await _end_all(lambda: _processes_of(session), grace)
        for facts in await self._of(session):
            if not facts.dead:
                await _end_all(partial(_process_tree, facts.pid, session), grace)

    async def environment(self, session: str) -> dict[str, str]:
        found = await self._of(session)
        async with _translated():
            return await self.panes.environment(found[0].pane_id) if found else {}

    async def clear(self, session: str, grace: float = 0.0) -> None:
        for facts in await self._of(session):
            if not facts.dead:
                await _end_all(partial(_process_tree, facts.pid, session), grace)
            with suppress(PaneError):
                async with _translated():
                    await self.panes.kill(facts.pane_id)

    async def _of(self, session: str) -> list[PaneFacts]:
        async with _translated():
            return [facts for facts in await self.panes.list() if facts.sm_session == session]

    async def terminals(self) -> list[Terminal]:
        async with _translated():
            found = await self.panes.terminals()
        return [Terminal(shown.sm_session, shown.tty, float(shown.activity), shown.term) for shown in found]

    async def label(self, pane: str, text: str) -> None:
        async with _translated():
            await self.panes.label(pane, text)

    def pane(self, pane: str) -> TmuxPane:
        return TmuxPane(self.panes, pane, self.clock, self.typed)

    async def attach(self, pane: str, *, inside_tmux: bool) -> list[str]:
        if await self.status(pane) is None:
            raise PaneError("the pane is gone")
        return self.panes.attach_command(pane, inside_tmux=inside_tmux)


def _status(facts: PaneFacts) -> PaneStatus:
    how = facts.exit_status, facts.exit_signal
    return PaneStatus(facts.pane_id, facts.pid, facts.sm_session, facts.dead, *how, logged=facts.logging)


def _process_tree(pid: int, session: str) -> list[int]:
    """Return the client and all it has started, also what has left its process group and its parents (case A56)."""
    return _without_server([pid, *descendants(pid), *_processes_of(session)])


def _processes_of(session: str) -> list[int]:
    """Return the same by the environment alone, in which each has the id of its session; nothing without /proc."""
    return _without_server(pids_with_variable(SESSION_VARIABLE, session))


def _without_server(found: list[int]) -> list[int]:
    server = {os.getpid(), *descendants(os.getpid())}  # a server that was started in a session must not end itself
    return [pid for pid in dict.fromkeys(found) if pid not in server]


async def _end_all(find: Callable[[], list[int]], grace: float) -> None:
    """Ask the processes to end; after `grace` seconds kill them, with all that they have started since."""
    pids = await asyncio.to_thread(find)
    if not pids:
        return
    _signal(pids, signal.SIGTERM)
    await _until_gone(pids, grace)
    _signal([*filter(alive, pids), *await asyncio.to_thread(find)], signal.SIGKILL)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


async def _until_gone(pids: list[int], grace: float) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + grace
    while loop.time() < deadline and any(map(alive, pids)):
        await asyncio.sleep(POLL_INTERVAL_S)
