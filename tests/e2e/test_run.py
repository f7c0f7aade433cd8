"""`sm run` on the real client, in a pseudo-terminal of its own; with a plugin in the client: `test_run_inside.py`."""

import asyncio
import os
import signal

import pytest

from sm.client import SmError
from sm.processes import alive
from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.foreground import BY_KEYS, Terminal, answered
from tests.e2e.people import AWOKE, DOCUMENT, GOES_ON, HANDED_OFF, WROTE, person_settings
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

TRUE = Call("Bash", command="true")
MODEL = ("--model", "claude-sonnet-4-5")
SMALL = ("--autocompact", "100k")
"""The client then compacts at 67,000 tokens (2.1.328)."""
HANDS_OFF = Turn("hand off", steps=[WROTE, HANDED_OFF, Say("Handed off.")])
FULL = "Context critically high"
NO_FORK = "[handoff]\nfork = false\n"
"""A fork holds the client for a while."""
SCRIPT = scenario(
    HANDS_OFF,
    GOES_ON,
    Turn("fill up", steps=[TRUE.but(context=150_000), *[TRUE] * 3, Say("Full.")]),
    Turn(context=FULL, steps=[WROTE, HANDED_OFF, Say("Handed off.")]),
    otherwise=Say("ok"),
)


def requests_with(rig, text):
    return [request for request in rig.model.main_requests if text in request.user_text]


async def rotated(rig, session, times=1):
    view = await rig.wait_view(
        session, lambda v: v["rotations"] == times and v["status"] == "idle", f"rotated {times} times and idle"
    )
    await asyncio.sleep(0.5)  # a second copy would come now
    return view


async def test_an_agent_that_is_told_of_its_full_context_goes_on_in_a_fresh_client_in_the_same_terminal():
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        with Terminal(rig, (*MODEL, "please fill up")) as terminal:
            session = await terminal.session()
            first = await rig.view(session)
            after = await rotated(rig, session)
            (wake,) = requests_with(rig, AWOKE)
            assert wake.user_text.strip() == f"Read {rig.project}/.sm/handoff.md and {AWOKE}."
            assert "=== HANDOFF LOADED (ID: HO-" in wake.all_text
            assert DOCUMENT.strip() in wake.all_text
            assert wake.model == "claude-sonnet-4-5"
            assert rig.model.main_requests[-1] is wake  # it has gone on at once, without a tool call
            assert after["past_conversations"] == [first["conversation"]]
            assert (after["id"], after["pane"]) == (session, None)
            assert after["pid"] != first["pid"]
            assert not alive(first["pid"])

            assert await terminal.quit() == 0
            assert terminal.modes == terminal.before
            assert terminal.erased(f"claude --resume {first['conversation']}")
            assert not terminal.erased(f"claude --resume {after['conversation']}")
            assert (await rig.view(session))["status"] == "exited"


async def test_an_agent_that_ignores_every_warning_goes_on_from_a_document_made_without_it():
    ignores = Turn("work", steps=[*[TRUE.but(context=90_000)] * 4, Say("Done with it.")])
    async with Rig(scenario(ignores, GOES_ON, otherwise=Say("ok")), config=BY_KEYS) as rig:
        with Terminal(rig, (*MODEL, *SMALL, "please work")) as terminal:
            session = await terminal.session()
            view = await rotated(rig, session)
            assert await rig.events(session, "CompactionStarted")
            assert not await rig.events(session, "CompactionEnded")
            assert [request for request in rig.model.main_requests if FULL in request.all_text]
            (wake,) = requests_with(rig, AWOKE)
            assert wake.user_text.strip() == f"Read {view['handoff']['copy']} and {AWOKE}."
            assert "Type: compaction" in wake.all_text
            assert "Done with it." in wake.all_text  # said after the client wanted to compact


@pytest.mark.soak
async def test_a_context_over_the_limit_of_the_api_is_compacted_and_its_document_kept():
    ignores = Turn("work", steps=[TRUE.but(context=190_000), Say("Done.")])
    async with Rig(scenario(ignores, GOES_ON, otherwise=Say("ok")), config=BY_KEYS) as rig:
        with Terminal(rig, (*MODEL, *SMALL, "please work")) as terminal:
            session = await terminal.session()
            await rig.wait_event(session, "CompactionEnded")
            view = await answered(rig, session)
            assert view["rotations"] == 0
            kept = [view for view in await rig.ask("GET", "/handoffs") if view["session"] == session]
            assert [(view["type"], view["state"]) for view in kept] == [("compaction", "active")]


@pytest.mark.parametrize(
    ("options", "config"), [(("--on-compact", "save"), NO_FORK), ((), NO_FORK + 'on_compact = "save"\n')]
)
@pytest.mark.soak
async def test_with_save_the_client_compacts_as_it_likes(options, config):
    ignores = Turn("work", steps=[*[TRUE.but(context=90_000)] * 2, Say("Done.")])
    async with Rig(scenario(ignores, GOES_ON, otherwise=Say("ok")), config=BY_KEYS + config) as rig:
        with Terminal(rig, (*MODEL, *SMALL, "please work"), options=options) as terminal:
            session = await terminal.session()
            await rig.wait_event(session, "CompactionEnded")
            assert (await rig.wait_status(session, "idle"))["rotations"] == 0


@pytest.mark.soak
async def test_two_in_one_project_do_not_touch_each_other():
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        with Terminal(rig, (*MODEL, "hello there"), options=("--name", "one")) as one:
            first = await one.session()
            before = await answered(rig, first)
            with Terminal(rig, (*MODEL, "please hand off"), options=("--name", "two")) as two:
                second = await two.session(besides=first)
                await rotated(rig, second)
                assert await two.quit() == 0
            after = await rig.view(first)
            assert (after["pid"], after["conversation"], after["status"]) == (
                before["pid"],
                before["conversation"],
                "idle",
            )
            assert one.process.poll() is None
            assert alive(before["pid"])


@pytest.mark.soak
async def test_the_persons_older_conversation_is_gone_on_with_once():
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        with Terminal(rig, (*MODEL, "remember the word quince")) as terminal:
            first = await answered(rig, await terminal.session())
            await terminal.quit()
        with Terminal(rig, (*MODEL, "--continue", "please hand off")) as terminal:
            session = await terminal.session(besides=first["id"])
            await rotated(rig, session)
            asked = next(request for request in rig.model.main_requests if "please hand off" in request.user_text)
            assert "quince" in asked.all_text
            (wake,) = requests_with(rig, AWOKE)
            assert "quince" not in wake.all_text
            assert first["conversation"] in (await rig.view(session))["past_conversations"]


EXITS = [(("--no-such-option",), 1), (("--version",), 0)]


@pytest.mark.parametrize(("arguments", "code"), EXITS)
@pytest.mark.often("arguments0-1")
async def test_the_exit_code_is_the_clients(arguments, code):
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        with Terminal(rig, arguments) as terminal:
            assert await terminal.ended() == code


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, 137), (signal.SIGHUP, 129)])
@pytest.mark.often("9-137")
async def test_a_client_that_is_killed_is_not_started_again_and_the_terminal_is_given_back(number, code):
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        with Terminal(rig, (*MODEL, "hello there")) as terminal:
            session = await terminal.session()
            view = await answered(rig, session)
            os.kill(view["pid"], number)
            assert await terminal.ended() == code
            assert terminal.modes == terminal.before
            assert terminal.switched_off
            await rig.wait_view(session, lambda v: v["status"] in {"exited", "crashed"}, "ended")
            assert len(await rig.events(session, "SessionLaunched")) == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.soak
async def test_a_signal_to_sm_run_ends_its_client(number, code):
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        with Terminal(rig, (*MODEL, "hello there")) as terminal:
            session = await terminal.session()
            view = await answered(rig, session)
            os.kill(terminal.process.pid, number)
            assert await terminal.ended() == code
            assert not alive(view["pid"])
            assert terminal.modes == terminal.before


@pytest.mark.soak
async def test_killing_the_session_ends_it_and_attaching_says_where_it_is():
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        with Terminal(rig, (*MODEL, "hello there")) as terminal:
            session = await terminal.session()
            view = await answered(rig, session)
            with pytest.raises(SmError, match="runs in a foreground terminal"):
                await rig.ask("GET", f"/sessions/{session}/attach")
            await rig.ask("DELETE", f"/sessions/{session}")
            assert await terminal.ended() == 143
            assert not alive(view["pid"])
            assert terminal.modes == terminal.before


async def test_a_message_waits_and_nothing_is_typed():
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        with Terminal(rig, (*MODEL, "hello there")) as terminal:
            session = await terminal.session()
            await answered(rig, session)
            await rig.ask("POST", f"/sessions/{session}/messages", {"text": "a note"})
            await asyncio.sleep(1)
            view = await rig.view(session)
            assert (view["queued"], view["status"]) == (1, "idle")
            assert len(rig.model.main_requests) == 1


@pytest.mark.soak
async def test_a_client_that_storms_is_left_as_it_is_and_the_person_is_told():
    reads = Call("Read", file_path=".sm/handoff.md")  # or the client lets nobody write over it
    storms = Turn(AWOKE, steps=[reads, WROTE, HANDED_OFF, Say("Handed off again.")])
    async with Rig(scenario(HANDS_OFF, storms, otherwise=Say("ok")), config=BY_KEYS) as rig:
        with Terminal(rig, (*MODEL, "please hand off"), options=("--max-restarts", "1")) as terminal:
            session = await terminal.session()
            view = await rig.wait_phase(session, "failed")
            assert view["rotations"] == 1
            assert "without progress" in view["handoff"]["note"]
            await rig.until(lambda: "this context stays" in terminal.plain, "told on the terminal")
            assert (await rig.wait_status(session, "idle"))["pid"] == view["pid"]
            terminal.type("still there\r")
            await rig.model.wait_for(lambda r: "still there" in r.user_text, within=20)


async def test_without_a_server_the_client_runs_all_the_same():
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        blocked = rig.root / "blocked"
        blocked.write_text("a file where the state directory should be")
        with Terminal(rig, (*MODEL, "hello there"), env={"SM_HOME": str(blocked)}) as terminal:
            await rig.model.wait_for(lambda r: "hello there" in r.user_text, within=20)
            assert "monitoring is off" in terminal.plain
            assert await terminal.quit() == 0


@pytest.mark.soak
async def test_where_no_server_runs_one_is_started_and_it_goes_on_without_us():
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        await rig.kill_server()
        with Terminal(rig, (*MODEL, "please hand off")) as terminal:
            await rig.model.wait_for(lambda r: AWOKE in r.user_text, within=30)
            assert "starting the sm server" in terminal.plain
            view = await rotated(rig, await terminal.session())
            assert view["rotations"] == 1
            assert await terminal.quit() == 0
        await rig.ask("POST", "/stop")


@pytest.mark.soak
async def test_a_session_killed_between_two_clients_starts_no_other():
    slow = {"hooks": [{"type": "command", "command": "sleep 1"}]}
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        person_settings(rig, hooks={"SessionEnd": [slow]})
        with Terminal(rig, (*MODEL, "please hand off")) as terminal:
            session = await terminal.session()
            await rig.wait_event(session, "RestartTaken")
            await rig.ask("DELETE", f"/sessions/{session}")
            await terminal.ended()
            assert not requests_with(rig, AWOKE)
            assert (await rig.view(session))["status"] == "exited"


@pytest.mark.soak
async def test_a_client_that_holds_on_is_killed_and_the_next_one_takes_over():
    slow = {"hooks": [{"type": "command", "command": "sleep 30", "timeout": 60}]}
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        person_settings(rig, hooks={"SessionEnd": [slow]})
        with Terminal(
            rig, (*MODEL, "please hand off"), env={"CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS": "30000"}
        ) as terminal:
            session = await terminal.session()
            first = await rig.view(session)
            await rotated(rig, session)
            assert not alive(first["pid"])
            assert len(requests_with(rig, AWOKE)) == 1
