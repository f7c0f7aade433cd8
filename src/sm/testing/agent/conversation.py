"""One conversation: its messages for the model, and the same as records of the transcript."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from sm.testing.agent.transcript import TranscriptWriter

Json: TypeAlias = dict[str, Any]
CAVEAT = (
    "<local-command-caveat>The command below was run directly in Claude Code, not sent to you as a request, and its "
    "output goes straight to the user. It's recorded here as context for later messages.</local-command-caveat>"
)
COMMAND = "<command-name>/{0}</command-name>\n<command-message>{0}</command-message>\n<command-args></command-args>"
STDOUT = "<local-command-stdout></local-command-stdout>"
CONTINUED = (
    "This session is being continued from a previous conversation that ran out of context. The summary below covers "
    "the earlier portion of the conversation.\n\n"
)
ABSORBED = """The user sent a new message while you were working:
{}

This is how Claude Code surfaces messages the user sends mid-turn — within the running turn, often alongside the next \
tool result, rather than as a separate conversation turn. Address the message above as you continue this turn."""
NO_USAGE = {
    "input_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 0,
}


@dataclass(slots=True)
class ScriptedConversation:
    id: str
    transcript: TranscriptWriter
    prompt_id: str | None = None
    messages: list[Json] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    """Hook context for the next request."""
    tokens: int = 0

    def note_command(self, name: str) -> None:
        """Add the note with which a conversation that `/clear` opened begins."""
        command = COMMAND.format(name)
        for text, meta in ((CAVEAT, True), (command, None)):
            self.transcript.add("user", {"message": _user(text), **({"isMeta": True} if meta else {})})
            self.add_text("user", text)
        self.transcript.add("system", {"subtype": "local_command", "content": STDOUT, "level": "info", "isMeta": False})
        self.add_text("user", STDOUT)

    def add_text(self, role: str, text: str) -> None:
        """Add a text for the model; consecutive texts of one role are one message."""
        self._blocks(role).append({"type": "text", "text": text})

    def _blocks(self, role: str) -> list[Json]:
        if not self.messages or self.messages[-1]["role"] != role:
            self.messages.append({"role": role, "content": []})
        blocks: list[Json] = self.messages[-1]["content"]
        return blocks

    def prompt(self, text: str) -> None:
        origin = {"origin": {"kind": "human"}, "permissionMode": "default", "promptSource": "typed"}
        self.transcript.add("user", {"promptId": self.prompt_id, "message": _user(text), **origin})
        self.add_text("user", text)

    def absorb(self, text: str) -> None:
        """Add a prompt that was queued during the turn."""
        queued = {"type": "queued_command", "prompt": text, "commandMode": "prompt"}
        self.transcript.add("attachment", {"attachment": queued})
        self.add_text("user", ABSORBED.format(text))

    def meta(self, text: str) -> None:
        """Add a user message that the user did not write."""
        self.transcript.add("user", {"promptId": self.prompt_id, "message": _user(text), "isMeta": True})
        self.add_text("user", text)

    def add_hook_context(self, event: str, contexts: Sequence[str]) -> None:
        """Keep hook context for the next request; its record is written at once."""
        for text in contexts:
            said = {"type": "hook_additional_context", "content": [text], "hookName": event, "hookEvent": event}
            self.transcript.add("attachment", {"attachment": said})
        self.waiting += contexts

    def flush_context(self) -> None:
        for text in self.waiting:
            self.add_text("system", text)
        self.waiting.clear()

    def replied(self, reply: Json) -> None:
        """Add a reply: one record for each block, all with the message's id and usage (2.1.328)."""
        for number, block in enumerate(reply["content"]):
            self.transcript.add("assistant", {"message": {**reply, "content": [block]}, "apiBlockIndex": number})
        self.messages.append({"role": "assistant", "content": reply["content"]})
        self.tokens = sum(int(reply["usage"].get(name, 0)) for name in NO_USAGE)

    def tool_result(self, use: str, text: str, response: Json | str, *, failed: bool) -> None:
        block = {"type": "tool_result", "tool_use_id": use, "content": text, "is_error": failed}
        message = {"role": "user", "content": [block]}
        self.transcript.add("user", {"promptId": self.prompt_id, "message": message, "toolUseResult": response})
        self._blocks("user").append(block)

    def synthetic(self, text: str, error: str, status: int | None = None) -> None:
        """Record an answer that the client itself wrote: an API error, or its own refusal."""
        message: Json = {"id": f"synthetic-{len(self.messages)}", "type": "message", "role": "assistant"}
        message |= {"model": "<synthetic>", "content": [{"type": "text", "text": text}], "usage": NO_USAGE}
        self.transcript.add(
            "assistant", {"message": message, "error": error, "isApiErrorMessage": True, "apiErrorStatus": status}
        )

    def compacted(self, summary: str, trigger: str) -> None:
        after = len(summary) // 4 + 1000
        metadata = {"trigger": trigger, "preTokens": self.tokens, "postTokens": after, "durationMs": 285}
        before, self.transcript.parent = self.transcript.parent, None
        members = {"content": "Conversation compacted", "isMeta": False, "level": "info", "logicalParentUuid": before}
        self.transcript.add("system", {"subtype": "compact_boundary", "compactMetadata": metadata, **members})
        text = CONTINUED + summary
        self.transcript.add(
            "user", {"message": _user(text), "isCompactSummary": True, "isVisibleInTranscriptOnly": True}
        )
        self.messages = [{"role": "user", "content": [{"type": "text", "text": text}]}]
        self.tokens = 0


def _user(text: str) -> Json:
    return {"role": "user", "content": text}


def messages_of(path: Path) -> list[Json]:
    """Return the messages of a transcript since its last compaction, for a conversation that is resumed."""
    messages: list[Json] = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        record = json.loads(line)
        if record.get("subtype") == "compact_boundary":
            messages = []
        elif record.get("type") in {"user", "assistant"} and not record.get("isApiErrorMessage"):
            _join(messages, record["message"])
    return messages


def _join(messages: list[Json], message: Json) -> None:
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    if messages and messages[-1]["role"] == message["role"]:
        messages[-1]["content"] += blocks
    else:
        messages.append({"role": message["role"], "content": blocks})
