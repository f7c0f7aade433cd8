"""`sm handoff FILE` of an agent without the command parser: the last call of a turn should cost no more than it must.

Handles exactly the plain form; anything with another option, and every mistake in the form, goes to the full command,
which says what is wrong. What both do is in `sm.cli.handoff`.
"""

from __future__ import annotations

import os

from sm.cli import handing_off


def handles(arguments: list[str]) -> bool:
    plain = len(arguments) == 1 and not arguments[0].startswith("-")
    return plain and bool(os.environ.get("CLAUDE_SESSION_MANAGER_ID"))


def handoff(arguments: list[str]) -> int:
    return handing_off.schedule(arguments[0], "", as_json=False)
