"""What `sm list` and `sm context` say of a context: warnings, late compactions, limits (C12, C20, C36)."""

import pytest

from sm.cli.descriptions import clock, context_line, handoff_line, moment
from sm.cli.sessions import notes

AT = 1_795_882_000.0
LATER = 4_000_000_000.0


def session(**members):
    plain = {"id": "0123abcd", "name": "api", "status": "working", "detail": "", "handoff": {"phase": None}}
    return {**plain, "context": {"crossed_at": {}}, **members}


def test_a_session_with_nothing_to_say_has_no_note():
    assert notes([session()]) == []


def test_a_warned_agent_that_has_not_handed_off_is_noted():
    warned = {"crossed_at": {"warning": AT - 600, "critical": AT}}
    expected = f"api: critical warning given at {clock(AT)}, no handoff yet (sm context api)"
    assert notes([session(context=warned)]) == [expected]
    assert notes([session(context=warned, handoff={"phase": "pending"})]) == []
    assert notes([session(context=warned, status="exited")]) == []


@pytest.mark.parametrize(("count", "words"), [(1, "1 time"), (3, "3 times")])
def test_a_compaction_that_came_too_late_is_noted(count, words):
    assert notes([session(handoffs_too_late=count)]) == [f"api: compacted {words} before a handoff"]


def test_a_usage_limit_is_noted_with_its_end():
    limit = {"kind": "five_hour", "resets_at": LATER, "since": AT - 9, "asks": False}
    assert notes([session(status="limited", detail="limit reached", limit=limit)]) == [
        f"api: limit reached at {moment(LATER)}"
    ]
    assert notes([session(status="waiting", limit=limit)]) == [f"api: 5-hour limit until {moment(LATER)}"]
    assert notes([session(status="waiting", limit={**limit, "kind": "usage", "resets_at": None})]) == [
        "api: usage limit"
    ]
    limit["asks"] = True
    assert notes([session(status="limited", detail="over: sm limits --resume", limit=limit)]) == [
        "api: over: sm limits --resume api"
    ]


def test_a_reading_says_what_limits_its_worth():
    view = {"projected": 50_000, "percent": 29.9, "usable": 167_000, "level": "ok"}
    assert context_line(view).endswith("50,000 tokens (29.9% of usable 167k), ok")
    assumed = context_line({**view, "window_assumed": True, "stale": True, "crossed_at": {"warning": AT}})
    assert "window of this model assumed" in assumed
    assert "newer work not counted yet" in assumed
    assert f"warning given at {clock(AT)}" in assumed


def test_a_cleared_context_has_no_document():
    assert handoff_line({"phase": "done", "path": None}) == "done (no document: sm clear)"
    assert handoff_line({"phase": "done", "path": "/a/b.md"}) == "done (/a/b.md)"
