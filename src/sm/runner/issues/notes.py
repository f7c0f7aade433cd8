"""What is added to an issue's text: why an attempt has stopped, and what the user answers.

Each line of it is quoted, so that an agent's words cannot pass for a part of the issue, or for the user's answer.
"""

from __future__ import annotations

from sm.core.model.framing import cleaned
from sm.runner.issues.front_matter import line_break
from sm.runner.issues.issue import IssueStatus

MAX_CHARACTERS = 20_000


def note_head(status: IssueStatus) -> str:
    return f"sm: {status.value.replace('_', ' ')}"


ANSWER_HEAD = "sm: answer"


def quoted(text: str) -> list[str]:
    """Return the lines of a text as a quotation, shortened where it is too long."""
    return [f"> {line}".rstrip() for line in shortened(text).split("\n")]


def shortened(text: str) -> str:
    """Return a text without control characters, and with what is too long of it counted only."""
    plain = cleaned(text)
    if len(plain) <= MAX_CHARACTERS:
        return plain
    return f"{plain[:MAX_CHARACTERS]}\n… {len(plain) - MAX_CHARACTERS:,} more characters"


def with_note(text: str, head: str, note: str) -> str:
    """Return a Markdown text with a section at its end; unchanged if that is its last one already."""
    newline = line_break(text)
    section = newline.join((f"## {head}", "", *quoted(note), ""))
    if text.endswith(section):
        return text
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    return f"{text}{gap}{section}"
