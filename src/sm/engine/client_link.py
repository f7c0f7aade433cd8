"""The link to a client that is driven from inside: what the server orders there, and what comes back.

The plugin in the client asks for orders by a poll that is held until there is one. An order waits until it is
acknowledged by its id, so a poll whose answer was lost takes none with it; the plugin carries each out once. Where the
plugin was loaded again (another generation) or has not polled for SILENCE_S, what it was given counts as failed: the
caller then looks at what the client shows.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from dataclasses import dataclass, field

from sm.core.ports.clock import Clock
from sm.core.ports.provider import ClientOrder, NoAnswerError, OrderResult

SILENCE_S = 30.0
"""A poll is held for 25 s and asked for again at once, or after 2 s at most."""
AGAIN_S = 5.0
"""Seconds after which an order that is not acknowledged is given once more."""
RELOADED = "the client loaded the plugin again"
SILENT = "the client's plugin does not answer"


@dataclass(slots=True)
class GivenOrder:
    id: int
    order: ClientOrder
    result: asyncio.Future[OrderResult]
    generation: str = ""
    """That of the plugin which has it; empty while it waits."""
    given: float = 0.0
    asking: int = 0
    """How many wait for its result."""


@dataclass(slots=True)
class ClientLink:
    clock: Clock
    expected: bool = False
    """There is a plugin, or there was one when the server last ran: it asks again within two seconds."""
    generation: str = ""
    """Of the plugin that spoke last; empty for a client without one."""
    heard: float = field(init=False)
    """When it spoke last, or this link was made: a server that has just started gives it time."""
    _orders: dict[int, GivenOrder] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(init=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    released: bool = False
    """The server is about to stop: nothing is held any more."""
    _whole: tuple[str, str] | None = None
    _superseded: set[str] = field(default_factory=set)
    """Plugins that were loaded again: what they still had to say may come late."""

    def __post_init__(self) -> None:
        self.heard = self.clock.now()
        self._numbers = itertools.count(int(self.clock.now() * 1000))  # the plugin outlives the server, and knows ids

    @property
    def alive(self) -> bool:
        return self.expected and not self.silent

    @property
    def silent(self) -> bool:
        return self.clock.now() - self.heard >= SILENCE_S

    def heard_from(self, generation: str) -> None:
        if generation in self._superseded:
            return
        self.heard = self.clock.now()
        if generation == self.generation:
            return
        self._superseded.add(self.generation)
        self.expected, self.generation = True, generation
        for order in tuple(self._orders.values()):
            if order.generation:
                self._fail(order, RELOADED)

    def client_started(self) -> None:
        """Forget the plugin of the client before; the new one's says hello."""
        self._superseded.add(self.generation)
        self.expected, self.generation = False, ""
        for order in tuple(self._orders.values()):
            self._fail(order, RELOADED)

    async def ask(self, order: ClientOrder, number: int | None = None) -> OrderResult:
        """Have an order carried out; NoAnswerError if no result ever comes.

        A `number` of the caller's own, below 0, keeps an order that is given again, also by the next server, from being
        carried out twice.
        """
        number = next(self._numbers) if number is None else number
        given = self._orders.get(number) or GivenOrder(number, order, asyncio.get_running_loop().create_future())
        given.asking += 1
        self._orders[number] = given
        self._changed.set()
        try:
            while True:
                done, _ = await asyncio.wait({given.result}, timeout=AGAIN_S)
                if done:
                    return given.result.result()
                if not self.alive:
                    self._fail(given, SILENT)
        finally:
            given.asking -= 1
            if not given.asking:
                self._orders.pop(number, None)

    def acknowledged(self, number: int, result: OrderResult) -> None:
        """Take a result; one that was not ordered, or was acknowledged before, changes nothing."""
        given = self._orders.get(number)
        if given is not None and not given.result.done():
            given.result.set_result(result)

    async def orders(self, generation: str, hold: float) -> list[GivenOrder]:
        """What the plugin that speaks is to do now; waits up to `hold` seconds for it.

        A poll of the plugin before, which may be open still while nothing reads its answer, takes nothing.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + hold
        while not (due := self._due(generation)) and (left := until - loop.time()) > 0 and not self.released:
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, AGAIN_S) if self._orders else left):
                    await self._changed.wait()
        now = self.clock.now()
        for order in due:
            order.generation, order.given = generation, now
        return due

    def offer(self, whole: str, part: str) -> None:
        """Have a document ready for the context that begins: all of it, for the part that the hook's reply carries.

        Without one, what an earlier context has not asked for is withdrawn.
        """
        self._whole = (whole, part) if whole else None

    def taken(self) -> tuple[str, str] | None:
        """Return what was offered, once."""
        found, self._whole = self._whole, None
        return found

    def release(self) -> None:
        """Answer the polls that are held: the server is about to stop."""
        self.released = True
        self._changed.set()

    def _due(self, generation: str) -> list[GivenOrder]:
        if generation != self.generation:
            return []
        now = self.clock.now()
        return [order for order in self._orders.values() if not order.generation or now - order.given >= AGAIN_S]

    @staticmethod
    def _fail(given: GivenOrder, reason: str) -> None:
        if not given.result.done():
            given.result.set_exception(NoAnswerError(reason))
