"""C23: the search index is filled in a process of its own, which nothing waits for and which ends with the server."""

import time

import pytest

from sm.archive.search.filler import MAX_FAILURES, Filler, FillRequest, SessionToIndex
from sm.archive.search.index import SearchIndex
from sm.archive.search.query import terms_of
from sm.bootstrap import UTTERANCE_READERS
from sm.core.model.history import Context, Document, SessionHistory
from sm.processes import alive
from tests.fakes.conversation import Conversation
from tests.fakes.rollout import Rollout


def until(expected, seconds=25):
    deadline = time.monotonic() + seconds
    while not expected():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def filler(tmp_path):
    made = Filler(str(tmp_path / "search.db"), UTTERANCE_READERS, time.monotonic)
    yield made
    made.close()


def history_of(tmp_path, *words, session="0123abcd"):
    talk = Conversation()
    for word in words:
        talk.person(word)
    path = talk.save(tmp_path / f"{session}.jsonl")
    context = Context(number=1, conversation="c", started=1.0, transcript=str(path), log_start=0)
    return SessionHistory(session, "claude", ended=False, last_activity=1.0, contexts=(context,))


def request_for(tmp_path, *histories):
    return FillRequest([SessionToIndex(history, str(tmp_path / f"{history.session}.log"), 0) for history in histories])


def found(tmp_path, word):
    return SearchIndex(tmp_path / "search.db").search(terms_of(word), None, 10)


def test_a_rollout_of_codex_is_filled_in_as_well(tmp_path, filler):
    talk = Rollout()
    talk.asked("Find the walrus", "It is in the attic")
    path = talk.save(tmp_path / "r.jsonl")
    context = Context(number=1, conversation="c", started=1.0, transcript=str(path), log_start=0)
    history = SessionHistory("0123abcd", "codex", ended=False, last_activity=1.0, contexts=(context,))
    assert filler.offer(request_for(tmp_path, history))
    until(lambda: found(tmp_path, "walrus") and found(tmp_path, "attic"))


def test_what_it_is_told_of_is_found_soon(tmp_path, filler):
    request = request_for(tmp_path, history_of(tmp_path, "mend the flux capacitor"))
    assert filler.offer(request)
    until(lambda: found(tmp_path, "capacitor"))
    until(lambda: filler.offer(request))


@pytest.mark.parametrize("word", ["0123456789abcdef" * 1600, "a" * 900_000], ids=["25,000 hex digits", "a 900 KB line"])
def test_one_long_word_is_taken_in_and_holds_nobody_up(tmp_path, filler, word):
    document = tmp_path / "d.md"
    document.write_text(word)
    history = history_of(tmp_path, word, "and the last words")
    kept = Document(id="HO-1", path=str(document), conversation="c", created=1.0, state="pending")
    request = request_for(
        tmp_path,
        SessionHistory(**{name: getattr(history, name) for name in history.__slots__} | {"documents": (kept,)}),
    )
    before = time.thread_time()
    assert filler.offer(request)
    assert not filler.offer(request)
    assert time.thread_time() - before < 1.0
    until(lambda: found(tmp_path, "last words"))


def test_it_ends_with_its_server_however_that_ends(tmp_path, filler):
    filler.offer(request_for(tmp_path, history_of(tmp_path, "hello")))
    process = filler.process
    process.stdin.close()
    process.wait(20)
    assert not alive(process.pid)


def test_a_source_that_ends_it_is_left_out_after_some_tries_and_the_others_are_found(tmp_path, filler):
    request = request_for(
        tmp_path, history_of(tmp_path, "one"), history_of(tmp_path, "other words", session="89abcdef")
    )
    for _ in range(MAX_FAILURES):
        until(lambda: filler.offer(request))
        filler._handle_line("at transcript:0123abcd:1:")
        filler.process.kill()
        filler.process.wait()
        filler._read_output()
    assert filler.failures == {"transcript:0123abcd:1:": MAX_FAILURES}
    until(lambda: filler.offer(request))
    until(lambda: found(tmp_path, "other words"))
    until(lambda: filler.offer(request))


def test_one_that_ends_whatever_it_is_asked_is_started_less_and_less_often(tmp_path):
    now, starts = [0.0], []
    filler = Filler(str(tmp_path / "gone" / "search.db"), UTTERANCE_READERS, lambda: now[0])
    try:
        while len(starts) < 4:
            if filler.offer(request_for(tmp_path)):
                starts.append(now[0])
                filler.process.wait(20)
            else:
                now[0] += 1.0
    finally:
        filler.close()
    assert starts == [0.0, 2.0, 6.0, 14.0]


def test_nothing_is_started_before_its_time(tmp_path):
    now = [4.9]
    filler = Filler(str(tmp_path / "search.db"), UTTERANCE_READERS, lambda: now[0], 5.0)
    try:
        assert not filler.offer(request_for(tmp_path))
        assert filler.process is None
        now[0] = 5.0
        assert filler.offer(request_for(tmp_path))
    finally:
        filler.close()
