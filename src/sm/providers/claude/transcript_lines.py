"""Prompts and tool calls of a transcript as lines for `sm tail`: events do not contain them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from sm.providers import jsonl
from sm.providers.claude import authorship

MAX_READ_BYTES = 8 << 20
"""Of a transcript's end, read at first: older events show only the names of their tools."""
SUMMARY_MEMBERS = (
    "command",
    "file_path",
    "notebook_path",
    "pattern",
    "url",
    "query",
    "skill",
    "description",
    "subject",
)
"""Members of a tool's input that describe the call, the best first."""
MAX_LINE_CHARS = 400
MATCH_TOLERANCE_S = 2.0
"""Between a prompt's record and the hook that reports it."""
TimedLine = tuple[float, str]


@dataclass(slots=True)
class TranscriptLines:
    redact: Callable[[str], str]
    """Takes secrets out of a line."""
    offsets: dict[str, int] = field(default_factory=dict)
    """How far each file has been read."""
    prompts: list[TimedLine] = field(default_factory=list)
    calls: dict[str, list[TimedLine]] = field(default_factory=dict)
    """A line for each call of a tool, oldest first."""

    def read(self, path: str) -> None:
        """Read what was added to the file; an unreadable one adds nothing."""
        try:
            with jsonl.opened(Path(path)) as fd:
                start = self.offsets.get(path, max(0, os.fstat(fd).st_size - MAX_READ_BYTES))
                content = os.pread(fd, MAX_READ_BYTES, start)
        except (OSError, ValueError):
            return
        end = content.rfind(b"\n") + 1
        self.offsets[path] = start + end
        for line in content[:end].splitlines():
            self._take(line)

    def prompt(self, at: float) -> str:
        """Return the prompt submitted at that time, in one line, and drop it; empty if no transcript has it."""
        near = [prompt for prompt in self.prompts if abs(prompt[0] - at) <= MATCH_TOLERANCE_S]
        if not near:
            return ""
        found = min(near, key=lambda prompt: abs(prompt[0] - at))
        self.prompts.remove(found)
        return found[1]

    def call(self, tool: str, at: float) -> str:
        """Return a line for the tool call that ended at that time, and drop it."""
        calls = self.calls.get(tool, [])
        before = [number for number, (when, _) in enumerate(calls) if when <= at]
        return calls.pop(before[-1])[1] if before else ""

    def _take(self, raw: bytes) -> None:
        try:
            record = msgspec.json.decode(raw)
            at = datetime.fromisoformat(record["timestamp"]).timestamp()
            content, kind = record["message"]["content"], record["type"]
        except (ValueError, KeyError, TypeError):
            return
        if kind == "assistant":
            for block in authorship.blocks(content):
                if block.get("type") == "tool_use":
                    line = self._one_line(_summary(block.get("input")))
                    self.calls.setdefault(str(block.get("name")), []).append((at, line))
        elif kind == "user" and record.get("isMeta") is not True and "tool_result" not in authorship.kinds(content):
            self.prompts.append((at, self._one_line(authorship.text(content))))

    def _one_line(self, text: str) -> str:
        return self.redact(" ".join(text[: 4 * MAX_LINE_CHARS].split()))[:MAX_LINE_CHARS]


def _summary(tool_input: object) -> str:
    values: dict[str, Any] = tool_input if isinstance(tool_input, dict) else {}
    return next((text for name in SUMMARY_MEMBERS if isinstance(text := values.get(name), str) and text), "")
