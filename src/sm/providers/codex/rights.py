"""What Codex's sandboxes and approval policies allow, and those that allow no more than another client has (0.171.0).

A permission mode reads "SANDBOX APPROVAL". The words that its hooks have for one say nothing of the sandbox:
`bypassPermissions` is there `never` in whatever sandbox, and counts as unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sm.core.model.rights import STRICTEST, Freedom, Rights
from sm.providers.codex.options import CONFIG, ORDER, disabled, untrusted

LEVELS = dict(zip(ORDER, (Freedom.READING, Freedom.WORKING, Freedom.EVERYTHING), strict=True))
ASKING = {"on-request": True, "never": False}
"""Beside these there are `untrusted`, which asks for nearly every command, and `granular`."""
RESTRICTING = ("features.", "tools.")
"""Beginnings of keys of its configuration that take tools away."""


def of_mode(mode: str) -> Rights:
    """Return the strictest for a sandbox that is not known; one that asks first for nearly everything may only read."""
    sandbox, _, approval = mode.partition(" ")
    level = LEVELS.get(sandbox)
    if level is None:
        return STRICTEST
    if approval not in ASKING:
        return Rights(Freedom.READING, asks=True)
    # Without a sandbox nothing is held back, whether the agent asks or not.
    return Rights(level, asks=ASKING[approval] and level is not Freedom.EVERYTHING)


def arguments(rights: Rights, directory: str) -> tuple[str, ...]:
    """Return what starts a client in the directory with no more than these."""
    project = () if rights.level is Freedom.EVERYTHING and not rights.asks else untrusted(directory)
    level = Freedom.WORKING if rights.level is Freedom.EVERYTHING and rights.asks else rights.level
    return *project, "-s", ORDER[level], "-a", "on-request" if rights.asks else "never"


def restrictions(given: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the arguments that no other kind of client can be given."""
    found = [f"--disable {name}" for name in disabled(given)]
    for argument, after in pairwise((*given, "")):
        name, joined, own = argument.partition("=")
        value = own if joined else after
        if name in CONFIG and value.startswith(RESTRICTING):
            found.append(f"{name} {value}")
    return tuple(found)
