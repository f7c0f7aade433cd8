"""How long what is left of past contexts is kept."""

import pytest

from sm.core.model.history import DAY_S, Artefact, Context, Document, Retention, SessionHistory
from sm.core.rules.retention import expired, to_prune

NOW = 100 * DAY_S
KEEP = Retention(30 * DAY_S, 0)


def history(session, *, ended=None, state="consumed", snapshot=None):
    """Ended so many days ago; None: it lives."""
    at = NOW - (ended or 0) * DAY_S
    contexts = (Context(1, "c1", "/t1", NOW - 90 * DAY_S, 0), Context(2, "c2", "/t2", NOW - 80 * DAY_S, 500))
    documents = (Document("HO-1", "c1", "/d", NOW - 80 * DAY_S, state),)
    return SessionHistory(session, "claude", ended is not None, at, contexts, documents, snapshot)


def artefact(session, name, size=100, *, days=50, kind="log", current=False):
    return Artefact(kind, session, (1,), f"/{session}/{name}", size, NOW - days * DAY_S, current)


def pruned(artefacts, pasts, retention):
    return [artefact.path for artefact in to_prune(artefacts, pasts, retention, NOW)]


def test_what_an_ended_session_left_goes_after_its_days():
    files = [artefact("old", "log", current=True), artefact("new", "log"), artefact("alive", "log")]
    pasts = [history("old", ended=31), history("new", ended=29), history("alive")]
    assert pruned(files, pasts, KEEP) == ["/old/log"]
    assert pruned(files, pasts, Retention(0, 0)) == []


def test_transcripts_and_documents_are_not_pruned():
    files = [artefact("old", "t", kind="transcript"), artefact("old", "d", kind="handoff")]
    assert pruned(files, [history("old", ended=99)], Retention(DAY_S, 1)) == []


def test_what_belongs_to_no_known_session_goes_by_its_own_age():
    assert pruned([artefact("x", "log", days=31), artefact("x", "new", days=1)], [], KEEP) == ["/x/log"]


@pytest.mark.parametrize("state", ["pending", "active"])
def test_an_open_handoff_keeps_everything_of_an_ended_session(state):
    waiting = history("old", ended=99, state=state)
    assert not expired(waiting, KEEP, NOW)
    assert pruned([artefact("old", "log")], [waiting], Retention(DAY_S, 1)) == []


def test_when_there_is_too_much_the_sessions_that_ended_first_go_first():
    files = [artefact(session, "log") for session in ("b", "a", "c")]
    pasts = [history("a", ended=9), history("b", ended=5), history("c", ended=1)]
    assert pruned(files, pasts, Retention(0, 100)) == ["/a/log", "/b/log"]


def test_then_the_oldest_of_the_living_goes_and_never_what_they_need():
    files = [
        artefact("s", "piece1", days=9),
        artefact("s", "piece2", days=8),
        artefact("s", "piece3", days=7, current=True),
        artefact("s", "log", days=0, current=True),
        artefact("s", "told", days=9, kind="snapshot"),
        artefact("s", "earlier", days=10, kind="snapshot"),
    ]
    assert pruned(files, [history("s", snapshot="/s/told")], Retention(0, 1)) == [
        "/s/earlier",
        "/s/piece1",
        "/s/piece2",
    ]


def test_a_log_goes_with_the_piece_that_tells_its_positions_and_after_all_others():
    files = [
        artefact("s", "log", days=5, current=True),
        artefact("s", "piece2", days=6, current=True),
        artefact("s", "piece1", days=7),
        artefact("s", "snapshot", days=5, kind="snapshot"),
    ]
    ended = [history("s", ended=1)]
    assert pruned(files, ended, Retention(0, 350)) == ["/s/piece1"]
    assert pruned(files, ended, Retention(0, 150)) == ["/s/piece1", "/s/snapshot", "/s/log", "/s/piece2"]
