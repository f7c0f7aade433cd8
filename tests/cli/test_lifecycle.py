"""Commands that end sessions, bring them back and remove them: what several names mean, and what is left alone."""

import asyncio
import json
import time

import pytest

from sm.cli.lifecycle import STARTS_AT_ONCE
from sm.core import events as ev
from sm.core.model.session import Status
from sm.core.ports.store import LaunchRecord
from sm.core.rules.session.status import PANE_LOST
from sm.fleet import LOST_FOR_S
from sm.processes import start_time


async def lost(desk, name, ago=60.0, **more):
    session = await desk.api.new(name)
    at = time.time() - ago  # the clock of the user's command
    await desk.api.call("DELETE", f"/sessions/{session}")
    await desk.api.alter(session, status=Status.EXITED, detail=PANE_LOST, failed_starts=(at,), **more)
    return session


async def statuses(desk):
    return {view["name"]: view["status"] for view in (await desk.run("list", "--json")).data}


async def test_restore_all_restores_what_was_lost_within_a_week(desk):
    first = await lost(desk, "first")
    crashed = await lost(desk, "crashed")
    await desk.api.alter(crashed, status=Status.CRASHED, detail="the client has ended (signal 9)")
    await lost(desk, "long ago", ago=LOST_FOR_S + 60)
    await desk.api.new("killed")
    await desk.run("kill", "killed")
    ran = await desk.run("restore", "--all")
    assert (ran.code, ran.err) == (0, f"restored first ({first})\nrestored crashed ({crashed})\n")
    now = await statuses(desk)
    assert now == {"first": "starting", "crashed": "starting", "long ago": "exited", "killed": "exited"}
    ran = await desk.run("restore", "--all")
    assert (ran.code, ran.err) == (0, "no session was lost\nhint: sm restore NAME restarts one that you ended\n")


async def test_a_restored_session_is_shown_with_the_permission_mode_that_its_client_starts_in(desk):
    session = await lost(desk, "planner")
    desk.api.engine.sessions.launches[session] = LaunchRecord(arguments=("--permission-mode", "plan"))
    ran = await desk.run("restore", "planner")
    shown = "in permission mode plan: it plans only, and changes nothing"
    assert ran.err == f"restored planner ({session}), {shown}\n"
    assert "started    the client, in permission mode plan\n" in (await desk.run("tail", "planner")).out


@pytest.mark.soak
async def test_a_few_are_restored_at_a_time_and_said_in_their_order(desk, monkeypatch):
    ids = {name: await lost(desk, name) for name in "abcdefg"}
    panes = desk.api.engine.ports.panes
    create, starting, most = panes.create, set(), set()

    async def slow(session, *launch):
        starting.add(session.id)
        most.add(len(starting))
        await asyncio.sleep(0.3 if session.name == "a" else 0.1)
        starting.discard(session.id)
        return await create(session, *launch)

    monkeypatch.setattr(panes, "create", slow)
    ran = await desk.run("restore", "--all")
    assert (ran.code, ran.err.splitlines()) == (0, [f"restored {name} ({ids[name]})" for name in "abcdefg"])
    assert max(most) == STARTS_AT_ONCE


async def test_what_cannot_be_restored_is_said_and_the_others_are(desk):
    gone = desk.root / "gone"
    gone.mkdir()
    moved = await desk.api.new("moved", directory=gone)
    await desk.api.call("DELETE", f"/sessions/{moved}")
    await desk.api.alter(moved, detail=PANE_LOST, failed_starts=(time.time(),))
    other = await lost(desk, "other")
    gone.rmdir()
    ran = await desk.run("restore", "--all", "--json")
    assert (ran.code, [view["id"] for view in ran.data["restored"]]) == (1, [other])
    (refused,) = ran.data["refused"]
    assert (refused["id"], refused["name"], refused["code"]) == (moved, "moved", "no_directory")


async def test_a_turn_that_the_end_of_a_client_interrupted_is_said_with_what_continues_it(desk):
    session = await desk.api.new("my docs")
    await desk.api.alter(session, status=Status.WAITING, at_prompt=False)
    await desk.api.call("DELETE", f"/sessions/{session}")
    words = "my docs: its client ended in the middle of a turn; to continue it: sm send 'my docs' continue"
    ran = await desk.run("restore", "my docs")
    assert ran.err.splitlines() == [f"restored my docs ({session})", words]
    assert words in (await desk.run("list")).err
    actor = desk.api.engine.sessions.actors[session]
    await actor.ask(ev.PromptSubmitted(at=1.0, conversation=actor.session.conversation.id, text="continue"))
    assert words not in (await desk.run("list")).err
    await desk.api.alter(session, status=Status.IDLE)  # as after an Escape
    await desk.api.call("DELETE", f"/sessions/{session}")
    assert not (await desk.api.call("GET", f"/sessions/{session}"))[1]["interrupted"]


async def test_restore_restores_all_that_are_named_or_none(desk, session):
    await lost(desk, "first")
    ran = await desk.run("restore", "first", "a")
    assert (ran.code, ran.err.splitlines()[0]) == (1, "Error: Session a is alive (starting)")
    assert await statuses(desk) == {"a": "starting", "first": "exited"}


@pytest.mark.parametrize("arguments", [(), ("--all", "a"), ("a", "b", "--attach"), ("--all", "--attach")])
async def test_restore_takes_names_or_all(desk, session, arguments):
    assert (await desk.run("restore", *arguments)).code == 2


async def test_an_agent_restores_its_own_children_only(desk, session):
    mine = await lost(desk, "mine", parent=session)
    await lost(desk, "foreign")
    ran = await desk.run("restore", "--all", session=session)
    shown = ", in permission mode default: it asks again before it changes a file or runs a command"
    assert (ran.code, ran.err) == (0, f"restored mine ({mine}){shown}\n")
    assert (await statuses(desk))["foreign"] == "exited"


async def test_kill_ends_each_that_is_named_and_none_where_a_name_is_unknown(desk):
    ids = {name: await desk.api.new(name) for name in ("a", "b", "c")}
    ran = await desk.run("kill", "a", "nosuch", "b")
    assert (ran.code, ran.err.splitlines()[0]) == (1, "Error: Session nosuch not found")
    assert set((await statuses(desk)).values()) == {"starting"}
    ran = await desk.run("kill", "a", "b", ids["a"])
    assert (ran.code, ran.err) == (0, f"ended a ({ids['a']})\nended b ({ids['b']})\n")
    ran = await desk.run("kill", "a", "c", "--json")
    assert (ran.code, [view["name"] for view in ran.data["killed"]]) == (1, ["c"])
    assert [(refused["name"], refused["code"]) for refused in ran.data["refused"]] == [("a", "ended")]


async def test_a_child_that_went_with_its_parent_is_not_ended_twice(desk, session):
    kid = await desk.api.new("kid", parent=session)
    ran = await desk.run("kill", "a", "kid", "--children")
    assert (ran.code, sorted(ran.err.splitlines())) == (0, [f"ended a ({session})", f"ended kid ({kid})"])


async def test_an_agent_ends_its_own_children_only_also_of_several(desk, session):
    await desk.api.new("kid", parent=session)
    await desk.api.new("foreign")
    ran = await desk.run("kill", "kid", "foreign", "a", "--json", session=session)
    assert [view["name"] for view in ran.data["killed"]] == ["kid"]
    assert [refused["code"] for refused in ran.data["refused"]] == ["forbidden", "forbidden"]
    await asyncio.sleep(0)


async def test_a_client_that_is_just_ending_with_its_terminal_is_waited_for(desk, session):
    """Until it has ended it has its conversation open, and a second client on it would be refused."""
    client = await asyncio.create_subprocess_exec("sleep", "60")
    config = desk.root / "config"
    (config / "sessions").mkdir(parents=True)
    current = desk.api.engine.sessions.actors[session].session.conversation
    state = {"sessionId": current.id, "status": "idle", "procStart": start_time(client.pid)}
    (config / "sessions" / f"{client.pid}.json").write_text(json.dumps(state))
    await desk.api.call("DELETE", f"/sessions/{session}")
    gone = {"status": Status.EXITED, "detail": PANE_LOST, "failed_starts": (time.time(),)}
    await desk.api.alter(session, pid=client.pid, config=str(config), **gone)
    body = {"env": {"PATH": "/usr/bin:/bin"}}
    restored = asyncio.create_task(desk.api.call("POST", f"/sessions/{session}/restore", body=body))
    await asyncio.sleep(0.3)
    assert desk.api.engine.sessions.restoring == {session}
    client.kill()
    await client.wait()
    assert (await restored)[0] == 200
