"""Reads a request to the Messages API: its session, what is new in it, and whether it is the agent's own work.

New is everything after the last assistant message, whatever its role: the client puts reminders and hook context into
messages of role "system" after the user's text, and into `<system-reminder>` blocks inside it.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Block: TypeAlias = dict[str, Any]
"""One content block of the API; the client may send block types unknown here."""

REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
LOCAL_COMMAND = re.compile(r"<(local-)?command-(\w+)>(?:(?!<(?:local-)?command-).)*?</(local-)?command-\2>", re.DOTALL)
"""The client's note of a slash command, as of `/clear` before the first prompt of a new conversation."""
COMPACTION_PROMPT = re.compile(r"Your task is to create a detailed summary of (the|this) ")
"""All three compaction prompts of client 2.1.328 contain it (whole, partial, from a point on)."""
SUMMARY_PREFIX = "This session is being continued from a previous conversation"
"""Opens the summary of a compacted conversation."""
FORK_PROMPT = re.compile(r"\[SUGGESTION MODE: |<system-reminder>This is a side question from the user")
"""Prompt suggestions and /btw: they carry the agent's own tools and history, to share its prompt cache."""


class RequestKind(StrEnum):
    MAIN = "main"
    """The agent or one of its subagents: consumes the scenario."""
    COMPACTION = "compaction"
    SIDE = "side"
    """A request of the client itself (titles, suggestions, quota probes): answered harmlessly, consumes nothing."""
    COUNT = "count_tokens"
    OTHER = "other"


class RequestMessage(msgspec.Struct, frozen=True):
    role: str
    content: str | list[Block]

    @property
    def blocks(self) -> list[Block]:
        return [{"type": "text", "text": self.content}] if isinstance(self.content, str) else self.content

    @property
    def text(self) -> str:
        return "\n".join(_texts(self.blocks))


class ToolResult(msgspec.Struct, frozen=True):
    id: str
    text: str
    is_error: bool = False


class SystemBlock(msgspec.Struct, frozen=True):
    text: str = ""


class Tool(msgspec.Struct, frozen=True):
    name: str = ""


class Body(msgspec.Struct, frozen=True):
    """The part of a Messages request that scenarios and tests use."""

    model: str = ""
    messages: list[RequestMessage] = []
    system: str | list[SystemBlock] = ""
    tools: list[Tool] = []
    max_tokens: int = 0
    stream: bool = False
    metadata: dict[str, Any] = {}


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it was received, with the rule that answered it."""

    number: int = 0
    """Counts from 1, in the order of arrival."""
    at: float = 0.0
    """Monotonic seconds; compare with time.monotonic() of the same machine."""
    epoch: float = 0.0
    method: str = "POST"
    path: str = "/v1/messages"
    kind: RequestKind = RequestKind.OTHER
    session: str = ""
    """The client's own conversation id; changes on /clear."""
    model: str = ""
    stream: bool = False
    max_tokens: int = 0
    system: list[str] = []
    tools: list[str] = []
    messages: list[RequestMessage] = []
    matched: str | None = None
    """Name of the turn that answered, None if no rule did."""

    @property
    def tail(self) -> list[RequestMessage]:
        """The messages since the last one of the assistant."""
        last = max((i for i, message in enumerate(self.messages) if message.role == "assistant"), default=-1)
        return self.messages[last + 1 :]

    @property
    def user_text(self) -> str:
        """The user's new text, without reminders, tool results, summaries and notes of slash commands."""
        texts = (block["text"] for block in self._new_blocks("user") if block.get("type") == "text")
        return "\n".join(filter(None, (_said(text) for text in texts if not text.startswith(SUMMARY_PREFIX))))

    @property
    def context_text(self) -> str:
        """New text of the client or a hook: system-role messages and reminders, those in tool results too."""
        system = [message.text for message in self.tail if message.role == "system"]
        return "\n".join([*system, *REMINDER.findall("\n".join(_texts(self._new_blocks("user"))))])

    @property
    def conversation(self) -> tuple[str, str]:
        """Distinguishes agents that share the client's session, as its subagents do; changes on a compaction."""
        first = next((message.text for message in self.messages if message.role == "user"), "")
        return self.session, _said(first)

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        blocks = (block for block in self._new_blocks("user") if block.get("type") == "tool_result")
        return tuple(_tool_result(block) for block in blocks)

    @property
    def all_text(self) -> str:
        """Everything the model would read, system prompt and history included."""
        return "\n".join([*self.system, *(message.text for message in self.messages)])

    def _new_blocks(self, role: str) -> Iterator[Block]:
        return (block for message in self.tail if message.role == role for block in message.blocks)


def read_request(payload: bytes, **received: Any) -> Request:  # noqa: ANN401  # the fields of Request, checked by it
    """Return the request that a Messages API body describes."""
    body = msgspec.json.decode(payload, type=Body)
    system = [body.system] if isinstance(body.system, str) else [block.text for block in body.system]
    request = Request(
        model=body.model,
        messages=body.messages,
        system=[text for text in system if text],
        tools=[tool.name for tool in body.tools],
        max_tokens=body.max_tokens,
        stream=body.stream,
        session=_session(body.metadata),
        **received,
    )
    return msgspec.structs.replace(request, kind=kind_of(request))


def kind_of(request: Request) -> RequestKind:
    """Decide whether a request is the agent's work.

    Every request of the agent and its subagents carries tools; those of the client itself carry none (seen: the naming
    by a bare /rename), or ask for a single token, or are forks of the conversation that only their prompt shows (seen:
    /btw).
    """
    if request.path.endswith("/count_tokens"):
        return RequestKind.COUNT
    if COMPACTION_PROMPT.search(request.user_text):
        return RequestKind.COMPACTION
    is_fork = FORK_PROMPT.search(request.user_text + request.context_text)
    return RequestKind.SIDE if is_fork or not request.tools or request.max_tokens == 1 else RequestKind.MAIN


def _session(metadata: dict[str, Any]) -> str:
    try:
        user = json.loads(metadata.get("user_id", ""))
    except ValueError:
        return ""
    return str(user.get("session_id", "")) if isinstance(user, dict) else ""


def _said(text: str) -> str:
    return LOCAL_COMMAND.sub("", REMINDER.sub("", text)).strip()


def _texts(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        if block.get("type") == "text":
            yield block["text"]
        elif block.get("type") == "tool_result":
            yield _result_text(block)


def _result_text(block: Block) -> str:
    content = cast("str | list[Block]", block.get("content", ""))
    return content if isinstance(content, str) else "\n".join(_texts(content))


def _tool_result(block: Block) -> ToolResult:
    text = REMINDER.sub("", _result_text(block)).strip()
    return ToolResult(block.get("tool_use_id", ""), text, bool(block.get("is_error")))
