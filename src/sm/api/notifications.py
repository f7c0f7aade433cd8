"""Notifications of the user: a test of their channels, and the end of a run."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sm.api.bodies import RunEndedBody
from sm.api.routes import answer, backend, body
from sm.wire import ChannelTest, Notified


async def test(request: Request) -> Response:
    """Send a test notification by every configured channel; for each the problem, empty if it took it."""
    results = await backend(request).engine.notifications.test()
    return answer([ChannelTest(result.channel, not result.problem, result.problem) for result in results])


async def run_ended(request: Request) -> Response:
    """Notify the user that a run of unattended work has ended: what of it was delivered, and what waits."""
    ended = await body(request, RunEndedBody)
    await backend(request).engine.notifications.run_ended(ended.run, ended.project, ended.text)
    return answer(Notified(ended.run))
