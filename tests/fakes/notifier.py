"""Notification channels in memory, which take what they are given unless they are made to fail."""

import asyncio
from dataclasses import dataclass, field

from sm.core.model.notify_rules import NotifyRules
from sm.core.ports.notifier import ChannelError


@dataclass
class FakeChannel:
    name: str = "channel"
    taken: list = field(default_factory=list)
    fails: str = ""
    stops: Exception | None = None
    """Raised when it is used, as by a server that dies at that moment."""
    answers: asyncio.Event | None = None
    """It hangs until then."""
    uses: int = 0

    async def send(self, sent):
        self.uses += 1
        if self.answers is not None:
            await self.answers.wait()
        if self.stops is not None:
            raise self.stops
        if self.fails:
            raise ChannelError(self.fails)
        self.taken.append(sent)


@dataclass
class FakeNotifier:
    set_rules: NotifyRules = field(default_factory=NotifyRules)
    used: list = field(default_factory=lambda: [FakeChannel()])

    def rules(self):
        return self.set_rules

    def channels(self):
        return self.used

    def local_offset(self, at):
        return 0.0

    @property
    def titles(self):
        return [sent.title for channel in self.used for sent in channel.taken]
