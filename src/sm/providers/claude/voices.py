"""Whose words a record holds: a person's are those alone that nobody else could have put there.

The client writes recaps, slash commands, notifications, hook output and messages of other agents as user records too.
"""

from __future__ import annotations

import re

from sm.providers.jsonl import well_formed

SYNTHETIC = "<synthetic>"
"""The model of records the client makes up, as after an API error; their usage is all zero."""
MACHINE_WORDS = (
    "<command-",
    "<local-command-",
    "<bash-",
    "<system-reminder>",
    "<task-notification>",
    "[Request interrupted by user",
)
"""How texts begin that the client writes for slash commands, shell output, notifications and Escape."""
INSERTED = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
PASTED = re.compile(r"<pasted_content\b[^>]*>(.*?)(?:</pasted_content\b[^>]*>|\Z)", re.DOTALL)
"""A long paste is marked by the client; what it holds was written elsewhere."""
ORDERED = re.compile(r"<command-name>/?(.*?)</command-name>.*?<command-args>(.*?)</command-args>", re.DOTALL)
REFUSED = ("The user doesn't want to proceed with this tool use", "The user doesn't want to take this action right now")
REASON = "the user said:\n"


def blocks(content: object) -> list[dict[str, object]]:
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def kinds(content: object) -> list[object]:
    return [block.get("type") for block in blocks(content)]


def texts(content: object) -> list[str]:
    if isinstance(content, str):
        return [well_formed(content)]
    found = [block.get("text") for block in blocks(content) if block.get("type") == "text"]
    return [well_formed(text) for text in found if isinstance(text, str)]


def text(content: object) -> str:
    return "\n".join(texts(content))


def personal_text(content: object) -> str | None:
    """The words of a prompt, "" if it is an image alone; None if all of it is the client's."""
    if not content or "tool_result" in kinds(content):
        return None
    parts = texts(content)
    kept = [part for part in (INSERTED.sub("", part).strip() for part in parts) if not part.startswith(MACHINE_WORDS)]
    if parts and not "".join(kept):
        return None
    return "\n".join(part for part in kept if part)


def without_pastes(said: str) -> tuple[str, int]:
    """The text less what was pasted, and how many lines that is."""
    lines = sum(pasted.strip("\n").count("\n") + 1 for pasted in PASTED.findall(said))
    return PASTED.sub("", said).strip(), lines


def order(said: str) -> str | None:
    """A slash command with the person's words behind it, as they typed it."""
    found = ORDERED.search(said) if said.startswith("<command-") else None
    return f"/{found[1].strip()} {found[2].strip()}" if found and found[2].strip() else None


def refused(result: str) -> bool:
    """True if a call was not carried out because the person did not want it."""
    return result.startswith(REFUSED)


def reason(result: str) -> str | None:
    """What the person said when they refused a call."""
    return result.partition(REASON)[2].strip() or None if refused(result) else None
