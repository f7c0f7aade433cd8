"""Rows of a list: who needs the user, and what is said of each."""

import pytest

from sm.cli.tree import session_columns
from sm.fleet import MARKS, NEEDS, ask_words, rows, title
from sm.tui.sessions.cells import gauge
from sm.web.pages.templates import environment

BIDI = "\u202e"


def session(name="a", status="idle", **values):
    return {"id": f"{name:0<8}", "name": name, "status": status, "created": 1.0, "detail": "", **values}


def ask(name="a", number=1, **values):
    shown = {"id": f"ask{number}", "session": f"{name:0<8}", "kind": "permission", "tool": "Bash", "state": "open"}
    return {**shown, "agent": "", "input": {"command": "rm -r build"}, "questions": [], **values}


def test_a_row_says_what_is_asked_since_when_and_by_what_it_is_known():
    waiting = session(
        status="waiting", detail="asks for permission: Bash", since=760.0, seen=998.0, evidence="its hook"
    )
    [row] = rows([waiting], [ask()])
    assert (row.state, row.mark, row.needs_user, row.why) == ("waiting", "?", True, "permission Bash: rm -r build")
    assert (row.since, row.seen, row.evidence) == (760.0, 998.0, "its hook")


def test_what_is_answered_is_not_said_and_of_several_the_first_is():
    asks = [ask(number=1, state="answered"), ask(number=2, tool="Read", input={"file_path": "/x"}), ask(number=3)]
    [row] = rows([session(status="waiting")], asks)
    assert row.why == "permission Read: /x (and 1 more)"


def test_a_context_is_told_with_both_thresholds_as_shares_of_it():
    context = {"projected": 50_000, "usable": 160_000, "percent": 31.3, "warning": 96_000, "critical": 128_000}
    [row] = rows([session(context={**context, "turns_left": 7})], [], [{"id": "a0000000", "spent": {"usd": 1.5}}])
    assert (row.tokens, row.percent, row.warning_percent, row.critical_percent) == (50_000, 31.3, 60.0, 80.0)
    assert (row.turns_left, row.usd) == (7, 1.5)


def test_what_is_not_known_is_none_and_nothing_is_made_up():
    [row] = rows([{"id": "a0000000", "name": "a", "status": "working", "parent": None, "report": None}], [])
    known = (row.percent, row.tokens, row.warning_percent, row.since, row.seen, row.usd, row.branch, row.turns_left)
    assert known == (None,) * len(known)


@pytest.mark.parametrize("field", ["name", "detail", "said", "branch", "dir", "evidence", "model"])
def test_no_text_of_an_agent_acts_on_a_terminal(field):
    [row] = rows([session(**{field: f"\x1b]0;owned\x07{BIDI}x\ny"})], [])
    shown = {"detail": row.why}.get(field) or getattr(row, field)
    assert shown == "?]0;owned??x?y"


def test_what_is_asked_is_one_line_of_bounded_length():
    [row] = rows([session(status="waiting")], [ask(input={"command": "\x1b[31m" + "x" * 5_000})])
    assert row.why.startswith("permission Bash: ?[31mxxx")
    assert len(row.why) == 301


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "permission Bash: rm -r build"),
        ({"agent": "explore"}, "explore: permission Bash: rm -r build"),
        ({"kind": "plan", "tool": "ExitPlanMode", "input": {}}, "plan"),
        ({"kind": "question", "questions": [{"text": "Which?"}, {"text": "When?"}]}, "question: Which? / When?"),
        ({"input": {"other": 1}}, "permission Bash"),
    ],
)
def test_an_ask_in_words(given, words):
    assert ask_words(ask(**given)) == words


def test_each_state_has_a_mark_and_a_place_and_a_new_servers_state_is_shown():
    assert {status for place in NEEDS for status in place} == set(MARKS)
    [row] = rows([session(status="dreaming")], [])
    assert (row.state, row.mark, row.need) == ("dreaming", "~", len(NEEDS))


def test_the_title_counts_the_rows():
    paused = session("p", loop_guard={"paused": True})
    found = [session("w", "waiting"), paused, session("b", "working"), session("c", "rotating"), session("i")]
    found += [session("s", "silent"), session("e", "exited")]
    assert title(rows(found, [])) == "2 need you · 2 work · 1 idle · 1 to look at"
    assert title(rows([session("w", "waiting"), session("b", "working")], [])) == "1 needs you · 1 works"
    assert title([]) == "no session runs"


def test_children_follow_their_parent_with_their_need():
    found = [session("i"), session("p", "working"), session("c", "waiting", parent="p0000000")]
    assert [(row.name, row.depth) for row in rows(found, [])] == [("p", 0), ("c", 1), ("i", 0)]


def test_a_context_that_is_not_known_is_called_so_in_every_list_alike():
    nothing = session(context=dict.fromkeys(("tokens", "projected", "usable", "percent")))
    [row] = rows([nothing], [])
    cell = next(column for column in session_columns([nothing]) if column.head == "CONTEXT").cells[0]
    page = str(environment().get_template("_row.html").module.gauge(row))
    assert [cell, gauge(row)[0][0].strip()] == ["unknown", "unknown"]
    assert ">context unknown<" in page
    assert "?" not in page


def test_a_context_that_is_not_told_at_all_is_not_called_unknown():
    others = {"id": "a0000000", "name": "a", "status": "working", "parent": None, "report": None}
    assert next(column for column in session_columns([others]) if column.head == "CONTEXT").cells == ["-"]


@pytest.mark.parametrize(("kind", "words"), [("five_hour", "5-hour limit"), ("odd", "usage limit")])
def test_a_limit_is_named_whatever_else_the_state_is_about(kind, words):
    [row] = rows([session(status="waiting", detail="asks for permission: Bash", limit={"kind": kind})], [])
    assert row.limit == words


def test_a_row_is_made_again_only_of_another_answer_ask_cost_or_depth():
    answer, parent, known = session("c", "waiting"), session("p"), {}
    [first] = rows([answer], [], known=known)
    assert rows([answer], [], known=known)[0] is first
    assert rows([{**answer, "status": "idle"}], [], known=known)[0].state == "idle"
    assert rows([answer], [ask("c")], known=known)[0].why == "permission Bash: rm -r build"
    assert rows([answer], [], [{"id": answer["id"], "spent": {"usd": 2.0}}], known=known)[0].usd == 2.0
    below = {**answer, "parent": parent["id"]}
    assert rows([below], [], known=known)[0].depth == 0
    assert rows([parent, below], [], known=known)[1].depth == 1
