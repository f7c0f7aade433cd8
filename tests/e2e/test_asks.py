"""What the real client asks its user, answered from elsewhere: no key is pressed, and the first answer counts."""

import asyncio
import json
import sys
from dataclasses import dataclass

import pytest

from sm.core.errors import SmError
from sm.testing.scenario import Call, Say, Together, Turn, scenario
from tests.e2e.people import Person, dialog, person_settings, question_tool, reason_read, shell, shelled
from tests.e2e.rig import Rig

IN_TERMINAL = "its dialog opens only once sm has let go of its hook: see `test_codex_terminal.py`"
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180), pytest.mark.not_in_terminal(IN_TERMINAL)]
MANUAL = {"permissions": {"defaultMode": "default"}}
TOUCH = Call("Bash", command="touch asked-for", description="make a file", dangerouslyDisableSandbox=True)
COLOURS = {
    "question": "Which colour?",
    "header": "Colour",
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
    "multiSelect": False,
}
ASK = Call("AskUserQuestion", questions=[COLOURS])


def asks(*steps, **more):
    return Rig(scenario(Turn("go", steps=[*steps, Say("done")]), otherwise=Say("ok")), **more)


async def asked(rig, count=1, **values):
    """The asks that are open, once there are so many."""
    found = []

    def there():
        found[:] = [ask for ask in rig.call("GET", "/asks") if ask["state"] == "open"]
        return len(found) == count

    await rig.until(there, f"{count} asks")
    return found


async def the_ask(rig):
    return (await asked(rig))[0]


async def ended(rig, session):
    """The turn is over; the result that the model was told of its call."""
    await rig.wait_event(session, "TurnEnded")
    return rig.model.main_requests[-1].tool_results[-1]


@pytest.mark.codex_too
async def test_a_permission_is_allowed_from_a_shell(driver):
    async with asks(TOUCH) as rig:
        person_settings(rig, **MANUAL)
        session = await rig.new("go")
        ask = await the_ask(rig)
        assert (ask["kind"], ask["tool"], ask["input"]["command"]) == (
            "permission",
            shell(),
            shelled("touch asked-for"),
        )
        await rig.wait_screen(session, dialog())
        listed = rig.sm("asks").stdout
        assert f"command: {shelled('touch asked-for')}" in listed
        done = rig.sm("approve", ask["id"][:4])
        assert (done.returncode, done.stdout) == (0, f"{ask['id']} allowed (a, {shell()})\n")
        assert not (await ended(rig, session)).is_error
        assert (rig.project / "asked-for").exists()
        after = await rig.ask("GET", f"/asks/{ask['id']}")
        assert (after["state"], after["decision"], after["by"]) == ("answered", "allow", "")
        assert await rig.ask("GET", "/asks") == []
        late = rig.sm("deny", ask["id"], "no")
        assert (late.returncode, "was allowed already" in late.stderr) == (1, True)


@pytest.mark.soak
async def test_a_permission_is_denied_with_a_reason_that_the_agent_reads(driver):
    async with asks(TOUCH) as rig:
        person_settings(rig, **MANUAL)
        session = await rig.new("go")
        ask = await the_ask(rig)
        assert rig.sm("deny", ask["id"], "no:", "use", "make").returncode == 0
        result = await ended(rig, session)
        assert result.is_error or "rejected by user" in result.text
        assert "no: use make" in reason_read(result, rig.model.main_requests[-1])
        assert not (rig.project / "asked-for").exists()


@pytest.mark.soak
async def test_what_is_allowed_for_always_is_not_asked_again(driver):
    again = TOUCH.but()
    async with asks(TOUCH, again) as rig:
        person_settings(rig, **MANUAL)
        session = await rig.new("go")
        ask = await the_ask(rig)
        assert ask["always"], ask
        shown = rig.sm("asks", ask["id"]).stdout
        assert f"with --always it also {ask['always'][0]}" in shown
        assert rig.sm("approve", ask["id"], "--always").returncode == 0
        assert not (await ended(rig, session)).is_error
        assert len(rig.model.main_requests) == 3
        assert len(await rig.events(session, "AskOpened")) == 1


@pytest.mark.parametrize(("given", "answer"), [(["--choice", "2"], "Blue"), (["none", "of", "them"], "none of them")])
@pytest.mark.often("given0-Blue")
async def test_a_question_is_answered_by_choice_and_in_own_words(driver, given, answer):
    async with asks(ASK) as rig:
        session = await rig.new("go", *question_tool())
        ask = await the_ask(rig)
        assert (ask["kind"], ask["questions"][0]["text"]) == ("question", "Which colour?")
        assert (await rig.view(session))["detail"] == "asks a question"
        assert "2. Blue - cold" in rig.sm("asks").stdout
        assert rig.sm("answer", ask["id"], *given).returncode == 0
        result = await ended(rig, session)
        assert answer in result.text, result


@pytest.mark.claude_only("it asks for no approval of a plan: its plan mode ends by its user's next prompt")
@pytest.mark.soak
async def test_a_plan_is_sent_back_and_the_next_one_approved(driver):
    wrote = Call("Write", file_path="{{file}}", content="# Plan\n\nMake a file.")
    leaves = Call("ExitPlanMode")
    steps = [wrote, leaves, leaves, Say("done")]
    script = scenario(Turn("go", anywhere=r"(?P<file>/[^\s`]*/plans/[^\s`]+\.md)", steps=steps), otherwise=Say("ok"))
    async with Rig(script) as rig:
        session = await rig.new("go", "--permission-mode", "plan")
        first = await the_ask(rig)
        assert (first["kind"], first["input"]["plan"]) == ("plan", "# Plan\n\nMake a file.")
        assert "plan: # Plan" in rig.sm("asks").stdout
        assert rig.sm("deny", first["id"], "name", "the", "file").returncode == 0
        second = await the_ask(rig)
        assert "name the file" in rig.model.main_requests[-1].tool_results[-1].text
        assert rig.sm("approve", second["id"]).returncode == 0
        result = await ended(rig, session)
        assert "User has approved your plan" in result.text


@pytest.mark.soak
async def test_the_person_at_the_terminal_is_first(driver):
    async with asks(TOUCH) as rig:
        person_settings(rig, **MANUAL)
        session = await rig.new("go")
        ask = await the_ask(rig)
        await rig.wait_screen(session, dialog())
        await asyncio.sleep(1.0)  # the dialog is deaf at first, and a state file younger than this decides nothing
        rig.press(session, "Enter")
        assert not (await ended(rig, session)).is_error
        assert await over(rig, ask) == ("withdrawn", "answered or left in its terminal")
        assert rig.sm("deny", ask["id"], "no").returncode == 1
        assert (rig.project / "asked-for").exists()


async def over(rig, ask):
    view = {}

    def is_over():
        view.update(rig.call("GET", f"/asks/{ask['id']}"))
        return view["state"] != "open"

    await rig.until(is_over, "the ask is over")
    return view["state"], view["reason"]


@pytest.mark.parametrize("driver", ["mod"], indirect=True)
@pytest.mark.soak
async def test_of_two_asks_at_once_the_one_that_was_answered_in_the_terminal_is_over(driver, tmp_path):
    """What may run side by side is asked at once, the dialogs show one after the other, and no hook is let go of."""
    for name in "ab":
        (tmp_path / name).write_text(name)
    reads = [Call("Read", file_path=str(tmp_path / name)) for name in "ab"]
    async with asks(Together(*reads)) as rig:
        person_settings(rig, **MANUAL)
        session = await rig.new("go")
        one, two = await asked(rig, 2)
        await rig.wait_screen(session, f"Read({one['input']['file_path']})")
        await asyncio.sleep(1.0)
        rig.press(session, "Enter")
        await rig.wait_screen(session, f"Read({two['input']['file_path']})")
        await asyncio.sleep(1.0)
        assert rig.sm("deny", one["id"], "no").returncode == 1
        assert await over(rig, one) == ("withdrawn", "answered or left in its terminal")
        assert rig.sm("deny", two["id"], "not", "b").returncode == 0
        assert "not b" in (await ended(rig, session)).text


@pytest.mark.soak
async def test_escape_in_the_terminal_withdraws_the_ask(driver):
    async with asks(TOUCH) as rig:
        person_settings(rig, **MANUAL)
        session = await rig.new("go")
        ask = await the_ask(rig)
        await rig.wait_screen(session, dialog())
        await asyncio.sleep(1.0)
        rig.press(session, "Escape")
        assert (await over(rig, ask))[0] == "withdrawn"
        await rig.wait_status(session, "idle")


@pytest.mark.soak
async def test_killing_the_session_withdraws_the_ask(driver):
    async with asks(TOUCH) as rig:
        person_settings(rig, **MANUAL)
        session = await rig.new("go")
        ask = await the_ask(rig)
        await rig.ask("DELETE", f"/sessions/{session}")
        assert await over(rig, ask) == ("withdrawn", "the session was killed")


@pytest.mark.soak
async def test_a_server_that_is_killed_leaves_the_dialog_and_says_what_can_still_be_answered(driver):
    """By the plugin the client asks the next server; a hook over http is gone, and the terminal is what is left."""
    async with asks(TOUCH) as rig:
        person_settings(rig, **MANUAL)
        session = await rig.new("go")
        ask = await the_ask(rig)
        await rig.wait_screen(session, dialog())
        await rig.kill_server()
        await rig.start_server()
        assert dialog() in rig.screen(session)
        if driver != "keys":
            again = await the_ask(rig)
            assert again["id"] == ask["id"]
            assert again["input"] == ask["input"]
            assert rig.sm("approve", ask["id"]).returncode == 0
        else:
            assert await over(rig, ask) == ("expired", "the server was restarted")
            late = rig.sm("approve", ask["id"])
            assert (late.returncode, "sm attach a" in late.stderr) == (1, True)
            assert "answer it there: sm attach a" in rig.sm("asks").stdout
            await asyncio.sleep(1.0)
            rig.press(session, "Enter")
        assert not (await ended(rig, session)).is_error
        expected = "withdrawn" if driver == "keys" else "answered"
        await rig.until(lambda: rig.call("GET", f"/asks/{ask['id']}")["state"] == expected, expected)


def footer(rig, session):
    modes = {"plan mode on": "plan", "accept edits on": "acceptEdits", "manual mode on": "default"}
    return next((mode for words, mode in modes.items() if words in rig.screen(session)), "")


async def restored(rig, session):
    await rig.kill_client(session)
    await rig.wait_status(session, "crashed")
    await rig.ask("POST", f"/sessions/{session}/restore", {"env": rig.env})
    view = await rig.wait_status(session, "idle")
    await rig.until(lambda: footer(rig, session) != "", "the client says its mode")
    return view["mode"]


@pytest.mark.soak
@pytest.mark.parametrize("driver", ["mod"], indirect=True)
async def test_a_session_whose_plan_was_approved_is_restored_in_the_mode_that_its_arguments_say():
    wrote = Call("Write", file_path="{{file}}", content="# Plan")
    steps = [wrote, Call("ExitPlanMode"), Say("done")]
    script = scenario(Turn("go", anywhere=r"(?P<file>/[^\s`]*/plans/[^\s`]+\.md)", steps=steps), otherwise=Say("ok"))
    async with Rig(script) as rig:
        session = await rig.new("go", "--permission-mode", "plan")
        assert rig.sm("approve", (await the_ask(rig))["id"]).returncode == 0
        await rig.until(lambda: footer(rig, session) == "default", "out of plan mode")
        assert await restored(rig, session) == "plan" == footer(rig, session)


@pytest.mark.soak
@pytest.mark.parametrize("driver", ["mod"], indirect=True)
async def test_a_session_that_was_killed_is_restored_in_the_mode_that_its_transcript_noted_last():
    """Its client had moved on to plan mode, and resumes in the one before."""
    async with Rig(scenario(otherwise=Say("ok"))) as rig:
        person_settings(rig, **MANUAL)
        session = await rig.new("go")
        await rig.wait_event(session, "TurnEnded")
        for mode in ("acceptEdits", "plan"):
            rig.press(session, "BTab")
            await rig.until(lambda mode=mode: footer(rig, session) == mode, mode)
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "hello"})
        await rig.wait_event(session, "TurnEnded", 2)
        assert (await rig.view(session))["mode"] == "plan"
        assert await restored(rig, session) == footer(rig, session)


DIES_WITH_THE_ANSWER = """
import os
from sm.cli import main
from sm.engine.asks import Asks

heard = Asks.heard

def dies(self, before, after, event):
    if type(event).__name__ == "AskAnswered":
        os._exit(9)
    heard(self, before, after, event)

Asks.heard = dies
main()
"""
"""A server that ends once an answer is on disk, and before anybody has it."""


@dataclass
class DyingRig(Rig):
    dies: bool = True

    def server_command(self):
        return [sys.executable, "-c", DIES_WITH_THE_ANSWER, "server", "run"] if self.dies else None


@pytest.mark.soak
async def test_an_answer_that_was_lost_with_the_server_is_given_again_or_said_to_be_lost(driver):
    """The plugin asks the next server, which has the words on record; a hook over http asks once."""
    async with DyingRig(scenario(Turn("go", steps=[ASK, Say("done")]), otherwise=Say("ok"))) as rig:
        session = await rig.new("go", *question_tool())
        ask = await the_ask(rig)
        await rig.wait_screen(session, COLOURS["question"])
        assert rig.sm("answer", ask["id"], "none", "of", "them").returncode == 2
        await asyncio.to_thread(rig.server.wait)
        rig.dies = False
        await rig.start_server()
        if driver != "keys":
            assert "none of them" in (await ended(rig, session)).text
            assert (await rig.ask("GET", f"/asks/{ask['id']}"))["state"] == "answered"
            return
        assert rig.call("GET", f"/asks/{ask['id']}")["state"] == "answered"
        await rig.until(lambda: rig.call("GET", f"/asks/{ask['id']}")["state"] == "expired", "the answer is lost")
        assert "the answer did not reach the client; answer it there: sm attach a" in rig.sm("asks").stdout
        assert COLOURS["question"] in rig.screen(session)
        rig.press(session, "Enter")
        assert "Red" in (await ended(rig, session)).text
        await rig.until(lambda: rig.call("GET", f"/asks/{ask['id']}")["state"] == "withdrawn", "it is over")


@pytest.mark.soak
async def test_three_agents_ask_at_once_and_each_gets_its_own_answer(driver):
    async with asks(TOUCH) as rig:
        person_settings(rig, **MANUAL)
        sessions = [await rig.new("go", name=name) for name in "abc"]
        found = {ask["session"]: ask["id"] for ask in await asked(rig, 3)}
        assert set(found) == set(sessions)
        assert rig.sm("deny", found[sessions[0]], "not", "a").returncode == 0
        assert rig.sm("approve", found[sessions[1]]).returncode == 0
        assert rig.sm("deny", found[sessions[2]], "not", "c").returncode == 0
        for session in sessions:
            await rig.wait_event(session, "TurnEnded")
        told = [reason_read(result, request) for request in rig.model.main_requests for result in request.tool_results]
        assert sorted(any(word in text for text in told) for word in ("not a", "not c")) == [True, True]
        assert (rig.project / "asked-for").exists()


@pytest.mark.soak
async def test_no_way_of_speaking_to_a_session_presses_a_key_while_its_dialog_is_open(driver):
    async with asks(TOUCH) as rig:
        person_settings(rig, **MANUAL)
        session = await rig.new("go")
        ask = await the_ask(rig)
        await rig.wait_screen(session, dialog())
        before = rig.screen(session)
        for mode in ("sequential", "important", "urgent"):
            await rig.ask("POST", f"/sessions/{session}/messages", {"text": f"1 {mode}", "mode": mode})
        with_command = {"text": "/compact", "command": True}
        await rig.ask("POST", f"/sessions/{session}/messages", with_command)
        document = rig.project / "h.md"
        document.write_text("# Goal\n")
        await rig.ask(
            "POST", f"/sessions/{session}/handoff", {"requester_session_id": session, "file_path": str(document)}
        )
        await rig.ask("POST", f"/sessions/{session}/clear", {"prompt": "2"})
        await asyncio.sleep(3.0)
        assert rig.screen(session) == before
        assert (rig.project / "asked-for").exists() is False
        assert [one["id"] for one in await asked(rig)] == [ask["id"]]


async def test_an_agent_cannot_allow_what_its_own_client_asks(driver):
    """The hostile agent has its token, and every route of the API."""
    async with asks(TOUCH) as rig:
        person_settings(rig, **MANUAL)
        session = await rig.new("go")
        ask = await the_ask(rig)
        agent = await rig.asking_as(session)
        for method, path, body in (
            ("GET", "/asks", None),
            ("GET", f"/asks/{ask['id']}", None),
            ("POST", f"/asks/{ask['id']}", {"decision": "allow"}),
        ):
            with pytest.raises(SmError) as refused:
                await agent(method, path, body)
            assert refused.value.refused.code in {"forbidden", "outside"}, json.dumps(body)
        assert [one["id"] for one in await asked(rig)] == [ask["id"]]
        assert not (rig.project / "asked-for").exists()


BY_COMMAND = '[hooks]\ntransport = "command"\n'


@pytest.mark.claude_only("the app-server sends no hooks")
@pytest.mark.soak
async def test_a_command_hook_waits_as_well(driver):
    async with asks(TOUCH, config=BY_COMMAND) as rig:
        person_settings(rig, **MANUAL)
        session = await rig.new("go")
        ask = await the_ask(rig)
        await asyncio.sleep(3.0)  # longer than any other hook waits
        assert rig.sm("approve", ask["id"]).returncode == 0
        assert not (await ended(rig, session)).is_error


AGENT = Call("Agent", description="look around", prompt="sub work", subagent_type="general-purpose")


def asks_through_a_subagent():
    script = scenario(
        Turn("sub work", steps=[TOUCH, Say("sub done")]),
        Turn("go", steps=[AGENT, Say("started")]),
        otherwise=Say("ok"),
    )
    return Rig(script)


@pytest.mark.soak
async def test_what_a_subagent_in_the_background_asks_is_answered_from_elsewhere(driver):
    """Its client shows no dialog while `sm` is asked (2.1.328): it stays open until somebody answers, or is there.

    Codex shows it in the view of the subagent alone (0.171.0).
    """
    async with asks_through_a_subagent() as rig:
        person_settings(rig, **MANUAL)
        session = await rig.new("go")
        ask = await the_ask(rig)
        await rig.wait_event(session, "TurnEnded")
        await asyncio.sleep(2.5)  # longer than any dialog takes to open
        assert [one["id"] for one in await asked(rig)] == [ask["id"]]
        assert dialog() not in rig.screen(session)
        view = await rig.view(session)
        assert (view["status"], view["detail"]) == ("waiting", f"a subagent asks for permission: {shell()}")
        assert rig.sm("approve", ask["id"]).returncode == 0
        await rig.until((rig.project / "asked-for").exists, "it was allowed")
        assert (await rig.ask("GET", f"/asks/{ask['id']}"))["state"] == "answered"
        await rig.wait_status(session, "idle")


@pytest.mark.soak
async def test_what_a_subagent_asks_outlives_a_server_that_is_killed(driver):
    """As with what an agent asks itself: all but a hook over http asks the next server."""
    async with asks_through_a_subagent() as rig:
        person_settings(rig, **MANUAL)
        session = await rig.new("go")
        ask = await the_ask(rig)
        await rig.wait_event(session, "TurnEnded")
        await rig.kill_server()
        await rig.start_server()
        if driver == "keys":
            assert await over(rig, ask) == ("expired", "the server was restarted")
            return
        again = await the_ask(rig)
        assert (again["id"], again["input"]) == (ask["id"], ask["input"])
        assert rig.sm("approve", ask["id"]).returncode == 0
        await rig.until((rig.project / "asked-for").exists, "it was allowed")
        await rig.wait_status(session, "idle")


@pytest.mark.claude_only("its screen shows a subagent's dialog only in the view of that subagent")
@pytest.mark.soak
async def test_what_a_subagent_in_the_background_asks_is_left_to_the_user_at_the_terminal(driver):
    async with asks_through_a_subagent() as rig:
        person_settings(rig, **MANUAL)
        session = await rig.new("go")
        ask = await the_ask(rig)
        await rig.wait_event(session, "TurnEnded")
        with Person(rig, session):
            await rig.wait_screen(session, dialog())
            late = rig.sm("approve", ask["id"])
            assert (late.returncode, "answer it in its dialog" in late.stderr) == (1, True)
            assert (await rig.view(session))["status"] == "waiting"
            await asyncio.sleep(0.5)  # a dialog is deaf at first
            rig.press(session, "Enter")
            await rig.until((rig.project / "asked-for").exists, "it was allowed")
            await rig.until(lambda: rig.call("GET", f"/asks/{ask['id']}")["state"] == "withdrawn", "it is over")


@pytest.mark.claude_only("its subagents all work in the background")
@pytest.mark.soak
@pytest.mark.parametrize("by", ["sm", "keyboard"])
async def test_what_a_subagent_in_the_foreground_asks_has_its_dialog_as_any(driver, by):
    async with asks_through_a_subagent() as rig:
        person_settings(rig, **MANUAL)
        session = await rig.new("go", CLAUDE_CODE_DISABLE_BACKGROUND_TASKS="1")
        ask = await the_ask(rig)
        await rig.wait_screen(session, dialog())
        await asyncio.sleep(2.0)
        assert [one["id"] for one in await asked(rig)] == [ask["id"]]
        if by == "sm":
            assert rig.sm("approve", ask["id"]).returncode == 0
        else:
            rig.press(session, "Enter")
        await rig.wait_event(session, "TurnEnded")
        assert (rig.project / "asked-for").exists()
        ended = "answered" if by == "sm" else "withdrawn"
        await rig.until(lambda: rig.call("GET", f"/asks/{ask['id']}")["state"] == ended, f"it is {ended}")
