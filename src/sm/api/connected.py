"""Work for a request that may take long, which ends as soon as its sender leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from starlette.requests import Request

Result = TypeVar("Result")


async def while_connected(request: Request, work: Coroutine[None, None, Result]) -> Result | None:
    """Return the result of the work; None if whoever asks, its body read, has left before."""
    async with asyncio.TaskGroup() as group:
        task, left = group.create_task(work), group.create_task(_left(request))
        await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
        is_done = task.done()
        task.cancel()
        left.cancel()
    return task.result() if is_done else None


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
