"""Orders for `sm run`: taken by the one client they are for, and by nobody else."""

import asyncio
import json
import os
import subprocess
import sys

import pytest

from sm.core import events as ev
from sm.processes import start_time
from tests.api.rig import house


@pytest.fixture
async def home(tmp_path):
    async with house(tmp_path) as built:
        yield built


@pytest.fixture
def child():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


async def registered(home, child, *, plugin=False, **wish):
    body = {"dir": str(home.home.root.parent), "env": dict(os.environ), "arguments": ["--resume", "x", "do it"]}
    status, view = await home.call("POST", "/sessions", body={**body, "foreground": {"wrapper": os.getpid(), **wish}})
    assert status == 201, view
    launch = {name: value for name, value in view["launch"].items() if name != "env"}
    launch |= {"conversation": "c0", "plugin": plugin}
    told = {"launch": launch, "pid": child.pid, "born": start_time(child.pid)}
    assert (await home.call("POST", f"/sessions/{view['id']}/client", body=told))[0] == 200
    return view["id"]


async def ordered(home, session):
    """An order that waits: the rotation as far as the client being idle after its turn."""
    actor = home.engine.sessions.actors[session]
    project = home.home.root.parent
    (project / "handoff.md").write_text("# Handoff\nNext: N.\n")
    at = home.clock.now()
    await actor.ask(ev.ConversationStarted(at=at, conversation="c0"))
    await actor.ask(ev.PromptSubmitted(at=at, conversation="c0", text="do it"))
    handoff = home.engine.ports.documents.schedule(actor.session, project / "handoff.md", at, "")
    await actor.ask(ev.HandoffRequested(at=at, handoff=handoff))
    await actor.ask(ev.TurnEnded(at=at, conversation="c0"))
    await actor.ask(ev.ComposerReady(at=at, step=actor.session.step))
    status, found = await home.call("GET", f"/sessions/{session}/order?seconds=5")
    assert status == 200
    return found["order"]


def phase(home, session):
    return home.engine.sessions.actors[session].session.rotation.phase


async def take(home, session, order, other=None):
    body = {**order, "env": dict(os.environ), **(other or {})}
    return await home.call("POST", f"/sessions/{session}/order", body=body)


async def test_an_order_names_the_session_the_step_and_exactly_the_process(home, child):
    session = await registered(home, child)
    order = await ordered(home, session)
    step = home.engine.sessions.actors[session].session.step
    assert order == {"session": session, "step": step, "pid": child.pid, "born": start_time(child.pid)}


async def test_whoever_takes_it_is_told_what_to_start_then(home, child):
    session = await registered(home, child)
    status, launch = await take(home, session, await ordered(home, session))
    assert status == 200
    argv = launch["argv"]
    assert argv[argv.index("--session-id") + 1] == launch["conversation"]
    assert argv[argv.index("--session-id") + 2].endswith("/handoff.md and continue from where you left off.")
    assert argv[-1] == "do it"
    assert "--resume" not in argv
    assert home.engine.sessions.actors[session].session.rotation.next == launch["conversation"]


async def test_the_client_that_is_started_then_has_the_rules_of_the_first(home, child):
    (home.home.root.parent / "config.toml").write_text('[handoff]\nenforce = "gate"\n')
    session = await registered(home, child)
    settings = home.home.launch_settings(session)
    first = json.loads(settings.read_text())
    assert "PreToolUse" in first["hooks"]
    assert (await take(home, session, await ordered(home, session)))[0] == 200
    assert json.loads(settings.read_text()) == first


@pytest.mark.parametrize("other", [{"step": 1}, {"pid": 1}, {"born": "another"}, {"session": "0" * 8}])
async def test_a_stale_or_foreign_order_is_refused_and_nothing_moves(home, child, other):
    session = await registered(home, child)
    order = await ordered(home, session)
    status, answer = await take(home, session, order, other)
    assert (status, answer["code"]) == (409, "stale_order")
    assert (phase(home, session), home.engine.sessions.actors[session].session.rotation.next) == ("clearing", "")


async def test_an_order_is_taken_once(home, child):
    session = await registered(home, child)
    order = await ordered(home, session)
    assert (await take(home, session, order))[0] == 200
    assert (await take(home, session, order))[0] == 409
    assert len(home.engine.sessions.actors[session].session.foreground.restarts) == 1


async def test_an_order_for_a_process_that_has_ended_is_refused(home, child):
    session = await registered(home, child)
    order = await ordered(home, session)
    child.kill()
    child.wait()
    assert (await take(home, session, order))[1]["code"] == "stale_order"


async def test_nothing_is_ended_for_a_document_that_is_gone(home, child):
    session = await registered(home, child)
    order = await ordered(home, session)
    copy = home.engine.sessions.actors[session].session.rotation.handoff.copy
    os.truncate(copy, 0)
    status, answer = await take(home, session, order)
    assert (status, answer["code"]) == (409, "handoff_mismatch")
    assert home.engine.sessions.actors[session].session.rotation.next == ""


async def test_who_waits_for_an_order_is_told_when_there_is_one_and_let_go_when_the_server_stops(home, child):
    session = await registered(home, child)
    waiting = asyncio.create_task(home.call("GET", f"/sessions/{session}/order?seconds=30"))
    await asyncio.sleep(0.05)
    order = await ordered(home, session)
    assert (await waiting)[1]["order"] == order
    await take(home, session, order)
    waiting = asyncio.create_task(home.call("GET", f"/sessions/{session}/order?seconds=30"))
    await asyncio.sleep(0.05)
    home.engine.sessions.release()
    assert (await waiting)[1]["order"] is None


async def test_orders_are_the_persons_business_alone(home, child):
    session = await registered(home, child)
    token = home.launched[session]
    for method, path in [("GET", "order"), ("POST", "order"), ("POST", "client"), ("POST", "client/exit")]:
        status, _ = await home.call(method, f"/sessions/{session}/{path}", token, body={} if method == "POST" else None)
        assert status == 403


async def test_a_session_with_a_pane_takes_no_orders(home):
    session = await home.new("a")
    status, answer = await home.call("GET", f"/sessions/{session}/order")
    assert (status, answer["code"]) == (409, "no_order")


async def test_restarts_go_on_being_counted_when_something_starts_sm_run_again_at_once(home, child):
    session = await registered(home, child)
    await take(home, session, await ordered(home, session))
    gone = {"pid": child.pid, "code": 0}
    assert (await home.call("POST", f"/sessions/{session}/client/exit", body=gone))[0] == 200
    again = await registered(home, child)
    place = home.engine.sessions.actors[again].session.foreground
    assert len(place.restarts) == 1
    home.clock.advance(3600)
    assert (await home.call("POST", f"/sessions/{again}/client/exit", body=gone))[0] == 200
    home.clock.advance(3600)
    later = await registered(home, child)
    assert home.engine.sessions.actors[later].session.foreground.restarts == ()


async def test_limits_come_from_the_configuration_unless_they_are_given(home, child):
    session = await registered(home, child, max_restarts=2, on_compact="save")
    place = home.engine.sessions.actors[session].session.foreground
    assert (place.limit, place.on_compact) == (2, "save")
    other = await registered(home, child)
    place = home.engine.sessions.actors[other].session.foreground
    assert (place.limit, place.on_compact) == (10, "rotate")


OLDER = ("argv", "conversation", "config", "auto_compact", "farewell")
"""What an `sm run` from before the last upgrade of the server takes out of an answer, and gives back."""


async def test_an_older_sm_run_goes_through_an_upgrade_of_the_server(home):
    limited = {**os.environ, "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "150000"}
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=limited) as child:
        session = await registered(home, child)
        status, answer = await take(home, session, await ordered(home, session))
        assert status == 200
        launch = {name: answer[name] for name in OLDER}
        told = {"launch": {**launch, "auto_compact": 120_000}, "pid": child.pid, "born": start_time(child.pid)}
        status, answer = await home.call("POST", f"/sessions/{session}/client", body=told)
        assert (status, answer.get("pid")) == (200, child.pid), answer
        assert home.engine.sessions.actors[session].session.limits.auto_compact == 150_000
        child.kill()


async def test_what_a_client_was_started_with_is_looked_for_where_no_event_says_it(home):  # C13
    """A server from before the last upgrade kept less of a launch."""
    limited = {**os.environ, "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "150000"}
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=limited) as child:
        session = await registered(home, child)
        actor = home.engine.sessions.actors[session]
        assert actor.session.asked == ()
        async with asyncio.timeout(20):
            while actor.session.limits.auto_compact != 150_000:
                await asyncio.sleep(0.05)
        child.kill()


HELLO = {"generation": "g"}


async def says_hello(home, session, pid):
    return await home.call("POST", f"/sessions/{session}/link", home.launched[session], HELLO, ("unix", pid))


async def test_a_client_with_the_plugin_is_waited_for_and_then_driven_by_it(home, child):
    session = await registered(home, child, plugin=True)
    actor = home.engine.sessions.actors[session]
    assert (actor.session.driver, actor.session.driver_note) == (ev.DrivenBy.KEYS, ev.AWAITED)
    assert (await says_hello(home, session, os.getpid()))[0] == 403
    assert (await says_hello(home, session, child.pid))[0] == 200
    assert (actor.session.driver, actor.session.takes_prompts) == (ev.DrivenBy.MOD, True)
    assert actor.pane_queue.writer.pane is None


async def test_a_plugin_that_answers_before_its_client_is_reported_again_keeps_its_link(home, child):
    """A report that found no server is repeated."""
    session = await registered(home, child, plugin=True)
    await says_hello(home, session, child.pid)
    launch = {"argv": ["claude"], "conversation": "c0", "config": "", "asked": [], "plugin": True}
    told = {"launch": launch, "pid": child.pid, "born": start_time(child.pid)}
    assert (await home.call("POST", f"/sessions/{session}/client", body=told))[0] == 200
    actor = home.engine.sessions.actors[session]
    assert (actor.session.driver, actor.link.alive, actor.link.generation) == (ev.DrivenBy.MOD, True, "g")
