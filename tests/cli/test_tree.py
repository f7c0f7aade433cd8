"""The order of `sm list`, which sessions it shows, and how long a name may be."""

import time

import pytest

from sm.cli.tree import session_columns
from sm.fleet import LOST_FOR_S, in_tree, need, needs_answer


def session(name, status="idle", **members):
    plain = {"id": name, "name": name, "status": status, "parent": None, "created": 1.0, "last_activity": 1.0}
    return {**plain, "lost_at": None, "loop_guard": {"paused": False}, **members}


def order(*sessions):
    return [(depth, found["name"]) for depth, found in in_tree(list(sessions))]


def test_those_that_need_the_user_come_first():
    lost = session("lost", "exited", lost_at=time.time())
    found = order(
        session("done", "exited"), session("works", "working"), session("idles"), session("quiet", "silent"), lost,
        session("full", "blocked"), session("paused", loop_guard={"paused": True}), session("asks", "waiting"),
    )  # fmt: skip
    assert [name for _, name in found] == ["asks", "full", "paused", "lost", "quiet", "idles", "works", "done"]


def test_a_parent_comes_with_its_child_and_before_others():
    boss, kid, other = session("boss", "working"), session("kid", "waiting", parent="boss"), session("other")
    calm = session("calm", "working", parent="boss")
    assert order(other, boss, calm, kid) == [(0, "boss"), (1, "kid"), (1, "calm"), (0, "other")]


def test_equals_keep_their_order():
    assert order(session("b"), session("a"), session("c")) == [(0, "b"), (0, "a"), (0, "c")]


@pytest.mark.parametrize(
    ("found", "answer"),
    [
        (session("a", "waiting"), True),
        (session("a", "blocked"), True),
        (session("a", loop_guard={"paused": True}), True),
        (session("a", budget={"level": "paused", "text": "used"}), True),
        (session("a", budget={"level": "warned", "text": "nearly used"}), False),
        (session("a", "silent"), False),
        (session("a", "crashed", lost_at=time.time()), False),
        ({"id": "a", "name": "a", "status": "waiting", "parent": None}, True),
    ],
)
def test_who_waits_for_an_answer(found, answer):
    assert needs_answer(found) is answer


def test_what_was_lost_long_ago_needs_nothing():
    assert need(session("a", "crashed", lost_at=time.time() - LOST_FOR_S - 60)) == need(session("a", "exited"))
    assert need(session("a", "something new")) > need(session("a", "exited"))


def test_a_long_name_ends_with_a_mark():
    names = session_columns([session("x" * 24), session("y" * 25), session("日本" * 10)])[0].cells
    assert list(names) == ["x" * 24, "y" * 23 + "…", "日本" * 5 + "日…"]
