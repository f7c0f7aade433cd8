"""Typing into Codex's box, key by key: what goes out, what is held, and that the user's text stays."""

import asyncio

import pytest

from sm.core.events import Activity
from sm.core.ports.panes import Key, PaneError
from sm.core.ports.provider import ReadyOptions
from sm.providers import box_wait, holds
from sm.providers.codex.tui import driver as module
from sm.providers.codex.tui import input_box
from sm.providers.codex.tui.driver import DRAFT, MIXED, QUEUED, TYPING, TuiDriver
from sm.providers.codex.tui.input_box import BUSY, COVERED, TOO_SMALL, InputBox
from tests.fakes.clock import run_on_virtual_time
from tests.fakes.codex_box import FakeCodexBox

never = lambda: False


@pytest.fixture(autouse=True)
async def quick(monkeypatch):
    """The waits of a real terminal, some of them shorter, and none of them the machine's."""
    run_on_virtual_time(asyncio.get_running_loop())
    monkeypatch.setattr(input_box, "EFFECT_TIMEOUT_S", 0.05)
    monkeypatch.setattr(module, "APPEARS_TIMEOUT_S", 0.1)
    monkeypatch.setattr(box_wait, "QUIET_S", 0.05)
    monkeypatch.setattr(box_wait, "SLOW_POLL_INTERVAL_S", 0.01)
    monkeypatch.setattr(holds, "REPORT_AFTER_S", 0.01)


def composing(box):
    return TuiDriver(InputBox(box, box.client_state, never))


async def ready(driver, *own, leave=never, **wait):
    """Whether the way became clear within a moment, and what held it."""
    reasons = []
    try:
        async with asyncio.timeout(0.5):
            return await driver.ready(ReadyOptions(own, **wait), reasons.append, leave), reasons
    except TimeoutError:
        return False, reasons


async def rotated(box):
    """Type as a rotation does."""
    driver = composing(box)
    assert (await ready(driver, "/clear"))[0]
    assert await driver.clear(never) is None
    assert (await ready(driver, "Read it.", "/clear"))[0]
    assert await driver.prompt("Read it.", never) is None
    return box


async def test_an_empty_box_of_an_idle_client_takes_text_at_once():
    box = await rotated(FakeCodexBox())
    assert box.sent == ["/clear", "Read it."]
    assert box.keys == ["paste /clear", Key.ENTER, "paste  Read it. ", Key.ENTER]


@pytest.mark.parametrize("draft", ["a draft", "should I use /clear", "x" * 300, "  blanks  "])
async def test_a_draft_of_one_line_is_cut_for_each_submission_and_put_back(draft):
    box = await rotated(FakeCodexBox(draft))
    assert box.sent == ["/clear", "Read it."]
    assert box.text == draft


async def test_a_draft_of_several_lines_is_waited_for_and_kept():
    box = FakeCodexBox("one\ntwo")
    driver = composing(box)
    found, reasons = await ready(driver, "/clear")
    assert (found, reasons[-1]) == (False, DRAFT)
    assert box.text == "one\ntwo"
    assert box.keys == ["C-e C-u", "C-y"]  # tried once, and then let alone
    assert await driver.prompt("x", never) == DRAFT
    assert (box.text, box.sent) == ("one\ntwo", [])


async def test_where_the_keys_that_cut_mean_something_else_a_draft_is_waited_for():
    box = FakeCodexBox("a draft", deaf_to=frozenset({"C-u"}))
    assert await ready(composing(box)) == (False, [DRAFT])
    assert box.text == "a draft"


HELD = {
    "a dialog is open: permission for Bash": {"activity": Activity.WAITING, "detail": "permission for Bash"},
    "the client is busy": {"activity": Activity.BUSY},
    "the client's state cannot be read": {"activity": Activity.UNKNOWN},
    COVERED: {"covered": True},
    TOO_SMALL: {"covered": True, "height": 7},
    QUEUED: {"queued": True},
}


async def test_no_key_goes_out_while_something_else_has_the_cursor():
    box = FakeCodexBox(elsewhere=True)
    assert await ready(composing(box)) == (False, [COVERED])
    assert await composing(box).clear(never) == COVERED
    assert box.keys == []


@pytest.mark.parametrize(("reason", "state"), HELD.items(), ids=HELD.keys())
async def test_no_key_goes_out_while_something_holds(reason, state):
    box = FakeCodexBox("a draft", **state)
    assert await ready(composing(box), "a draft") == (False, [reason])
    assert box.keys == []


async def test_a_screen_on_which_a_turn_seems_to_run_holds_for_a_moment_only(monkeypatch):
    box = FakeCodexBox(working=True)
    found, reasons = await ready(composing(box))
    assert (found, reasons) == (False, [BUSY])
    monkeypatch.setattr(input_box, "SCREEN_LAGS_S", 0.2)  # an agent may print what looks like that
    assert (await ready(composing(box)))[0]


async def test_a_client_at_work_takes_what_is_to_be_read_now():
    box = FakeCodexBox(activity=Activity.BUSY, working=True)
    driver = composing(box)
    assert (await ready(driver, busy=True, patience=0.0))[0]
    assert await driver.prompt("look", never) == BUSY
    assert await driver.prompt("look", never, now=True) is None
    assert box.sent == ["look"]


async def test_a_user_who_types_is_waited_for():
    box = FakeCodexBox(typed_ago=0.0)
    box.before_look = lambda box: box.type("x") if box.looks % 4 == 0 and box.looks < 40 else None
    found, reasons = await ready(composing(box))
    assert found
    assert reasons == [TYPING]
    assert box.text == "x" * 9


async def test_a_command_that_was_dropped_is_refused():
    box = FakeCodexBox(drops=True)
    assert await composing(box).clear(never) == BUSY
    assert (box.sent, box.text) == ([], "")


async def test_a_text_that_the_box_does_not_show_is_taken_back():
    box = FakeCodexBox()
    box.after_paste = lambda box: setattr(box, "text", "draft" + box.text)
    assert await composing(box).prompt("look", never) == "the input box did not show the text"
    assert (box.text, box.sent) == ("draft", [])
    assert Key.ENTER not in box.keys


async def test_a_dialog_that_opens_behind_the_text_gets_no_key():
    box = FakeCodexBox()
    box.after_paste = lambda box: setattr(box, "activity", Activity.WAITING)
    driver = composing(box)
    assert await driver.prompt("look", never) == "a dialog is open"
    assert box.keys == ["paste  look "]
    assert await driver.withdraw() == "a dialog is open"
    assert box.keys == ["paste  look "]
    box.activity = Activity.IDLE
    assert await driver.withdraw() is None
    assert box.text == ""


async def test_a_view_that_opens_behind_the_text_gets_no_enter():
    box = FakeCodexBox()
    box.after_paste = lambda box: setattr(box, "covered", True)
    assert await composing(box).prompt("look", never) == "the input box did not show the text"
    assert Key.ENTER not in box.keys


async def test_what_enter_did_not_submit_is_taken_back():
    box = FakeCodexBox(deaf_to=frozenset({Key.ENTER}))
    assert await composing(box).prompt("look", never) == "the client did not take the text"
    assert (box.text, box.sent) == ("", [])


async def test_what_gives_way_after_the_paste_is_taken_back_and_the_draft_returns():
    box = FakeCodexBox("my draft")
    calls = iter([False])
    assert await composing(box).prompt("look", lambda: next(calls, True)) == "gave way"
    assert (box.text, box.sent) == ("my draft", [])


async def test_a_draft_whose_place_was_covered_is_put_back_later():
    box = FakeCodexBox("my draft")
    driver = composing(box)
    box.after_paste = lambda box: setattr(box, "activity", Activity.WAITING)
    assert await driver.prompt("look", never) == "a dialog is open"
    box.activity = Activity.IDLE
    while await driver.withdraw() is not None:
        pass
    assert box.text == "my draft"


async def test_a_text_of_an_earlier_server_is_taken_out():
    box = FakeCodexBox(" Read it. ")
    assert (await ready(composing(box), "Read it."))[0]
    assert (box.text, box.sent) == ("", [])


async def test_words_of_the_user_behind_ours_are_never_sent():
    box = FakeCodexBox()
    box.after_paste = lambda box: box.type("and mine")
    driver = composing(box)
    assert await driver.prompt("look", never) == "the input box did not show the text"
    found, reasons = await ready(driver)
    assert (found, reasons[-1]) == (False, MIXED)
    assert box.sent == []


async def test_a_long_text_is_folded_and_goes_as_a_whole():
    box = FakeCodexBox()
    text = "word " * 1_200 + "end"
    assert await composing(box).prompt(text, never) is None
    assert box.sent == [text]


async def test_a_long_text_that_gives_way_goes_with_one_key():
    box = FakeCodexBox()
    calls = iter([False])
    assert await composing(box).prompt("x" * 6_000, lambda: next(calls, True)) == "gave way"
    assert (box.text, box.keys[-1]) == ("", Key.BACKSPACE)


async def test_a_pane_that_fails_is_looked_at_again():
    box = FakeCodexBox()

    def fails(box):
        if box.looks == 1:
            raise PaneError("tmux does not answer")

    box.before_look = fails
    assert (await ready(composing(box)))[0]
