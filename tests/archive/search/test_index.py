"""The index: what is found, what is forgotten, and what damage does."""

import sqlite3
from contextlib import closing

import pytest

from sm.archive.search.index import MAX_PASSAGE_CHARS, IndexedText, IndexProgress, Passage, SearchIndex, passages_of
from sm.archive.search.query import terms_of

SOURCE = IndexedText("terminal", "aaaaaaaa", 1, "/log")
OTHER = IndexedText("handoff", "bbbbbbbb", 2, "/doc", "HO-1")


@pytest.fixture
def index(tmp_path):
    found = SearchIndex(tmp_path / "search.db")
    yield found
    found.close()


def texts(index, query, scopes=None, limit=10):
    return [hit.text for hit in index.search(terms_of(query), scopes, limit)]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("the quick brown fox", "FOX quick"),
        ("the quick brown fox", '"quick brown"'),
        ("in src/sm/archive/search/query.py:12", "archive/search/query.py"),
        ("def snake_case_name(self):", "case_name"),
        ("raise ConversationStarted()", "conversation started"),
        ("raise ConversationStarted()", "conversationstarted"),
        ("raise ConversationStarted()", "conv*"),
        ("これは検査です", "検査"),
        ("naïve café", "naive CAFÉ"),
        ("Straße", "straße"),
        ("version 2.1.328", "2.1.328"),
        ("commit 9fceb02d0ae5", "9fceb02d0ae5"),
    ],
)
def test_is_found(index, text, query):
    index.add(SOURCE, [Passage(1.0, text)], IndexProgress(1))
    assert texts(index, query) == [text]


@pytest.mark.parametrize("query", ["fox lazy", '"brown quick"', "qui", "nowhere", "AND", '"', "*", "fox*) OR (quick"])
def test_is_not_found(index, query):
    index.add(SOURCE, [Passage(1.0, "the quick brown fox")], IndexProgress(1))
    assert texts(index, query) == []


def test_the_newest_come_first_in_whatever_order_they_came(index):
    index.add(SOURCE, [Passage(3.0, "word three"), Passage(1.0, "word one")], IndexProgress(1))
    index.add(OTHER, [Passage(2.0, "word two"), Passage(3.0, "word three b")], IndexProgress(1))
    assert texts(index, "word") == ["word three b", "word three", "word two", "word one"]
    assert texts(index, "word", limit=1) == ["word three b"]


def test_a_hit_tells_where_it_is(index):
    index.add(OTHER, [Passage(2.5, "word")], IndexProgress(1))
    [hit] = index.search(terms_of("word"), None, 10)
    assert (hit.at, hit.session, hit.context, hit.kind, hit.path) == (2.5, "bbbbbbbb", 2, "handoff", "/doc")


def test_only_the_asked_sessions_are_searched(index):
    index.add(SOURCE, [Passage(1.0, "word a")], IndexProgress(1))
    index.add(OTHER, [Passage(2.0, "word b")], IndexProgress(1))
    assert texts(index, "word", ("aaaaaaaa",)) == ["word a"]
    assert texts(index, "word", ()) == []
    assert texts(index, "sessionaaaaaaaa") == []


def test_the_place_reached_is_kept_with_the_passages(index):
    assert index.progress(SOURCE) == IndexProgress()
    index.add(SOURCE, [Passage(1.0, "x")], IndexProgress(7, "mark"))
    index.close()
    with closing(SearchIndex(index.path)) as another:
        assert another.progress(SOURCE) == IndexProgress(7, "mark")
        assert another.sources() == [SOURCE]


def test_what_is_forgotten_is_found_no_more_and_can_come_again(index):
    index.add(SOURCE, [Passage(float(number), f"word {number} HumpWord") for number in range(500)], IndexProgress(1))
    index.add(OTHER, [Passage(1.0, "word b")], IndexProgress(1))
    index.forget(SOURCE)
    assert texts(index, "word") == ["word b"]
    assert texts(index, "hump") == []
    assert index.sources() == [OTHER]
    index.add(SOURCE, [Passage(2.0, "word again")], IndexProgress(1))
    assert texts(index, "word") == ["word again", "word b"]


def test_the_file_is_the_persons_alone(index):
    index.add(SOURCE, [Passage(1.0, "x")], IndexProgress(1))
    assert {path.stat().st_mode & 0o777 for path in index.path.parent.iterdir()} == {0o600}


def test_a_lost_file_is_begun_anew(index):
    index.add(SOURCE, [Passage(1.0, "word")], IndexProgress(1))
    for path in index.path.parent.iterdir():
        path.unlink()
    assert texts(index, "word") == []
    assert index.progress(SOURCE) == IndexProgress()
    index.add(SOURCE, [Passage(1.0, "word")], IndexProgress(1))
    assert texts(index, "word") == ["word"]


@pytest.mark.parametrize("damage", [b"garbage" * 1000, b""])
def test_a_damaged_file_is_begun_anew(index, damage):
    index.add(SOURCE, [Passage(1.0, "word")], IndexProgress(1))
    index.close()
    index.path.write_bytes(damage)
    assert texts(index, "word") == []
    index.add(SOURCE, [Passage(1.0, "word")], IndexProgress(1))
    assert texts(index, "word") == ["word"]


def test_a_file_of_another_version_is_begun_anew(index):
    index.path.touch()
    with sqlite3.connect(index.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert index.progress(SOURCE) == IndexProgress()


def test_a_search_sees_what_is_written_beside_it(index):
    index.add(SOURCE, [Passage(1.0, "word one")], IndexProgress(1))
    assert texts(index, "word") == ["word one"]
    index.add(SOURCE, [Passage(2.0, "word two")], IndexProgress(2))
    assert texts(index, "word") == ["word two", "word one"]


def test_passages_hold_whole_lines_and_no_empty_ones():
    lines = [f"line {number}" if number % 3 else "" for number in range(2_000)]
    passages = list(passages_of(lines))
    assert "\n".join(passages).split("\n") == [line for line in lines if line]
    assert max(map(len, passages)) <= MAX_PASSAGE_CHARS
