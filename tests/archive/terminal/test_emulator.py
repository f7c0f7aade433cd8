"""What is left to read of a terminal's bytes."""

import random

import pytest

from sm.archive.terminal.emulator import MAX_COLUMNS, Emulator
from sm.archive.terminal.renderer import ContextStart, rendered

HOME = "\x1b[H"


def lines(text):
    data = text if isinstance(text, bytes) else text.encode()
    return list(rendered([data]))


def wipe(rows):
    """As the client does it: the whole screen, row by row, and back to its top."""
    return HOME + "\x1b[2K\x1b[1B" * rows + HOME


PAINTED = {
    "plain": ("one\r\ntwo", ["one", "two"]),
    "colours": ("\x1b[1;31mred\x1b[0m \x1b[38;5;246mgrey\x1b[39m", ["red grey"]),
    "title": ("\x1b]0;a title\x07text\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", ["textlink"]),
    "progress bar": ("".join(f"\r{percent:3}% {'#' * (percent // 10)}" for percent in range(101)), ["100% ##########"]),
    "spinner": ("".join(f"\r{frame} working\x1b[K" for frame in "|/-\\" * 9) + "\rdone\x1b[K", ["done"]),
    "backspace": ("abc\b\bX", ["aXc"]),
    "tab": ("a\tb", ["a       b"]),
    "columns": ("\x1b[5Gfive\x1b[1Gone", ["one five"]),
    "cursor up": ("one\r\ntwo\r\nthree\x1b[2A\r\x1b[KONE\x1b[2B\r\n", ["ONE", "two", "three"]),
    "erased to its end": ("one\r\ntwo\r\nthree\x1b[1A\r\x1b[J", ["one"]),
    "saved cursor": ("a\x1b7bcd\x1b8X", ["aXcd"]),
    "inserted line": ("one\r\ntwo\x1b[1A\r\x1b[Lnew", ["new", "one", "two"]),
    "deleted line": ("one\r\ntwo\r\nthree\x1b[2A\x1b[M", ["two", "three"]),
    "deleted cells": ("abcdef\x1b[4D\x1b[2P", ["abef"]),
    "inserted cells": ("abef\x1b[2D\x1b[2@cd", ["abcdef"]),
    "erased cells": ("abcdef\x1b[4D\x1b[2X", ["ab  ef"]),
    "wide characters": ("検査\x1b[3Gx", ["検x"]),
    "wide, then a column": ("検査\x1b[5Gx", ["検査x"]),
    "emoji": ("🙂\x1b[3G!", ["🙂!"]),
    "combining marks": ("cafe\u0301!\x1b[5G?", ["cafe\u0301?"]),
    "combining mark on a wide one": ("検\u0301\x1b[3Gx", ["検\u0301x"]),
    "combining mark alone": ("\u0301a", ["a"]),
    "blanks that do not break": ("❯\xa0\r\n", ["❯"]),
    "not UTF-8": (b"a\xff\xfeb", ["a\ufffd\ufffdb"]),
    "control characters": ("a\x00\x07\x1bZb\x7f\x85c", ["abc"]),
    "a broken sequence": ("a\x1b[12", ["a"]),
    "a broken title": ("a\x1b]0;tit", ["a"]),
    "a broken character": ("a検".encode()[:-1], ["a"]),
    "scrolling region": ("1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[3;1H\nnew\x1b[r", ["1", "3", "new", "4"]),
    "scrolled back": ("1\r\n2\x1b[H\x1bMnew", ["new", "1", "2"]),
    "scrolled up": ("1\r\n2\r\n3\x1b[2S\rX", ["1", "2", "3", "", "X"]),
    "many blank lines": ("a" + "\r\n" * 9 + "b", ["a", "", "", "b"]),
    "huge parameters": ("\x1b[99999999999;99999999999Hx\x1b[999999999Ay", ["xy"]),
}


@pytest.mark.parametrize(("text", "shown"), PAINTED.values(), ids=PAINTED.keys())
def test_shows_what_a_person_would_have_seen(text, shown):
    assert lines(text) == shown


def test_what_scrolls_off_comes_in_order_and_once():
    text = "\r\n".join(f"line {number}" for number in range(1_000))
    assert lines(text) == [f"line {number}" for number in range(1_000)]


def test_a_box_below_that_is_painted_again_and_again_leaves_one_copy():
    box = "----\r\n> typing\r\n----"
    text = box
    for number in range(200):
        text += f"\r\x1b[2A\x1b[Jmessage {number}\r\n{box}"
    assert lines(text) == [*(f"message {number}" for number in range(200)), "----", "> typing", "----"]


def test_a_wiped_screen_is_not_lost_and_tells_the_height():
    terminal = Emulator()
    shown = terminal.feed(f"first\r\nsecond{wipe(30)}third".encode())
    assert shown[:2] == ["first", "second"]
    assert terminal.height == 30
    assert terminal.shown() == ["third"]


@pytest.mark.parametrize("erasing", ["\x1b[2J", "\x1b[3J", "\x1b[H\x1b[J", "\x1bc"])
def test_what_was_erased_at_once_is_not_lost(erasing):
    assert lines(f"first{erasing}\x1b[Hthen something else altogether") == ["first", "then something else altogether"]


def test_a_screen_that_was_painted_over_is_shown_where_contexts_turn():
    first, second = b"banner\r\nfirst okapi\r\nbox", b"\x1b[1A\r\x1b[Kzebra"
    assert list(rendered([first + second])) == ["banner", "zebra", "box"]
    both = list(rendered([first + second], starts=[ContextStart(0, wiped=True), ContextStart(len(first), wiped=False)]))
    assert both == ["banner", "first okapi", "box", "banner", "zebra", "box"]
    alone = list(rendered([first + second], starts=[ContextStart(len(first), wiped=False)], start=len(first)))
    assert alone == ["banner", "zebra", "box"]
    wiped = first + wipe(50).encode() + b"banner\r\nzebra"
    assert list(rendered([wiped], starts=[ContextStart(len(first), wiped=True)])) == [
        *("banner", "first okapi", "box"),
        *("banner", "zebra"),
    ]


PARAGRAPHS = [f"This is paragraph {number} of an answer with as many words as it takes." for number in range(40)]


def painted(width, paragraphs, box="? for shortcuts"):
    import textwrap

    rows = [row for text in paragraphs for row in (*textwrap.wrap(text, width), "")]
    return "\r\n".join([*rows, "─" * width, "❯ ", "─" * width, f"  {box}"])


def test_a_resized_screen_that_is_painted_again_is_shown_once():
    text = painted(200, PARAGRAPHS)
    text += wipe(30) + painted(70, PARAGRAPHS[-8:]) + wipe(45) + painted(150, PARAGRAPHS[-12:], "esc to interrupt")
    text += "\r\x1b[3A\x1b[JWords after the resize.\r\n"
    shown = "\n".join(lines(text))
    assert [shown.count(paragraph) for paragraph in PARAGRAPHS] == [1] * 40
    assert shown.count("Words after the resize.") == 1


def test_the_same_beginning_of_another_conversation_is_no_repaint():
    banner = "The Client v1.2.3\r\nSome Model with a name\r\n/a/directory\r\n"
    talk = "\r\n".join(PARAGRAPHS[:20])
    text = banner + talk + wipe(50) + banner + "Something new."
    assert lines(text).count("The Client v1.2.3") == 2


def test_a_line_of_a_megabyte_is_cut_and_none_of_it_is_lost():
    text = "x" * 1_000_000
    shown = lines(text + "\r\nend")
    assert "".join(shown[:-1]) == text
    assert max(map(len, shown)) <= MAX_COLUMNS
    assert shown[-1] == "end"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_the_pieces_it_comes_in_do_not_matter(size):
    data = "".join(f"{text}\r\n" for text, _ in PAINTED.values() if isinstance(text, str)).encode()
    data += painted(100, PARAGRAPHS).encode() + wipe(40).encode() + painted(80, PARAGRAPHS[20:]).encode()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert list(rendered(pieces)) == list(rendered([data]))


def test_any_bytes_are_rendered():
    source = random.Random(7)  # noqa: S311  # the same bytes each time
    parts = [
        b"\x1b[",
        b"\x1b]",
        b"\x1b",
        b"H",
        b"J",
        b"2K",
        b"r",
        b"5;9",
        b"\r\n",
        b"\xe6\xa4",
        b"L",
        b"M",
        b"S",
        b"text",
    ]
    for _ in range(300):
        data = b"".join(source.choice([*parts, bytes([source.randrange(256)])]) for _ in range(200))
        for line in rendered([data]):
            assert line.isprintable() or all(c not in line for c in "\x1b\r\n\b\t\x00")
