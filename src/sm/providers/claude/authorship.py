"""Whose words a record holds: the user's are only those that nothing else could have put there.

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
SLASH_COMMAND = re.compile(
    r"<command-name>/?([^<]*)</command-name>.{0,1000}?<command-args>(.*?)(?:</command-args>|\Z)", re.DOTALL
)
REFUSED = ("The user doesn't want to proceed with this tool use", "The user doesn't want to take this action right now")
REASON = "the user said:\n"
PUT_ASIDE = "The user wants to clarify these questions."
"""How the client begins what it says for a user who chose to talk about a question first."""
ANSWERED = re.compile(r'^- "(.*)"\n  (?:Answer: (.*)|\(No answer provided\))(?:\n  User notes: (.*))?$', re.MULTILINE)
"""What a question had for an answer when it was put aside."""
SHELL = re.compile(r"<bash-input>(.*?)(?:</bash-input>|\Z)", re.DOTALL)
SHELL_OUTPUT = re.compile(r"<bash-stdout>(.*?)(?:</bash-stdout>|\Z)", re.DOTALL)
PLAN = re.compile(
    r"\AImplement the following plan:\s+(.*?)\s*(?:\n+If you need specific details from before |\Z)", re.DOTALL
)
PLAN_WORDS = "\nUser feedback on this plan: "
"""What a conversation begins with where a plan was approved and the context cleared."""


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


def user_text(content: object) -> str | None:
    """The words of a prompt, "" if it is an image alone; None if all of it is the client's."""
    if not content or "tool_result" in kinds(content):
        return None
    parts = texts(content)
    kept = _user_texts(parts)
    return None if parts and not kept else "\n".join(kept)


def words_beside(content: object) -> str:
    """Return what the user typed with their yes to a call: it is kept in the record of the call's result."""
    return "\n".join(_user_texts(texts(content))) if "tool_result" in kinds(content) else ""


def _user_texts(parts: list[str]) -> list[str]:
    kept = [INSERTED.sub("", part).strip() for part in parts]
    return [part for part in kept if part and not part.startswith(MACHINE_WORDS)]


def without_pastes(said: str) -> tuple[str, int]:
    """The text less what was pasted, and how many lines that is."""
    lines = sum(pasted.strip("\n").count("\n") + 1 for pasted in PASTED.findall(said))
    return PASTED.sub("", said).strip(), lines


def slash_command(said: str) -> str | None:
    """Return a slash command with the user's words after it, as typed; None if it has none."""
    found = SLASH_COMMAND.search(said) if said.startswith("<command-") else None
    return f"/{found[1].strip()} {found[2].strip()}" if found and found[2].strip() else None


def refused(result: str) -> bool:
    """Return whether a call was not run because the user refused it."""
    return result.startswith(REFUSED)


def reason(result: str) -> str:
    """Return the reason that the user gave for refusing a call."""
    return result.partition(REASON)[2].strip()


def answers(put_aside: str) -> list[tuple[str, str, str]]:
    """Question, answer and notes of what was answered all the same."""
    return [(question, answer, notes) for question, answer, notes in ANSWERED.findall(put_aside) if answer or notes]


def plan_and_words(prompt: str) -> tuple[str, str]:
    """Return the plan that a conversation begins with, and the user's comment on it."""
    text, _, words = prompt.partition(PLAN_WORDS)
    found = PLAN.match(text)
    return (found[1] if found else ""), words.strip()
