"""What the cells of a session's line say, in words that are true and read well."""

from dataclasses import replace

import pytest

from sm.fleet import rows
from sm.tui.sessions.cells import (
    COLUMNS,
    GAP,
    GOOD_WORDS,
    MAX_NAME,
    MIN_NAME,
    MIN_WORDS,
    WORDS,
    gauge,
    layout,
)

NOW = 1_000.0
CONTEXT = {"percent": 50.0, "projected": 50_000, "usable": 100_000, "warning": 60_000, "critical": 80_000}
SESSION = {
    "id": "a0000000",
    "name": "a",
    "status": "working",
    "created": 1.0,
    "detail": "",
    "context": CONTEXT,
    "provider": "claude",
    "model": "claude-sonnet-4-5",
    "seen": 995.0,
    "evidence": "its client ran a tool",
}


def row(**values):
    return rows([{**SESSION, **values}], [])[0]


def cell(head, found):
    column = next(column for column in COLUMNS if column.head == head)
    return "".join(text for text, _ in column.cell(found, NOW))


@pytest.mark.parametrize(
    ("percent", "shown"),
    [
        (5, "░░░░░░╎░┃░    5%  "),
        (58, "██████╎░┃░   58%  "),
        (61, "██████░░┃░   61%! "),
        (79, "████████┃░   79%! "),
        (82, "████████░░   82%!!"),
        (130, "██████████  130%!!"),
    ],
)
def test_a_gauge_shows_each_threshold_until_it_is_passed(percent, shown):
    found = "".join(text for text, _ in gauge(replace(row(), percent=float(percent))))
    assert found.replace(" ", "") == shown.replace(" ", "")
    assert len(found) == 17


def test_a_threshold_just_ahead_of_a_rounded_gauge_is_shown():
    context = {**CONTEXT, "percent": 58.0, "warning": 59_000}
    assert "".join(text for text, _ in gauge(row(context=context))).startswith("██████╎░┃░")


def test_evidence_says_how_old_it_is_first():
    assert cell("EVIDENCE", row()) == "<10 s ago: its client ran a tool"
    assert cell("EVIDENCE", row(seen=None)) == "its client ran a tool"
    assert cell("EVIDENCE", row(evidence="")) == ""


@pytest.mark.parametrize(
    ("provider", "model", "shown"),
    [
        ("claude", "claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("codex", "gpt-5.1", "codex gpt-5.1"),
        ("codex", None, "codex"),
    ],
)
def test_a_client_is_named_once(provider, model, shown):
    assert cell("CLIENT", row(provider=provider, model=model)) == shown


NAMES = ("a", "rate limiter", "x" * 40)


@pytest.mark.parametrize("name", NAMES)
def test_no_line_is_wider_than_its_room_and_names_are_whole_before_columns_are_added(name):
    shown = [row(name=name, queued=2, rotations=1, model="m" * 20)]
    for room in range(40, 240):
        found = layout(shown, room)
        heads = [column.head for column, _ in found.columns]
        widths = {column.head: width for column, width in found.columns}
        total = sum(widths.values()) + GAP * (len(widths) - 1)
        assert total <= max(room, 49)  # name, state and context stay
        assert heads[:3] == ["NAME", "STATE", "CONTEXT"]
        assert widths["NAME"] == min(MAX_NAME, max(MIN_NAME, len(name))) or len(heads) == 3
        if WORDS in widths:
            assert (widths[WORDS] >= MIN_WORDS, total) == (True, room)
            assert widths[WORDS] >= GOOD_WORDS or heads[-1] == WORDS
        assert sum(len(segment.text) for segment in found.line(shown[0], NOW)) == len(found.head()) == total


@pytest.mark.parametrize(
    ("room", "more"),
    [
        (58, []),
        (78, [WORDS]),
        (98, [WORDS]),
        (140, [WORDS, "EVIDENCE"]),
        (198, [WORDS, "EVIDENCE", "CLIENT"]),
    ],
)
def test_why_it_is_in_its_state_has_room_before_anything_else(room, more):
    shown = [row(why="permission Bash: rm -r build && make")]
    assert [column.head for column, _ in layout(shown, room).columns][3:] == more
