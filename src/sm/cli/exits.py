"""Error → exit code: 0 done · 1 refused or failed · 2 wrong usage, no session in the environment, or no server.

130 is Ctrl-C, as in every shell.
"""

from __future__ import annotations

DONE = 0
REFUSED = 1
USAGE = 2
INTERRUPTED = 130

CODES = {
    "unavailable": USAGE,
    "foreign_server": USAGE,
    "start_failed": USAGE,
    "not_answering": USAGE,
    "not_in_session": USAGE,
    "usage": USAGE,
}


def exit_code(code: str) -> int:
    return CODES.get(code, REFUSED)
