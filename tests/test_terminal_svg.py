"""How a terminal's screen is drawn: each text at its column, in its colours, and many screens one after the other."""

import re
from xml.etree import ElementTree as ET

from rich.ansi import AnsiDecoder
from rich.text import Text

from scripts.terminal_svg import CELL, LINE, MARGIN, animation, still


def texts(drawn):
    """Each text with its column, and what it looks like."""
    root = ET.fromstring(drawn)  # noqa: S314  # our own
    found = [element for element in root.iter() if element.tag.endswith("}text")]
    return [(round((float(each.get("x")) - MARGIN) / CELL), each.text, each) for each in found]


def test_each_text_is_at_its_column_as_wide_as_in_the_terminal():
    drawn = still([Text("a  <b> ░░ 日本 c")], 20)
    assert [(column, text) for column, text, _ in texts(drawn)] == [
        (0, "a"),
        (3, "<b>"),
        (7, "░░"),
        (10, "日"),
        (12, "本"),
        (15, "c"),
    ]
    assert [round(float(each.get("textLength")) / CELL) for _, _, each in texts(drawn)] == [1, 3, 2, 2, 2, 1]


def test_gauges_and_frames_are_drawn_so_that_lines_touch():
    drawn = still([Text("██▄"), Text("│")], 20)
    assert f'<rect x="{MARGIN:.1f}" y="{MARGIN}" width="{2 * CELL:.1f}" height="{LINE}" fill="#c8d3f5"/>' in drawn
    assert f'y="{MARGIN + LINE / 2}" width="{CELL:.1f}" height="{LINE / 2}"' in drawn
    assert f'<rect x="{MARGIN + CELL / 2 - 0.6:.1f}" y="{MARGIN}" width="1.2" height="{LINE}"' in drawn
    assert texts(drawn) == []


def test_colours_are_those_of_the_terminal():
    line = AnsiDecoder().decode_line("\x1b[31mred\x1b[0m \x1b[1;2mboth\x1b[0m \x1b[48;2;1;2;3m  \x1b[0m\x1b[7mx")
    drawn = still([line], 20)
    (_, red, first), (_, both, second), (_, x, third) = texts(drawn)
    assert (red, both, x) == ("red", "both", "x")
    assert (first.get("fill"), second.get("fill"), second.get("font-weight")) == ("#f7768e", None, "bold")
    assert (second.get("opacity"), third.get("fill")) == ("0.6", "#1b1e2e")
    assert '<rect x="89.6"' in drawn
    assert 'fill="#010203"' in drawn


def test_a_line_that_stays_is_drawn_once_and_the_last_screen_is_what_does_not_move():
    frames = [(0.0, [Text("same"), Text("one")]), (1.5, [Text("same"), Text()]), (3.0, [Text("two"), Text("same")])]
    drawn = animation(frames, 10, 2, hold=1.0)
    assert sorted(text for _, text, _ in texts(drawn)) == ["one", "same", "two"]
    uses = re.findall(r'href="#l(\d)" y="(\d+)"', drawn)
    assert uses == [("0", "0"), ("1", str(LINE)), ("0", "0"), ("2", "0"), ("0", str(LINE))]
    width = round(10 * CELL + 2 * MARGIN)
    assert f"#film{{transform:translateX({-2 * width}px);animation:play 4.00s step-end infinite}}" in drawn
    assert f"0.000%{{transform:translateX(0px)}}37.500%{{transform:translateX({-width}px)}}75.000%" in drawn
    assert "prefers-reduced-motion:reduce){#film{animation:none}}" in drawn
