"""Sessions in the user's own terminal: `sm run` starts and ends their client, by orders that it waits for here.

An order is `sm run`'s only once it has been taken, which names the session, the step and exactly the process that is
to end; a stale one is refused and logged. What `sm run` does while no server runs it reports afterwards.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace

import structlog

from sm.core import events as ev
from sm.core.errors import SmError, error
from sm.core.model.rotation import Phase
from sm.core.model.session import Session, Status
from sm.core.ports.clock import Clock
from sm.core.ports.documents import Documents
from sm.core.ports.panes import Launch
from sm.core.ports.provider import Provider
from sm.core.rules.foreground_rotation import inherited_restarts
from sm.core.rules.rotation import prompt_of
from sm.core.rules.team import already_ended
from sm.engine.actor import Actor
from sm.engine.launch import SessionLauncher
from sm.engine.sessions import Sessions
from sm.processes import is_same_and_alive, signal_all

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RestartOrder:
    """What `sm run` is to end and to start again."""

    session: str
    step: int
    pid: int
    born: str


@dataclass(frozen=True, slots=True)
class ForegroundClients:
    sessions: Sessions
    launcher: SessionLauncher
    documents: Documents
    clock: Clock
    providers: Mapping[str, Provider]

    async def launched(self, actor: Actor, launch: Launch, pid: int, born: str) -> None:
        """Take note that `sm run` has started a client. Its hooks may have come before this, or found no server."""
        assert actor.session.foreground is not None
        if actor.session.status is Status.EXITED:  # the user killed it while its next client was being started
            if is_same_and_alive(pid, born):
                signal_all([pid], signal.SIGTERM)
            raise SmError(already_ended(actor.session))
        session = actor.session
        transcript = self._known_transcript(session, launch)
        event = ev.SessionLaunched(
            at=self.clock.now(),
            pid=pid,
            conversation=launch.conversation,
            transcript=transcript,
            config=launch.config,
            asked=launch.asked,
            plugin=launch.plugin,
            no_plugin=launch.no_plugin,
            mode=launch.mode,
            limits=self.providers[session.provider].limits(launch.config, session.directory, launch.asked),
            foreground=replace(actor.session.foreground, born=born),
        )
        await actor.ask(event)

    def _known_transcript(self, session: Session, launch: Launch) -> str | None:
        current = session.conversation
        if current is not None and current.id == launch.conversation and current.transcript:
            return current.transcript
        return self.providers[session.provider].found_transcript(launch.config, launch.conversation)

    async def take(self, actor: Actor, taken: RestartOrder, env: Mapping[str, str]) -> Launch:
        """Let `sm run` carry the order out; return what to start. SmError, with nothing ended, if it is stale."""
        session = actor.session
        current = await order(actor, 0.0)
        if current != taken or session.rotation is None or not is_same_and_alive(taken.pid, taken.born):
            log.warning("stale order refused", session=session.id, step=taken.step, now=session.step)
            raise error("stale_order", f"Order {taken.step} is not the one that waits", "ask for the next one")
        handoff = session.rotation.handoff
        if handoff is None:
            raise error("no_handoff", f"Session {session.id} has no document to continue from")
        if not (await asyncio.to_thread(self.documents.text, handoff)).strip():
            raise error("file_unfit", f"The document of handoff {handoff.id} is empty", f"it was at {handoff.copy}")
        launch = self._next_launch(session, env)
        at = self.clock.now()
        await actor.ask(ev.RestartTaken(at=at, step=taken.step, conversation=launch.conversation))
        actor.pane_queue.restart = None
        moved = actor.session.rotation
        if moved is None or moved.phase is not Phase.CLEARING or moved.next != launch.conversation:
            raise error("stale_order", f"Order {taken.step} was cancelled", "ask for the next one")
        return launch

    def _next_launch(self, session: Session, env: Mapping[str, str]) -> Launch:
        assert session.rotation is not None
        record = self.sessions.launch_of(session)
        prompt = prompt_of(replace(session.rotation, background=()))
        asked = self.launcher.request(session, record, env)
        asked = replace(asked, foreground=True, again=True, prompt=prompt)
        return self.providers[session.provider].launch(asked, token="")  # its environment is the first client's

    async def exited(self, actor: Actor, pid: int, code: int | None, number: int | None) -> None:
        """Take note that the client has ended, and not by an order; `sm run` ends with it."""
        if actor.session.pid == pid:
            await actor.ask(ev.ClientExited(at=self.clock.now(), code=code, signal=number))

    def inherited_restarts(self, directory: str) -> tuple[float, ...]:
        """Return the restarts that count against a new `sm run` in the directory."""
        return inherited_restarts(self.sessions.all(), directory, self.clock.now())


async def order(actor: Actor, seconds: float) -> RestartOrder | None:
    """Return what `sm run` is to do, as soon as there is something, or None after so many seconds."""
    given = await actor.pane_queue.offer(seconds)
    session = actor.session
    if given is None or session.pid is None or session.foreground is None:
        return None
    return RestartOrder(session.id, given.step, session.pid, session.foreground.born)
