"""The transcript of a conversation moves with its client into a worktree; the real client resumes it from there."""

import json
import subprocess
from pathlib import Path

import pytest

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

ALLOWED = ("--allowedTools", "Bash,EnterWorktree")
MOVES = Call("EnterWorktree", name="feature")
LOOKS = Call("Bash", command="sleep 0.3; sm status")
WARNING = "Consider writing a handoff doc"


def repository(rig):
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        own = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *command]
        subprocess.run(own, cwd=rig.project, env=rig.env, check=True, capture_output=True)


async def moved(rig):
    """A session whose client has gone into a worktree and has worked there."""
    repository(rig)
    session = await rig.begun("work", *ALLOWED)
    await rig.until(lambda: len(rig.model.main_requests) >= len(rig.script.turns[0].steps), "all requests")
    await rig.wait_status(session, "idle")
    view = await rig.wait_view(session, lambda view: "worktrees" in (view["transcript"] or ""), "moved")
    transcript = Path(view["transcript"])  # the client writes a little later than it shows
    await rig.until(lambda: "Done there." in transcript.read_text(), "all is written")
    return session


def script():
    steps = [MOVES, LOOKS.but(context=60_000), LOOKS.but(context=110_000), LOOKS, Say("Done there.", context=112_000)]
    return scenario(Turn("work", steps=steps), otherwise=Say("ok", context=20_000))


@pytest.mark.soak
async def test_readings_and_warnings_follow_the_transcript_into_a_worktree():  # C5
    async with Rig(script()) as rig:
        session = await moved(rig)
        view = await rig.wait_view(session, lambda view: (view["context"]["tokens"] or 0) >= 112_000, "measured")
        assert Path(view["transcript"]).exists()
        told = [number for number, request in enumerate(rig.model.main_requests) if WARNING in request.context_text]
        assert told in ([3], [4])  # a record that is on disk late is told of one request later
        warned = await rig.wait_event(session, "AgentWarned")  # C36
        assert warned["data"]["level"] == "warning"


@pytest.mark.soak
async def test_a_crash_in_a_worktree_loses_nothing():  # C5
    async with Rig(script()) as rig:
        session = await moved(rig)
        conversation = (await rig.view(session))["conversation"]
        await rig.kill_client(session)
        await rig.wait_status(session, "crashed")
        kept = await rig.wait_event(session, "DocumentKept")
        assert "Done there." in Path(kept["data"]["handoff"]["copy"]).read_text()
        await rig.ask("POST", f"/sessions/{session}/restore", {"env": rig.env})
        await rig.wait_status(session, "idle")
        assert (await rig.view(session))["conversation"] == conversation
        before = len(rig.model.main_requests)
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "and now?"})
        await rig.until(lambda: len(rig.model.main_requests) > before, "the next request")
        assert "Done there." in rig.model.main_requests[before].all_text


@pytest.mark.soak
async def test_a_transcript_that_moved_while_no_hook_told_is_found_by_its_id():  # C5
    steps = [Call("Bash", command="sleep 3"), MOVES.but(context=60_000), Say("Done there.", context=112_000)]
    async with Rig(scenario(Turn("work", steps=steps), otherwise=Say("ok"))) as rig:
        repository(rig)
        session = await rig.new("work", *ALLOWED)
        before = await rig.wait_view(session, lambda view: (view["context"]["tokens"] or 0) >= 20_000, "measured")
        await rig.kill_server()
        await rig.until(lambda: "Done there." in rig.screen(session), "all is done")
        assert not Path(before["transcript"]).exists()
        await rig.start_server()
        await rig.wait_view(session, lambda view: (view["context"]["tokens"] or 0) >= 112_000, "found")
        await rig.wait_view(session, lambda view: "worktrees" in view["transcript"], "moved")


@pytest.mark.soak
async def test_a_document_made_without_a_model_knows_what_was_done_in_a_worktree():  # C5
    auto = Call("Bash", command="sm handoff --auto")
    steps = [MOVES, LOOKS.but(context=60_000), Call("Bash", command="echo red-panda"), auto, Say("Handed off.")]
    turns = [Turn("work", steps=steps), Turn("continue from where", steps=[Say("Going on.")])]
    async with Rig(scenario(*turns, otherwise=Say("ok"))) as rig:
        repository(rig)
        session = await rig.new("work", *ALLOWED)
        await rig.wait_phase(session, "done")
        assert json.dumps("red-panda")[1:-1] in rig.model.main_requests[-1].all_text
