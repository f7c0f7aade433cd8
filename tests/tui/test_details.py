"""The context of a session over time: what of its events is a reading, what a mark, and where both are drawn."""

import time

import pytest

from sm.tui.details.box import _rotation_lines
from sm.tui.details.chart import HEIGHT, chart
from sm.tui.details.history import SIGN_OF, SIGNS, ChartContent, ChartReading, ChartSign, history


def test_readings_are_shares_of_what_could_be_used_then_and_what_happened_has_a_sign():
    words = ("started", "warned: warning", "warned: critical", "handoff", "rotated", "compacted", "something new")
    found = history(
        {
            "at": [1.0, 2.0, 3.0],
            "tokens": [60, 70, 80],
            "usable": [100, None, 1000],
            "marks": [{"at": float(at), "words": each} for at, each in enumerate(words)],
        }
    )
    assert found.readings == (ChartReading(1.0, 60.0, 60), ChartReading(3.0, 8.0, 80))
    assert [(mark.at, mark.sign) for mark in found.marks] == [(1.0, "w"), (2.0, "C"), (4.0, "↻"), (5.0, "≈")]


def test_each_sign_is_explained_below_the_chart():
    assert {*SIGN_OF.values()} == {*SIGNS}


def test_a_chart_of_days_says_which(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    for last, shown in ((3_600.0, "00:00:00"), (200_000.0, "1970-01-01 00:00")):
        drawn = chart(ChartContent((ChartReading(0.0, 1.0, 1), ChartReading(last, 2.0, 2))), 60, None, None).plain
        assert shown in drawn


def test_a_chart_draws_what_was_when_and_marks_below_it():
    readings = (ChartReading(0.0, 25.0, 1), ChartReading(50.0, 100.0, 4), ChartReading(100.0, 0.0, 0))
    found = ChartContent(readings, (ChartSign(50.0, "w"), ChartSign(100.0, "↻")))
    lines = chart(found, 26, 60.0, 80.0).plain.split("\n")
    assert [line[:5] for line in lines[:HEIGHT]] == [f"{share:3.0f}% " for share in (100, 88, 75, 62, 50, 38, 25, 12)]
    columns = [line[5:].ljust(21) for line in lines]
    assert columns[0] == " " * 10 + "█" * 10 + " "
    assert columns[1] == "━" * 10 + "█" * 10 + "━"
    assert columns[3] == "╌" * 10 + "█" * 10 + "╌"
    assert columns[6] == "█" * 20 + " "
    assert columns[8] == " " * 10 + "w" + " " * 9 + "↻"


@pytest.mark.parametrize(
    ("phase", "words"),
    [("done", "done 4 min ago"), ("failed", "failed 4 min ago: no pane"), ("snapshot", "snapshot for 4 min")],
)
def test_a_rotation_says_how_long_it_lasts_or_how_long_ago_it_ended(phase, words):
    note = "no pane" if phase == "failed" else ""
    found = {"handoff": {"phase": phase, "since": 1_000.0, "note": note, "id": "HO-1", "path": "/h.md"}}
    assert [line for line, _ in _rotation_lines(found, 1_240.0)][1] == words


def test_a_chart_without_a_reading_says_so():
    assert chart(ChartContent(), 60, 60.0, 80.0).plain == "no reading of its context yet"
