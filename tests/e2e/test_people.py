"""A person at the terminal: what they have typed is never lost and never sent together with what we type."""

import asyncio
import sys

import pytest

from sm.testing.scenario import Say, Turn
from tests.e2e.people import (
    SLOW,
    Person,
    box_shows,
    client_is,
    hands_off,
    held,
    look,
    paste,
    person_settings,
    submit,
    wake_request,
)
from tests.e2e.rig import ROOT, Rig

DRIVER = "keys"
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

DRAFTS = {
    "one line": "and then look at the tests",
    "three lines": "first line\nsecond line\n  third line",
    "long and wrapped": "a rather long thought " * 30,
    "a folded paste": "\n".join(f"line {number} of what was pasted" for number in range(9)),
    "a command's name at its end": "should I use /clear",
    "half a command": "/cle",
    "blanks": "   ",
    "wide characters": "検査 — naïve 🙂",
}


@pytest.mark.parametrize("draft", DRAFTS.values(), ids=DRAFTS.keys())
@pytest.mark.often("a folded paste")
async def test_a_draft_typed_while_the_agent_works_survives_a_rotation(draft):
    async with Rig(hands_off(SLOW)) as rig:
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "pending")
        paste(rig, session, draft)
        await rig.until(lambda: bool(look(rig, session)) and not look(rig, session).empty, "the draft in the box")
        before = look(rig, session)
        await wake_request(rig)
        await rig.wait_phase(session, "done")
        await box_shows(rig, session, before.text)
        assert not any(draft.strip() and draft.strip() in request.user_text for request in rig.model.requests)


@pytest.mark.soak
async def test_a_draft_that_was_a_folded_paste_comes_back_whole():
    async with Rig(hands_off(SLOW)) as rig:
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "pending")
        paste(rig, session, DRAFTS["a folded paste"])
        await wake_request(rig)
        await box_shows(rig, session, "[Pasted text #1 +8 lines]")
        await client_is(rig, "idle")
        rig.press(session, "Enter")
        await rig.model.wait_for(lambda request: DRAFTS["a folded paste"] in request.user_text)


@pytest.mark.soak
async def test_a_draft_typed_key_by_key_survives_as_well():
    async with Rig(hands_off(SLOW)) as rig:
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "pending")
        rig.type(session, "one thought")
        await box_shows(rig, session, "one thought")
        await wake_request(rig)
        await box_shows(rig, session, "one thought")


@pytest.mark.soak
async def test_holds_while_one_draft_is_stashed_and_another_stands_in_the_box():
    async with Rig(hands_off(SLOW)) as rig:
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "pending")
        rig.type(session, "first draft")
        await box_shows(rig, session, "first draft")
        rig.press(session, "C-s")
        await box_shows(rig, session, "")
        rig.type(session, "second draft")
        await held(rig, session, because="another one is stashed")
        assert (look(rig, session).text, look(rig, session).stashed) == ("second draft", True)

        rig.tmux("send-keys", "-N", "12", "-t", rig.pane(session), "BSpace")
        await wake_request(rig)
        await box_shows(rig, session, "first draft")


@pytest.mark.soak
async def test_an_attached_person_who_types_holds_the_rotation_until_they_pause():
    async with Rig(hands_off(SLOW)) as rig:
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "pending")
        with Person(rig, session) as person:
            typed = ""
            while "the user is typing" not in (await rig.view(session))["handoff"]["note"]:
                person.type("x")
                typed += "x"
                await asyncio.sleep(0.3)
            for _ in range(5):
                person.type("y")
                typed += "y"
                await asyncio.sleep(0.3)
            assert (await rig.view(session))["handoff"]["phase"] == "reserved"
            await wake_request(rig)
            await box_shows(rig, session, typed)


@pytest.mark.soak
async def test_a_person_who_is_faster_has_the_turn_and_the_rotation_follows_it():
    script = hands_off(SLOW, turns=(Turn("me first", steps=[Say("You first.", delay=1.0)]),))
    async with Rig(script) as rig:
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "pending")
        with Person(rig, session) as person:
            person.type("me first")
            while "the user is typing" not in (await rig.view(session))["handoff"]["note"]:
                person.type(" ")  # until the turn has ended, however long that takes here
                await asyncio.sleep(0.2)
            person.type("\r")
            await rig.model.wait_for(lambda request: "me first" in request.user_text)
            await held(rig, session, because="waits")
            await rig.wait_phase(session, "done")
        request = await wake_request(rig)
        assert "You first." not in request.all_text
        assert "\n> me first" in request.all_text  # the document was written before it was said


@pytest.mark.soak
async def test_a_queued_prompt_of_a_person_is_answered_before_the_rotation():
    async with Rig(hands_off(SLOW)) as rig:
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "pending")
        await submit(rig, session, "a question in between")
        await rig.model.wait_for(lambda request: "a question in between" in request.all_text)
        await wake_request(rig)
        await client_is(rig, "idle")


async def test_escape_while_a_handoff_is_pending_leaves_it_pending_until_the_next_turn_ends():
    async with Rig(hands_off(Say("Handed off.", delay=60.0))) as rig:
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "pending")
        await rig.model.wait_for(lambda request: any("scheduled" in result.text for result in request.tool_results))
        rig.press(session, "Escape")
        await client_is(rig, "idle")
        await rig.wait_status(session, "idle")
        assert (await rig.view(session))["handoff"]["phase"] == "pending"

        await submit(rig, session, "go on")
        await wake_request(rig)


@pytest.mark.soak
async def test_a_clear_typed_by_the_person_takes_the_pending_document_along():
    async with Rig(hands_off(Say("Handed off.", delay=60.0))) as rig:
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "pending")
        rig.press(session, "Escape")
        await client_is(rig, "idle")
        await submit(rig, session, "/clear")
        await wake_request(rig)
        await rig.wait_phase(session, "done")


@pytest.mark.parametrize("mode", ["INSERT", "NORMAL"])
@pytest.mark.parametrize("draft", ["", "a vim draft"], ids=["empty", "draft"])
@pytest.mark.often("draft-NORMAL")
async def test_rotates_in_both_modes_of_vim(mode, draft):
    async with Rig(hands_off(SLOW)) as rig:
        person_settings(rig, permissions={"defaultMode": "default"}, editorMode="vim")
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "pending")
        rig.type(session, draft or "x")
        await box_shows(rig, session, draft or "x")
        assert "-- INSERT --" in rig.screen(session)
        if mode == "NORMAL":
            rig.press(session, "Escape")
            await rig.until(lambda: "INSERT" not in rig.screen(session), "NORMAL mode")
        if not draft:
            rig.press(session, *(["x"] if mode == "NORMAL" else ["BSpace"]))
            await box_shows(rig, session, "")
        await wake_request(rig)
        await box_shows(rig, session, draft)


@pytest.mark.soak
async def test_a_session_that_the_person_has_named_and_given_a_status_line_rotates():
    async with Rig(hands_off(SLOW)) as rig:
        rules = {"type": "command", "command": f"echo {'─' * 40}; echo status"}
        person_settings(rig, permissions={"defaultMode": "default"}, statusLine=rules)
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "pending")
        await submit(rig, session, "/rename a fine name")
        await rig.wait_screen(session, "a fine name ─")
        rig.type(session, "a draft")
        await wake_request(rig)
        await box_shows(rig, session, "a draft")
        assert "status" in rig.screen(session)


class Hasty(Rig):
    """At its server a person types at the worst moment."""

    def server_command(self):
        return [sys.executable, str(ROOT / "tests" / "e2e" / "hasty.py")]

    def types(self, words):
        """Let the person type these words just before the next Enter of ours."""
        (self.root / "typed").write_text(words)


@pytest.mark.parametrize("draft", ["", "and fix"])
@pytest.mark.parametrize("words", ["!touch X", "/status", "then look\nat the seams", " the bug in x"])
@pytest.mark.often("!touch X-and fix")
@pytest.mark.soak
async def test_keys_between_our_look_and_our_enter_are_the_persons_again(words, draft):
    """C10: text behind our `/clear` neither reaches the model nor is lost, with a blank before it or not."""
    async with Hasty(hands_off(SLOW)) as rig:
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "pending")
        if draft:
            rig.type(session, draft)
        rig.types(words)
        await wake_request(rig)
        await rig.wait_phase(session, "done")
        assert not (rig.root / "typed").exists()
        await box_shows(rig, session, f"{draft}{words}")
        assert not any(words.strip() in request.user_text for request in rig.model.requests)
        assert not (rig.project / "X").exists()


@pytest.mark.parametrize("words", ["!touch X", " and then?"])
@pytest.mark.often("!touch X")
async def test_keys_before_the_enter_of_a_wake_prompt_or_a_message_are_the_persons_again(words):
    """C10"""
    async with Hasty(hands_off(Say("Handed off."))) as rig:
        session = await rig.new("hello")
        await rig.wait_event(session, "TurnEnded")
        rig.types(words)
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "please hand off"})
        await rig.wait_event(session, "ConversationStarted", origin="clear")
        await wake_request(rig)
        await rig.wait_phase(session, "done")
        await box_shows(rig, session, words)
        assert not any(words.strip() in request.all_text for request in rig.model.requests)
        assert not (rig.project / "X").exists()
