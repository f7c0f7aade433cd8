"""Encodes an answer for the Responses API: as a stream of events, or as an error (Codex 0.171.0)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sm.testing.codex_tools import call_item
from sm.testing.sse import ERROR_MESSAGES, PIECE_CHARS, frame, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sm.testing.player import Answer
    from sm.testing.request import Request
    from sm.testing.scenario import Fault

TOO_LONG = "prompt is too long"
"""In the message of the fault that a scenario writes with TooLong."""
RESET_HEADER = "anthropic-ratelimit-unified-reset"
"""A fault with it is a usage limit; Codex reads from the body when it ends."""
CLAIM_HEADER = "anthropic-ratelimit-unified-representative-claim"
LIMIT_MINUTES = {"five_hour": 300, "seven_day": 10_080}
OVERLOADED = 529
"""The other API's status; Codex knows no such one."""
UNAVAILABLE = 503
ERROR_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded", UNAVAILABLE: "server_is_overloaded"}


def events(answer: Answer, request: Request) -> Iterator[bytes]:
    """Return the frames of a streamed reply, one event each."""
    reply = {"id": f"resp_scripted{request.number:06d}", "object": "response", "model": request.model}
    yield frame("response.created", response=reply | {"status": "in_progress"})
    for index, item in enumerate(items(answer, request)):
        yield from _item_frames(index, item, PIECE_CHARS if answer.step.chunk_delay else 0)
    yield frame("response.completed", response=reply | {"status": "completed", "usage": usage(answer)})


def items(answer: Answer, request: Request) -> Iterator[dict[str, Any]]:
    step = answer.step
    if step.think:
        yield {"type": "reasoning", "summary": [{"type": "summary_text", "text": step.think}]}
    if step.say or not answer.tool_uses:
        yield {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": step.say}]}
    yield from (call_item(use, request.tools) for use in answer.tool_uses)


def usage(answer: Answer) -> dict[str, Any]:
    """Return the usage of a reply: here the whole prompt is the input, what was cached included."""
    used = answer.usage
    whole = used.input + used.cache_read + used.cache_creation
    return {
        "input_tokens": whole,
        "input_tokens_details": {"cached_tokens": used.cache_read, "cache_write_tokens": used.cache_creation},
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": whole + used.output,
    }


def error(fault: Fault) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Return body, status and headers of an error reply."""
    status = UNAVAILABLE if fault.status == OVERLOADED else fault.status
    text = fault.message or ERROR_MESSAGES.get(fault.status, "scripted error")
    detail: dict[str, Any] = {"message": text, "type": "invalid_request_error", "code": ERROR_CODES.get(status)}
    if TOO_LONG in fault.message:
        detail["code"] = "context_length_exceeded"
    if RESET_HEADER in fault.headers:
        detail |= {"type": "usage_limit_reached", "resets_at": int(fault.headers[RESET_HEADER])}
    wait = {} if fault.retry_after is None else {"retry-after": f"{fault.retry_after:g}"}
    return {"error": detail}, status, fault.headers | wait | _used_up(fault)


def _used_up(fault: Fault) -> dict[str, str]:
    """Return the headers from which Codex has which of an account's limits is used up (0.171.0)."""
    minutes = LIMIT_MINUTES.get(fault.headers.get(CLAIM_HEADER, ""))
    if minutes is None:
        return {}
    told = {"used-percent": "100", "window-minutes": str(minutes), "reset-at": fault.headers[RESET_HEADER]}
    return {f"x-codex-primary-{name}": value for name, value in told.items()}


def _item_frames(index: int, item: dict[str, Any], piece: int) -> Iterator[bytes]:
    named = item | {"id": f"item_{index}"}
    yield frame("response.output_item.added", output_index=index, item=named)
    if item["type"] == "message":
        for text in pieces(item["content"][0]["text"], piece):
            yield frame("response.output_text.delta", output_index=index, item_id=named["id"], delta=text)
    yield frame("response.output_item.done", output_index=index, item=named)
