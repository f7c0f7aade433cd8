"""Watches the clients themselves, for what no hook tells: an Escape, a block, a dialog, an exit, a lost `/clear`.

One look per client every INTERVAL_S, or REST_INTERVAL_S while it rests; nothing is started for it and no process is
asked. Hooks outrank it: it reports a change only once it has lasted, and what it reports the core may know better.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import structlog

from sm.core import events as ev
from sm.core.model.session import Session, Status
from sm.core.ports.clock import Clock
from sm.core.ports.panes import PaneError, Panes, PaneStatus
from sm.core.ports.provider import ClientProbe, ClientState, Provider
from sm.core.rules.session.status import PANE_LOST
from sm.engine.actor import Actor
from sm.engine.client_link import SILENT
from sm.engine.errors import logged
from sm.engine.foreground_terminal import signal_client
from sm.engine.limit_evidence import in_own_transcript
from sm.engine.sessions import Sessions
from sm.processes import alive, is_same_and_alive

log = structlog.get_logger()
INTERVAL_S = 0.25
REST_INTERVAL_S = 2.0
"""The same for a client that is idle as its session is, with nothing under way: what begins there comes with a hook, so
only its end and a dialog that its user opens are seen later."""
MAX_RESTING_LOOKS = 10
"""In one round, at the clients that rest: evenly spread, and where there are hundreds of them each less often."""
AT_REST = (ev.Activity.IDLE, "")
BATCH = 10
"""Clients between which hooks are let in: so many looks take half a millisecond, one turn of the loop a tenth of it."""
MOVED_TIMEOUT_S = 1.0
"""Seconds the client's files must show another conversation before it is reported: its own hook comes first."""
STARTUP_TIMEOUT_S = 8.0
"""Seconds after which a client without a state file is asking something, as whether its directory is trusted; more on a
machine that has more to do, since many start at once after a reboot."""
HELLO_TIMEOUT_S = 5.0
"""Seconds after a client is up in which its plugin answers (seen: half a second)."""
COLLECT_TIMEOUT_S = 2.0
"""Seconds tmux has to notice that a pane's process has ended, and how."""
MISSED_STOP_S = 1.5
"""Seconds of idleness after which a Stop hook that has not come will not come: it was lost, or the turn interrupted."""


@dataclass(slots=True)
class Observed:
    """What was last reported of one client."""

    pid: int
    since: float
    """When it was looked at first, soon after its start: it may continue an old conversation."""
    activity: tuple[ev.Activity, str] | None = None
    stopped: bool = False
    """Idle, seen once, while no hook has said that the turn is over."""
    moved_to: str = ""
    moved_since: float = 0.0
    idle_since: float | None = None
    gone_since: float | None = None
    hung_up: bool = False
    up_since: float | None = None
    """When its own files first showed it."""
    looked: float = 0.0
    """When it was looked at last, by the loop's clock."""
    resting: Session | None = None
    """Its session, as it was when that look found both at rest."""


@dataclass(slots=True)
class ClientMonitor:
    sessions: Sessions
    panes: Panes
    clock: Clock
    providers: Mapping[str, Provider]
    load: Callable[[], float] = lambda: os.getloadavg()[0]
    """How many processes wait for a processor or have one, on average over a minute."""
    observed: dict[str, Observed] = field(default_factory=dict)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            for number, actor in enumerate(self.due(loop.time() - REST_INTERVAL_S)):
                with logged("client not looked at", session=actor.session.id):
                    try:
                        await self.look(actor)
                    except (OSError, PaneError) as problem:
                        log.warning("client not looked at", session=actor.session.id, problem=str(problem))
                if number % BATCH == 0:
                    await asyncio.sleep(0)  # hooks come in between
            await asyncio.sleep(INTERVAL_S)

    def due(self, rested: float) -> list[Actor]:
        """The clients to look at in this round: of those at rest the first that were last looked at before `rested`."""
        now, later = [], []
        for actor in self.sessions.actors.values():
            observed = self.observed.get(actor.session.id)
            if observed is None or observed.resting is not actor.session:
                now.append(actor)
            elif observed.looked <= rested:
                later.append((observed.looked, actor.session.id, actor))
        return now + [actor for *_, actor in heapq.nsmallest(MAX_RESTING_LOOKS, later)]

    async def look(self, actor: Actor) -> None:
        session = actor.session
        if (
            session.id in self.sessions.restoring
            or session.ended
            or session.pid is None
            or not (session.pane or session.adopted or session.foreground)
        ):
            self.observed.pop(session.id, None)
            return
        observed = self.observed.get(session.id)
        if observed is None or observed.pid != session.pid:
            observed = self.observed[session.id] = Observed(session.pid, self.clock.now())
        observed.looked, observed.resting = asyncio.get_running_loop().time(), None
        found = client_state(self.providers[session.provider], session)
        if found is None and not alive(session.pid):
            await (self._left(actor, session) if session.foreground else self._gone(actor, observed, session.pane))
            return
        if session.foreground is not None and not observed.hung_up and not alive(session.foreground.wrapper):
            observed.hung_up = True  # its shell has the terminal back, and nothing could start it again
            signal_client(session, signal.SIGHUP)
        if session.driver is ev.DrivenBy.MOD and actor.link.silent:
            self._keys(actor, SILENT)
        if found is None:
            self._silent(actor, observed)
            return
        observed.up_since = observed.up_since or self.clock.now()
        if session.driver_note == ev.AWAITED and self.clock.now() - observed.up_since >= HELLO_TIMEOUT_S:
            self._keys(actor, actor.traits.plugin_unanswered)
        self._activity(actor, observed, found)
        self._missed_stop(actor, observed, found)
        self._conversation(actor, observed, found)
        observed.resting = actor.session if at_rest(actor.session, observed) else None

    def _keys(self, actor: Actor, reason: str) -> None:
        actor.put(ev.DriverChanged(at=self.clock.now(), driver=ev.DrivenBy.KEYS, reason=reason))

    async def _left(self, actor: Actor, session: Session) -> None:
        """How a client in the user's own terminal has ended, and whether it starts again, `sm run` reports."""
        place = session.foreground
        if place is None or not is_same_and_alive(place.wrapper, place.wrapper_born):
            actor.put(ev.ClientExited(at=self.clock.now(), reason="the client and sm run have ended"))

    async def _gone(self, actor: Actor, observed: Observed, pane: str | None) -> None:
        """The process has ended. The pane keeps how, once tmux has collected it; tmux itself may be gone as well."""
        at = self.clock.now()
        if pane is None:
            actor.put(ev.ClientExited(at=at, reason="the client has ended"))
            return
        status = await self.panes.status(pane)
        if status is None or status.session != actor.session.id:
            actor.put(ev.ClientExited(at=at, signal=None, reason=PANE_LOST))
            return
        observed.gone_since = observed.gone_since or at
        collected = status.code is not None or status.signal is not None
        if (status.dead and collected) or at - observed.gone_since >= COLLECT_TIMEOUT_S:
            reason = await self._last_words(pane) if actor.session.status is Status.STARTING else ""
            actor.put(exited(actor.session, at, status, reason))

    async def _last_words(self, pane: str) -> str:
        """Return what a client that never came up has printed, as of a wrong argument: there is no work in it yet."""
        with contextlib.suppress(PaneError):
            printed = await self.panes.pane(pane).printed()
            return f"the client has ended at once: {printed[-1].strip()[:200]}" if printed else ""
        return ""

    def _silent(self, actor: Actor, observed: Observed) -> None:
        session, now = actor.session, self.clock.now()
        waits = session.status is Status.STARTING and session.conversation is not None
        if waits and now - observed.since > self._startup_timeout():
            self._report(actor, observed, (ev.Activity.WAITING, actor.traits.startup_question))

    def _startup_timeout(self) -> float:
        starting = sum(actor.session.status is Status.STARTING for actor in self.sessions.actors.values())
        return STARTUP_TIMEOUT_S * max(1.0, max(starting, self.load()) / (os.cpu_count() or 1))

    def _activity(self, actor: Actor, observed: Observed, found: ClientState) -> None:
        if found.lags:
            return
        session = actor.session
        idle = found.activity is ev.Activity.IDLE
        cut_off = session.limit is not None and session.limit.interrupted
        begins = 0 < found.since <= session.prompted  # the client's state lags behind the hook of a prompt
        if idle and session.status in UNTOLD and not (cut_off or begins) and self._met_limit(actor):
            return
        stopped = idle and session.status in {Status.WORKING, Status.SILENT}
        failed = idle and session.status is Status.IDLE and session.was_held  # it may refuse to continue
        found_so = idle and session.status is Status.UNKNOWN  # by a server that has just started: nothing is sent to it
        if (stopped or failed or found_so) and (reason := self._refusal(session)) is not None:
            actor.put(ev.ClientBlocked(at=self.clock.now(), reason=reason))
            return
        if stopped and not observed.stopped:  # the record that tells why is written behind the state
            observed.stopped = True
            return
        observed.stopped = False
        lags = SHOWN_AS.get(session.status) not in {None, found.activity}
        if lags and observed.activity == (found.activity, found.detail):
            observed.activity = None  # the status moved on by a hook and the client has not followed: say it once more
        self._report(actor, observed, (found.activity, found.detail))

    def _met_limit(self, actor: Actor) -> bool:
        """Its hook was lost: a client that waits for the end of a usage limit says that it is idle."""
        session, now = actor.session, self.clock.now()
        current = session.conversation
        found = in_own_transcript(self.providers[session.provider], session, now)
        if current is None or found is None:
            return False
        actor.put(ev.TurnFailed(at=now, conversation=current.id, error="rate_limit", limit=found))
        return True

    def _missed_stop(self, actor: Actor, observed: Observed, found: ClientState) -> None:
        """A turn that ended by itself while no hook reached us, as with the server down, has ended all the same."""
        session, now = actor.session, self.clock.now()
        current = session.conversation
        if found.activity is not ev.Activity.IDLE or session.at_prompt or current is None or not current.transcript:
            observed.idle_since = None
            return
        if observed.idle_since is None:
            observed.idle_since = now
        elif observed.idle_since > 0 and now - observed.idle_since >= MISSED_STOP_S:
            observed.idle_since = 0.0  # looked at once: an interrupted turn stays as it is until the next prompt
            provider = self.providers[session.provider]
            if provider.finished(current.transcript):
                actor.put(ev.TurnEnded(at=now, conversation=current.id, replayed=True))
            elif session.limit is None and (error := provider.failure(current.transcript)):  # else it is that limit
                refusal = self._refusal(session) or ""
                actor.put(ev.TurnFailed(at=now, conversation=current.id, error=error, refusal=refusal))

    def _report(self, actor: Actor, observed: Observed, activity: tuple[ev.Activity, str]) -> None:
        if observed.activity != activity:
            observed.activity = activity
            actor.put(ev.ActivityChanged(at=self.clock.now(), activity=activity[0], detail=activity[1]))

    def _refusal(self, session: Session) -> str | None:
        transcript = session.conversation.transcript if session.conversation else None
        return self.providers[session.provider].refusal(transcript) if transcript else None

    def _conversation(self, actor: Actor, observed: Observed, found: ClientState) -> None:
        current = actor.session.conversation
        if not found.conversation or (current is not None and current.id == found.conversation):
            observed.moved_to = ""
            return
        if current is None and found.leads:
            return  # the hook of its first prompt comes, whose reply carries what a first context begins with
        now = self.clock.now()
        if observed.moved_to != found.conversation:
            observed.moved_to, observed.moved_since = found.conversation, now
        if found.leads or now - observed.moved_since >= MOVED_TIMEOUT_S:
            actor.put(moved(found, now))


def exited(session: Session, at: float, status: PaneStatus, reason: str) -> ev.Event:
    """Return what the end of a client means: one that has taken another's place, and not worked yet, did not start."""
    rotation = session.rotation
    if rotation is None or rotation.handoff is None or not rotation.may_turn_back:
        return ev.ClientExited(at=at, code=status.code, signal=status.signal, reason=reason)
    how = f"signal {status.signal}" if status.signal is not None else f"exit code {status.code}"
    return ev.SwitchFailed(at=at, handoff=rotation.handoff.id, reason=reason or f"the client has ended ({how})")


def at_rest(session: Session, observed: Observed) -> bool:
    under_way = session.rotation is not None and session.rotation.active
    idle = session.status is Status.IDLE and not session.outbox.queue
    return observed.activity == AT_REST and idle and not under_way


UNTOLD = frozenset({Status.WORKING, Status.SILENT, Status.UNKNOWN})
"""What a session may be whose client has stopped without a word."""
SHOWN_AS: dict[Status, ev.Activity] = {
    Status.IDLE: ev.Activity.IDLE,
    Status.WORKING: ev.Activity.BUSY,
    Status.WAITING: ev.Activity.WAITING,
}


def client_state(provider: ClientProbe, session: Session) -> ClientState | None:
    return None if session.pid is None else provider.client_state(session.config, session.pid)


def moved(found: ClientState, at: float) -> ev.ConversationStarted:
    return ev.ConversationStarted(at=at, conversation=found.conversation, origin=ev.Origin.CLIENT_STATE)
