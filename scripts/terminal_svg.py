"""What a terminal shows as SVG: one screen, or many as an animation, without a script or anything from elsewhere.

Text is put where its column is, whatever font a viewer has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from rich.cells import cell_len
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

CELL, LINE, MARGIN = 8.4, 19, 14
FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
PLAIN, GROUND, DIM = "#c8d3f5", "#1b1e2e", 0.6
THEME = TerminalTheme(
    (0x1B, 0x1E, 0x2E),
    (0xC8, 0xD3, 0xF5),
    [
        *((0x2A, 0x2F, 0x45), (0xF7, 0x76, 0x8E), (0x9E, 0xCE, 0x6A), (0xE0, 0xAF, 0x68)),
        *((0x82, 0xAA, 0xFF), (0xBB, 0x9A, 0xF7), (0x7D, 0xCF, 0xFF), (0xC8, 0xD3, 0xF5)),
    ],
    [
        *((0x7A, 0x83, 0xA8), (0xF7, 0x76, 0x8E), (0x9E, 0xCE, 0x6A), (0xE0, 0xAF, 0x68)),
        *((0x82, 0xAA, 0xFF), (0xBB, 0x9A, 0xF7), (0x7D, 0xCF, 0xFF), (0xE4, 0xE9, 0xFB)),
    ],
)
ALIKE = str.maketrans({"⎿": "└", "⏸": "‖"})
"""Characters that common fonts lack."""
BLOCKS = {chr(0x2580 + eighths): eighths / 8 for eighths in range(1, 9)}
"""Drawn as far up their line as they fill it, so that those above one another touch."""
VERTICALS = {"│": 1.2, "┃": 2.4}
"""Drawn as wide as this, for the same reason."""
GAPS = re.compile(r"( {2,})")
Screen = Sequence[Text]


def still(screen: Screen, columns: int) -> str:
    """Return one screen as a picture."""
    shown = "\n".join(f'<g transform="translate(0 {row * LINE})">{_line(line)}</g>' for row, line in enumerate(screen))
    return _picture(columns, len(screen), shown)


def animation(frames: Sequence[tuple[float, Screen]], columns: int, rows: int, hold: float) -> str:
    """Return screens as an animation: each from its time on, in seconds, the last one for `hold` seconds.

    They lie side by side, and what is shown moves from one to the next. A viewer that animates nothing, or whose user
    wants no motion, shows the last.
    """
    drawn: dict[str, int] = {}
    """Each line that is shown at some time, with its number."""
    width = _width(columns)
    strip = []
    for number, (_, screen) in enumerate(frames):
        uses = (
            f'<use href="#l{drawn.setdefault(line, len(drawn))}" y="{row * LINE}"/>'
            for row, line in enumerate(map(_line, screen))
            if line
        )
        strip.append(f'<g transform="translate({number * width} 0)">{"".join(uses)}</g>')
    lines = "\n".join(f'<g id="l{number}">{line}</g>' for line, number in drawn.items())
    length = frames[-1][0] + hold
    moves = "".join(
        f"{100 * at / length:.3f}%{{transform:translateX({-number * width}px)}}"
        for number, (at, _) in enumerate(frames)
    )
    last = f"translateX({-(len(frames) - 1) * width}px)"
    style = (
        f"<style>#film{{transform:{last};animation:play {length:.2f}s step-end infinite}}"
        f"@keyframes play{{{moves}100%{{transform:{last}}}}}"
        "@media (prefers-reduced-motion:reduce){#film{animation:none}}</style>"
    )
    shown = f'{style}<defs>{lines}</defs>\n<g id="film">\n' + "\n".join(strip) + "\n</g>"
    return _picture(columns, rows, shown)


def _width(columns: int) -> int:
    return round(columns * CELL + 2 * MARGIN)


def _picture(columns: int, rows: int, shown: str) -> str:
    width, height = _width(columns), rows * LINE + 2 * MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="{FONT}" font-size="14" fill="{PLAIN}">\n'
        f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>\n{shown}\n</svg>\n'
    )


def _line(line: Text) -> str:
    """Return one line, its top at 0."""
    at, shown = 0, []
    for text, style in _runs(line):
        width = cell_len(text)
        shown.append(_run(text, style, MARGIN + at * CELL, width * CELL))
        at += width
    return "".join(shown)


def _runs(line: Text) -> Iterator[tuple[str, Style]]:
    """Yield pieces of one style, without gaps in them, and of one kind of character: a font may lack some."""
    console = Console(color_system="truecolor", width=1_000)
    for segment in line.render(console):
        for word in GAPS.split(segment.text.translate(ALIKE)):
            for _, kept in groupby(word, key=lambda character: "" if character.isascii() else character):
                yield "".join(kept), segment.style or Style()


def _run(text: str, style: Style, x: float, width: float) -> str:
    front, ground = _colour(style.color, PLAIN, foreground=True), _colour(style.bgcolor, "", foreground=False)
    if style.reverse:
        front, ground = ground or GROUND, front
    box = _box(x, 1.0, width, ground) if ground else ""
    kept = text.strip()
    if not kept:
        return box
    if kept[0] in BLOCKS:
        return box + _box(x, BLOCKS[kept[0]], width, front)
    if kept[0] in VERTICALS:
        thin = VERTICALS[kept[0]]
        return box + "".join(
            _box(x + (number + 0.5) * CELL - thin / 2, 1.0, thin, front) for number in range(len(kept))
        )
    x += (len(text) - len(text.lstrip())) * CELL
    look = "".join(
        (
            f' fill="{front}"' if front != PLAIN else "",
            ' font-weight="bold"' if style.bold else "",
            f' opacity="{DIM}"' if style.dim else "",
            ' font-style="italic"' if style.italic else "",
            ' text-decoration="underline"' if style.underline else "",
        )
    )
    length = f'textLength="{cell_len(kept) * CELL:.1f}" lengthAdjust="spacingAndGlyphs"'
    return f'{box}<text x="{x:.1f}" y="{MARGIN + LINE - 5}"{look} {length}>{escape(kept)}</text>'


def _box(x: float, share: float, width: float, colour: str) -> str:
    """Return a box that stands on the bottom of its line."""
    height = share * LINE
    place = f'x="{x:.1f}" y="{MARGIN + LINE - height:.4g}" width="{width:.1f}" height="{height:.4g}"'
    return f'<rect {place} fill="{colour}"/>'


def _colour(colour: Color | None, otherwise: str, *, foreground: bool) -> str:
    if colour is None or colour.is_default:
        return otherwise
    return colour.get_truecolor(THEME, foreground=foreground).hex
