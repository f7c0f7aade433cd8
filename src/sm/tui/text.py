"""Text of agents, clients and servers as the screen shows it: plain, with nothing in it that acts on a terminal.

It is never given to a function of Textual that reads markup.
"""

from __future__ import annotations

import re
import time

from sm.plain_text import plain

ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]"
)
"""Control sequences of a terminal: CSI, the strings that end with BEL or ST, and the short ones."""
TAB_COLUMNS = 4
STEP_S = 10


def one_line(text: object) -> str:
    """Return a text in one line, without escape sequences."""
    return plain(ESCAPES.sub("", str(text)).replace("\n", " ").replace("\t", " "))


def lines(text: str) -> list[str]:
    """Return the lines of a text, without escape sequences."""
    found = ESCAPES.sub("", text).replace("\r\n", "\n").split("\n")
    return [plain(line.expandtabs(TAB_COLUMNS)) for line in found]


def duration(seconds: float | None) -> str:
    """Return `4 min`: a time in one unit; empty where it is not known."""
    if seconds is None:
        return ""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def about(at: float | None, now: float) -> str:
    """Return how long ago it was, in steps of ten seconds, so that a line says another thing less often."""
    seconds = None if at is None else max(0.0, now - at)
    if seconds is None or seconds >= STEP_S:
        return duration(seconds if seconds is None else seconds // STEP_S * STEP_S)
    return f"<{STEP_S} s"


def time_of_day(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def date_and_time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def dollars(amount: float | None) -> str:
    return "" if amount is None else f"${amount:.2f}"
