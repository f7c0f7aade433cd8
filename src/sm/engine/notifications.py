"""Notifies the user who is away: keeps the episodes of all sessions, with one timer, and gives them to the channels.

The rules are in `core/rules/notifications.py`. An episode is marked as sent before a channel has it: a server killed in
between does not tell it twice. A channel that fails is tried again, alone; one that hangs keeps no other waiting.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import structlog

from sm.core import events as ev
from sm.core.effects import DropEpisode, EpisodeRecord, OpenEpisode, Record, RecordEpisode
from sm.core.errors import error
from sm.core.model.notification import TEST, Episode, UserNotification, kept, run_ended
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.notifier import ChannelError, HangingError, Notifier, NotifyChannel, OutOfReachError
from sm.core.ports.panes import PaneError, Panes
from sm.core.ports.store import Store
from sm.core.rules import notifications as rules
from sm.core.rules.notifications import Moment
from sm.core.rules.sent_episodes import after_failure, is_over, not_ahead, of_removed, settled
from sm.engine.errors import logged
from sm.engine.sessions import Sessions
from sm.engine.tasks import Spawn
from sm.processes import last_key_in, terminal

log = structlog.get_logger()
CHECK_INTERVAL_S = 2.0
"""Seconds between looks while something is to be sent: whether its user has left the session's terminal by then."""
RETRY_CHECK_INTERVAL_S = 30.0
"""The same while a channel that failed is to be tried again."""
RETRY_INTERVAL_S = 1.0
"""Seconds after a look that failed, as on a full disk."""


@dataclass(frozen=True, slots=True)
class ChannelResult:
    channel: str
    problem: str = ""
    """Empty if the channel has taken the notification."""
    again: bool = False
    """It is to be tried again."""

    @property
    def taken(self) -> bool:
        return not self.problem


@dataclass(slots=True)
class Notifications:
    store: Store
    clock: Clock
    sessions: Sessions
    panes: Panes
    notifier: Notifier
    redact: Callable[[str], str]
    spawn: Spawn
    episodes: dict[str, dict[str, Episode]] = field(default_factory=dict)
    """By session, then by id."""
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    last_sent: float | None = None
    failing: dict[str, str] = field(default_factory=dict)
    """Why a channel failed last, by its name."""
    hanging: set[str] = field(default_factory=set)
    """Channels of which the last notification got no answer in time."""
    turns: dict[str, asyncio.Lock] = field(default_factory=dict)
    """By channel: one notification after the other."""
    under_way: set[str] = field(default_factory=set)
    """Episodes that a channel has or waits for, by id."""

    # --- what events mean ---------------------------------------------------------------------------------------------

    def follow(
        self, before: Session, after: Session, event: ev.Event, records: tuple[Record, ...]
    ) -> tuple[EpisodeRecord, ...]:
        """Return what an event means for the episodes of its session: to be written in its transaction."""
        if rules.concerns(before, after, event, records):
            with logged("episodes not followed", session=after.id):
                meant = rules.follow(self._all(), before, after, event, records)
                return tuple(record for found in meant if (record := self._wanted(found)) is not None)
        return ()

    def _wanted(self, record: EpisodeRecord) -> EpisodeRecord | None:
        """Leave out what no channel is to tell; what is kept holds no secrets."""
        if not isinstance(record, OpenEpisode):
            return record
        sent = self.notifier.channels() and record.episode.kind.value in self.notifier.rules().kinds
        return OpenEpisode(kept(record.episode, self.redact)) if sent else None

    def noted(self, records: Sequence[Record]) -> None:
        """Take over what is on disk."""
        for record in records:
            match record:
                case OpenEpisode(episode=episode):
                    self.episodes.setdefault(episode.session, {}).setdefault(episode.id, episode)
                    self.woken.set()
                case RecordEpisode(episode=episode):
                    if episode.id in self.episodes.get(episode.session, {}):
                        self.episodes[episode.session][episode.id] = episode
                case DropEpisode(episode=identity):
                    self._drop(identity)

    def _drop(self, identity: str) -> None:
        for session, known in tuple(self.episodes.items()):
            if known.pop(identity, None) is not None and not known:
                del self.episodes[session]

    async def forget(self, session: str) -> None:
        """Tell nothing more about a session that is removed; before that, or a server that dies leaves its rows."""
        others = [other for other in self.sessions.all() if other.id != session]
        await self._note(of_removed(tuple(self.episodes.get(session, {}).values()), others))

    async def run_ended(self, run: str, project: str, words: str) -> None:
        """Tell the end of a run; it is on disk before this returns."""
        record = self._wanted(OpenEpisode(run_ended(run, project, words, self.clock.now())))
        await self._note([] if record is None else [record])

    # --- the timer ----------------------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Take over what the last server has left; what it was about to tell may have been sent."""
        for episode in await self.store.episodes():
            self.episodes.setdefault(episode.session, {})[episode.id] = episode

    async def run(self) -> None:
        while True:
            self.woken.clear()
            with logged("notifications failed") as attempt:
                pause = await self.look()
            try:
                async with asyncio.timeout(RETRY_INTERVAL_S if attempt.problem is not None else pause):
                    await self.woken.wait()
            except TimeoutError:
                continue

    async def look(self) -> float | None:
        """Hand to the channels what is due; return the seconds until the next look, None for when something begins."""
        if not self.episodes:
            return None
        await self._forget()
        moment = await self._moment()
        self._set_clock_back(moment.now)
        found = rules.due(self._all(), self.notifier.rules(), moment)
        every = self._all()
        await self._note([settled(replace(episode, sent=True, pending=()), every) for episode in found.seen])
        if found.ready:
            await self._hand_over(found.ready)
        if found.wait is None:
            return None
        fresh = any(not episode.sent for episode in self._all())
        return min(CHECK_INTERVAL_S if fresh else RETRY_CHECK_INTERVAL_S, found.wait)

    async def _forget(self) -> None:
        """Delete what is over, as what a server told that has ended since."""
        every = self._all()
        over = [found for found in every if is_over(found, every) and found.id not in self.under_way]
        await self._note([DropEpisode(episode.id) for episode in over])

    def _set_clock_back(self, now: float) -> None:
        """Hold no time against the user that lies ahead, as after the clock was set back between two servers."""
        for known in self.episodes.values():
            known.update((episode.id, not_ahead(episode, now)) for episode in tuple(known.values()))
        self.last_sent = None if self.last_sent is None else min(self.last_sent, now)

    def _all(self) -> list[Episode]:
        return [episode for known in self.episodes.values() for episode in known.values()]

    async def _moment(self) -> Moment:
        now = self.clock.now()
        typed: dict[str, float] = {}
        try:
            shown = await self.panes.terminals()
        except PaneError:
            shown = []
        for found in shown:
            typed[found.session] = max(found.typed_at, typed.get(found.session, 0.0))
        for session in self.episodes.keys() & self.sessions.actors.keys():
            own = await asyncio.to_thread(_key_in_own_terminal, self.sessions.actors[session].session)
            if own is not None:
                typed[session] = own
        return Moment(now, self.notifier.local_offset(now), self.last_sent, typed)

    # --- the channels -------------------------------------------------------------------------------------------------

    async def _hand_over(self, ready: Iterable[Episode]) -> None:
        """Give each channel what it is to tell, and do not wait for it."""
        set_rules, previous = self.notifier.rules(), self.last_sent
        given = [(channel, rules.notifications(ready, set_rules, channel.name)) for channel in self.notifier.channels()]
        handed = [replace(episode, sent=True, pending=()) for episode in ready]
        await self._note([RecordEpisode(episode) for episode in handed])
        self.last_sent = self.clock.now()
        self.under_way |= {episode.id for episode in handed}
        self.spawn(self._deliver(handed, given, previous))

    async def _deliver(
        self,
        handed: Sequence[Episode],
        given: Sequence[tuple[NotifyChannel, Sequence[UserNotification]]],
        previous: float | None,
    ) -> None:
        """Let each channel tell it; those that fail are tried again later.

        What no channel has taken begins no time of the digest: that continues from the one before, `previous`.
        """
        at, failed, taken = self.last_sent, defaultdict[str, list[str]](list), False
        for results in await asyncio.gather(*(self._send_in_turn(channel, told) for channel, told in given)):
            for sent, result in results:
                taken = taken or result.taken
                for episode in sent.episodes if result.again else ():
                    failed[episode.id].append(result.channel)
        if not taken and self.last_sent == at:
            self.last_sent = previous
        now = self.clock.now()
        after = [
            after_failure(episode, tuple(failed[episode.id]), now) if episode.id in failed else episode
            for episode in handed
        ]
        self.under_way -= {episode.id for episode in handed}
        every = self._all()
        records = [settled(episode, every) for episode in after]
        self.noted(records)  # first: it is tried again even if that cannot be written
        self.woken.set()
        await self.store.note(records)

    async def _send_in_turn(
        self, channel: NotifyChannel, told: Sequence[UserNotification]
    ) -> list[tuple[UserNotification, ChannelResult]]:
        """Send behind what the channel has not taken yet; if that hangs, this is tried again with it."""
        turn = self.turns.setdefault(channel.name, asyncio.Lock())
        behind = turn.locked()
        async with turn:
            if behind and channel.name in self.hanging:
                return [(sent, ChannelResult(channel.name, self.failing[channel.name], again=True)) for sent in told]
            return [(sent, await self._send(sent, channel)) for sent in told]

    async def _send(self, sent: UserNotification, channel: NotifyChannel) -> ChannelResult:
        name = channel.name
        self.hanging.discard(name)
        try:
            await channel.send(sent)
        except OutOfReachError as problem:
            return ChannelResult(name, str(problem))
        except Exception as problem:  # noqa: BLE001  # whatever it is, as no descriptor left: the notification is not lost
            reason = str(problem) if isinstance(problem, ChannelError) else f"{type(problem).__name__}: {problem}"
            log.warning("notification failed", channel=name, problem=reason)
            self.failing[name] = reason
            if isinstance(problem, HangingError):
                self.hanging.add(name)
            return ChannelResult(name, reason, again=True)
        self.failing.pop(name, None)
        return ChannelResult(name)

    async def _note(self, records: Sequence[EpisodeRecord]) -> None:
        if records:
            await self.store.note(records)
            self.noted(records)

    # --- for the user -------------------------------------------------------------------------------------------------

    async def test(self) -> list[ChannelResult]:
        """Send a test by every channel."""
        channels = self.notifier.channels()
        if not channels:
            hint = "set notify.urls, notify.command or notify.terminal in your config.toml, or use the page of sm web"
            raise error("no_channel", "No notification channel is configured", hint)
        return list(await asyncio.gather(*(self._send(TEST, channel) for channel in channels)))

    def problems(self) -> list[str]:
        used = {channel.name for channel in self.notifier.channels()}
        return [f"notifications by {name} fail: {why}" for name, why in self.failing.items() if name in used]


def _key_in_own_terminal(session: Session) -> float | None:
    """Return when a key was last pressed in the user's own terminal, where the session's client runs in one."""
    if session.pane is not None or session.pid is None or session.ended:
        return None
    tty = terminal(session.pid)
    return last_key_in(tty) if tty else None
