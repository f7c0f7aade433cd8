"""What a session leaves in its project, and who gets it: on the real client."""

import asyncio
import json
import signal

import msgspec
import pytest

from sm.core.errors import SmError
from sm.core.model.channel import channel_directory
from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import AWOKE, DOCUMENT, HANDED_OFF, SLOW, hands_off, submit, wake_request, woken
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

LATE = hands_off(SLOW)
"""Time to end a client between `sm handoff` and the turn's end."""


async def handoff(rig):
    """The one handoff there is."""
    (found,) = await rig.ask("GET", "/handoffs")
    return found


async def left_behind(rig):
    """A session that has handed off and whose client has died before it could begin anew."""
    session = await rig.new("please hand off", name="first")
    await rig.wait_phase(session, "pending")
    await rig.kill_client(session)
    await rig.wait_status(session, "crashed")
    return session


async def resumed(rig, name, handoff=""):
    body = {"dir": str(rig.project), "env": rig.env, "name": name, "model": rig.model_name, "command": rig.client}
    return (await rig.ask("POST", "/sessions", {**body, "handoff": handoff}))["id"]


def manifest(rig):
    return json.loads(rig.home.manifest(channel_directory(str(rig.project))).read_text())


async def test_what_an_ended_session_left_is_told_to_the_next_and_consumed_by_the_one_that_takes_it_up():
    async with Rig(LATE) as rig:
        first = await left_behind(rig)
        found = await handoff(rig)
        assert (found["state"], found["held_by"], found["session"]) == ("active", None, first)

        await rig.new("hello", name="fresh")
        request = await rig.model.wait_for(lambda r: "hello" in r.user_text)
        assert f"This project has an open handoff: {found['id']}" in request.all_text
        assert DOCUMENT.strip() not in request.all_text
        assert (await handoff(rig))["state"] == "active"

        second = await resumed(rig, "second")
        request = await wake_request(rig)
        await rig.wait_phase(second, "done")
        assert f"=== HANDOFF LOADED (ID: {found['id']}) ===" in request.all_text
        assert str(rig.home.log(first)) in request.all_text
        taken = await handoff(rig)
        assert (taken["id"], taken["state"], taken["held_by"]) == (found["id"], "consumed", second)
        await rig.until(lambda: manifest(rig)["current"]["status"] == "consumed", "the manifest follows")
        item = manifest(rig)["history"][0]
        assert (item["id"], item["consumed_by_pid"]) == (found["id"], (await rig.view(second))["pid"])


@pytest.mark.soak
async def test_what_was_left_in_one_plain_directory_is_nothing_to_another():
    """C6: neither is a repository."""
    async with Rig(LATE) as rig:
        one, two = rig.project / "one", rig.project / "two"
        one.mkdir()
        two.mkdir()

        async def new(directory, name, prompt, **more):
            body = {"dir": str(directory), "env": rig.env, "name": name, "model": rig.model_name, "prompt": prompt}
            return (await rig.ask("POST", "/sessions", {**body, "command": rig.client, **more}))["id"]

        first = await new(one, "first", "please hand off")
        await rig.wait_phase(first, "pending")
        await rig.kill_client(first)
        await rig.wait_status(first, "crashed")
        found = (await handoff(rig))["id"]
        await new(two, "other", "hello there")
        await new(one, "fresh", "hello again")
        request = await rig.model.wait_for(lambda r: "hello again" in r.user_text)
        assert f"This project has an open handoff: {found}" in request.all_text
        request = await rig.model.wait_for(lambda r: "hello there" in r.user_text)
        assert "handoff: " not in request.context_text
        assert found not in request.all_text
        with pytest.raises(SmError, match="No open handoff in this project"):
            await new(two, "heir", None, handoff="")
        heir = await new(one, "heir", None, handoff="")
        await rig.wait_phase(heir, "done")
        assert (await handoff(rig))["held_by"] == heir


@pytest.mark.soak
async def test_a_session_that_dies_before_its_first_prompt_gives_the_handoff_back_to_the_next():
    async with Rig(LATE) as rig:
        await left_behind(rig)
        found = await handoff(rig)
        dying = await resumed(rig, "dying")
        assert (await handoff(rig))["held_by"] == dying
        await rig.kill_client(dying)
        await rig.wait_status(dying, "crashed")
        assert (await handoff(rig)) | {"changed": 0} == found | {"changed": 0}
        heir = await resumed(rig, "heir", found["id"])
        await wake_request(rig)
        await rig.wait_phase(heir, "done")
        assert (await handoff(rig))["held_by"] == heir


@pytest.mark.soak
async def test_a_restored_session_gets_its_own_handoff_unless_another_has_taken_it_up():
    async with Rig(LATE) as rig:
        first = await left_behind(rig)
        other = await resumed(rig, "other")
        await rig.wait_phase(other, "done")
        await rig.ask("POST", f"/sessions/{first}/restore", {"env": rig.env})
        await rig.wait_status(first, "idle")
        view = await rig.view(first)
        assert (view["handoff"]["phase"], other in view["handoff"]["note"]) == ("cancelled", True)
        assert len([request for request in rig.model.requests if woken(request)]) == 1


@pytest.mark.soak
async def test_after_a_compaction_a_session_is_given_its_own_last_document():
    short = Say("In short.", delay=1.0)
    script = msgspec.structs.replace(hands_off(turns=(Turn("what now", steps=[Say("This.")]),)), compaction=short)
    async with Rig(script) as rig:
        session = await rig.new("please hand off", name="mine")
        await rig.wait_phase(session, "done")
        await rig.wait_status(session, "idle")
        (
            rig.project / ".sm" / "handoff.md"
        ).unlink()  # which its agent has not read, so the client would not let it write
        other = await rig.new("please hand off", name="other")
        await rig.wait_phase(other, "done")
        first, foreign = [(await rig.view(identity))["handoff"]["id"] for identity in (session, other)]
        await submit(rig, session, "/compact")
        kept = (await rig.wait_event(session, "DocumentKept"))["data"]["handoff"]
        await rig.wait_event(session, "CompactionEnded")
        await rig.wait_status(session, "idle")
        await submit(rig, session, "what now")
        request = await rig.model.wait_for(lambda r: "what now" in r.user_text)
        assert (kept["type"], request.all_text.count("=== HANDOFF LOADED")) == ("compaction", 1)
        assert f"=== HANDOFF LOADED (ID: {kept['id']}) ===" in request.all_text
        assert f"- Its id: {first}" in request.all_text
        assert foreign not in request.all_text
        assert AWOKE not in request.user_text


@pytest.mark.soak
async def test_a_document_too_long_for_the_reply_is_read_from_the_copy_without_asking_anybody():
    long = "# Handoff\n" + "What happened.\n" * 900 + "## Next step\nDo N.\n"
    write = Call("Write", file_path=".sm/handoff.md", content=long)
    hand_off = Turn("hand off", steps=[write, HANDED_OFF, SLOW])
    steps = [Call("Read", file_path="{{copy}}", limit=5), Say("Read it.")]
    read = Turn(r"Read (?P<copy>\S+) and continue", steps=steps)
    async with Rig(scenario(hand_off, read, otherwise=Say("ok"))) as rig:
        await left_behind(rig)
        (rig.project / ".sm" / "handoff.md").write_text("another session's")
        heir = await resumed(rig, "heir")
        copy = (await handoff(rig))["copy"]
        request = await rig.model.wait_for(lambda r: f"Read {copy} and continue" in r.user_text)
        assert "Read the whole of it first: " + copy in request.all_text
        assert "## Next step\nDo N.\n[cut here: the rest is in the file]" in request.all_text
        await rig.model.wait_for(lambda r: any("HANDOFF-ID: HO-" in result.text for result in r.tool_results))
        await rig.wait_event(heir, "TurnEnded")
        assert await rig.events(heir, "PermissionAsked") == []


async def test_of_twenty_starts_at_once_one_begins_from_it_and_the_others_hear_who():
    async with Rig(LATE) as rig:
        await left_behind(rig)
        found = (await handoff(rig))["id"]
        starts = (resumed(rig, f"s{number}", found if number % 2 else "") for number in range(20))
        answers = await asyncio.gather(*starts, return_exceptions=True)
        (holder,) = (answer for answer in answers if isinstance(answer, str))
        taken = f"by session {(await rig.view(holder))['name']} ({holder})"
        assert [str(answer) for answer in answers if answer != holder and taken not in str(answer)] == []
        await rig.kill_client(holder, signal.SIGTERM)
