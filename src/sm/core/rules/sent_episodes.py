"""What is left of an episode once the channels have it: nothing, something to know, or a channel to be tried again."""

from __future__ import annotations

from collections.abc import Iterable

from sm.core.effects import DropEpisode, EpisodeRecord, OpenEpisode, RecordEpisode
from sm.core.model.notification import LASTING, Episode
from sm.core.model.notify_rules import NotificationKind
from sm.core.model.session import Session
from sm.core.values import replace

RETRIES_S = (30.0, 120.0, 600.0, 3_600.0)
"""After how many seconds a channel that failed is tried again; then it is given up."""


def is_over(episode: Episode, every: Iterable[Episode]) -> bool:
    """Whether it has happened and was sent: there is nothing left of it to tell, to end, or to know.

    That a limit is over is known as long as a session waits for it, so that its end is sent once.
    """
    if not episode.sent or episode.pending or episode.kind in LASTING:
        return False
    waiting = (other for other in every if other.kind is NotificationKind.LIMITED and other.account == episode.account)
    return episode.kind is not NotificationKind.RESUMED or all(other.since > episode.since for other in waiting)


def settled(episode: Episode, every: Iterable[Episode]) -> DropEpisode | RecordEpisode:
    """Return what is written of an episode that was sent, seen, or given up."""
    return DropEpisode(episode.id) if is_over(episode, every) else RecordEpisode(episode)


def of_removed(episodes: Iterable[Episode], others: Iterable[Session]) -> tuple[EpisodeRecord, ...]:
    """Return what is written of the episodes of a session that is removed: they are dropped.

    What concerns its whole account continues as an episode of another session that lives there, if there is one.
    """
    heirs = {session.config: session for session in others if not session.ended}
    records: list[EpisodeRecord] = []
    for episode in episodes:
        records.append(DropEpisode(episode.id))
        heir = heirs.get(episode.account) if episode.account else None
        if heir is not None:
            records.append(OpenEpisode(replace(episode, session=heir.id, name=heir.name)))
    return tuple(records)


def not_ahead(episode: Episode, now: float) -> Episode:
    """Return the episode with no time that a clock which was set back would have to reach again."""
    latest = now + RETRIES_S[min(max(episode.tries - 1, 0), len(RETRIES_S) - 1)]
    if episode.since <= now and episode.retry_at <= latest:
        return episode
    return replace(episode, since=min(episode.since, now), retry_at=min(episode.retry_at, now))


def after_failure(episode: Episode, channels: tuple[str, ...], now: float) -> Episode:
    """Return the episode with the channels that are to be tried again, until they are given up."""
    if episode.tries >= len(RETRIES_S):
        return episode
    return replace(episode, pending=channels, tries=episode.tries + 1, retry_at=now + RETRIES_S[episode.tries])
