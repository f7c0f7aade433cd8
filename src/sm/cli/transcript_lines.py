"""Prompts and tool calls of Claude Code transcripts, for `sm tail`: events do not hold them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from sm.archive.redaction.redact import redacted
from sm.providers import jsonl
from sm.providers.claude import authorship

MOST_BYTES = 8 << 20
"""Read of a transcript at once, its end: older events show the names of their tools alone."""
TELLING = ("command", "file_path", "notebook_path", "pattern", "url", "query", "skill", "description", "subject")
"""Members of a tool's input that say what it does, the best first."""
LONGEST = 400
SLACK = 2.0
"""Seconds between a prompt's record and the hook that reports it."""
Line = tuple[float, str]


@dataclass(slots=True)
class TranscriptLines:
    offsets: dict[str, int] = field(default_factory=dict)
    """How far each file has been read."""
    prompts: list[Line] = field(default_factory=list)
    calls: dict[str, list[Line]] = field(default_factory=dict)
    """What each tool was called with, oldest first."""

    def read(self, path: str) -> None:
        """Take in what has been added to the file; one that cannot be read adds nothing."""
        try:
            with jsonl.opened(Path(path)) as fd:
                start = self.offsets.get(path, max(0, os.fstat(fd).st_size - MOST_BYTES))
                content = os.pread(fd, MOST_BYTES, start)
        except (OSError, ValueError):
            return
        end = content.rfind(b"\n") + 1
        self.offsets[path] = start + end
        for line in content[:end].splitlines():
            self._take(line)

    def prompt(self, at: float) -> str:
        """The prompt that was submitted then, in one line; empty if no transcript has shown it. Each is given once."""
        near = [one for one in self.prompts if abs(one[0] - at) <= SLACK]
        if not near:
            return ""
        found = min(near, key=lambda one: abs(one[0] - at))
        self.prompts.remove(found)
        return found[1]

    def call(self, tool: str, at: float) -> str:
        """What the tool call that has come back then was called with; each call is given once."""
        calls = self.calls.get(tool, [])
        before = [number for number, (when, _) in enumerate(calls) if when <= at]
        return calls.pop(before[-1])[1] if before else ""

    def _take(self, line: bytes) -> None:
        try:
            record = msgspec.json.decode(line)
            at = datetime.fromisoformat(record["timestamp"]).timestamp()
            content, kind = record["message"]["content"], record["type"]
        except (ValueError, KeyError, TypeError):
            return
        if kind == "assistant":
            for block in authorship.blocks(content):
                if block.get("type") == "tool_use":
                    self.calls.setdefault(str(block.get("name")), []).append((at, _brief(block.get("input"))))
        elif kind == "user" and record.get("isMeta") is not True and "tool_result" not in authorship.kinds(content):
            self.prompts.append((at, _one_line(authorship.text(content))))


def _brief(given: object) -> str:
    values: dict[str, Any] = given if isinstance(given, dict) else {}
    return _one_line(next((text for name in TELLING if isinstance(text := values.get(name), str) and text), ""))


def _one_line(text: str) -> str:
    return redacted(" ".join(text[: 4 * LONGEST].split()))[:LONGEST]
