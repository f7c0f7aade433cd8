"""Names by which sessions and their tokens are known."""

from __future__ import annotations

import hashlib
import re

SESSION_VARIABLE = "CLAUDE_SESSION_MANAGER_ID"
"""In the environment of everything that runs in a session."""
SESSION_ID = re.compile(r"^[0-9a-f]{8}$")
MOST = 64
"""Characters of a session's name."""


PARENT, CHILDREN = "parent", "children"
"""What a sender may write in the place of a name; a comma stands between names."""


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def is_name(text: str) -> bool:
    """What a person can see and type in one line, can be part of a route, and can be taken for no id and no target."""
    visible = 1 <= len(text) <= MOST and text.isprintable() and text == text.strip()
    return visible and not {*"/,"} & {*text} and text not in {PARENT, CHILDREN} and SESSION_ID.match(text) is None


def free_name(wanted: str, taken: frozenset[str]) -> str:
    """Return what can be a name of `wanted`, or with -2, -3, … behind it the first that is not taken."""
    shown = "".join(one if one.isprintable() and one not in "/," else "_" for one in wanted)
    plain = shown.strip()[: MOST - 8].strip() or "sm"
    if plain not in taken and is_name(plain):
        return plain
    return next(name for number in range(2, len(taken) + 3) if (name := f"{plain}-{number}") not in taken)


def as_argument(name: str, identity: str) -> str:
    """What a printed command calls a session: its name, or its id where a shell would take the name apart."""
    return name if SAFE.fullmatch(name) else identity


SAFE = re.compile(r"\w[\w.@:+-]*")
