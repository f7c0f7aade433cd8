"""Children, self-reports, reminders and waits of a session."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sm.api.bodies import ChildBody, ClearBody, ReminderBody, ReportBody, WaitBody
from sm.api.routes import answer, backend, body, target
from sm.api.security import caller_of
from sm.core import events as ev
from sm.core.rules.team import children_of
from sm.engine import team
from sm.wire import CancelledReminder, WaitAnswer, reminder_view, session_view


async def spawn(request: Request) -> Response:
    """Start a child of the session."""
    actor = target(request)
    wanted = await body(request, ChildBody)
    if not caller_of(request).is_user:
        await backend(request).engine.team.check_directory(actor.session.id, wanted.dir)
    child = team.NewChild(
        directory=wanted.dir,
        env=wanted.env,
        prompt=wanted.prompt,
        provider=wanted.provider,
        name=wanted.name,
        model=wanted.model,
        track=wanted.track,
        notify=wanted.notify,
    )
    return answer(session_view(await backend(request).engine.team.spawn(actor.session.id, child)), 201)


async def children(request: Request) -> Response:
    """The session's children, those that have ended too."""
    actor = target(request)
    sessions = [actor.session for actor in backend(request).engine.sessions.actors.values()]
    return answer([session_view(child) for child in children_of(actor.session.id, sessions)])


async def clear(request: Request) -> Response:
    """Clear a child's context as soon as it is idle and give it another task."""
    actor = target(request)
    wanted = await body(request, ClearBody)
    by = caller_of(request).session or ""
    await backend(request).engine.team.clear(actor.session.id, by, wanted.prompt, notify=wanted.notify)
    return answer(session_view(actor.session))


async def report(request: Request) -> Response:
    """Report what the session is doing, or that its task is complete."""
    actor = target(request)
    wanted = await body(request, ReportBody)
    engine = backend(request).engine
    at = engine.ports.clock.now()
    told = ev.TaskCompleted(at=at, text=wanted.text) if wanted.done else ev.StatusReported(at=at, text=wanted.text)
    await actor.ask(told)
    return answer(session_view(actor.session))


async def remind(request: Request) -> Response:
    """Remind the session of something, once or repeatedly."""
    actor = target(request)
    wanted = await body(request, ReminderBody)
    engine = backend(request).engine
    made = await engine.reminders.remind(actor.session.id, wanted.delay, wanted.text, every=wanted.every)
    return answer(reminder_view(made, engine.sessions.who), 201)


async def wait(request: Request) -> Response:
    """Send the session a message when another one is idle, or after some seconds."""
    actor = target(request)
    wanted = await body(request, WaitBody)
    engine = backend(request).engine
    meant = engine.sessions.find(wanted.target).session
    now = await engine.reminders.wait(actor.session.id, meant.id, wanted.seconds)
    return answer(WaitAnswer(meant.id, meant.name, now, meant.ended), 201)


async def reminders(request: Request) -> Response:
    """The session's reminders, waits and stop notices."""
    actor = target(request)
    engine = backend(request).engine
    return answer(
        [reminder_view(reminder, engine.sessions.who) for reminder in engine.reminders.owned(actor.session.id)]
    )


async def cancel_reminder(request: Request) -> Response:
    """Delete a reminder, wait or stop notification."""
    actor = target(request)
    identity = request.path_params["reminder"]
    await backend(request).engine.reminders.cancel(actor.session.id, identity)
    return answer(CancelledReminder(identity))
