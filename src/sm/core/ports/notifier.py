"""How the user is notified: by which channels, and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sm.core.model.notification import UserNotification
from sm.core.model.notify_rules import NotifyRules


class ChannelError(Exception):
    """The channel did not take the notification; the message says why, without secrets."""


class HangingError(ChannelError):
    """The channel has not answered in time."""


class OutOfReachError(ChannelError):
    """The channel works, but reaches no one now: to try again later would be too late."""


class NotifyChannel(Protocol):
    @property
    def name(self) -> str:
        """As the user reads it; the same while the settings of the channel are."""

    async def send(self, sent: UserNotification) -> None:
        """Return once the notification was taken; ChannelError if it was not, within a bounded time.

        Any other error is taken for one of the channel too.
        """


class Notifier(Protocol):
    """What the user has set about notifications, now."""

    def rules(self) -> NotifyRules: ...
    def channels(self) -> Sequence[NotifyChannel]: ...
    def local_offset(self, at: float) -> float:
        """Return by how many seconds the local time is ahead of UTC then."""


class Unnotified:
    """Notifies the user of nothing."""

    def rules(self) -> NotifyRules:
        return NotifyRules()

    def channels(self) -> Sequence[NotifyChannel]:
        return ()

    def local_offset(self, at: float) -> float:
        del at
        return 0.0
