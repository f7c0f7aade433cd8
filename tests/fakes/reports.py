"""What a connection to a client reports to, without an engine."""

import asyncio
from dataclasses import dataclass, field

from sm.core import events as ev
from sm.core.ports.provider import ClientOrder, HookReply


@dataclass
class FakeReports:
    """Implements the port `ClientReports`; a session is in whatever conversation was begun last."""

    ids: list = field(default_factory=list)
    hooks: list = field(default_factory=list)
    asked: list = field(default_factory=list)
    """Identity, hook and the future of the answer, for each time it was asked."""
    sizes: list = field(default_factory=list)
    measured: int = 0
    connections: int = 0
    replies: dict = field(default_factory=dict)
    """What the hook with such an event is answered, by its type."""
    results: dict = field(default_factory=dict)
    waiting: asyncio.Queue = field(default_factory=asyncio.Queue)

    def conversation(self):
        return self.ids[-1] if self.ids else ""

    def past(self):
        return tuple(self.ids[:-1])

    async def connected(self):
        self.connections += 1

    def alive(self):
        pass

    async def hook(self, hook):
        self.hooks.append(hook)
        if isinstance(hook.event, ev.ConversationStarted):
            self.ids.append(hook.conversation)
        return self.replies.get(type(hook.event), HookReply())

    async def ask(self, identity, hook):
        answer = asyncio.get_running_loop().create_future()
        self.asked.append((identity, hook, answer))
        return await answer

    def reported(self, conversation, tokens, window):
        self.sizes.append((conversation, tokens, window))

    def measure(self):
        self.measured += 1

    async def orders(self):
        return [await self.waiting.get()]

    def done(self, number, result):
        self.results[number].set_result(result)

    async def order(self, kind, text=""):
        """Have an order carried out; return its result."""
        number = len(self.results)
        self.results[number] = asyncio.get_running_loop().create_future()
        self.waiting.put_nowait((number, ClientOrder(kind, text)))
        async with asyncio.timeout(20):
            return await self.results[number]

    def of(self, kind):
        return [hook.event for hook in self.hooks if isinstance(hook.event, kind)]
