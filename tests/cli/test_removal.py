"""`sm rm` and `sm prune`: what leaves the list, what stays, and that nothing goes without a name or an answer."""

import os
import pty
import time

import pytest

from sm.core.model.session import Status
from sm.core.rules.session.status import PANE_LOST
from sm.store.database import Database
from sm.store.sessions import SqliteStore

DAY = 86_400


async def ended(desk, name, days=2.0, **more):
    session = await desk.api.new(name)
    await desk.api.call("DELETE", f"/sessions/{session}")
    await desk.api.alter(session, last_activity=time.time() - days * DAY, **more)
    return session


async def names(desk):
    return {view["name"] for view in (await desk.run("list", "--json")).data}


async def stored(desk):
    """What the next server would load."""
    async with await Database.open(desk.api.home.database) as database:
        return {session.name for session in await SqliteStore(database, desk.api.clock).sessions()}


async def test_rm_removes_what_is_named_for_good(desk, session):
    old, other = await ended(desk, "old"), await ended(desk, "other")
    ran = await desk.run("rm", "old", other[:6])
    assert (ran.code, ran.err) == (0, f"removed old ({old})\nremoved other ({other})\n")
    assert await names(desk) == await stored(desk) == {"a"}
    assert (await desk.run("restore", old)).err == f"Error: Session {old} not found\nhint: sm list shows the sessions\n"
    assert (await desk.api.call("GET", "/health"))[1]["sessions"] == 1


async def test_rm_leaves_everything_where_a_name_means_nothing(desk):
    await ended(desk, "old")
    assert (await desk.run("rm", "old", "nosuch")).code == 1
    assert (await desk.run("rm")).code == 2
    assert await names(desk) == {"old"}


async def test_what_lives_and_what_has_living_children_is_not_removed(desk, session):
    boss = await ended(desk, "boss")
    await desk.api.new("kid", parent=boss)
    ran = await desk.run("rm", "a", "boss", "--json")
    assert (ran.code, [refused["code"] for refused in ran.data["refused"]]) == (1, ["alive", "alive"])
    assert "living children: kid" in ran.data["refused"][1]["error"]
    await ended(desk, "old")
    for needed in ("a", "boss"):
        assert (await desk.run("rm", "old", needed)).code == 1
    assert await names(desk) == {"a", "boss", "kid", "old"}


async def test_rm_asks_before_it_removes_what_was_lost(desk):
    await ended(desk, "lost", status=Status.EXITED, detail=PANE_LOST, failed_starts=(time.time(),))
    ran = await desk.run("rm", "lost")
    assert (ran.code, ran.err.splitlines()[0]) == (2, "lost: lost, and sm restore would restart it")
    assert (await desk.run("rm", "lost", "--json")).code == 2
    assert await names(desk) == {"lost"}
    assert (await desk.run("rm", "lost", "--yes")).code == 0
    assert await names(desk) == set()


async def test_what_waits_for_a_removed_session_is_over(desk, session):
    old = await ended(desk, "old")
    store = desk.api.engine.sessions.store
    sent = (await desk.api.call("POST", f"/sessions/{session}/messages", body={"text": "x"}))[1]["id"]
    await store.database.run(lambda db: db.execute("UPDATE messages SET target = ? WHERE id = ?", (old, sent)))
    await desk.api.engine.reminders.track(session, old, 600.0)
    await desk.api.engine.reminders.remind(old, 600.0, "look", every=False)
    assert (await desk.run("rm", "old")).code == 0
    row = await store.message(sent)
    assert (row["state"], row["reason"]) == ("failed", "the session was removed")
    assert await store.reminders() == []
    assert desk.api.engine.reminders.owned(session) == []
    assert (await desk.api.call("GET", f"/sessions/{session}/reminders"))[1] == []


async def test_the_pane_of_a_client_that_has_ended_goes_with_its_session(desk, session):
    await desk.api.alter(session, status=Status.CRASHED, detail="the client has ended (exit code 1)")
    panes = desk.api.engine.ports.panes
    assert [status.session for status in panes.living.values()] == [session]
    assert (await desk.run("rm", "a", "--yes")).code == 0
    assert not panes.living


async def test_prune_asks_and_keeps_what_is_lost_recent_or_alive(desk, session):
    old = await ended(desk, "old")
    await ended(desk, "recent", days=0.5)
    await ended(desk, "lost", status=Status.EXITED, detail=PANE_LOST, failed_starts=(time.time() - 2 * DAY,))
    boss = await ended(desk, "boss")
    await desk.api.new("kid", parent=boss)
    ran = await desk.run("prune")
    assert (ran.code, "old" in ran.out, "run it again with --yes" in ran.err) == (2, True, True)
    ran = await desk.run("prune", "--dry-run")
    assert (ran.code, ran.err) == (0, "nothing removed\n")
    assert not {"recent", "lost", "boss", "kid"} & set(ran.out.split())
    assert (await desk.run("prune", "--json")).code == 2
    assert [view["id"] for view in (await desk.run("prune", "--json", "--dry-run")).data["would_remove"]] == [old]
    assert "old" in await names(desk)
    ran = await desk.run("prune", "--yes")
    assert (ran.code, ran.err) == (0, f"removed old ({old})\n")
    assert await names(desk) == await stored(desk) == {"a", "recent", "lost", "boss", "kid"}
    hint = "hint: sm prune --older-than 0s includes what has just ended\n"
    assert (await desk.run("prune", "--yes")).err == f"nothing to remove\n{hint}"
    ran = await desk.run("prune", "--older-than", "0s", "--yes", "--json")
    assert [gone["name"] for gone in ran.data["removed"]] == ["recent"]
    assert "what was lost stays: sm restore --all" in (await desk.run("prune", "--yes")).err


@pytest.mark.parametrize(("answer", "left"), [("n", {"old"}), ("", {"old"}), ("y", set())])
async def test_only_a_yes_removes(desk, answer, left):
    await ended(desk, "old")
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    process = await desk.start("prune", stdin=theirs)
    _, words = await process.communicate()
    os.close(ours)
    os.close(theirs)
    assert b"Remove this session?" in words
    assert await names(desk) == left


@pytest.mark.parametrize("arguments", [("rm", "old"), ("prune", "--yes")])
async def test_an_agent_removes_nothing(desk, session, arguments):
    old = await ended(desk, "old", parent=session)
    ran = await desk.run(*arguments, session=session)
    assert (ran.code, ran.err.splitlines()[0]) == (1, "Error: A session may not remove sessions")
    status, body = await desk.api.call("POST", f"/sessions/{old}/remove", desk.api.tokens[session])
    assert (status, body["code"]) == (403, "forbidden")
    assert "old" in await names(desk)
