from sm.core.model.history import DAY_S, Context, SessionHistory

NOW = 100 * DAY_S


def test_contexts_are_found_by_time_and_by_conversation():
    contexts = (Context(1, "c1", "/t1", NOW - 90 * DAY_S, 0), Context(2, "c2", "/t2", NOW - 80 * DAY_S, 500))
    found = SessionHistory("s", "claude", ended=False, last_activity=NOW, contexts=contexts)
    assert [found.context_at(NOW - days * DAY_S) for days in (99, 90, 85, 80, 0)] == [1, 1, 1, 2, 2]
    assert [found.context_of(name) for name in ("c1", "c2", "unknown")] == [1, 2, 1]
