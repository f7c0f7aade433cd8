"""Notifies the user who is away: keeps the episodes of all sessions, with one timer, and gives them to the channels.

The rules are in `core/rules/notifications.py`. An episode is marked as sent before a channel has it: a server killed in
between does not tell it twice. A channel that fails is tried again, alone.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace

import structlog

from sm.core import events as ev
from sm.core.effects import DropEpisode, EpisodeRecord, OpenEpisode, Record, RecordEpisode
from sm.core.errors import error
from sm.core.model.notification import TEST, Episode, UserNotification, kept, notification
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.notifier import ChannelError, Notifier, NotifyChannel, OutOfReachError
from sm.core.ports.panes import PaneError, Panes
from sm.core.ports.store import Store
from sm.core.rules import notifications as rules
from sm.core.rules.notifications import Moment
from sm.engine.errors import logged
from sm.engine.sessions import Sessions
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


@dataclass(slots=True)
class Notifications:
    store: Store
    clock: Clock
    sessions: Sessions
    panes: Panes
    notifier: Notifier
    redact: Callable[[str], str]
    episodes: dict[str, dict[str, Episode]] = field(default_factory=dict)
    """By session, then by id."""
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    last_sent: float | None = None
    failing: dict[str, str] = field(default_factory=dict)
    """Why a channel failed last, by its name."""

    # --- what events mean ---------------------------------------------------------------------------------------------

    def follow(
        self, before: Session, after: Session, event: ev.Event, records: tuple[Record, ...]
    ) -> tuple[EpisodeRecord, ...]:
        """Return what an event means for the episodes of its session: to be written in its transaction."""
        if rules.concerns(before, after, event, records):
            with logged("episodes not followed", session=after.id):
                meant = rules.follow(self.episodes.get(after.id, {}).values(), before, after, event, records)
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

    # --- the timer ----------------------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Take over what the last server has left; what it was about to tell may have been sent."""
        found = await self.store.episodes()
        await self.store.note([DropEpisode(episode.id) for episode in found if rules.is_over(episode)])
        for episode in found:
            if not rules.is_over(episode):
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
        """Tell what is due; return the seconds until the next look, None for when something begins."""
        if not self.episodes:
            return None
        found = rules.due(self._all(), self.notifier.rules(), await self._moment())
        await self._settle([replace(episode, sent=True) for episode in found.seen])
        channels = self.notifier.channels()
        if found.sent:
            self.last_sent = self.clock.now()
        await asyncio.gather(*(self._tell(sent, channels) for sent in found.sent), *self._retries())
        return RETRY_CHECK_INTERVAL_S if found.wait is None else min(CHECK_INTERVAL_S, found.wait)

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

    async def _tell(self, sent: UserNotification, channels: Sequence[NotifyChannel]) -> None:
        """Tell it once by each channel; those that fail are tried again later."""
        episodes = [replace(episode, sent=True, pending=()) for episode in sent.episodes]
        await self._note([RecordEpisode(episode) for episode in episodes])
        failed = tuple(result.channel for result in await self._send_by(channels, sent) if result.again)
        now = self.clock.now()
        await self._settle([rules.after_failure(episode, failed, now) if failed else episode for episode in episodes])

    def _retries(self) -> list[Coroutine[None, None, None]]:
        """Give each channel alone what it could not tell."""
        channels = {channel.name: channel for channel in self.notifier.channels()}
        groups: dict[tuple[object, ...], list[Episode]] = defaultdict(list)
        for episode in rules.retries(self._all(), self.clock.now()):
            groups[episode.pending, episode.kind, episode.account or episode.session].append(episode)
        return [
            self._tell(notification(group), [channels[name] for name in group[0].pending if name in channels])
            for group in groups.values()
        ]

    async def _send_by(self, channels: Sequence[NotifyChannel], sent: UserNotification) -> list[ChannelResult]:
        return list(await asyncio.gather(*(self._send(sent, channel) for channel in channels)))

    async def _send(self, sent: UserNotification, channel: NotifyChannel) -> ChannelResult:
        try:
            await channel.send(sent)
        except OutOfReachError as problem:
            return ChannelResult(channel.name, str(problem))
        except ChannelError as problem:
            log.warning("notification failed", channel=channel.name, problem=str(problem))
            self.failing[channel.name] = str(problem)
            return ChannelResult(channel.name, str(problem), again=True)
        self.failing.pop(channel.name, None)
        return ChannelResult(channel.name)

    async def _settle(self, episodes: Sequence[Episode]) -> None:
        """Write the episodes; what has happened and was sent is over."""
        await self._note([rules.settled(episode) for episode in episodes])

    async def _note(self, records: Sequence[EpisodeRecord]) -> None:
        if records:
            await self.store.note(records)
            self.noted(records)

    # --- for the user -------------------------------------------------------------------------------------------------

    async def test(self) -> list[ChannelResult]:
        """Send a test by every channel."""
        channels = self.notifier.channels()
        if not channels:
            hint = "set notify.urls, notify.command or notify.terminal in your config.toml"
            raise error("no_channel", "No notification channel is configured", hint)
        return await self._send_by(channels, TEST)

    def problems(self) -> list[str]:
        return [f"notifications by {name} fail: {problem}" for name, problem in self.failing.items()]


def _key_in_own_terminal(session: Session) -> float | None:
    """Return when a key was last pressed in the user's own terminal, where the session's client runs in one."""
    if session.pane is not None or session.pid is None or session.ended:
        return None
    tty = terminal(session.pid)
    return last_key_in(tty) if tty else None
