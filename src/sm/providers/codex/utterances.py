"""What the records of a rollout say in words: prompts, replies, tool calls and what came back (Codex 0.171.0).

Messages are taken from what the user was shown, calls and results from what the model made and was given: together
they have each text once. A command that the user ran has no call.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from sm.core.ports.provider import Utterance
from sm.providers.codex.records import Json, RolloutRecord, rollout_record, string, text
from sm.providers.jsonl import well_formed

SPEAKERS = (b'"item_completed"', b'"function_call', b'"custom_tool_call')
MESSAGES = frozenset({"UserMessage", "AgentMessage"})
CALLS = frozenset({"function_call", "custom_tool_call"})
RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
USER_SHELL = "user_shell"
SHELL_ARGUMENTS = 3
MAX_CHARS = 200_000
"""Characters of one utterance."""


def utterance(line: bytes) -> Utterance | None:
    if not any(speaker in line for speaker in SPEAKERS):
        return None
    record = rollout_record(line)
    if record is None:
        return None
    said = well_formed("\n".join(_said(record))[:MAX_CHARS])
    return Utterance(said, record.at) if said.strip() else None


def _said(record: RolloutRecord) -> Iterator[str]:
    item = record.item
    if item.get("type") in MESSAGES:
        yield text(item.get("content"))
    elif item.get("type") == "Plan":
        yield string(item, "text")
    elif item.get("source") == USER_SHELL:
        yield command_line(item)
        yield string(item, "aggregated_output")
    elif record.response in CALLS:
        yield string(record.payload, "name")
        yield from _given(record.payload)
    elif record.response in RESULTS:
        yield text(record.payload.get("output"))


def command_line(item: Json) -> str:
    """Return the command of a `CommandExecution`, which a login shell is given as its last argument."""
    command = item.get("command")
    parts = [part for part in command if isinstance(part, str)] if isinstance(command, list) else []
    return well_formed(parts[-1] if len(parts) == SHELL_ARGUMENTS and parts[1] in {"-lc", "-c"} else " ".join(parts))


def _given(call: Json) -> Iterator[str]:
    """The strings among a call's arguments; all of what is no object."""
    given = call.get("arguments", call.get("input"))
    if not isinstance(given, str):
        return
    try:
        arguments = msgspec.json.decode(given)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        arguments = None
    if isinstance(arguments, dict):
        yield from (value for value in arguments.values() if isinstance(value, str))
    else:
        yield given
