"""Notifications of the user: a test of their channels."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sm.api.routes import answer, backend
from sm.wire import ChannelTest


async def test(request: Request) -> Response:
    """Send a test notification by every configured channel; for each the problem, empty if it took it."""
    results = await backend(request).engine.notifications.test()
    return answer([ChannelTest(result.channel, not result.problem, result.problem) for result in results])
