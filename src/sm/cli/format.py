"""The output of commands: data on stdout, notes on stderr, one JSON object with `--json`, a `hint:` after an error.

`sm handoff` loads this on every call, so it has no slow imports at the top.
"""

from __future__ import annotations

import os
import sys

from sm.cli.exits import exit_code

TYPE_CHECKING = False  # `typing` costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from sm.core.errors import Refused

SCHEMA = 1


def emit_json(data: object) -> None:
    _print_object({"schema": SCHEMA, "data": data})


def fail(refused: Refused, *, as_json: bool) -> int:
    if os.environ.get("CLAUDE_SESSION_MANAGER_ID"):
        from sm.core.errors import for_agent  # noqa: PLC0415  # dataclasses cost 6 ms

        refused = for_agent(refused)
    if as_json:
        message = refused.message.removeprefix("Error: ")
        body = {"code": refused.code, "message": message, "hint": refused.hint}
        _print_object({"schema": SCHEMA, "error": body})
    else:
        message = refused.message if refused.message.startswith("Error: ") else f"Error: {refused.message}"
        say(f"{message}\nhint: {refused.hint}" if refused.hint else message)
    return exit_code(refused.code)


def _print_object(envelope: dict[str, object]) -> None:
    import json  # noqa: PLC0415  # 5 ms, not needed for text

    # ASCII only: half a surrogate pair or a terminal without UTF-8 must not change what a script reads.
    write(sys.stdout, json.dumps(envelope, indent=1) + "\n")


def run_reporting(function: Callable[[], None], *, as_json: bool) -> int:
    """Run a command's function; print a refusal and return its exit code."""
    from sm.core.errors import SmError  # noqa: PLC0415  # dataclasses cost 6 ms

    try:
        function()
    except SmError as problem:
        return fail(problem.refused, as_json=as_json)
    return 0


def say(text: str) -> None:
    """Print a note on stderr, so that stdout holds data alone. A closed stderr is no error."""
    if sys.stderr is None:
        return
    try:
        write(sys.stderr, f"{text}\n")
    except OSError:
        drop(sys.stderr)


def show(text: str) -> None:
    write(sys.stdout, f"{text}\n")


def write(stream: TextIO | None, text: str) -> None:
    """Write text, as plain ASCII where the terminal has no UTF-8."""
    if stream is None:  # it was closed before the start
        raise OSError(9, "standard output is closed")
    if not text.isascii() and has_plain_marks(stream):
        from sm.plain_marks import in_words  # noqa: PLC0415  # for few terminals

        text = in_words(text)
    encoding = encoding_of(stream)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.encode(encoding, "replace").decode(encoding)
    stream.write(text)
    stream.flush()


def drop(stream: TextIO | None) -> None:
    """Discard what is in its buffer: else the interpreter reports an error at its end."""
    if stream is not None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def encoding_of(stream: TextIO) -> str:
    """Return in what its terminal reads it. In a C locale that is ASCII.

    Python writes UTF-8 all the same there, and sets LC_CTYPE as if the terminal had it (PEP 538, PEP 540).
    """
    named = os.environ.get("LC_ALL") or os.environ.get("LANG") or ""
    in_c_locale = sys.flags.utf8_mode and "UTF" not in named.upper() and (named or stream.isatty())
    return "ascii" if in_c_locale else stream.encoding or "ascii"


def without_utf8(stream: TextIO) -> bool:
    return encoding_of(stream).replace("-", "").lower() != "utf8"


def is_dumb() -> bool:
    """Whether the terminal only prints: no colours, no cursor, and often a small font."""
    return os.environ.get("TERM") == "dumb"


def has_plain_marks(stream: TextIO) -> bool:
    return without_utf8(stream) or (is_dumb() and stream.isatty())


def fitting(stream: TextIO | None) -> Callable[[str], str]:
    """Return what makes text for columns ready for a stream: it takes as many columns as before."""
    from sm.plain_marks import in_cells, marks_in_cells  # noqa: PLC0415  # most commands print no table

    if stream is None:
        return str
    if without_utf8(stream):
        return in_cells
    return marks_in_cells if has_plain_marks(stream) else str


def coloured(text: str, code: str | None) -> str:
    if not code or os.environ.get("NO_COLOR") or is_dumb() or not is_terminal(sys.stdout):
        return text
    return f"\x1b[{code}m{text}\x1b[0m"


def is_terminal(stream: TextIO | None) -> bool:
    """Whether it is a terminal; False for one that was closed before the start."""
    return stream is not None and stream.isatty()


def bar(percent: float | None, width: int = 10) -> str:
    """Return a gauge for a share; dots if it is unknown."""
    if percent is None:
        return "·" * width
    filled = max(0, min(width, round(percent / 100 * width)))
    return "█" * filled + "░" * (width - filled)


def tokens(count: object) -> str:
    """Return a count from JSON, or `-` for null."""
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


def encodable(text: str) -> bool:
    """Whether JSON can hold the text; False for a file name or variable that is not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
