"""C23: the search index is filled in a process of its own, which nothing waits for and which ends with the server."""

import time

import pytest

from sm.archive.search.filler import TRIES, Filler, Look, Part
from sm.archive.search.index import SearchIndex
from sm.archive.search.query import terms_of
from sm.core.model.history import Context, Document, Past
from sm.processes import alive
from tests.fakes.conversation import Conversation

UTTERANCE = {"claude": "sm.providers.claude.utterances:utterance"}


def until(expected, seconds=25):
    deadline = time.monotonic() + seconds
    while not expected():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def filler(tmp_path):
    made = Filler(str(tmp_path / "search.db"), UTTERANCE, time.monotonic)
    yield made
    made.close()


def past_of(tmp_path, *words, session="0123abcd"):
    talk = Conversation()
    for one in words:
        talk.person(one)
    path = talk.save(tmp_path / f"{session}.jsonl")
    context = Context(number=1, conversation="c", started=1.0, transcript=str(path), log_start=0)
    return Past(session, "claude", ended=False, last_activity=1.0, contexts=(context,))


def look_at(tmp_path, *pasts):
    return Look([Part(past, str(tmp_path / f"{past.session}.log"), 0) for past in pasts])


def found(tmp_path, word):
    return SearchIndex(tmp_path / "search.db").search(terms_of(word), None, 10)


def test_what_it_is_told_of_is_found_soon(tmp_path, filler):
    look = look_at(tmp_path, past_of(tmp_path, "mend the flux capacitor"))
    assert filler.offer(look)
    until(lambda: found(tmp_path, "capacitor"))
    until(lambda: filler.offer(look))


@pytest.mark.parametrize("word", ["0123456789abcdef" * 1600, "a" * 900_000], ids=["25,000 hex digits", "a 900 KB line"])
def test_one_long_word_is_taken_in_and_holds_nobody_up(tmp_path, filler, word):
    document = tmp_path / "d.md"
    document.write_text(word)
    past = past_of(tmp_path, word, "and the last words")
    kept = Document(id="HO-1", path=str(document), conversation="c", created=1.0, state="pending")
    look = look_at(tmp_path, Past(**{name: getattr(past, name) for name in past.__slots__} | {"documents": (kept,)}))
    before = time.thread_time()
    assert filler.offer(look)
    assert not filler.offer(look)
    assert time.thread_time() - before < 1.0
    until(lambda: found(tmp_path, "last words"))


def test_it_ends_with_its_server_however_that_ends(tmp_path, filler):
    filler.offer(look_at(tmp_path, past_of(tmp_path, "hello")))
    process = filler.process
    process.stdin.close()
    process.wait(20)
    assert not alive(process.pid)


def test_a_source_that_ends_it_is_left_out_after_some_tries_and_the_others_are_found(tmp_path, filler):
    look = look_at(tmp_path, past_of(tmp_path, "one"), past_of(tmp_path, "other words", session="89abcdef"))
    for _ in range(TRIES):
        until(lambda: filler.offer(look))
        filler._said("at transcript:0123abcd:1:")
        filler.process.kill()
        filler.process.wait()
        filler._listen()
    assert filler.ended == {"transcript:0123abcd:1:": TRIES}
    until(lambda: filler.offer(look))
    until(lambda: found(tmp_path, "other words"))
    until(lambda: filler.offer(look))


def test_nothing_is_started_before_its_time(tmp_path):
    now = [4.9]
    filler = Filler(str(tmp_path / "search.db"), UTTERANCE, lambda: now[0], 5.0)
    try:
        assert not filler.offer(look_at(tmp_path))
        assert filler.process is None
        now[0] = 5.0
        assert filler.offer(look_at(tmp_path))
    finally:
        filler.close()
