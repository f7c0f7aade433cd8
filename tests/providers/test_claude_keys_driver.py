"""Typing into a box, key by key: what goes out, what is held, and what becomes of a person's text."""

import asyncio

import pytest

from sm.core.events import Activity
from sm.core.ports.panes import Key, PaneError
from sm.core.ports.provider import ReadyOptions
from sm.providers import box_wait, holds
from sm.providers.claude.keys import driver as module
from sm.providers.claude.keys.driver import STASH, KeysDriver
from tests.fakes.box import FakeBox
from tests.fakes.clock import run_on_virtual_time

never = lambda: False


@pytest.fixture(autouse=True)
async def quick(monkeypatch):
    """The waits of a real terminal, a hundred times shorter, and none of them the machine's."""
    run_on_virtual_time(asyncio.get_running_loop())
    for name, value in {
        "EFFECT_TIMEOUT_S": 0.05,
        "QUEUE_SETTLE_S": 0.05,
        "BLOCKED_RETURN_S": 0.1,
        "APPEARS_TIMEOUT_S": 0.1,
    }.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(box_wait, "QUIET_S", 0.05)
    monkeypatch.setattr(box_wait, "SLOW_POLL_INTERVAL_S", 0.01)
    monkeypatch.setattr(holds, "REPORT_AFTER_S", 0.01)


def composing(box, *, background=False):
    return KeysDriver(box, box.client_state, lambda: background)


async def ready(driver, *own, leave=never, **wait):
    """Whether the way became clear within a moment, and what held it."""
    reasons = []
    try:
        async with asyncio.timeout(0.3):
            return await driver.ready(ReadyOptions(own, **wait), reasons.append, leave), reasons
    except TimeoutError:
        return False, reasons


async def rotated(box):
    """Type as a rotation does."""
    driver = composing(box)
    for text in ("/clear", "Read it."):
        assert (await ready(driver, text))[0]
        assert await driver.prompt(text, never) is None
    return box


async def test_an_empty_box_of_an_idle_client_takes_text_at_once():
    box = await rotated(FakeBox())
    assert box.sent == ["/clear", "Read it."]
    assert box.keys == ["paste /clear", Key.ENTER, "paste Read it.", Key.ENTER]


@pytest.mark.parametrize("draft", ["a draft", "one\ntwo\nthree", "should I use /clear", "please Read it.", "/cle"])
async def test_a_draft_is_stashed_before_each_submission_and_given_back(draft):
    box = await rotated(FakeBox(draft))
    assert box.sent == ["/clear", "Read it."]
    assert (box.text, box.stash) == (draft, "")


async def test_blanks_are_taken_out():
    assert (await rotated(FakeBox("  \n "))).sent == ["/clear", "Read it."]


async def test_a_stash_is_never_overwritten():
    box = FakeBox("second", stash="first")
    assert await ready(composing(box)) == (False, ["a draft is in the box and another one is stashed"])
    assert (box.text, box.stash, box.keys) == ("second", "first", [])


async def test_a_draft_that_is_about_to_come_back_is_waited_for():
    box = FakeBox(stash="the draft")
    driver = composing(box)
    await driver.prompt("/clear", never)
    box.text, box.stash, box.looks = "", "the draft", 0  # the client is slower than we are

    def comes_back(box):
        if box.looks == 6:
            box.text, box.stash = box.stash, ""

    box.before_look = comes_back
    assert (await ready(driver, "Read it."))[0]
    assert box.looks > 6
    assert (box.text, box.stash) == ("", "the draft")


HELD = {
    "a dialog is open: permission prompt": {"activity": Activity.WAITING, "detail": "permission prompt"},
    "a dialog is open": {"activity": Activity.WAITING},
    "the client is busy": {"activity": Activity.BUSY},
    "the client's state cannot be read": {"activity": Activity.UNKNOWN},
    "another view covers the input box": {"covered": True},
    "the terminal is too small to show the input box: enlarge it": {"covered": True, "height": 7},  # C31
}


@pytest.mark.parametrize(("reason", "state"), HELD.items(), ids=HELD.keys())
async def test_no_key_goes_out_while_something_holds(reason, state):
    box = FakeBox("a draft", **state)
    assert await ready(composing(box), "a draft") == (False, [reason])
    assert await composing(box).prompt("text", never) == reason
    assert box.keys == []


async def test_a_client_that_only_a_background_agent_keeps_busy_is_idle():
    box = FakeBox(activity=Activity.BUSY)
    assert (await ready(composing(box, background=True)))[0]


async def test_what_a_person_queued_goes_first():
    box = FakeBox(activity=Activity.BUSY, queued=True)

    def turn_ends(box):
        if box.looks == 3:
            box.activity, box.queued = Activity.IDLE, False
        if box.looks == 6:
            box.covered = True

    box.before_look = turn_ends
    clear, reasons = await ready(composing(box))
    assert (clear, reasons[-1], box.keys) == (False, "another view covers the input box", [])


async def test_a_print_of_a_queue_is_no_queue():
    box = FakeBox(queued=True)
    assert (await ready(composing(box)))[0]


async def test_a_person_who_types_is_waited_for():
    box = FakeBox("a", typed_ago=0.0)
    box.before_look = lambda box: setattr(box, "text", box.text + "b") if box.looks < 10 else None
    clear, reasons = await ready(composing(box))
    assert (clear, reasons) == (True, ["the user is typing"])
    assert box.stash.startswith("abbbbb")


async def test_text_of_ours_that_stands_alone_in_the_box_is_taken_out():
    box = FakeBox("/clear")
    assert (await ready(composing(box), "/clear"))[0]
    assert (box.text, box.stash) == ("", "")


async def test_a_dialog_that_opens_after_the_text_keeps_the_enter_back_and_the_text_is_taken_out_later():
    box = FakeBox(after_paste=lambda box: setattr(box, "activity", Activity.WAITING))
    driver = composing(box)
    assert await driver.prompt("a message", never) == "a dialog is open"
    assert box.keys == ["paste a message"]

    box.activity = Activity.IDLE
    assert (await ready(driver))[0]
    assert (box.text, box.stash, box.sent) == ("", "", [])


async def test_text_that_got_mixed_with_a_persons_is_taken_off_and_theirs_stays():
    box = FakeBox(after_paste=lambda box: setattr(box, "text", "x" + box.text))
    assert await composing(box).prompt("/clear", never) == "the input box did not show the text"
    assert (box.text, box.sent) == ("x", [])


async def test_a_prompt_that_was_blocked_and_put_back_is_taken_apart():
    box = FakeBox()
    driver = composing(box)
    await driver.prompt("Read it.", never)
    box.text = "my draft Read it."
    assert (await ready(driver, "Read it."))[0]
    assert (box.text, box.stash) == ("", "my draft ")


async def test_gives_way_before_the_enter():
    box = FakeBox()
    answers = iter([False, True])
    assert await composing(box).prompt("text", lambda: next(answers)) == "gave way"
    assert (box.text, box.sent) == ("", [])


async def test_gives_way_before_the_first_key():
    box = FakeBox("draft")
    assert await ready(composing(box), leave=lambda: True) == (False, [])
    assert await composing(FakeBox()).prompt("text", lambda: True) == "gave way"
    assert box.keys == []


async def test_a_box_that_is_not_empty_is_not_typed_into():
    box = FakeBox("draft")
    assert await composing(box).prompt("text", never) == "the input box is not empty"
    assert box.keys == []


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        ("a draft", STASH, "the draft in the box could not be stashed"),
        ("own", Key.BACKSPACE, "text that sm typed is in the box and cannot be removed"),
    ],
)
async def test_a_key_that_does_nothing_is_not_pressed_for_ever(text, key, reason, monkeypatch):
    monkeypatch.setattr(module, "EFFECT_TIMEOUT_S", 0.01)
    box = FakeBox(text, deaf_to=frozenset({key}))
    clear, reasons = await ready(composing(box), "own")
    assert (clear, reasons[-1]) == (False, reason)
    assert len(box.keys) == module.MAX_ATTEMPTS


async def test_a_pane_that_is_gone_holds_and_says_so():
    class Gone(FakeBox):
        async def look(self):
            raise PaneError("no pane %1")

    assert await ready(composing(Gone())) == (False, ["no pane %1"])


# --- while the client works ----------------------------------------------------------------------------------------


def queueing(text="", **values):
    """A client that works: what is sent to it is queued."""

    def queue(box):
        box.queued = box.queued or bool(box.sent)

    return FakeBox(text, activity=Activity.BUSY, before_look=queue, **values)


async def urgent(box, text="look here"):
    driver = composing(box)
    assert (await ready(driver, busy=True, patience=0.0))[0]
    return await driver.prompt(text, never, now=True)


async def test_a_client_that_works_takes_a_text_and_is_told_to_read_it_now():
    box = queueing()
    assert await urgent(box) is None
    assert (box.sent, box.keys[-1]) == (["look here"], "C-x C-s")


async def test_a_draft_is_never_sent_on_with_it():
    box = queueing("half a thought")
    assert await urgent(box) is None
    assert (box.sent, box.text) == (["look here"], "half a thought")
    assert box.keys[-3:] == [STASH, "C-x C-s", STASH]


async def test_where_nothing_is_queued_no_chord_is_pressed(monkeypatch):
    monkeypatch.setattr(module, "QUEUE_TIMEOUT_S", 0.02)
    box = FakeBox()
    assert await urgent(box) is None
    assert box.keys == ["paste look here", Key.ENTER]


async def test_a_dialog_keeps_even_an_urgent_text_out():
    box = FakeBox(activity=Activity.WAITING)
    assert (await ready(composing(box), busy=True))[0] is False
    assert await composing(box).prompt("look here", never, now=True) == "a dialog is open"
    assert box.keys == []


async def test_a_person_who_types_is_waited_for_only_so_long(monkeypatch):
    monkeypatch.setattr(module, "EFFECT_TIMEOUT_S", 0.05)

    def types(box):
        if not box.stash:
            box.text += "x"

    box = FakeBox("a", typed_ago=0.0, before_look=types)
    assert not (await ready(composing(box)))[0]
    assert (await ready(composing(box), patience=0.05))[0]
    assert box.stash


# --- C10: what a person types between our look and our Enter ---------------------------------------------------------


class Blocking(FakeBox):
    """The prompt that was mixed is kept from the model, and the client puts it back into the box."""

    async def press(self, key, times=1):
        stash = self.stash
        await FakeBox.press(self, key, times)
        if key == Key.ENTER and self.sent[-1] not in {"/clear", "Read it."} and not self.sent[-1].startswith("/clear "):
            self.text, self.stash = self.sent.pop(), stash


def person_types(box, words):
    """Just before the Enter of our first text."""
    plain, typed = box.press, []

    async def press(key, times=1):
        if key == Key.ENTER and not typed:
            typed.append(words)
            box.type(words)
        await plain(key, times)

    box.press = press


@pytest.mark.parametrize("words", ["!touch X", "/status", "then\n  more of it", "検査 it", "x"])
async def test_words_behind_our_command_are_blocked_taken_out_and_put_back(words):
    box = Blocking()
    driver = composing(box)
    assert (await ready(driver, "/clear"))[0]
    person_types(box, words)
    assert await driver.prompt("/clear", never) is None
    assert box.text == f"/clear{words}"
    assert (await ready(driver, "/clear"))[0]
    assert (box.text, box.stash) == ("", words)
    assert await driver.prompt("/clear", never) is None
    assert (await ready(driver, "Read it.", "/clear"))[0]
    assert await driver.prompt("Read it.", never) is None
    assert (box.sent, box.text) == (["/clear", "Read it."], words)


async def test_words_behind_our_command_continue_the_draft_that_is_stashed():
    box = Blocking("and fix")
    driver = composing(box)
    assert (await ready(driver, "/clear"))[0]
    person_types(box, ", please")
    assert await driver.prompt("/clear", never) is None
    for text in ("/clear", "Read it."):
        assert (await ready(driver, text))[0]
        assert await driver.prompt(text, never) is None
    assert (box.sent, box.text) == (["/clear", "Read it."], "and fix, please")


@pytest.mark.parametrize("draft", ["", "fix"])
async def test_words_that_a_command_swallowed_come_back_behind_the_draft(draft):
    box = Blocking(draft)
    driver = composing(box)
    assert (await ready(driver, "/clear"))[0]
    person_types(box, " the bug")
    assert await driver.prompt("/clear", never) is None
    assert (await ready(driver, "Read it.", "/clear"))[0]
    assert await driver.prompt("Read it.", never) is None
    assert box.sent == ["/clear the bug", "Read it."]
    assert box.text == f"{draft} the bug"


async def test_a_draft_that_begins_like_a_command_of_ours_stays_as_it_is():
    box = await rotated(FakeBox("/clear the table, then lay it"))
    assert box.text == "/clear the table, then lay it"


async def test_a_client_that_has_not_read_a_text_is_typed_nothing_else():
    box = FakeBox(reads=False)
    driver = composing(box)
    assert await driver.prompt("hello", never) == "the input box did not show the text"
    assert await ready(driver, "hello") == (False, [module.BEHIND])
    assert box.keys == ["paste hello"]

    box.reads = True
    box.read()
    assert (await ready(driver, "hello"))[0]
    assert await driver.prompt("hello", never) is None
    assert (box.sent, box.text) == (["hello"], "")


async def test_a_text_that_appears_late_is_removed_before_it_is_typed_again():
    box = FakeBox(after_paste=lambda box: setattr(box, "text", ""))
    driver = composing(box)
    assert await driver.prompt("hello", never) == "the input box did not show the text"
    box.after_paste, seen = lambda _: None, box.looks
    box.before_look = lambda box: setattr(box, "text", "hello") if box.looks == seen + 5 else None
    assert (await ready(driver, "hello"))[0]
    assert box.looks > seen + 5
    assert await driver.prompt("hello", never) is None
    assert (box.sent, box.text) == (["hello"], "")


async def test_an_enter_that_is_not_read_yet_is_waited_for_with_no_key():
    box = FakeBox(after_paste=lambda box: setattr(box, "reads", False))
    driver = composing(box)
    assert await driver.prompt("hello", never) is None
    pressed = list(box.keys)
    assert await ready(driver, "hello") == (False, [module.BEHIND])
    assert box.keys == pressed
    box.read()
    assert box.sent == ["hello"]


async def test_what_was_typed_and_not_sent_is_withdrawn_as_soon_as_it_appears():
    box = FakeBox(reads=False)
    driver = composing(box)
    assert await driver.withdraw() is None
    await driver.prompt("hello", never)
    assert await driver.withdraw() == module.BEHIND
    box.reads = True
    box.read()
    assert await driver.withdraw() is None
    assert (box.text, box.keys) == ("", ["paste hello", Key.BACKSPACE])
    box.text = "hello"  # by now the user's own word
    assert await driver.withdraw() is None
    assert box.text == "hello"


async def test_what_never_appears_is_withdrawn_with_no_key():
    box = FakeBox(after_paste=lambda box: setattr(box, "text", ""))
    driver = composing(box)
    await driver.prompt("hello", never)
    assert await driver.withdraw() == module.APPEARS
    await asyncio.sleep(module.APPEARS_TIMEOUT_S)
    assert await driver.withdraw() is None
    assert box.keys == ["paste hello"]


async def test_nothing_is_withdrawn_while_a_dialog_is_open_or_from_before_words_of_the_users():
    box = FakeBox(after_paste=lambda box: setattr(box, "activity", Activity.WAITING))
    driver = composing(box)
    await driver.prompt("hello", never)
    assert await driver.withdraw() == "a dialog is open"
    box.activity, box.text = Activity.IDLE, "hello there"
    assert await driver.withdraw() is None
    assert (box.text, box.keys) == ("hello there", ["paste hello"])


async def test_what_was_submitted_is_left_to_the_client_for_a_moment_and_then_is_the_users():
    box = FakeBox()
    driver = composing(box)
    await driver.prompt("hello", never)
    assert await driver.withdraw() == module.SUBMITTED
    box.covered = True  # as by the client's own transcript view: nothing of ours is there
    assert await driver.withdraw() is None
    box.covered = False
    await asyncio.sleep(module.BLOCKED_RETURN_S)
    assert await driver.withdraw() is None
    box.text = "hello"
    assert await driver.withdraw() is None
    assert (box.sent, box.text, box.keys) == (["hello"], "hello", ["paste hello", Key.ENTER])


async def test_an_enter_that_is_not_read_yet_is_waited_for_before_another_driver_takes_over():
    box = FakeBox(after_paste=lambda box: setattr(box, "reads", False))
    driver = composing(box)
    await driver.prompt("hello", never)
    await asyncio.sleep(10 * module.APPEARS_TIMEOUT_S)
    assert await driver.withdraw() == module.BEHIND
    box.read()
    assert await driver.withdraw() == module.SUBMITTED
