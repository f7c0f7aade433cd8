"""Encodes an answer for the Messages API: as one message, as a stream of events, or as an error."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sm.testing.player import Answer
    from sm.testing.request import Block
    from sm.testing.scenario import Fault

PIECE_CHARS = 16
"""Sent together in a text that is streamed slowly."""
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
ERROR_MESSAGES = {429: "This request would exceed your rate limit.", 529: "Overloaded"}


def message(answer: Answer, model: str, number: int) -> dict[str, Any]:
    """Return the reply to a request that does not stream."""
    return _envelope(model, number) | {
        "content": list(blocks(answer)),
        "stop_reason": answer.stop_reason,
        "usage": usage(answer, answer.usage.output),
    }


def events(answer: Answer, model: str, number: int) -> Iterator[bytes]:
    """Return the frames of a streamed reply, one event each."""
    start = _envelope(model, number) | {"usage": usage(answer, 1)}
    yield frame("message_start", message=start)
    for index, block in enumerate(blocks(answer)):
        yield from _block_frames(index, block, PIECE_CHARS if answer.step.chunk_delay else 0)
    delta = {"stop_reason": answer.stop_reason, "stop_sequence": None}
    yield frame("message_delta", delta=delta, usage=usage(answer, answer.usage.output))
    yield frame("message_stop")


def blocks(answer: Answer) -> Iterator[Block]:
    step = answer.step
    if step.think:
        yield {"type": "thinking", "thinking": step.think, "signature": "c2NyaXB0ZWQ="}
    if step.say or not answer.tool_uses:
        yield {"type": "text", "text": step.say}
    for use in answer.tool_uses:
        yield {"type": "tool_use", "id": use.id, "name": use.call.name, "input": use.call.input}


def usage(answer: Answer, output: int) -> dict[str, int]:
    return {
        "input_tokens": answer.usage.input,
        "cache_creation_input_tokens": answer.usage.cache_creation,
        "cache_read_input_tokens": answer.usage.cache_read,
        "output_tokens": output,
    }


def error(fault: Fault, number: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Return body and headers of an error reply."""
    text = fault.message or ERROR_MESSAGES.get(fault.status, "scripted error")
    detail = {"type": ERROR_TYPES.get(fault.status, "api_error"), "message": text}
    headers = {"request-id": _request_id(number), **fault.headers}
    if fault.retry_after is not None:
        headers["retry-after"] = f"{fault.retry_after:g}"
    if fault.should_retry is not None:
        headers["x-should-retry"] = str(fault.should_retry).lower()
    return {"type": "error", "error": detail, "request_id": _request_id(number)}, headers


def frame(event: str, **data: Any) -> bytes:  # noqa: ANN401  # any JSON value
    return f"event: {event}\ndata: {json.dumps({'type': event, **data})}\n\n".encode()


def _envelope(model: str, number: int) -> dict[str, Any]:
    return {
        "id": f"msg_scripted{number:06d}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _request_id(number: int) -> str:
    return f"req_scripted{number:06d}"


def _block_frames(index: int, block: Block, piece: int) -> Iterator[bytes]:
    yield frame("content_block_start", index=index, content_block=_opened(block))
    for delta in _deltas(block, piece):
        yield frame("content_block_delta", index=index, delta=delta)
    yield frame("content_block_stop", index=index)


def _opened(block: Block) -> Block:
    """Return a block as it is announced: without the content that its deltas add."""
    empty: dict[str, Block] = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"input": {}},
    }
    return block | empty[block["type"]]


def _deltas(block: Block, piece: int) -> Iterator[Block]:
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": text} for text in pieces(block["text"], piece))
    elif block["type"] == "thinking":
        yield from ({"type": "thinking_delta", "thinking": text} for text in pieces(block["thinking"], piece))
        yield {"type": "signature_delta", "signature": block["signature"]}
    else:
        yield {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}


def pieces(text: str, size: int) -> Iterator[str]:
    size = size or max(len(text), 1)
    return (text[start : start + size] for start in range(0, len(text), size))
