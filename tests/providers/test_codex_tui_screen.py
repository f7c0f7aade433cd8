"""What is read from screens that the real client showed (0.171.0); `screens/codex` holds them, the cursor first."""

from pathlib import Path

import pytest

from sm.providers.codex.tui.screen import TuiBox, read_box, refusals

SCREENS = Path(__file__).parent / "screens" / "codex"
SIGN = "\x1b[1m\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}\x1b[0m "
SAID = "\x1b[1m\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} \x1b[0m"
CHOSEN = "\x1b[1;7m\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} 1. Yes, proceed (y)\x1b[0m"
GHOST = f"{SIGN}\x1b[2mAsk Codex to do anything\x1b[0m"
FOOTER = ("", "  a-model default · ~/work", "  ? for shortcuts")


def captured(name):
    head, *lines = (SCREENS / f"{name}.txt").read_text().split("\n")
    column, row = map(int, head.split())
    return tuple(lines), (column, row)


def box(text="", **rest):
    return TuiBox(**{"text": text, "cursor_inside": True, **rest})


SHOWN = {
    "idle": box(),
    "shortcuts": box(),
    "escape_armed": box(),
    "busy": box(working=True),
    "busy_draft": box("draft now", working=True, queued=True),
    "steer": box(working=True, queued=True),
    "queued": box(working=True, queued=True),
    "disabled_command": box(working=True),
    "two_lines": box("one\ntwo"),
    "pasted": box("pre [Pasted Content 1500 chars] post"),
    "many_lines": box("\n".join(f"l{number}" for number in range(23, 60)), clipped=True),
    "half_a_command": box("/cle"),
    "mention": box("see @READ"),
    "shell_mode": box(" sleep 4; echo done", shell_mode=True),
    "permission": None,
    "mcp_permission": None,
    "question": None,
    "model_picker": None,
    "resume_picker": None,
    "agents": None,
    "transcript": None,
    "trust": None,
    "hook_review": None,
    "sign_in": None,
}


@pytest.mark.parametrize(("name", "expected"), SHOWN.items(), ids=SHOWN.keys())
def test_a_screen_of_the_client_is_read(name, expected):
    assert read_box(*captured(name)) == expected


def test_every_captured_screen_is_used():
    assert {path.stem for path in SCREENS.glob("*.txt")} == {*SHOWN, "wrapped"}


def test_where_the_screen_wrapped_a_line_is_no_difference():
    found = read_box(*captured("wrapped"))
    assert found.holds("word " * 60 + "end")
    assert not found.holds("word " * 59 + "end")
    assert not found.at_end


def test_of_a_text_higher_than_the_screen_the_end_is_compared():
    found = read_box(*captured("many_lines"))
    assert found.holds(" " + "\n".join(f"l{number}" for number in range(60)) + " ")
    assert not found.holds("\n".join(f"l{number}" for number in range(61)))
    assert not found.holds("l59")


def shown(*lines, cursor=None):
    rows = ("some output", "", *lines, *FOOTER)
    return read_box(rows, cursor or (2, 2))


@pytest.mark.parametrize(
    ("characters", "pasted", "holds"), [(1_500, " " + "x" * 1_498 + " ", True), (1_499, "x" * 1_500, False)]
)
def test_a_folded_paste_is_known_by_its_length(characters, pasted, holds):
    found = shown(f"{SIGN}\x1b[36m[Pasted Content {characters} chars]\x1b[39m", cursor=(30, 2))
    assert found.holds(pasted) is holds
    assert found.folded


def test_only_all_of_a_text_is_that_text():
    assert shown(f"{SIGN}/clear", cursor=(8, 2)).holds("/clear")
    assert not shown(f"{SIGN}clear", cursor=(7, 2)).holds("/clear")
    assert not shown(f"{SIGN}/clear now", cursor=(12, 2)).holds("/clear")


def test_a_paste_beside_other_text_is_not_that_paste():
    assert not read_box(*captured("pasted")).holds("x" * 1_500)


def test_a_blank_line_in_a_text_does_not_end_it():
    found = shown(f"{SIGN}one", "", "  three", cursor=(7, 4))
    assert found.text == "one\n\nthree"
    assert found.at_end


def test_without_status_lines_the_cursor_tells_the_end():
    assert read_box((f"{SIGN}one", "", "  three"), (7, 2)).text == "one\n\nthree"


def test_blanks_alone_are_content():
    found = shown(f"{SIGN}", cursor=(5, 2))
    assert (found.text, found.blanks, found.empty) == ("", 3, False)


def test_ghost_text_is_none():
    assert shown(GHOST).empty


def test_a_style_lasts_over_the_end_of_a_line():
    sign = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}\x1b[0m my draft"
    assert read_box(("\x1b[1mbold", "", sign, *FOOTER), (10, 2)).text == "my draft"


LIKE_IT = [
    SAID + "hello",
    CHOSEN,
    "  " + SIGN,
    SIGN.replace("[1m", "[1;7m") + "1. Yes",
    SIGN.replace("[1m", "[1;2m") + "x",
    SIGN.replace("[1m", "[0m") + "x",
    SIGN.replace("[0m ", "[1;4m ") + "hello",
    "\x1b[1m>\x1b[0m x",
    "",
]


@pytest.mark.parametrize("line", LIKE_IT)
def test_what_only_looks_like_the_box_is_none(line):
    assert shown(line) is None


def test_a_box_without_the_cursor_takes_no_keys():
    assert not shown(f"{SIGN}x", cursor=(120, 39)).cursor_inside
    assert not shown(f"{SIGN}x", cursor=(0, 0)).cursor_inside
    assert not shown(f"{SIGN}x", cursor=(1, 2)).cursor_inside


def test_an_empty_screen_has_no_box():
    assert read_box((), (0, 0)) is None
    assert read_box(("", "$ ", ""), (2, 1)) is None


def test_a_command_that_was_not_taken_is_counted():
    assert refusals(captured("disabled_command")[0], "/clear") == 1
    assert refusals(captured("disabled_command")[0], "/new") == 0
