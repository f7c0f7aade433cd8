"""How commands speak: data on stdout, words on stderr, one JSON object with `--json`, a `hint:` after an error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from sm.cli.exits import exit_code
from sm.core.errors import Refused, SmError

SCHEMA = 1


def emit_json(data: object) -> None:
    write(sys.stdout, json.dumps({"schema": SCHEMA, "data": data}, ensure_ascii=False, indent=1) + "\n")


def fail(refused: Refused, *, as_json: bool) -> int:
    if as_json:
        body = {"code": refused.code, "message": refused.message, "hint": refused.hint}
        write(sys.stdout, json.dumps({"schema": SCHEMA, "error": body}, ensure_ascii=False) + "\n")
    else:
        message = refused.message if refused.message.startswith("Error: ") else f"Error: {refused.message}"
        write(sys.stderr, f"{message}\n")
        if refused.hint:
            write(sys.stderr, f"hint: {refused.hint}\n")
    return exit_code(refused.code)


def reported(function: Callable[[], None], *, as_json: bool) -> int:
    """Run a command's work and turn what it refuses into words and an exit code."""
    try:
        function()
    except SmError as problem:
        return fail(problem.refused, as_json=as_json)
    return 0


def say(text: str) -> None:
    """Words for a person: stderr, so that stdout holds data alone."""
    write(sys.stderr, f"{text}\n")


def show(text: str) -> None:
    write(sys.stdout, f"{text}\n")


def write(stream: TextIO, text: str) -> None:
    """Write what the terminal can show: plain ASCII where it has no UTF-8."""
    encoding = stream.encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = "".join(ASCII.get(character, character) for character in text)
        text = text.encode(encoding, "replace").decode(encoding)
    stream.write(text)
    stream.flush()


ASCII = {"—": "-", "–": "-", "→": "->", "…": "...", "·": "-", "█": "#", "░": ".", "✓": "ok", "✗": "x", "│": "|", "─": "-"}


def coloured(text: str, code: str) -> str:
    if os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return text
    return f"\x1b[{code}m{text}\x1b[0m"


def bar(percent: float | None, width: int = 10) -> str:
    """A gauge for a share; dots where it is unknown."""
    if percent is None:
        return "·" * width
    filled = max(0, min(width, round(percent / 100 * width)))
    return "█" * filled + "░" * (width - filled)


def table(rows: Sequence[Sequence[str]], heads: Sequence[str]) -> str:
    """Columns as wide as what is in them; an empty table is its heads alone."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (heads, *rows)]
    return "\n".join(line.rstrip() for line in lines)


def tokens(count: Any) -> str:  # noqa: ANN401  # a number from JSON, or null
    if not isinstance(count, int | float):
        return "-"
    thousand, million = 1_000, 1_000_000
    if count >= million:
        return f"{count / million:.2f}M"
    return f"{count / thousand:.0f}k" if count >= 10 * thousand else f"{count:,.0f}"


def ago(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size:.0f}{unit}"
    return f"{max(0.0, seconds):.0f}s"
