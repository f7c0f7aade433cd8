"""Ids and names of sessions, and hashes of their tokens."""

from __future__ import annotations

import hashlib
import re
import shlex

SESSION_VARIABLE = "CLAUDE_SESSION_MANAGER_ID"
"""In the environment of everything that runs in a session."""
SESSION_ID = re.compile(r"^[0-9a-f]{8}$")
MAX_NAME_CHARS = 64
"""Of a session's name."""


PARENT, CHILDREN = "parent", "children"
"""What a sender may write in place of a name; commas separate names."""


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def name_fault(text: str) -> str | None:
    """The rule that a session's name breaks: it fits into one line and a route, and is neither an id nor a target."""
    if not 1 <= len(text) <= MAX_NAME_CHARS:
        return f"names have 1 to {MAX_NAME_CHARS} characters"
    if not text.isprintable() or text != text.strip():
        return "names must be printable, without blanks at their ends"
    if {*"/,"} & {*text}:
        return "names must not contain commas or slashes"
    if text.startswith("-") or text in {".", ".."}:
        return "a command would take it for an option or a directory"
    if text in {PARENT, CHILDREN}:
        return "this word names a target of sm send"
    return None if SESSION_ID.match(text) is None else "eight hexadecimal digits are an id"


def free_name(wanted: str, taken: frozenset[str]) -> str:
    """Return what can be a name of `wanted`, or with -2, -3, … behind it the first that is not taken."""
    shown = "".join(character if character.isprintable() and character not in "/," else "_" for character in wanted)
    plain = shown.strip("- \t")[: MAX_NAME_CHARS - 8].strip() or "sm"
    if plain not in taken and name_fault(plain) is None:
        return plain
    return next(name for number in range(2, len(taken) + 3) if (name := f"{plain}-{number}") not in taken)


def is_prefix(text: str) -> bool:
    """Whether the id of a session or an ask may be shortened to it, in lower or upper case.

    A mistyped name of one or two letters means none.
    """
    return ID_PREFIX.fullmatch(text) is not None


MIN_PREFIX_CHARS = 4
ID_PREFIX = re.compile(rf"[0-9a-fA-F]{{{MIN_PREFIX_CHARS},8}}")


def too_short(text: str) -> bool:
    """Whether it would begin an id if it had enough characters."""
    return 0 < len(text) < MIN_PREFIX_CHARS and all(character in "0123456789abcdefABCDEF" for character in text)


PREFIX_RULE = f"the beginning of an id needs {MIN_PREFIX_CHARS} characters"


def as_argument(name: str, identity: str) -> str:
    """What a printed command calls a session: its name, or its id where a shell would take the name apart."""
    return name if SAFE.fullmatch(name) else identity


def name_taken_hint(name: str) -> str:
    return f"choose another name, or show that one: sm attach {shlex.quote(name)}"


SAFE = re.compile(r"\w[\w.@:+-]*")
