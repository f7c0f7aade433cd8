"""What the cells of a session's line say, in words that are true and read well."""

from dataclasses import replace

import pytest

from sm.fleet import rows
from sm.tui.sessions.cells import COLUMNS, gauge

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
