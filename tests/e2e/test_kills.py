"""SIGKILL of server and of client in every phase of a rotation, on the real client."""

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest

from sm.engine.termination import GRACE_S
from sm.processes import alive
from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import AWOKE, person_settings
from tests.e2e.rig import PATIENCE, Rig, processes_below

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

DOCUMENT = "# Handoff\nThe goal is G.\nNext step: N.\n"
NOTE = "a note for the new context"


def script():
    hand_off = [
        Call("Write", file_path=".sm/handoff.md", content=DOCUMENT),
        Call("Bash", command="sm handoff .sm/handoff.md"),
        Say("Handed off.", delay=0.3),
    ]
    return scenario(
        Turn("hand off", steps=hand_off),
        Turn(AWOKE, steps=[Say("Going on.", delay=0.2)]),
        otherwise=Say("ok"),
    )


PHASES = {
    "pending": "kind = 'HandoffRequested'",
    "reserved": "kind = 'TurnEnded'",
    "snapshot": "kind = 'ComposerReady' AND json_extract(data, '$.step') > 2",
    "clearing": "kind = 'SnapshotTaken'",
    "cleared": "kind = 'ConversationEnded'",
    "empty": "kind = 'ConversationStarted' AND json_extract(data, '$.origin') = 'clear'",
    "prompting": "kind = 'ComposerReady' AND json_extract(data, '$.step') > 5",
    "done": "kind = 'PromptSubmitted' AND json_extract(data, '$.text_size') > 40",
}
"""The event that begins each phase, as the database shows it."""


async def started(rig):
    session = await rig.new("please hand off")
    await rig.wait_event(session, "PromptSubmitted")
    await rig.ask("POST", f"/sessions/{session}/messages", {"text": NOTE})
    return session


async def reached(rig, phase):
    """Codex in its terminal says nothing as it leaves a thread."""
    tells = "clearing" if phase == "cleared" and rig.terminal else phase
    await rig.recorded(PHASES[tells])


def requests_with(rig, text):
    return [request for request in rig.model.main_requests if text in request.user_text]


def told(rig, text):
    """How often the model was told it, as a prompt or by a hook: a conversation's last request holds all of it."""
    last = {request.session: request for request in rig.model.main_requests}
    return sum(request.all_text.count(text) for request in last.values())


async def settled(rig, session):
    view = await rig.wait_view(
        session,
        lambda view: view["handoff"]["phase"] == "done" and view["status"] == "idle" and view["queued"] == 0,
        "rotated, with every message delivered",
    )
    await asyncio.sleep(1)  # a second copy would come now
    return view


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.often("clearing")
async def test_a_server_killed_in_any_phase_finishes_the_rotation_after_its_restart(phase):
    async with Rig(script()) as rig:
        session = await started(rig)
        await reached(rig, phase)
        await rig.kill_server()
        await rig.start_server()
        view = await settled(rig, session)

        (wake,) = requests_with(rig, AWOKE)
        named = Path(wake.user_text.strip().removeprefix("Read ").removesuffix(f" and {AWOKE}."))
        assert "=== HANDOFF LOADED" in wake.all_text or DOCUMENT.strip() in named.read_text()
        assert told(rig, NOTE) == 1
        assert view["rotations"] == 1
        assert (rig.project / ".sm" / "handoff.md").read_text() == DOCUMENT


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.soak
async def test_a_server_killed_at_any_moment_after_the_turn_finishes_the_rotation_after_its_restart(seed):
    async with Rig(script()) as rig:
        session = await started(rig)
        await reached(rig, "reserved")
        await asyncio.sleep(random.Random(seed).uniform(0.0, 0.6))  # noqa: S311
        await rig.kill_server()
        await rig.start_server()
        await settled(rig, session)
        assert len(requests_with(rig, AWOKE)) == 1
        assert told(rig, NOTE) == 1


BECOMES = {
    **dict.fromkeys(["pending", "reserved", "snapshot"], ("pending",)),
    "clearing": ("pending", "failed"),  # a hook that was already started may still tell that the context is new
    **dict.fromkeys(["empty", "prompting"], ("failed",)),
    "done": ("done", "failed"),  # until the agent has answered, the prompt is lost with its client
}
"""The phase after the client's end, by the phase it ended in."""


async def held_in_phase(rig, session, phase):
    """Stop the client there, so that the phase lasts; it may have been a step further already."""
    pid = (await rig.view(session))["pid"]
    await reached(rig, phase)
    for process in (pid, *processes_below(pid)):
        os.kill(process, signal.SIGSTOP)
    await asyncio.sleep(0.3)
    return (await rig.view(session))["handoff"]["phase"]


@pytest.mark.parametrize("phase", ["pending", "reserved", "snapshot", "clearing", "cleared", "empty", "prompting"])
@pytest.mark.often("clearing")
async def test_a_client_killed_in_any_phase_goes_on_from_its_document_once_restored(phase):
    async with Rig(script()) as rig:
        session = await started(rig)
        found = await held_in_phase(rig, session, phase)
        await rig.kill_client(session)
        ended = await rig.wait_status(session, "crashed")
        assert ended["handoff"]["phase"] in BECOMES[found]
        assert "signal 9" in ended["detail"]

        await restored_from_its_document(rig, session)


async def restored_from_its_document(rig, session):
    await rig.ask("POST", f"/sessions/{session}/restore", {"env": rig.env})
    await settled(rig, session)
    wakes = requests_with(rig, AWOKE)
    assert DOCUMENT.strip() in wakes[-1].all_text
    assert told(rig, NOTE) == 1


@pytest.mark.parametrize("phase", ["pending", "clearing", "empty"])
@pytest.mark.often("clearing")
async def test_after_a_reboot_in_any_phase_it_goes_on_from_its_document_once_restored(phase):
    async with Rig(script()) as rig:
        session = await started(rig)
        await reached(rig, phase)
        await rig.kill_server()
        rig.tmux("kill-server")
        await rig.start_server()
        ended = await rig.wait_status(session, "exited")
        assert ended["detail"] == "pane lost (tmux stopped or machine rebooted)"
        await restored_from_its_document(rig, session)


def slow_to_start(rig):
    """The person's own hook keeps the client from taking the wake prompt for a while: that phase then lasts."""
    slow = {"matcher": "clear", "hooks": [{"type": "command", "command": "sleep 3"}]}
    person_settings(rig, hooks={"SessionStart": [slow]})


@pytest.mark.claude_only("a hook of the user's own holds the prompt back, and the app-server runs none")
@pytest.mark.soak
async def test_a_client_killed_while_the_wake_prompt_waits_is_restored_from_its_document():
    async with Rig(script()) as rig:
        slow_to_start(rig)
        session = await started(rig)
        await rig.wait_phase(session, "prompting")
        await rig.kill_client(session)
        assert (await rig.wait_status(session, "crashed"))["handoff"]["phase"] == "failed"
        await restored_from_its_document(rig, session)


@pytest.mark.claude_only("a hook of the user's own holds the prompt back, and the app-server runs none")
@pytest.mark.soak
async def test_a_server_killed_while_the_wake_prompt_waits_types_it_no_second_time():
    async with Rig(script()) as rig:
        slow_to_start(rig)
        session = await started(rig)
        await rig.wait_phase(session, "prompting")
        await rig.kill_server()
        await rig.start_server()
        await settled(rig, session)
        assert len(requests_with(rig, AWOKE)) == 1
        assert told(rig, NOTE) == 1


@pytest.mark.claude_only("a hook of the user's own holds the prompt back, and the app-server runs none")
@pytest.mark.soak
async def test_a_session_killed_after_the_clear_is_restored_from_its_document():
    async with Rig(script()) as rig:
        slow_to_start(rig)
        session = await started(rig)
        await rig.wait_phase(session, "prompting")
        killed = await rig.ask("DELETE", f"/sessions/{session}")
        assert (killed["status"], killed["handoff"]["phase"]) == ("exited", "cancelled")
        await rig.until(lambda: not alive(killed["pid"]), "the client has ended")
        await restored_from_its_document(rig, session)


@pytest.mark.soak
async def test_an_idle_client_that_was_killed_is_restored_in_its_conversation():
    async with Rig(script()) as rig:
        session = await rig.new("hello there")
        before = await rig.wait_view(session, lambda v: v["status"] == "idle" and v["context"]["tokens"], "measured")
        await rig.kill_client(session)
        await rig.wait_status(session, "crashed")
        await rig.ask("POST", f"/sessions/{session}/restore", {"env": rig.env})
        after = await rig.wait_status(session, "idle")

        assert after["conversation"] == before["conversation"]
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "and now"})
        request = await rig.model.wait_for(lambda r: "and now" in r.user_text, within=PATIENCE)
        assert "hello there" in request.all_text


@pytest.mark.soak
async def test_after_a_reboot_sessions_are_listed_as_ended_and_come_back():
    async with Rig(script()) as rig:
        session = await rig.new("hello there")
        await rig.wait_event(session, "TurnEnded")
        rig.tmux("kill-server")
        await rig.kill_server()
        await rig.start_server()
        ended = await rig.wait_status(session, "exited")
        assert ended["detail"] == "pane lost (tmux stopped or machine rebooted)"

        await rig.ask("POST", f"/sessions/{session}/restore", {"env": rig.env})
        back = await rig.wait_status(session, "idle")
        assert back["conversation"] == ended["conversation"]


@pytest.mark.soak
async def test_tmux_killed_alone_ends_its_sessions_and_new_ones_can_start():
    async with Rig(script()) as rig:
        session = await rig.new("hello there")
        await rig.wait_event(session, "TurnEnded")
        rig.tmux("kill-server")
        await rig.wait_status(session, "exited")
        other = await rig.new("hello again", name="b")
        await rig.wait_event(other, "TurnEnded")


@pytest.mark.soak
async def test_a_session_killed_before_the_clear_keeps_its_document_and_resumes_its_conversation():
    async with Rig(script()) as rig:
        session = await started(rig)
        await reached(rig, "pending")
        pid = (await rig.view(session))["pid"]
        killed = await rig.ask("DELETE", f"/sessions/{session}")
        assert (killed["status"], killed["handoff"]["phase"]) == ("exited", "cancelled")
        await rig.until(lambda: not alive(pid), "the client has ended")
        assert DOCUMENT in (rig.home.root / killed["handoff"]["copy"]).read_text()


DEAF = Call("Bash", command="setsid sh -c 'trap \"\" TERM HUP; echo up; exec sleep 1000' > deaf 2>&1 & sleep 1")


@pytest.mark.soak
async def test_a_session_restored_at_once_keeps_its_new_client_though_the_old_one_left_a_process_that_will_not_end():
    async with Rig(scenario(Turn("go deaf", steps=[DEAF, Say("Done.")]), otherwise=Say("ok"))) as rig:
        person_settings(rig, permissions={"defaultMode": "default", "allow": ["Bash"]})
        session = await rig.new("go deaf")
        await rig.wait_event(session, "TurnEnded")
        assert (rig.project / "deaf").read_text() == "up\n"
        killing = asyncio.create_task(rig.ask("DELETE", f"/sessions/{session}"))
        await rig.wait_status(session, "exited")
        view = await rig.ask("POST", f"/sessions/{session}/restore", {"env": rig.env})
        await killing
        await rig.wait_status(session, "idle")
        await asyncio.sleep(GRACE_S + 1)
        assert alive(view["pid"])
        assert (await rig.view(session))["status"] == "idle"
