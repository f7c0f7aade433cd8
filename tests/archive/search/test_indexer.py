"""What the index takes in of a session's past, and that it takes it in once."""

import json
import os

import pytest

from sm.archive.redaction.redact import no_own_tokens
from sm.archive.search.index import SearchIndex
from sm.archive.search.indexer import Indexer
from sm.archive.search.query import terms_of
from sm.archive.terminal.segments import compress, end_of, rotate, segments_of
from sm.core.model.history import Context, Document, SessionHistory
from sm.providers.claude.utterances import utterance

WIPE = b"\x1b[H" + b"\x1b[2K\x1b[1B" * 50 + b"\x1b[H"
SECRET = "ghp_abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"


def record(text, kind="user"):
    return json.dumps({"type": kind, "message": {"content": text}, "timestamp": "2026-01-01T00:00:05Z"}) + "\n"


class World:
    """A session with its files, and the index of them."""

    def __init__(self, root):
        self.root = root
        self.log = root / "0a1b2c3d.log"
        self.contexts = [Context(1, "c1", str(root / "t1.jsonl"), 1_000.0, 0)]
        self.documents = []
        self.failures = False
        self.throttle = None
        """How often the indexer may go on; None for always."""
        self.index = None
        self.restart()

    def restart(self):
        if self.index is not None:
            self.index.close()
        self.index = SearchIndex(self.root / "search.db")
        self.indexer = Indexer(self.index, {"claude": utterance}, no_own_tokens, self.pause)

    def pause(self):
        if self.throttle is None:
            return True
        self.throttle -= 1
        return self.throttle > 0

    def shows(self, text):
        with self.log.open("ab") as file:
            file.write(text if isinstance(text, bytes) else text.encode())

    def clears(self, conversation, painting=WIPE):
        at = 2_000.0 * len(self.contexts)
        self.contexts.append(Context(len(self.contexts) + 1, conversation, None, at, end_of(self.log)))
        self.shows(painting)

    @property
    def history(self):
        return SessionHistory("0a1b2c3d", "claude", self.failures, 9_000.0, tuple(self.contexts), tuple(self.documents))

    def index_session(self):
        keys = self.indexer.index_session(self.history, self.log, segments_of(self.log), end_of(self.log))
        self.indexer.drop_others(keys)

    def hits(self, query, kind=None):
        found = self.index.search(terms_of(query), None, 1_000)
        return [(hit.kind, hit.context) for hit in found if kind in (None, hit.kind)]


@pytest.fixture
def world(tmp_path):
    found = World(tmp_path)
    yield found
    found.index.close()


LINES = "".join(f"line {number} zebra\r\n" for number in range(200))


def test_what_a_terminal_showed_is_found_with_its_context(world):
    world.shows(f"first words\r\n{LINES}")
    world.clears("c2")
    world.shows(f"second words\r\n{LINES}")
    world.failures = True
    world.index_session()
    assert world.hits("first words") == [("terminal", 1)]
    assert world.hits("second words") == [("terminal", 2)]


def test_a_short_screen_that_was_painted_over_is_found_in_its_context(world):
    world.shows("banner\r\nsecond line\r\nfirst okapi\r\nbox")
    world.clears("c2", b"\x1b[1A\r\x1b[Kfirst zebra\r\n")
    world.shows("\x1b[1A\r\x1b[Kmore zebra")
    world.failures = True
    world.index_session()
    assert (world.hits("okapi"), world.hits("zebra")) == ([("terminal", 1)], [("terminal", 2)])
    [hit] = world.index.search(terms_of("zebra"), None, 9)
    assert hit.text == "banner\nsecond line\nmore zebra\nbox"


def test_nothing_is_taken_in_twice(world):
    for _ in range(5):
        world.shows(LINES.replace("zebra", "okapi"))
        world.index_session()
        world.index_session()
    world.failures = True
    world.index_session()
    hits = world.index.search(terms_of("okapi"), None, 1_000)
    assert sum(hit.text.count("okapi") for hit in hits) == 1_000


def test_after_a_restart_it_goes_on_where_it_was(world):
    for _ in range(5):
        world.shows(LINES.replace("zebra", "okapi"))
        world.index_session()
        world.restart()
    world.failures = True
    world.index_session()
    hits = world.index.search(terms_of("okapi"), None, 1_000)
    assert sum(hit.text.count("okapi") for hit in hits) == 1_000


def test_a_finished_terminal_is_not_rendered_again_after_a_restart(world):
    world.shows(LINES)
    world.failures = True
    world.index_session()
    world.restart()
    world.throttle = 0
    world.index_session()
    assert world.throttle == 0


def test_it_gives_way_and_goes_on(world):
    world.shows(LINES * 20)
    world.failures = True
    steps = 0
    while len(world.hits("line 199")) < 20 and steps < 100:
        world.throttle = 2
        world.index_session()
        steps += 1
    assert 5 < steps < 100
    assert sum(hit.text.count("line 199 ") for hit in world.index.search(terms_of("line 199"), None, 100)) == 20


def test_pieces_read_as_one_log(world):
    world.shows(LINES + "cut in the mid")
    rotate(world.log)
    world.shows("dle okapi\r\n" + LINES)
    compress(segments_of(world.log)[0])
    world.failures = True
    world.index_session()
    assert world.hits('"cut in the middle okapi"') == [("terminal", 1)]


def test_what_was_pruned_is_found_no_more(world):
    for word in ("early", "middle", "late"):
        world.shows(f"{word} words\r\n{LINES * 2}\r\n{LINES}")
        rotate(world.log)
    world.index_session()
    assert (len(world.hits("early")), len(world.hits("late"))) == (1, 1)
    segments_of(world.log)[0].path.unlink()
    world.index_session()
    assert world.hits("early") == []
    assert (len(world.hits("middle")), len(world.hits("late"))) == (1, 1)
    segments_of(world.log)[0].path.unlink()
    world.restart()
    world.index_session()
    assert (len(world.hits("middle")), len(world.hits("late"))) == (0, 1)
    for piece in segments_of(world.log):
        piece.path.unlink()
    world.index_session()
    assert world.hits("late") == []


def test_a_transcript_is_taken_in_as_it_grows(world):
    path = world.root / "t1.jsonl"
    path.write_text(record("the first prompt") + record([{"type": "text", "text": "a reply"}], "assistant"))
    world.index_session()
    assert (world.hits("prompt"), world.hits("reply")) == ([("transcript", 1)], [("transcript", 1)])
    with path.open("a") as file:
        file.write(record("another prompt") + '{"type": "user", "message": {"content": "torn')
    world.index_session()
    assert len(world.hits("prompt")) == 2
    assert world.hits("torn") == []
    world.restart()
    world.index_session()
    assert len(world.hits("prompt")) == 2
    [hit] = world.index.search(terms_of("another"), None, 1)
    assert hit.at == 1767225605.0


def test_a_transcript_that_was_cut_or_replaced_is_taken_in_anew(world):
    path = world.root / "t1.jsonl"
    path.write_text(record("okapi one") + record("okapi two"))
    world.index_session()
    path.write_text(record("zebra three and more words than before") * 3)
    world.index_session()
    assert world.hits("okapi") == []
    assert len(world.hits("zebra")) == 3
    path.write_text(record("okapi"))
    world.index_session()
    assert (len(world.hits("okapi")), world.hits("zebra")) == (1, [])


def test_a_record_of_many_megabytes_is_passed_over(world):
    path = world.root / "t1.jsonl"
    path.write_text(record("before") + record("x" * 9_000_000) + record("after"))
    world.index_session()
    assert (len(world.hits("before")), len(world.hits("after"))) == (1, 1)


def test_what_is_no_file_keeps_nobody_waiting(world):
    os.mkfifo(world.root / "t1.jsonl")
    os.mkfifo(world.root / "d1.md")
    world.documents.append(Document("d1", "c1", str(world.root / "d1.md"), 1_000.0, "active"))
    world.shows("okapi\r\n" * 500)
    world.index_session()
    assert world.hits("okapi", "terminal")


def test_a_transcript_that_is_gone_stays_findable(world):
    path = world.root / "t1.jsonl"
    path.write_text(record("okapi"))
    world.index_session()
    path.unlink()
    world.index_session()
    assert len(world.hits("okapi")) == 1


def test_documents_are_found_and_follow_their_file(world):
    path = world.root / "HO-1.md"
    path.write_text("# Handoff\nnext: okapi\n")
    world.documents = [Document("HO-1", "c1", str(path), 5.0, "consumed")]
    world.index_session()
    assert world.hits("okapi") == [("handoff", 1)]
    path.write_text("# Handoff\nnext: zebra\n")
    world.index_session()
    assert (world.hits("okapi"), world.hits("zebra")) == ([], [("handoff", 1)])
    path.unlink()
    world.index_session()
    assert world.hits("zebra") == []


def test_a77_a_secret_is_in_no_part_of_the_index(world):
    path = world.root / "HO-1.md"
    path.write_text(f"use {SECRET}\n")
    (world.root / "t1.jsonl").write_text(record(f"use {SECRET}"))
    world.documents = [Document("HO-1", "c1", str(path), 5.0, "consumed")]
    world.shows(f"echo {SECRET}\r\n  {SECRET[:20]}\r\n  {SECRET[20:]}\r\n{LINES}")
    world.index_session()
    world.failures = True
    world.index_session()
    assert len(world.hits("github token")) == 3
    assert world.hits(SECRET) == []
    world.index.close()
    for file in world.root.glob("search.db*"):
        assert SECRET[:20].encode() not in file.read_bytes()
