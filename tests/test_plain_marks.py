"""What is drawn where a terminal has no UTF-8: every mark of ours has another one there, as wide."""

import ast
import io
import sys
from pathlib import Path

import pytest

from sm.cli import format as decided
from sm.cli.format import encoding_of, fitting, has_plain_marks
from sm.cli.tables import display_width
from sm.fleet import MARKS
from sm.plain_marks import CELLS, WORDS, in_cells, in_words

SOURCE = Path(__file__).parents[1] / "src/sm"
DRAWING = [SOURCE / "fleet.py", SOURCE / "demo.py", *(SOURCE / "tui").rglob("*.py"), *(SOURCE / "cli").rglob("*.py")]


def shown_texts(path):
    """The strings of a module that are no documentation."""
    tree = ast.parse(path.read_text())
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def test_each_mark_that_is_drawn_has_a_plain_one():
    drawn = {character for path in DRAWING for text in shown_texts(path) for character in text}
    drawn = {character for character in drawn if not character.isascii() and character.isprintable()}
    assert len(drawn) > 20
    assert drawn - {*CELLS} == set()


def test_each_plain_mark_is_one_column_of_ascii_as_the_mark_is():
    for mark, plain in CELLS.items():
        assert (plain.isascii(), len(plain), display_width(mark)) == (True, 1, 1), mark
    assert all(plain.isascii() for plain in WORDS.values())


def test_states_are_told_apart_by_their_plain_marks_too():
    assert len({in_cells(mark) for mark in MARKS.values()}) == len({*MARKS.values()})


@pytest.mark.parametrize("text", ["● working", "日本 e\u0301 …", "a" * 9, ""])
def test_a_text_for_columns_is_ascii_and_as_wide(text):
    assert in_cells(text).isascii()
    assert display_width(in_cells(text)) == display_width(text)


def test_running_text_keeps_what_is_no_mark_of_ours():
    assert in_words("naïve … → 1") == "naïve ... -> 1"


class Terminal(io.TextIOWrapper):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("named", "utf8_mode", "encoding", "expected"),
    [
        ({"LANG": "C"}, True, "utf-8", "ascii"),
        ({"LC_ALL": "POSIX", "LANG": "en_US.UTF-8"}, True, "utf-8", "ascii"),
        ({}, True, "utf-8", "ascii"),
        ({"LANG": "C.UTF-8"}, True, "utf-8", "utf-8"),
        ({"LANG": "en_US.UTF-8"}, False, "utf-8", "utf-8"),
        ({"LANG": "de_DE.ISO-8859-1"}, False, "iso8859-1", "iso8859-1"),
    ],
)
def test_what_a_terminal_reads_is_known_by_its_locale(monkeypatch, named, utf8_mode, encoding, expected):
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.delenv("LANG", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    flags = type("Flags", (), {"utf8_mode": int(utf8_mode)})
    monkeypatch.setattr(decided, "sys", type("System", (), {"flags": flags, "modules": sys.modules}))
    with Terminal(io.BytesIO(), encoding=encoding) as stream:
        assert (encoding_of(stream), has_plain_marks(stream)) == (expected, expected != "utf-8")


def test_a_dumb_terminal_gets_plain_marks_and_keeps_all_other_text(monkeypatch):
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TERM", "dumb")
    with Terminal(io.BytesIO(), encoding="utf-8") as stream:
        assert fitting(stream)("● naïve…") == "* naïve~"
    with io.TextIOWrapper(io.BytesIO(), encoding="utf-8") as pipe:
        assert fitting(pipe)("● naïve…") == "● naïve…"
