"""What `sm run` asks and tells: a session whose client it starts itself, and the orders about that client."""

from __future__ import annotations

from dataclasses import asdict, replace

from starlette.requests import Request
from starlette.responses import Response

from sm.api.bodies import ClientBody, ExitBody, ForegroundBody, OrderBody
from sm.api.routes import answer, backend, body, count, target
from sm.core.errors import error
from sm.core.model.foreground import Foreground
from sm.core.ports.panes import Launch
from sm.engine import foreground
from sm.engine.actor import Actor
from sm.engine.foreground import RestartOrder
from sm.engine.new_session import NewSession
from sm.processes import start_time, started_with
from sm.wire import LaunchView, OrderAnswer, OrderView, session_view

MAX_WAIT_S = 30


async def register(request: Request, new: NewSession) -> Response:
    """A session whose client the caller is about to start, with its token and everything to start it with."""
    actor, token, launch = await backend(request).engine.launcher.add(new)
    view = session_view(actor.session)
    view.token, view.launch = token, _launch_view(launch)
    view.launch.env = dict(launch.env)
    return answer(view, 201)


def wanted(request: Request, given: ForegroundBody, directory: str) -> Foreground:
    """What `sm run` asks for, with the configuration's answers where it does not say."""
    engine = backend(request).engine
    if given.on_compact not in {"rotate", "save"}:
        raise error("bad_request", "on_compact is rotate or save")
    policy = engine.ports.policies.checked_policy(directory)
    return Foreground(
        wrapper=given.wrapper,
        wrapper_born=start_time(given.wrapper),
        limit=policy.max_restarts if given.max_restarts is None else given.max_restarts,
        on_compact=given.on_compact,
        restarts=backend(request).engine.foreground.inherited_restarts(directory),
    )


async def client_started(request: Request) -> Response:
    """`sm run` has started a client for the session."""
    actor = _target(request)
    told = await body(request, ClientBody)
    given = told.launch
    launch = Launch(
        tuple(given.argv), {}, given.conversation, given.config, plugin=given.plugin, no_plugin=given.no_plugin
    )
    if told.launch.asked is None:  # the environment and the arguments of the client itself have it
        asked = backend(request).engine.ports.providers[actor.session.provider].asked(*started_with(told.pid))
    else:
        asked = tuple(told.launch.asked)
    await backend(request).engine.foreground.launched(actor, replace(launch, asked=asked), told.pid, told.born)
    return answer(session_view(actor.session))


async def client_exited(request: Request) -> Response:
    """The client has ended by itself."""
    actor = _target(request)
    told = await body(request, ExitBody)
    await backend(request).engine.foreground.exited(actor, told.pid, told.code, told.signal)
    return answer(session_view(actor.session))


async def order(request: Request) -> Response:
    """What `sm run` is to do with its client: waits up to `seconds` for it, else null."""
    actor = _target(request)
    found = await foreground.order(actor, float(count(request, "seconds", MAX_WAIT_S, MAX_WAIT_S)))
    return answer(OrderAnswer(None if found is None else OrderView(**asdict(found)), actor.session.ended))


async def take_order(request: Request) -> Response:
    """Take exactly that order: from here the client is the caller's to end. What to start then."""
    actor = _target(request)
    told = await body(request, OrderBody)
    taken = RestartOrder(told.session, told.step, told.pid, told.born)
    return answer(_launch_view(await backend(request).engine.foreground.take(actor, taken, told.env)))


def _target(request: Request) -> Actor:
    actor = target(request)
    if actor.session.foreground is None:
        raise error("no_order", f"Session {actor.session.name} does not run in a terminal of its own", "sm list")
    return actor


def _launch_view(launch: Launch) -> LaunchView:
    return LaunchView(
        argv=list(launch.argv),
        conversation=launch.conversation,
        config=launch.config,
        asked=list(launch.asked),
        auto_compact=None,
        farewell=list(launch.exit_lines),
        plugin=launch.plugin,
        no_plugin=launch.no_plugin,
    )
