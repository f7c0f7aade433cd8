"""The context of a session over time: what of its events is a reading, what a mark, and where both are drawn."""

from sm.tui.details.chart import HEIGHT, chart
from sm.tui.details.history import ContextHistory, Mark, Reading, history


def event(kind, at, **data):
    return {"kind": kind, "at": at, "data": data}


def test_readings_warnings_rotations_and_compactions_are_taken_from_events():
    found = history(
        [
            event("ContextRead", 1.0, reading={"tokens": 50, "projected": 60}, usable=100),
            event("ContextReported", 2.0, tokens=70, usable=100),
            event("ContextRead", 3.0, reading={"tokens": None, "projected": None}, usable=100),
            event("ContextRead", 4.0, reading={"tokens": 5, "projected": None}, usable=None),
            event("AgentWarned", 5.0, level="warning"),
            event("AgentWarned", 6.0, level="critical"),
            event("ConversationStarted", 7.0, origin="startup"),
            event("ConversationStarted", 8.0, origin="clear"),
            event("CompactionEnded", 9.0),
            event("ToolUsed", 10.0, tool="x"),
        ]
    )
    assert found.readings == (Reading(1.0, 60.0, 60), Reading(2.0, 70.0, 70))
    assert [(mark.at, mark.sign) for mark in found.marks] == [(5.0, "w"), (6.0, "C"), (8.0, "↻"), (9.0, "≈")]


def test_a_chart_draws_what_was_when_and_marks_below_it():
    readings = (Reading(0.0, 25.0, 1), Reading(50.0, 100.0, 4), Reading(100.0, 0.0, 0))
    found = ContextHistory(readings, (Mark(50.0, "w", "warned"), Mark(100.0, "↻", "rotated")))
    lines = chart(found, 26, 60.0, 80.0).plain.split("\n")
    assert [line[:5] for line in lines[:HEIGHT]] == [f"{share:3.0f}% " for share in (100, 88, 75, 62, 50, 38, 25, 12)]
    columns = [line[5:].ljust(21) for line in lines]
    assert columns[0] == " " * 10 + "█" * 10 + " "
    assert columns[1] == "━" * 10 + "█" * 10 + "━"
    assert columns[3] == "╌" * 10 + "█" * 10 + "╌"
    assert columns[6] == "█" * 20 + " "
    assert columns[8] == " " * 10 + "w" + " " * 9 + "↻"


def test_a_chart_without_a_reading_says_so():
    assert chart(ContextHistory(), 60, 60.0, 80.0).plain == "no reading of its context yet"
