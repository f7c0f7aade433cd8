"""Reads a request to the Responses API into the same words as one to the Messages API (Codex 0.171.0).

The client says in a note, `x-codex-turn-metadata`, what a request is for. Two of its messages count as replies,
since nothing before them is new: a summary, with the earlier prompts once more, and the note of an interruption, with
the prompt and the calls that it ended.
"""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from sm.testing.request import Block, Request, RequestKind, RequestMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TURN_NOTE = "x-codex-turn-metadata"
INSTRUCTIONS = re.compile(r"\s*(# AGENTS\.md instructions|<environment_context>)")
"""What the client tells in a message of role "user" before the first prompt, and again where it has changed."""
NOTE = re.compile(r"\s*<(hook_prompt|user_shell_command|subagent_notification)\b")
"""Why a Stop hook lets the agent continue, what the user has run with `!`, and what a subagent has become."""
NOTHING_NEW_BEFORE = (
    "Another language model started to solve this problem and produced a summary",
    "<turn_aborted>",
)
RESULT_HEAD = re.compile(
    r"(?:(?:(?:Chunk ID|Wall time|Original token count|Exit code): .*\n|Process exited with code .*\n)+Output:\n)+"
)
"""What is before the output of a command that has ended, twice where it was a patch in the shell.

Of one that still runs the head is kept: it has the number by which it can be asked again.
"""
FAILED = re.compile(r"^(?:Process exited with code|Exit code:) (?!0\n)", re.MULTILINE)

Item: TypeAlias = dict[str, Any]
"""One item of the input; the client may send types unknown here."""


class ResponsesBody(msgspec.Struct, frozen=True):
    """The part of a Responses request that scenarios and tests use."""

    model: str = ""
    input: list[Item] = []
    tools: list[Item] = []
    stream: bool = False
    client_metadata: dict[str, Any] = {}


def read_responses_request(payload: bytes, **received: Any) -> Request:  # noqa: ANN401  # as of read_request
    """Return the request that a Responses API body describes."""
    body = msgspec.json.decode(payload, type=ResponsesBody)
    system, messages = _conversation(body.input)
    tools = [*_tool_names(body.tools), *(name for item in body.input for name in _tool_names(item.get("tools", [])))]
    return Request(
        kind=_kind(_turn_note(body.client_metadata), tools),
        session=str(body.client_metadata.get("thread_id", "")),
        model=body.model,
        stream=body.stream,
        system=system,
        tools=tools,
        messages=messages,
        **received,
    )


def _kind(note: dict[str, Any], tools: list[str]) -> RequestKind:
    """Decide whether a request is the agent's work; the thread that finds a title has no tools."""
    if note.get("request_kind") == "compaction":
        return RequestKind.COMPACTION
    return RequestKind.MAIN if tools else RequestKind.SIDE


def _turn_note(metadata: dict[str, Any]) -> dict[str, Any]:
    try:
        note = json.loads(metadata.get(TURN_NOTE, ""))
    except ValueError:
        return {}
    return note if isinstance(note, dict) else {}


def _tool_names(tools: Iterable[Item]) -> Iterator[str]:
    """Yield the names of the tools, one of a namespace as `namespace.name`.

    A model that the client knows gets them in an item of the input, any other in `tools`.
    """
    for tool in tools:
        name = str(tool.get("name", tool.get("type", "")))
        if tool.get("type") == "namespace":
            yield from (f"{name}.{inner}" for inner in _tool_names(tool.get("tools", [])))
        else:
            yield name


def _conversation(items: list[Item]) -> tuple[list[str], list[RequestMessage]]:
    """Return the instructions, and the messages after them with the roles and blocks of the Messages API."""
    instructions: list[str] = []
    messages: list[RequestMessage] = []
    begun = False
    for item in items:
        role = item.get("role")
        begun = begun or role == "user"
        for text in _parts(item.get("content", "")) if item.get("type") == "message" else ():
            if INSTRUCTIONS.match(text) if role == "user" else not begun:
                instructions.append(text)
            else:
                messages.append(_message(str(role), text))
        messages.extend(_of_tool(item))
    return instructions, messages


def _message(role: str, text: str) -> RequestMessage:
    if role == "user" and text.startswith(NOTHING_NEW_BEFORE):
        return RequestMessage("assistant", text)
    if role == "user" and NOTE.match(text):
        return RequestMessage("system", html.unescape(text))
    return RequestMessage("system" if role == "developer" else role, text)


def _of_tool(item: Item) -> Iterator[RequestMessage]:
    kind = str(item.get("type", ""))
    if kind.endswith("_call_output"):
        yield RequestMessage("user", [_result(item)])
    elif kind.endswith("_call"):
        said = {"name": item.get("name", ""), "input": item.get("arguments", item.get("input", ""))}
        yield RequestMessage("assistant", [{"type": "tool_use", "id": item.get("call_id", ""), **said}])


def _result(item: Item) -> Block:
    text = "\n".join(_parts(item.get("output", "")))
    head = RESULT_HEAD.match(text)
    end = head.end() if head else 0
    failed = bool(FAILED.search(text[:end]))
    return {"type": "tool_result", "tool_use_id": item.get("call_id", ""), "content": text[end:], "is_error": failed}


def _parts(content: str | list[Item]) -> list[str]:
    return [content] if isinstance(content, str) else [part.get("text", "") for part in content]
