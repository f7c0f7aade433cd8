"""The live terminal in a real browser: the screen as it changes, locked and unlocked, and a hostile program in it."""

import asyncio

import pytest

from sm.core.ports.panes import View
from sm.web.pages.screen import harmless, screen_of
from tests.web.page_rig import ShownPane, begin, eventually

pytestmark = pytest.mark.timeout(60)
RED = "\x1b[31mred\x1b[0m"
HOSTILE = [
    "\x1b]0;owned title\x07",
    "\x1b]2;owned title\x1b\\",
    "\x1b]52;c;b3duZWQ=\x07",
    "\x1b]8;;javascript:alert(1)\x1b\\link\x1b]8;;\x1b\\",
    "\x1b]8;;https://evil.example/\x07link\x1b]8;;\x07",
    "\x1b[c",
    "\x1b[>c",
    "\x1b[6n",
    "\x1b[5n",
    "\x1b]10;?\x07",
    "\x1b]4;1;?\x07",
    '\x1bP$q"p\x1b\\',
    "\x1b[21t",
    "\x1b[?1000h\x1b[?1003h\x1b[?1006h",
    "\x1b[?2004h",
    "\x1b[?1049h",
    "\x1bc",
    "\x1b[8;9999;9999t",
    "\x05",
    "\x9d52;c;b3duZWQ=\x9c",
    "\x1b_payload\x1b\\",
    "\x1b^payload\x1b\\",
    "\x1bXpayload\x1b\\",
]  # fmt: skip


async def opened(here, pane, **wanted):
    session = await here.api.new("me")
    await begin(here.api, session)
    here.api.engine.ports.panes.pane = lambda _: pane
    tab = await here.tab(**wanted)
    await tab.page.goto(here.at(f"/web/sessions/{session}"))
    await tab.page.locator("#terminal .xterm-rows").wait_for()
    await tab.page.locator("#terminal").scroll_into_view_if_needed()  # what nobody sees it does not draw
    return tab


def shown(tab, text):
    return tab.page.locator("#terminal .xterm-rows", has_text=text)


async def test_the_screen_is_shown_and_what_changes_of_it(here):
    pane = ShownPane("first", RED)
    tab = await opened(here, pane)
    await shown(tab, "first").wait_for()
    pane.lines = ["first", "another"]
    await shown(tab, "another").wait_for()
    assert (tab.complaints, await tab.violations()) == ([], [])


async def test_colours_of_any_kind_are_shown_and_refused_by_no_policy(here):
    codes = {"31": "named", "38;5;208": "of 256", "38;2;1;200;3;48;2;9;9;90": "of millions", "4;9;2": "lines"}
    tab = await opened(here, ShownPane(*(f"\x1b[{code}m{words}\x1b[0m" for code, words in codes.items())))
    await shown(tab, "of millions").wait_for()
    look = "(span) => [getComputedStyle(span).color, getComputedStyle(span).backgroundColor]"
    span = tab.page.locator("#terminal .xterm-rows span", has_text="of millions")
    assert await span.evaluate(look) == ["rgb(1, 200, 3)", "rgb(9, 9, 90)"]
    assert (tab.complaints, await tab.violations()) == ([], [])


async def test_locked_it_sends_nothing_and_unlocked_what_is_typed(here):
    pane = ShownPane("box")
    tab = await opened(here, pane)
    await shown(tab, "box").wait_for()
    await tab.page.locator("#terminal").click()
    await tab.page.keyboard.type("no")
    await tab.page.get_by_role("button", name="Unlock the keyboard").click()
    await tab.page.keyboard.type("yes")
    await tab.page.keyboard.press("Enter")
    await eventually(lambda: pane.typed == b"yes\r")
    await tab.page.keyboard.press("Control+Shift+L")
    await tab.page.get_by_role("button", name="Unlock the keyboard").wait_for()
    await tab.page.keyboard.type("no")
    await asyncio.sleep(0.2)
    assert pane.typed == b"yes\r"


async def test_a_read_only_device_sees_the_screen_and_types_nothing(here):
    pane = ShownPane("box")
    tab = await opened(here, pane, read_only=True)
    await shown(tab, "box").wait_for()
    assert await tab.page.get_by_role("button", name="Unlock the keyboard").count() == 0
    path = tab.page.url.partition(str(here.port))[2]
    refused = await tab.page.evaluate("(path) => smCall('POST', path, {keys: 'x'})", f"{path}/keys")
    assert "read-only" in refused
    assert pane.typed == b""


async def test_a_session_may_not_type_into_a_pane_nor_see_another_ones(here):
    session, other = await here.api.new("me"), await here.api.new("other")
    for who in (session, other):
        token = here.api.tokens[who]
        assert (await here.api.call("POST", f"/web/sessions/{session}/keys", token, {"keys": "x"}))[0] == 403
        assert (await here.api.call("GET", f"/web/sessions/{session}/screen", token))[0] == 403


async def test_what_a_hostile_program_prints_moves_nothing_but_colours(here):
    pane = ShownPane(*(f"a{text}b" for text in HOSTILE), "end")
    tab = await opened(here, pane)
    await shown(tab, "end").wait_for()
    await tab.page.get_by_role("button", name="Unlock the keyboard").click()
    pane.lines = [*pane.lines, "more"]
    await shown(tab, "more").wait_for()
    await asyncio.sleep(0.3)
    assert pane.typed == b""  # no answer of the terminal was taken for keys of the user
    assert await tab.page.title() == "me · sm"
    assert await tab.page.locator("#terminal a").count() == 0
    assert (tab.complaints, await tab.violations()) == ([], [])


@pytest.mark.parametrize("text", HOSTILE)
def test_each_of_them_is_taken_out_of_a_line(text):
    assert harmless(f"a{text}b").replace("link", "") == "ab"


def test_colours_and_words_stay():
    assert harmless(f"x {RED} é 日本 \x1b[38;2;1;2;3m\x1b[4:3mz") == f"x {RED} é 日本 \x1b[38;2;1;2;3m\x1b[4:3mz"


def test_a_sequence_that_is_cut_off_takes_nothing_but_itself():
    assert harmless("a\x1b") == "a"
    assert harmless("a\x1b[31") == "a31"
    assert harmless("a\x1b]52;c;xyz") == "a"


def test_only_lines_that_differ_are_sent():
    view = View(("one", "two", "three"), (1, 2), dead=False, typed_ago=None, size=(80, 3))
    screen, lines = screen_of(view, [])
    assert screen.lines == {0: "one", 1: "two", 2: "three"}
    later = View(("one", "2", "three"), (1, 2), dead=False, typed_ago=None, size=(80, 3))
    assert screen_of(later, lines)[0].lines == {1: "2"}
    assert screen_of(View(("one",), (0, 0), dead=False, typed_ago=None, size=(80, 3)), lines)[0].lines == {
        1: "",
        2: "",
    }
