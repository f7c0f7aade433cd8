"""The permission mode in which a client starts, as far as its arguments and its conversation say (2.1.328).

An argument outranks the conversation, in whose newest mode a client that resumes it continues. The client notes a mode
with a prompt and when it ends in order: one that was killed may continue in the mode before its last.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from sm.providers import jsonl
from sm.providers.claude.launch import BYPASS, MODE

MAX_LOOK_BYTES = 64 << 20
MARKS = (b'"permission-mode"',)


class _Noted(msgspec.Struct, rename="camel"):
    type: str
    permission_mode: str


def at_start(arguments: Sequence[str], transcript: str | None) -> str:
    """Return it for a client that continues the conversation of `transcript`; empty where nothing says."""
    if BYPASS in arguments:
        return "bypassPermissions"
    for argument, value in zip(arguments, (*arguments, "")[1:], strict=True):
        if argument == MODE:
            return value
        if argument.startswith(f"{MODE}="):
            return argument.removeprefix(f"{MODE}=")
    return noted(Path(transcript)) if transcript else ""


def noted(transcript: Path) -> str:
    """Return the mode that the client noted last in its transcript."""
    for line in jsonl.newest_lines(transcript, MARKS, within=MAX_LOOK_BYTES, longest=1 << 16):
        found = _decoded(line)
        if found is not None and found.type == "permission-mode":
            return found.permission_mode
    return ""


def _decoded(line: bytes) -> _Noted | None:
    try:
        return msgspec.json.decode(line, type=_Noted)
    except (ValueError, RecursionError):  # another record that has these words
        return None
