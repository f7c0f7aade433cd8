"""The archive as a whole: what is kept of a session, what is turned over, and what goes."""

import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sm.archive.archive import FileArchive
from sm.archive.redaction.redact import no_own_tokens
from sm.archive.terminal.contexts import ContextStart, start_near
from sm.archive.terminal.segments import end_of, read_bytes, segments_of
from sm.archive.throttle import MAX_REST_S, Throttle
from sm.core.errors import SmError
from sm.core.model.history import DAY_S, Context, Document, Retention, SessionHistory
from sm.paths import SmHome, atomic_write
from sm.providers.claude.utterances import utterance
from tests.archive.search.test_indexer import WIPE

S = "0a1b2c3d"


class World:
    def __init__(self, root, retention=Retention(0, 0)):  # noqa: B008  # a frozen value
        self.home = SmHome(root)
        self.home.logs.mkdir()
        self.retention = replace(retention, max_log=10_000)
        self.archive = FileArchive(
            self.home, lambda: self.retention, {"claude": utterance}, no_own_tokens, lambda: True
        )
        self.now = 1_795_900_000.0
        self.ended = False
        self.contexts = [Context(1, "c1", str(root / "t1"), self.now - 500, 0)]
        self.documents = []

    def shows(self, data):
        with self.home.log(S).open("ab") as file:
            file.write(data)

    @property
    def history(self):
        return SessionHistory(S, "claude", self.ended, self.now - 10, tuple(self.contexts), tuple(self.documents))

    def tend(self):
        self.archive.tend([self.history], self.now)


@pytest.fixture
def world(tmp_path):
    found = World(tmp_path)
    yield found
    found.archive.index.close()


@pytest.fixture
def brief(tmp_path):
    """One that keeps the past for a day."""
    found = World(tmp_path, Retention(DAY_S, 0))
    yield found
    found.archive.index.close()


def test_a_log_that_has_grown_is_turned_over_and_compressed(world):
    content = b"".join(b"line %d\r\n" % number for number in range(10_000))
    for start in range(0, len(content), 8_000):
        world.shows(content[start : start + 8_000])
        world.tend()
    pieces = segments_of(world.home.log(S))
    assert len(pieces) > 4
    assert [piece.compressed for piece in pieces[:-2]] == [True] * len(pieces[:-2])
    assert b"".join(read_bytes(world.home.log(S), 0, end_of(world.home.log(S)))) == content


def test_an_ended_sessions_pieces_are_all_compressed(world):
    world.shows(b"x" * 20_000)
    world.tend()
    world.ended = True
    world.tend()
    assert [piece.compressed for piece in segments_of(world.home.log(S))] == [True, False]


def test_what_was_said_and_shown_is_found(world):
    world.shows(b"on screen: okapi\r\n")
    (world.home.root / "t1").write_text('{"type": "user", "message": {"content": "said: zebra"}}\n')
    world.ended = True
    world.tend()
    [shown] = world.archive.search("okapi", None, 5)
    assert (shown.kind, shown.session, shown.context, shown.line) == ("terminal", S, 1, "on screen: okapi")
    assert [(hit.kind, hit.marks) for hit in world.archive.search("zebra", (S,), 5)] == [("transcript", ((6, 11),))]
    with pytest.raises(SmError, match="no word"):
        world.archive.search("--", None, 5)


def deleted(path):
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def overwritten(path):
    deleted(path)
    path.write_bytes(b"garbage" * 10_000)


def emptied(path):
    path.write_bytes(b"")


def passages_broken(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE passages SET text = x'00ff00'")


@pytest.mark.parametrize("lose", [deleted, overwritten, emptied, passages_broken])
def test_an_index_that_is_lost_is_filled_anew_though_nothing_new_is_said_or_shown(world, lose):
    world.shows(b"on screen: okapi\r\n")
    (world.home.root / "t1").write_text('{"type": "user", "message": {"content": "said: zebra"}}\n')
    world.ended = True
    world.tend()
    lose(world.home.search)
    assert world.archive.search("okapi", None, 5) == []
    world.tend()
    assert [len(world.archive.search(word, None, 5)) for word in ("okapi", "zebra")] == [1, 1]
    world.tend()
    assert [len(world.archive.search(word, None, 5)) for word in ("okapi", "zebra")] == [1, 1], "and once"


def test_what_came_last_waits_for_the_next_run(world):
    """Its context may just be being noted."""
    world.shows(b"okapi\r\n" * 500 + b"\r\n")
    world.tend()
    assert world.archive.search("okapi", None, 5) == []
    world.tend()
    assert world.archive.search("okapi", None, 5)


def test_a_context_begins_at_the_wipe_after_the_client_has_said_that_it_leaves(world):
    world.shows(b"first" * 100 + WIPE + b"second" * 100)
    log = world.home.log(S)
    assert [start_near(log, position) for position in (400, 500)] == [ContextStart(500), ContextStart(500)]
    world.contexts.append(Context(2, "c2", None, world.now - 100, 480))
    found = [
        (log_range.start, log_range.end, log_range.paint, log_range.closed)
        for log_range in world.archive.log_ranges(world.history)
    ]
    assert found == [(0, 500, 0, True), (500, end_of(log), 500, False)]


def test_without_a_wipe_a_context_begins_with_that_word_and_its_screen_is_painted_from_before(world):
    world.shows(b"x" * 1_000)
    assert start_near(world.home.log(S), 400) == ContextStart(400, wiped=False)
    world.contexts.append(Context(2, "c2", None, world.now - 100, 400))
    found = [(log_range.start, log_range.end, log_range.paint) for log_range in world.archive.log_ranges(world.history)]
    assert found == [(0, 400, 0), (400, 1_000, 0)]


def test_every_file_of_a_sessions_contexts_is_listed(world):
    world.shows(b"first" * 3_000)
    world.tend()
    world.shows(WIPE + b"second")
    world.contexts.append(Context(2, "c2", None, world.now - 100, 14_990))
    (world.home.root / "t1").write_text("{}\n")
    atomic_write(world.home.snapshot(S, "20261128-084310"), b"snapshot")
    atomic_write(world.home.snapshot("ffffffff", "20261128-084310"), b"another's")
    document = world.home.root / "HO.md"
    document.write_text("document")
    world.documents = [Document("HO-1", "c1", str(document), 5.0, "consumed")]
    found = world.archive.artefacts(world.history)
    assert [(artefact.kind, artefact.contexts, artefact.size) for artefact in found] == [
        ("log", (1,), 15_000),
        ("snapshot", (1,), 8),
        ("transcript", (1,), 3),
        ("handoff", (1,), 8),
        ("log", (2,), len(WIPE) + 6),
    ]


def test_a_log_is_turned_over_at_the_size_that_is_configured_now(world):
    world.shows(b"x" * 9_000)
    world.tend()
    assert len(segments_of(world.home.log(S))) == 1
    world.retention = replace(world.retention, max_log=8_000)
    world.tend()
    world.shows(b"y")
    assert len(segments_of(world.home.log(S))) == 2


def ended_two_days_ago(world):
    return SessionHistory(S, "claude", ended=True, last_activity=world.now - 2 * DAY_S, contexts=tuple(world.contexts))


def test_pruning_removes_files_and_what_the_index_has_of_them(brief):
    world = brief
    world.shows(b"okapi\r\n")
    atomic_write(world.home.snapshot(S, "20261128-084310"), b"snapshot")
    world.ended = True
    world.tend()
    assert world.archive.search("okapi", None, 5)
    world.now += 2 * DAY_S
    history = ended_two_days_ago(world)
    planned = world.archive.prune([history], world.now, dry_run=True)
    assert [artefact.kind for artefact in planned] == ["log", "snapshot"]
    assert all(Path(artefact.path).exists() for artefact in planned)
    world.archive.tend([history], world.now)
    assert not any(Path(artefact.path).exists() for artefact in planned)
    assert list(world.home.archive.iterdir()) == []
    assert world.archive.search("okapi", None, 5) == []


def test_it_prunes_once_a_day(brief):
    world = brief
    history = ended_two_days_ago(world)
    world.tend()
    world.shows(b"x")
    world.archive.tend([history], world.now + DAY_S - 1)
    assert world.home.log(S).exists()
    world.archive.tend([history], world.now + DAY_S + 1)
    assert not world.home.log(S).exists()


def test_a_rest_is_as_long_as_the_work_was_several_times():
    class Waits:
        def __init__(self):
            self.times = []

        def wait(self, seconds):
            self.times.append(seconds)
            return False

    now = [0.0]
    waits = Waits()
    rests = Throttle(lambda: now[0], waits)
    for worked in (0.0, 0.01, 0.002, 5.0):
        now[0] += worked
        assert rests()
    assert waits.times == pytest.approx([0.0, 0.04, 0.008, MAX_REST_S])


def test_a_rest_ends_with_the_server():
    stopping = threading.Event()
    stopping.set()
    assert not Throttle(lambda: 0.0, stopping)()
