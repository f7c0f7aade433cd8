"""One writer per pane: the orders of a session to its pane, one after the other, the newest replacing the one before.

An order gives way before its next key, never between its text and the Enter that belongs to it without taking the text
back; the next one starts only after that. Results name the order's step.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.errors import SmError
from sm.core.ports.clock import Clock
from sm.core.ports.documents import Documents
from sm.core.ports.panes import Pane, PaneError
from sm.core.ports.provider import Composer, Provider, Wait
from sm.engine.errors import unharmed

log = structlog.get_logger()
SNAPSHOT_TIMEOUT = 10.0


@dataclass(slots=True)
class Seat:
    """The pane an agent sits in, and what it takes to type there."""

    session: str
    provider: Provider
    pane: Pane | None
    """None where nothing can be typed: the person's own terminal."""
    composer: Composer
    documents: Documents
    clock: Clock


@dataclass(slots=True)
class Orders:
    put: Callable[[ev.Event], None]
    clock: Clock
    seat: Seat | None = None
    """None while no client is there to type to."""
    restart: ef.RestartClient | None = None
    """The order that waits for `sm run` to take it."""
    awaited: asyncio.Future[None] | None = None
    """Done once there is one."""
    _newest: ef.PaneOrder | None = None
    _woken: asyncio.Event = field(default_factory=asyncio.Event)

    def give(self, order: ef.PaneOrder) -> None:
        self._newest, self.restart = order, None
        self._woken.set()

    async def offer(self, seconds: float) -> ef.RestartClient | None:
        """The order that waits for `sm run`, or the next one to come within so many seconds."""
        if self.restart is None:
            self.awaited = self.awaited or asyncio.get_running_loop().create_future()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await asyncio.shield(self.awaited)
        return self.restart

    def release(self) -> None:
        """Answer whoever waits for an order."""
        if self.awaited is not None and not self.awaited.done():
            self.awaited.set_result(None)
        self.awaited = None

    async def run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            order = self._newest
            if order is not None:
                await self._carry_out(order)

    async def _carry_out(self, order: ef.PaneOrder) -> None:
        def leave() -> bool:
            return self._newest is not order

        function = ORDERS[type(order)]
        if self.seat is None:
            return
        result: ev.Event | None = None
        with unharmed("order failed", session=self.seat.session, what=type(order).__name__) as piece:
            result = await function(self, self.seat, order, leave)
        if piece.problem is not None:
            reason = f"sm failed at it: {type(piece.problem).__name__}"
            result = ev.TypingRefused(at=self.clock.now(), step=order.step, reason=reason)
        if result is not None:
            self.put(result)


Leave = Callable[[], bool]
Order = Callable[["Orders", Seat, ef.PaneOrder, Leave], Awaitable[ev.Event | None]]


async def _await_composer(orders: Orders, seat: Seat, order: ef.PaneOrder, leave: Leave) -> ev.Event | None:
    assert isinstance(order, ef.AwaitComposer)

    def held(reason: str) -> None:
        orders.put(ev.ComposerHeld(at=seat.clock.now(), step=order.step, reason=reason))

    while seat.clock.now() < order.after and not leave():
        await asyncio.sleep(0.05)
    if await seat.composer.ready(Wait(order.own, patience=order.patience), held, leave):
        return ev.ComposerReady(at=seat.clock.now(), step=order.step)
    return None


async def _await_box(orders: Orders, seat: Seat, order: ef.PaneOrder, leave: Leave) -> ev.Event | None:
    assert isinstance(order, ef.AwaitBox)

    def held(reason: str) -> None:
        orders.put(ev.ComposerHeld(at=seat.clock.now(), step=order.step, reason=reason))

    if await seat.composer.ready(Wait(order.own, busy=True, patience=0.0), held, leave):
        return ev.BoxFree(at=seat.clock.now(), step=order.step)
    return None


async def _take_snapshot(_: Orders, seat: Seat, order: ef.PaneOrder, leave: Leave) -> ev.Event | None:
    del leave  # a snapshot presses no key
    assert seat.pane is not None
    try:
        async with asyncio.timeout(SNAPSHOT_TIMEOUT):
            text = await seat.pane.history()
        path = await asyncio.to_thread(_kept, seat, text) if text.strip() else None
    except (OSError, TimeoutError, PaneError, SmError) as problem:
        log.warning("snapshot failed", session=seat.session, problem=type(problem).__name__)
        path = None
    return ev.SnapshotTaken(at=seat.clock.now(), step=order.step, path=path)


def _kept(seat: Seat, text: str) -> str:
    return seat.documents.snapshot(seat.session, seat.clock.now(), text)


async def _type_text(_: Orders, seat: Seat, order: ef.PaneOrder, leave: Leave) -> ev.Event | None:
    assert isinstance(order, ef.TypeText | ef.TypeCommand)
    text = order.text if isinstance(order, ef.TypeText) else order.command
    now = isinstance(order, ef.TypeText) and order.now
    try:
        refused = await seat.composer.submit(text, leave, now=now)
    except PaneError as problem:
        refused = str(problem)
    if refused is not None:
        return ev.TypingRefused(at=seat.clock.now(), step=order.step, reason=refused)
    return ev.Typed(at=seat.clock.now(), step=order.step)


async def _find_prompt(_: Orders, seat: Seat, order: ef.PaneOrder, leave: Leave) -> ev.Event | None:
    del leave
    assert isinstance(order, ef.FindPrompt)
    path = order.transcript
    text = seat.provider.submitted(path, order.digest, order.position) if path else None
    at = seat.clock.now()
    if text is None:
        return ev.PromptMissing(at=at, step=order.step)
    return ev.PromptSubmitted(at=at, conversation=order.conversation, text=text, replayed=True)


async def _restart_client(orders: Orders, seat: Seat, order: ef.PaneOrder, leave: Leave) -> ev.Event | None:
    """Hand the order to `sm run`, which waits for it; what it does comes back as what the client shows."""
    del seat, leave
    assert isinstance(order, ef.RestartClient)
    orders.restart = order
    orders.release()
    return None


async def _leave_pane(_: Orders, __: Seat, ___: ef.PaneOrder, ____: Leave) -> ev.Event | None:
    return None


ORDERS: dict[type[ef.PaneOrder], Order] = {
    ef.AwaitComposer: _await_composer,
    ef.AwaitBox: _await_box,
    ef.TakeSnapshot: _take_snapshot,
    ef.TypeCommand: _type_text,
    ef.TypeText: _type_text,
    ef.FindPrompt: _find_prompt,
    ef.RestartClient: _restart_client,
    ef.LeavePane: _leave_pane,
}
