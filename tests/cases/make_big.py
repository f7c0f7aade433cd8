"""A long Claude Code transcript with a known answer: 123456 tokens and 3 compactions, whatever its size.

python tests/cases/make_big.py FILE MEGABYTES [MEGABYTES OF THE LAST LINE]
"""

import json
import sys
from pathlib import Path

MODEL = "claude-sonnet-4-5-20250929"


def record(kind, **members):
    return json.dumps({"isSidechain": False, "type": kind, **members}, separators=(",", ":")).encode() + b"\n"


def tool_result(size):
    content = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "abcdefgh\n " * (size // 11)}]
    return record("user", message={"role": "user", "content": content})


def reply(key, cached):
    usage = {"input_tokens": 6, "cache_creation_input_tokens": 450, "cache_read_input_tokens": cached}
    return record("assistant", message={"id": key, "model": MODEL, "usage": {**usage, "output_tokens": 11}})


def transcript(size, last_line):
    """Its parts, one after the other; the last line is a tool result of `last_line` bytes."""
    compaction = record("system", subtype="compact_boundary", compactMetadata={"preTokens": 160000, "postTokens": 9000})
    turn = tool_result(40_000)
    turns = max(3, (size - last_line) // len(turn))
    for number in range(turns):
        yield turn + reply(f"msg_{number}", 90_000)
        if number % (turns // 3) == turns // 6:
            yield compaction
    yield reply("msg_last", 123_000)
    yield tool_result(last_line)


def write(path, megabytes, last_line=12):
    with Path(path).open("wb") as file:
        file.writelines(transcript(megabytes * 10**6, last_line * 10**6))


if __name__ == "__main__":
    write(sys.argv[1], *map(int, sys.argv[2:]))
