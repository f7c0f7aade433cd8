"""Whoever is away is notified once, at an endpoint on this machine; whoever looks at the session is not."""

import asyncio
import json
import sqlite3
import sys
import time
from contextlib import closing

import pytest

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import (
    client_of_test,
    dialog,
    person_settings,
    refused_for_length,
    shell,
    shelled,
    submit,
)
from tests.e2e.rig import Rig
from tests.e2e.test_attach import Attached
from tests.e2e.test_usage_limit import HOUR, met, subscriber
from tests.notify.endpoint import Endpoint

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

POSTS = (
    "import sys, urllib.request as r; "
    "r.urlopen(r.Request(sys.argv[1], sys.stdin.buffer.read(), {'Content-Type': 'application/json'})).read()"
)
MANUAL = {"permissions": {"defaultMode": "default"}}
ASKS = Turn("work", steps=[Call("Bash", command="touch made", dangerouslyDisableSandbox=True), Say("Done.")])
SHOWN = {"claude": "❯ hello", "codex": "hello"}
"""Its first prompt, behind the client's sign where that is drawn together with it."""
SETTLE_S = 3.0
"""A second notification would have come by then: nothing waits longer than one second here."""


class Away(Endpoint):
    """Where a user is notified who is away."""

    @property
    def config(self):
        command = json.dumps([sys.executable, "-c", POSTS, self.url])
        return f"[notify]\nafter = 1\naway_after = 600\ncommand = {command}\n"

    def kinds(self):
        return [episode["kind"] for sent in self.taken for episode in sent["episodes"]]

    async def gets(self, rig, *kinds, session):
        """Exactly these, each once."""
        await rig.until(lambda: len(self.kinds()) >= len(kinds), f"{kinds}, {self.kinds()}")
        await asyncio.sleep(SETTLE_S)
        assert sorted(self.kinds()) == sorted(kinds)
        assert {episode["session"] for sent in self.taken for episode in sent["episodes"]} == {session}


def is_settled(rig, kind):
    """Whether the server sends nothing more of an episode that lasts: it was sent, or its user knows."""
    with closing(sqlite3.connect(f"file:{rig.home.database}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT sent FROM episodes WHERE kind = ?", (kind,)).fetchall() == [(1,)]


@pytest.fixture
def endpoint():
    with Away().listening() as found:
        yield found


@pytest.mark.not_in_terminal("its dialog opens only once sm has let go of its hook: see `test_codex_terminal.py`")
@pytest.mark.soak
async def test_an_open_dialog_is_sent_once_and_not_while_its_user_looks_at_it(endpoint):
    async with Rig(scenario(ASKS, otherwise=Say("ok")), config=endpoint.config) as rig:
        person_settings(rig, **MANUAL)
        session = await rig.new("hello")
        await rig.wait_event(session, "TurnEnded")
        await rig.wait_status(session, "idle")
        with Attached(rig, options=("attach", "a")) as terminal:
            await rig.until(lambda: SHOWN[client_of_test()] in terminal.plain, "the session on the terminal")
            await asyncio.sleep(1.5)  # tmux counts whole seconds: its start is surely before the dialog
            await rig.ask("POST", f"/sessions/{session}/messages", {"text": "work"})
            await rig.wait_status(session, "waiting")
            await asyncio.sleep(SETTLE_S)
            assert endpoint.kinds() == []
        await endpoint.gets(rig, "ask", session=session)
        assert endpoint.taken[0]["title"] == "sm: a waits for you"
        assert "sm approve " in endpoint.taken[0]["text"]
        assert f"{shell()}: {shelled('touch made')}" in endpoint.taken[0]["text"]
        await rig.kill_server()
        await rig.start_server()
        await rig.wait_status(session, "waiting")
        await endpoint.gets(rig, "ask", session=session)


DEVICE = "INSERT INTO devices VALUES ('1a2b3c4d', 'hash', 'phone', :now, :now, 0, NULL, :push)"
NO_SERVICE = {"endpoint": "https://localhost/x", "p256dh": "B" * 87, "auth": "a" * 22}


@pytest.mark.claude_only("no client is started")
async def test_a_device_that_is_notified_is_one_more_channel_of_a_server_that_starts_again(endpoint):
    async with Rig(scenario(otherwise=Say("ok")), config=endpoint.config) as rig:
        await rig.kill_server()
        with closing(sqlite3.connect(rig.home.database)) as connection, connection:
            connection.execute(DEVICE, {"now": time.time(), "push": json.dumps(NO_SERVICE)})
        await rig.start_server()
        found = {result["channel"]: result["problem"] for result in await rig.ask("POST", "/notifications/test")}
        assert set(found) == {"command", "push to phone (1a2b3c4d)"}
        assert found["command"] == ""
        assert found["push to phone (1a2b3c4d)"] != ""


@pytest.mark.soak
async def test_a_dialog_at_which_its_user_has_pressed_a_key_is_not_sent(endpoint):
    async with Rig(scenario(ASKS, otherwise=Say("ok")), config=endpoint.config) as rig:
        person_settings(rig, **MANUAL)
        session = await rig.new("work")
        with Attached(rig, options=("attach", "a")) as terminal:
            await rig.wait_status(session, "waiting")
            await asyncio.sleep(1.5)  # tmux counts whole seconds
            terminal.type("\x1b[B")
            await rig.until(lambda: is_settled(rig, "ask"), "the server has seen that key")
        await asyncio.sleep(SETTLE_S)
        assert endpoint.kinds() == []


@pytest.mark.not_in_terminal("its dialog opens only once sm has let go of its hook: see `test_codex_terminal.py`")
@pytest.mark.soak
async def test_a_dialog_that_is_answered_in_time_is_not_sent(endpoint):
    config = endpoint.config.replace("after = 1\n", "after = 8\n")
    async with Rig(scenario(ASKS, otherwise=Say("ok")), config=config) as rig:
        person_settings(rig, **MANUAL)
        session = await rig.new("work")
        await rig.wait_status(session, "waiting")
        await rig.wait_screen(session, dialog())
        while dialog() in rig.screen(session):  # the dialog is deaf at first
            rig.press(session, "Enter")
            await asyncio.sleep(0.5)
        await rig.wait_status(session, "idle")
        await asyncio.sleep(10)
        assert endpoint.kinds() == []


@pytest.mark.soak
async def test_a_crash_and_a_task_that_is_complete_are_sent_once_each(endpoint):
    done = Call("Bash", command="sm done 'all tests pass'")
    script = scenario(Turn("work", steps=[done, Say("Done.")]), otherwise=Say("ok"))
    async with Rig(script, config=endpoint.config) as rig:
        session = await rig.new("work")
        await endpoint.gets(rig, "finished", session=session)
        assert '"all tests pass"' in endpoint.taken[0]["text"]
        await rig.kill_client(session)
        await endpoint.gets(rig, "finished", "died", session=session)


@pytest.mark.soak
async def test_a_limit_and_its_end_are_sent_once_each(endpoint):
    refused = met(time.time() + HOUR)
    async with Rig(scenario(Turn("work", steps=[refused]), otherwise=refused), config=endpoint.config) as rig:
        subscriber(rig)
        session = await rig.new("work")
        await rig.wait_status(session, "limited")
        await endpoint.gets(rig, "limited", session=session)
        rig.model.play(Turn("Continue", steps=[Say("Done.")]))
        await submit(rig, session, "Continue the task")
        await endpoint.gets(rig, "limited", "resumed", session=session)


@pytest.mark.soak
async def test_a_client_that_refuses_to_continue_is_sent_once(endpoint):
    script = scenario(Turn("work", steps=refused_for_length(Say("no"))))
    async with Rig(script, config=endpoint.config) as rig:
        session = await rig.new("work", DISABLE_AUTO_COMPACT="1")
        await rig.wait_status(session, "blocked")
        await endpoint.gets(rig, "blocked", session=session)
        await rig.kill_server()
        await rig.start_server()
        await rig.wait_view(session, lambda view: view["status"] == "blocked", "seen by the next server")
        await endpoint.gets(rig, "blocked", session=session)


@pytest.mark.soak
async def test_a_message_that_expires_is_sent_once(endpoint):
    script = scenario(Turn("work", steps=[Call("Bash", command="sleep 12"), Say("Done.")]), otherwise=Say("ok"))
    async with Rig(script, config=endpoint.config) as rig:
        session = await rig.new("work", "--allowedTools", "Bash")
        await rig.wait_status(session, "working")
        body = {"text": "too late", "expires": 1}
        sent = await rig.ask("POST", f"/sessions/{session}/messages", body)
        await endpoint.gets(rig, "undelivered", session=session)
        assert sent["id"] in endpoint.taken[0]["text"]


@pytest.mark.soak
async def test_a_compaction_before_a_handoff_is_sent_once(endpoint):
    from tests.e2e.test_context_on_the_client import works

    script = scenario(works(50_000, 68_000, 69_000), otherwise=Say("ok"), growth=100)
    config = "[handoff]\nfork = false\n" + endpoint.config
    async with Rig(script, model_name="claude-opus-5-5", config=config) as rig:
        session = await rig.new("work", "--autocompact", "100k")
        await rig.wait_view(session, lambda view: view["handoffs_too_late"] == 1, "noticed")
        await rig.wait_status(session, "idle")

        def each_is_sent():  # the client may compact again behind the first one
            return len(endpoint.kinds()) == rig.call("GET", f"/sessions/{session}")["handoffs_too_late"]

        await rig.until(each_is_sent, "a notification for each")
        await asyncio.sleep(SETTLE_S)
        await rig.until(each_is_sent, "a notification for each")
        assert set(endpoint.kinds()) == {"too_late"}


@pytest.mark.soak
async def test_a_handoff_that_waits_for_its_user_is_sent_once(endpoint):
    from tests.e2e.test_inside import WAKE
    from tests.e2e.test_loop_guard import HANDS_OFF

    steps = [HANDS_OFF, Say("Handed off.")]
    script = scenario(Turn("hand off", steps=steps), Turn(WAKE, steps=steps), otherwise=Say("ok"))
    config = '[claude]\ndriver = "mod"\n[handoff]\nmin_growth = 0\n' + endpoint.config
    async with Rig(script, config=config, guarded=True) as rig:
        session = await rig.new("please hand off")
        for count in range(1, 4):
            await rig.wait_view(session, lambda view, count=count: view["rotations"] >= count, f"rotated {count} times")
        await rig.wait_view(session, lambda view: view["loop_guard"]["paused"], "paused")
        await endpoint.gets(rig, "rotation_failed", session=session)


@pytest.mark.soak
async def test_a_test_reaches_the_endpoint_and_says_which_channel_fails(endpoint):
    config = endpoint.config + 'terminal = "osc9"\n'
    async with Rig(scenario(otherwise=Say("ok")), config=config) as rig:
        await rig.new("hello")
        ran = await asyncio.to_thread(rig.sm, "notify", "test")
        assert ran.stdout == "command: sent\nterminal (osc9): failed\n"
        assert ran.stderr == "no terminal is attached to a session of sm\n"
        assert [sent["title"] for sent in endpoint.taken] == ["sm: test"]
        with Attached(rig, options=("attach", "a")) as terminal:
            await rig.until(lambda: SHOWN[client_of_test()] in terminal.plain, "the session on the terminal")
            ran = await asyncio.to_thread(rig.sm, "notify", "test")
            assert ran.stdout == "command: sent\nterminal (osc9): sent\n"
            await rig.until(lambda: b"\x1b]9;sm: test" in bytes(terminal.got), "the notification in the terminal")
