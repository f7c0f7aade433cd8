"""Background work of the engine: one task group, each failure logged, and all of it cancelled when the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

from sm.engine.errors import logged

Spawn = Callable[[Coroutine[object, object, None]], None]


@dataclass(slots=True)
class Tasks:
    group: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)
    running: set[asyncio.Task[None]] = field(default_factory=set)

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        task = self.group.create_task(_guarded(work))
        self.running.add(task)
        task.add_done_callback(self.running.discard)
        task.add_done_callback(lambda _: work.close())  # cancelled before its first step it would count as forgotten

    def cancel(self) -> None:
        for task in self.running:
            task.cancel()


async def _guarded(work: Coroutine[object, object, None]) -> None:
    with logged("background work failed"):
        await work
