"""What is read from screens that the real client showed (2.1.328); `screens/*.txt` holds them, the cursor first."""

import itertools
from pathlib import Path

import pytest

from sm.providers.claude.keys.screen import Box, echoes, read_box, without_ghost

SCREENS = Path(__file__).parent / "screens"


def captured(name):
    head, *lines = (SCREENS / f"{name}.txt").read_text().split("\n")
    column, row = map(int, head.split())
    return tuple(lines), (column, row)


def box(text="", **rest):
    return Box(**{"text": text, "stashed": False, "cursor_inside": True, "shell_mode": False, **rest})


SHOWN = {
    "fresh": box(),
    "idle": box(),
    "busy": box(),
    "typed": box("hello world"),
    "three_lines": box("one\ntwo\nthree"),
    "folded_paste": box("[Pasted text #1 +8 lines]"),
    "half_a_command": box("/cle"),
    "shortcuts": box(),
    "stashed": box(stashed=True),
    "named": box(),
    "shell_mode": box(shell_mode=True),
    "shell_command": box("ls", shell_mode=True),
    "search": box(cursor_inside=False),
    "model_over_the_box": box(cursor_inside=False),
    "btw_over_the_box": box(cursor_inside=False),
    "queued": box(queued=True),
    "queued_and_draft": box("my draft", queued=True),
    "transcript": None,
    "model_dialog": None,
    "config_dialog": None,
    "permission": None,
    "trust": None,
}


@pytest.mark.parametrize(("name", "expected"), SHOWN.items(), ids=SHOWN.keys())
def test_a_screen_of_the_client_is_read(name, expected):
    assert read_box(*captured(name)) == expected


def test_every_captured_screen_is_used():
    assert {path.stem for path in SCREENS.glob("*.txt")} == {*SHOWN, "wrapped"}


def test_where_the_screen_wrapped_a_line_is_no_difference():
    found = read_box(*captured("wrapped"))
    assert found.holds("word " * 60)
    assert not found.holds("word " * 59)
    assert found.ends_with("word word")


def test_an_empty_screen_has_no_box():
    assert read_box((), (0, 0)) is None
    assert read_box(("", "$ ", ""), (2, 1)) is None


RULE = "─" * 30


def drawn(*content, above=RULE, below=RULE, after=()):
    return ("some output", "", above, *content, below, "  manual mode", *after)


@pytest.mark.parametrize(
    ("content", "cursor", "blanks"),
    [
        (("❯\xa0",), (2, 3), 0),
        (("❯\xa0",), (5, 3), 3),
        (("❯\xa0", "  "), (2, 4), 1),
        (("❯\xa0", "  "), (4, 4), 3),
        (("❯\xa0x",), (3, 3), 0),
    ],
)
def test_blanks_are_seen_by_where_the_cursor_stands(content, cursor, blanks):
    found = read_box(drawn(*content), cursor)
    assert (found.blanks, found.empty) == (blanks, not blanks and not found.text)


@pytest.mark.parametrize("rule", [RULE, f"{RULE} name ─", " a very long name… ─", "──── a — ─── b ─"])
def test_the_upper_rule_may_hold_the_sessions_name(rule):
    assert read_box(drawn("❯\xa0hi", above=rule), (4, 3)).text == "hi"


def test_a_dialog_below_an_older_box_hides_it():
    assert read_box(drawn("❯\xa0hi", after=(RULE, " Do you want to proceed?", " ❯ 1. Yes")), (1, 8)) is None


def test_what_an_agent_prints_is_no_box():
    quoted = tuple(f"  {line}" for line in drawn("❯\xa0printed"))
    assert read_box((*quoted, *drawn("❯\xa0real")), (6, 9)).text == "real"


GHOSTS = {
    "\x1b[7mP\x1b[0;2mress up to edit\x1b[0m": "",
    "he\x1b[7ml\x1b[0;2mlo\x1b[0m": "he",
    "typed\x1b[7m \x1b[0m": "typed ",
    "mid\x1b[7md\x1b[27mle": "middle",
    "\x1b[2mTry this\x1b[22m kept": " kept",
    "\x1b[38;2;2;2;2mcoloured\x1b[38;5;2m too": "coloured too",
    "\x1b[1;2mdim\x1b[m plain": " plain",
    "a\x1b]8;;http://x\x07link\x1b]8;;\x07b": "alinkb",
}


@pytest.mark.parametrize(("line", "text"), GHOSTS.items())
def test_a_suggestion_is_no_text(line, text):
    assert without_ghost(line) == text


def test_a_line_cut_into_any_two_pieces_never_fails():
    line = "x\x1b[38;5;246m❯\xa0\x1b[7m\x1b[39mP\x1b[0;2mress up\x1b[0m"
    for first, second in itertools.pairwise(range(len(line))):
        without_ghost(line[:first])
        without_ghost(line[second:])


SUBMITTED = {
    ("❯ /clear", ""): "",
    ("❯ /clear the bug  in x", ""): " the bug  in x",
    ("❯ /clear one", "  two"): " one\ntwo",
    ("● Unknown command: /clearx. Did you mean /clear?", ""): "x",
    ("● Unknown command: /clearthen", "", "● Args from unknown skill: look", "  at it"): "then look\nat it",
}


@pytest.mark.parametrize(("lines", "words"), SUBMITTED.items())
def test_what_was_submitted_behind_a_command_is_seen(lines, words):
    """C10: as 2.1.328 shows it."""
    [found] = echoes(("❯ hello", "● /clear is a command", *lines), "/clear")
    assert (found.words, found.unknown) == (words, "Unknown" in lines[0])
