"""A session's page through its rotations: the phases as they are entered, past ones, and earlier contexts."""

import asyncio
from dataclasses import replace

import pytest

from sm.core.model.rotation import PhaseEntered
from sm.web.pages.rotations import past, rotation_lines, running
from tests.api.test_archive import shows
from tests.web.page_rig import begin, conversation, hooked, prompt, to_cleared, to_done

pytestmark = pytest.mark.timeout(90)


def entered(*steps, handoff="HO-1", event="TurnEnded"):
    return [PhaseEntered(at, event, phase, handoff) for at, phase in steps]


WHOLE = ((0.0, "pending"), (40.0, "reserved"), (41.0, "snapshot"), (42.0, "clearing"), (44.0, "empty"))
END = ((45.0, "prompting"), (46.5, "done"))


def test_a_rotations_length_begins_with_the_end_of_the_turn_it_waited_for():
    (line,) = rotation_lines(entered(*WHOLE, *END))
    assert (line.outcome, line.length, line.waited) == ("done", 6.5, 40.0)
    assert [(step.phase, step.seconds) for step in line.steps][:3] == [
        ("pending", 40.0),
        ("reserved", 1.0),
        ("snapshot", 1.0),
    ]


def test_one_that_began_again_counts_from_the_last_end_of_a_turn():
    (line,) = rotation_lines(entered((0.0, "reserved"), (5.0, "pending"), (60.0, "reserved"), (63.0, "done")))
    assert (line.length, line.waited) == (3.0, 60.0)


def test_one_that_was_replaced_ends_with_the_next_and_has_no_length_without_an_end_of_a_turn():
    lines = rotation_lines([*entered((0.0, "pending")), *entered((7.0, "pending"), handoff="HO-2")])
    assert [(line.outcome, line.length, line.waited) for line in lines] == [("replaced", None, 7.0), ("", None, 0.0)]
    assert [line.handoff for line in past(lines)] == ["HO-1"]


def test_clears_without_a_document_are_one_rotation_each():
    once = [PhaseEntered(0.0, "ClearRequested", "reserved", ""), PhaseEntered(1.0, "ConversationStarted", "done", "")]
    assert [line.outcome for line in rotation_lines([*once, *once])] == ["done", "done"]


def test_a_failed_one_that_is_tried_again_is_the_same():
    (line,) = rotation_lines(entered(*WHOLE, (60.0, "failed"), (90.0, "empty"), (91.0, "done")))
    assert line.outcome == "done"


def view(phase, **more):
    found = {"phase": phase, "id": "HO-1", "path": "/d.md", "since": 44.0, "note": "", **more}
    return {"handoff": found, "created": 0.0}


def test_what_runs_has_what_it_went_through_and_what_is_ahead():
    found = running(view("empty", note="a dialog is open"), rotation_lines(entered(*WHOLE)))
    assert [step.phase for step in found.passed] == ["pending", "reserved", "snapshot", "clearing"]
    assert (found.phase, found.since, found.ahead) == ("empty", 44.0, ("prompting", "done"))
    assert (found.waits_for, found.note) == ("the client to be idle in the new context", "a dialog is open")


def test_nothing_runs_once_it_is_done_and_a_failure_is_shown():
    lines = rotation_lines(entered(*WHOLE))
    assert running(view(None), lines) is None
    assert running(view("done"), lines) is None
    failed = running(view("failed", note="prompting timed out"), lines)
    assert (failed.failed, failed.ahead, failed.waits_for) == (True, (), "")


async def test_the_running_rotation_is_shown_phase_by_phase_and_then_among_the_past_ones(here, tmp_path):
    session = await here.api.new("me")
    await begin(here.api, session, conversation(tmp_path / "one.jsonl", ("Do it", "I do it.")))
    await prompt(here.api, session)
    tab = await here.tab()
    await tab.page.goto(here.at(f"/web/sessions/{session}"))
    await tab.page.get_by_text("I do it.").wait_for()
    assert await tab.page.locator(".rotation").count() == 0
    await to_cleared(here.api, session)
    now = tab.page.locator(".rotation [aria-current=step]")
    await now.get_by_text("clearing").wait_for()
    passed = await tab.page.locator(".rotation .passed").all_inner_texts()
    assert [" ".join(text.split()[1:]) for text in passed] == ["pending 30 s", "reserved 1.0 s", "snapshot 0.0 s"]
    assert "Waits for the new conversation" in await tab.page.locator(".rotation").inner_text()
    told = (await here.api.call("GET", f"/sessions/{session}/handoff"))[1]
    assert told["phase"] == "clearing"
    assert float(await now.locator("time").get_attribute("data-since")) == round(told["since"], 1)
    await to_done(here.api, session, conversation(tmp_path / "two.jsonl", ("Read it", "I continue.")))
    await tab.page.get_by_text("done in 5.5 s after 30 s of waiting for the turn to end").wait_for()
    assert await tab.page.locator(".rotation").count() == 0
    await tab.page.get_by_role("link", name="document").first.wait_for()
    await tab.page.locator(".context-mark", has_text="Context 2 began").wait_for()
    await tab.page.get_by_text("I continue.").wait_for()
    texts = await tab.page.locator(".entry .text").all_inner_texts()
    assert texts == ["Do it", "I do it.", "Read it", "I continue."]
    assert (tab.complaints, await tab.violations()) == ([], [])


async def rotated(here, tmp_path, *talks):
    session = await here.api.new("me")
    await begin(here.api, session, conversation(tmp_path / "c1.jsonl", *talks[0]))
    for number, talk in enumerate(talks[1:], start=2):
        await to_cleared(here.api, session)
        await to_done(here.api, session, conversation(tmp_path / f"c{number}.jsonl", *talk))
        await hooked(here.api, session, here.api.hook("Stop", session_id=here.api.conversation(session)))
    return session


async def test_each_context_can_be_chosen_and_read_to_its_beginning(here, tmp_path):
    long = [(f"q{number}.", f"a{number}.") for number in range(70)]
    session = await rotated(here, tmp_path, long, [("second", "of two")], [("third", "of three")])
    tab = await here.tab()
    await tab.page.goto(here.at(f"/web/sessions/{session}"))
    await tab.page.get_by_text("of three").wait_for()
    await tab.page.get_by_label("Context", exact=True).select_option("1")
    await tab.page.get_by_role("button", name="Show").click()
    await tab.page.get_by_text("of context 1 of 3").wait_for()
    assert await tab.page.get_by_text("a69.").count() == 1
    assert await tab.page.get_by_text("a20.").count() == 0
    await tab.page.get_by_role("link", name="Show earlier").click()
    await tab.page.get_by_text("q20.").wait_for()
    await prompt(here.api, session)
    await asyncio.sleep(0.8)
    assert await tab.page.get_by_text("of three").count() == 0  # it is another context's
    assert (tab.complaints, await tab.violations()) == ([], [])


async def test_a_transcript_that_begins_while_its_page_is_open_takes_the_place_of_the_words_for_none(here, tmp_path):
    session = await here.api.new("me")
    await begin(here.api, session, tmp_path / "t.jsonl")
    tab = await here.tab()
    await tab.page.goto(here.at(f"/web/sessions/{session}"))
    await tab.page.get_by_text("It has no transcript yet.").wait_for()
    await prompt(here.api, session)
    await tab.page.locator("#head", has_text="working").wait_for()
    assert await tab.page.locator("#entries > li:visible").all_inner_texts() == ["It has no transcript yet."]
    conversation(tmp_path / "t.jsonl", ("first", "of one"))
    await hooked(here.api, session, here.api.hook("Stop", session_id=here.api.conversation(session)))
    await tab.page.get_by_text("of one").wait_for()
    assert await tab.page.locator("#entries .text").all_inner_texts() == ["first", "of one"]
    assert await tab.page.get_by_text("It has no transcript yet.").count() == 0
    assert (tab.complaints, await tab.violations()) == ([], [])


async def test_an_earlier_part_that_is_opened_by_itself_gets_nothing_new_below_it(here, tmp_path):
    long = [(f"q{number}.", f"a{number}.") for number in range(70)]
    session = await rotated(here, tmp_path, long)
    tab = await here.tab()
    await tab.page.goto(here.at(f"/web/sessions/{session}"))
    earlier = await tab.page.get_by_role("link", name="Show earlier").get_attribute("href")
    await tab.page.goto(here.at(f"/web/sessions/{session}{earlier}"))
    await tab.page.get_by_text("an earlier part of context 1 of 1").wait_for()
    assert await tab.page.get_by_text("q20.").count() == 1
    assert await tab.page.get_by_text("a69.").count() == 0
    assert await tab.page.locator("#newer").count() == 0


async def test_from_a_contexts_beginning_the_one_before_is_shown_above_it(here, tmp_path):
    session = await rotated(here, tmp_path, [("first", "of one")], [("second", "of two")])
    tab = await here.tab("phone")
    await tab.page.goto(here.at(f"/web/sessions/{session}"))
    await tab.page.get_by_role("link", name="Show context 1").click()
    await tab.page.get_by_text("of one").wait_for()
    texts = await tab.page.locator(".entry .text, .context-mark").all_inner_texts()
    assert texts == ["first", "of one", "Context 2 began", "second", "of two"]
    assert await tab.page.locator("#newer").count() == 1


async def test_a_context_whose_transcript_is_gone_says_what_is_left(here, tmp_path):
    session = await rotated(here, tmp_path, [("first", "of one")], [("second", "of two")])
    (tmp_path / "c1.jsonl").unlink()
    shows(here.api, session, "<script>alert(1)</script> an okapi\r\n" + "line\r\n" * 9)
    tab = await here.tab()
    await tab.page.goto(here.at(f"/web/sessions/{session}?context=1"))
    await tab.page.get_by_text(f"sm log {session} --context 1").wait_for()
    async with tab.page.expect_navigation() as gone:
        await tab.page.get_by_role("link", name="What its terminal showed").click()
    answer = await gone.value
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert tab.complaints == []
    await tab.page.goto(here.at(f"/web/sessions/{session}?context=7"))
    await tab.page.get_by_text("The session has no context 7").wait_for()


async def test_what_a_rotation_says_of_itself_is_text(here):
    session = await here.api.new("me")
    await begin(here.api, session)
    await to_cleared(here.api, session)
    rotation = here.api.engine.sessions.actors[session].session.rotation
    evil = "<img src=x onerror=alert(1)>\x1b]0;x\x07"
    await here.api.alter(
        session, rotation=replace(rotation, note=evil, handoff=replace(rotation.handoff, path=f"/{evil}"))
    )
    tab = await here.tab()
    await tab.page.goto(here.at(f"/web/sessions/{session}"))
    await tab.page.locator(".rotation").get_by_text("/<img src=x onerror=alert(1)>").wait_for()
    assert await tab.page.locator("main img").count() == 0
    assert (tab.complaints, await tab.violations()) == ([], [])


async def test_a_session_is_shown_no_page_and_no_other_context(here, tmp_path):
    session = await rotated(here, tmp_path, [("first", "of one")], [("second", "of two")])
    for path in ("", "/history", "/transcript?context=1", "/head"):
        status, refused = await here.api.call("GET", f"/web/sessions/{session}{path}", here.api.tokens[session])
        assert (status, refused["code"]) == (403, "forbidden"), path
