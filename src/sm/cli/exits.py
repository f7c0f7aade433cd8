"""Error → exit code: 0 done · 1 refused or failed · 2 wrong usage, no session in the environment, or no server."""

from __future__ import annotations

DONE = 0
REFUSED = 1
USAGE = 2

CODES = {
    "unavailable": USAGE,
    "not_in_session": USAGE,
    "usage": USAGE,
}


def exit_code(code: str) -> int:
    return CODES.get(code, REFUSED)
