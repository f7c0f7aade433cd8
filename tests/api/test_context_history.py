"""A session's context over its whole life: read page by page, kept, bounded, and true at its ends and peaks."""

import json

import pytest

from sm.api import context_history
from sm.api.context_history import MAX_MARKS, MAX_READINGS, ContextHistory, Mark, Reading

DAY_S = 86_400.0


async def past(api, session, *events):
    """Put events into the database, as a life of that length left them."""

    def insert(connection):
        rows = [(session, at, kind, json.dumps(data)) for at, kind, data in events]
        connection.executemany("INSERT INTO events (session, at, kind, data) VALUES (?, ?, ?, ?)", rows)

    await api.engine.ports.store.database.run(insert)


def reading(at, tokens, usable=100_000):
    return (at, "ContextRead", {"reading": {"tokens": tokens - 5, "projected": tokens}, "usable": usable})


async def told(api, session):
    status, found = await api.call("GET", f"/sessions/{session}/context/history")
    assert status == 200
    return found


async def test_a_life_of_more_events_than_anything_keeps_is_told_from_its_start_to_its_end(api):
    session = await api.new("old")
    at = api.clock.now()
    many = [reading(at + number, 90_000 if number == 7_001 else 10 + number % 50) for number in range(20_000)]
    between = [(at + 30_000, "ToolUsed", {"tool": "Bash"})] * 3_000
    await past(api, session, *many[:10_000], *between, *many[10_000:], reading(at + 40_000, 33))
    found = await told(api, session)
    assert len(found["at"]) == len(found["tokens"]) == len(found["usable"]) <= MAX_READINGS + 1
    assert found["at"][0] < at + 60
    assert (found["at"][-1], found["tokens"][-1], found["usable"][-1]) == (at + 40_000, 33, 100_000)
    assert (max(found["tokens"]), found["at"][found["tokens"].index(90_000)]) == (90_000, at + 7_001)
    assert found["at"] == sorted(found["at"])


async def test_what_was_read_is_not_read_again(api, monkeypatch):
    session = await api.new("a")
    at, asked, page = api.clock.now(), [], context_history._page
    monkeypatch.setattr(
        context_history, "_page", lambda *rest, **named: asked.append(named["after"]) or page(*rest, **named)
    )
    await past(api, session, reading(at, 1), reading(at, 2))
    assert (await told(api, session))["tokens"] == [1, 2]
    await past(api, session, reading(at, 3))
    first = len(asked)
    assert (await told(api, session))["tokens"] == [1, 2, 3]
    assert min(asked[first:]) >= max(asked[:first]) > 0


async def test_what_happened_is_told_in_words_and_a_warning_again_is_none(api):
    session = await api.new("a")
    at = api.clock.now()
    kinds = [
        ("ConversationStarted", {"origin": "startup"}),
        ("AgentWarned", {"level": "warning"}),
        ("AgentWarned", {"level": "critical"}),
        ("AgentWarned", {"level": "critical", "repeated": True}),
        ("HandoffRequested", {}),
        ("ConversationStarted", {"origin": "clear"}),
        ("CompactionEnded", {}),
        ("ConversationStarted", {"origin": "resume"}),
    ]
    before = (await told(api, session))["marks"]
    await past(api, session, *((at + number, *each) for number, each in enumerate(kinds)))
    marks = (await told(api, session))["marks"][len(before) :]
    words = ["started", "warned: warning", "warned: critical", "handoff", "rotated", "compacted", "began"]
    assert [mark["words"] for mark in marks] == words
    assert [mark["at"] - at for mark in marks] == [0, 1, 2, 4, 5, 6, 7]


async def test_what_the_plugin_reports_and_what_is_not_known_are_told_as_such(api):
    session = await api.new("a")
    at = api.clock.now()
    unknown = (at, "ContextRead", {"reading": {"tokens": None, "projected": None}, "usable": None})
    without = (at + 2, "ContextRead", {"reading": {"tokens": 8, "projected": None}, "usable": None})
    await past(api, session, unknown, (at + 1, "ContextReported", {"tokens": 7, "usable": 100}), without)
    found = await told(api, session)
    assert (found["at"], found["tokens"], found["usable"]) == ([at + 1, at + 2], [7, 8], [100, None])


async def test_an_agent_sees_its_own_and_its_childrens_and_no_other(api):
    me, other = await api.new("me"), await api.new("other")
    child = await api.new("child", parent=me)
    path = "/sessions/{}/context/history"
    asked = {name: (await api.call("GET", path.format(name), api.tokens[me]))[0] for name in (me, child, other)}
    assert asked == {me: 200, child: 200, other: 403}


@pytest.mark.parametrize("count", [1, 2, MAX_READINGS, MAX_READINGS + 1, 3 * MAX_READINGS, 10 * MAX_READINGS + 7])
def test_a_history_is_bounded_and_keeps_its_peaks_and_its_end(count):
    history = ContextHistory()
    for number in range(count):
        history.take(Reading(float(number), 1_000 if number % 997 == 5 else number % 100, None))
    assert len(history.readings) <= MAX_READINGS + 1
    assert history.readings[-1] == Reading(float(count - 1), history.last.tokens, None)
    assert [found.at for found in history.readings] == sorted({found.at for found in history.readings})
    peaks = set(range(5, count, 997))
    stretches = {int(found.at) // history.stretch for found in history.readings if found.tokens == 1_000}
    assert stretches == {number // history.stretch for number in peaks}
    assert (count + history.stretch - 1) // history.stretch <= MAX_READINGS


def test_marks_are_bounded_too():
    history = ContextHistory()
    for number in range(10 * MAX_MARKS):
        history.take(Mark(float(number), "rotated"))
    assert MAX_MARKS / 2 <= len(history.marks) <= MAX_MARKS
    assert (history.marks[0].at, history.marks[-1].at >= 9.5 * MAX_MARKS) == (0.0, True)
