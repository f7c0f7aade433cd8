"""The line by which the agent of a run asks for a fresh context, as agents of an earlier tool do.

It counts only as a line of its own that names the run: one that is quoted, or of another run, is only text.
"""

from __future__ import annotations

SIGNAL = "CONTEXT_HANDOFF:"
WORDS = "Ready for fresh session"
"""What the earlier tool has between the two; may be left out."""
FENCES = ("```", "~~~")


def signal_line(run: str) -> str:
    return f"{SIGNAL} {run}"


def signalled_run(message: str) -> str:
    """Return the run that a final message asks to continue in a fresh context; empty without such a line."""
    fence, found = "", ""
    for line in message.splitlines():
        opened = next((mark for mark in FENCES if line.lstrip().startswith(mark)), "")
        if opened and fence in {"", opened}:
            fence = "" if fence else opened
        elif not fence and line.startswith(SIGNAL):
            found = line.removeprefix(SIGNAL).strip().removeprefix(WORDS).strip()
    return found if found.isascii() and " " not in found else ""
