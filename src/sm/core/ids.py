"""Names by which sessions and their tokens are known."""

from __future__ import annotations

import hashlib
import re

SESSION_VARIABLE = "CLAUDE_SESSION_MANAGER_ID"
"""In the environment of everything that runs in a session."""
SESSION_ID = re.compile(r"^[0-9a-f]{8}$")
NAME = re.compile(r"^[^\x00-\x1f\x7f]{1,64}$")
"""A session's name: what a person can type in one line. Everywhere else the session is known by its id."""


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def free_name(wanted: str, taken: frozenset[str]) -> str:
    """Return `wanted`, or the first of wanted-2, wanted-3, … that is not taken."""
    if wanted not in taken:
        return wanted
    return next(name for number in range(2, len(taken) + 3) if (name := f"{wanted}-{number}") not in taken)
