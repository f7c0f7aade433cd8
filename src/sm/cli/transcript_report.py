"""`sm context --transcript FILE`: reads the whole file, without a server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sm.core.errors import SmError, error
from sm.core.model.context import Monitor, Policy, level, measured
from sm.providers import jsonl
from sm.providers.claude import transcript as claude
from sm.providers.claude import windows
from sm.providers.codex import transcript as codex
from sm.settings import load

HEAD = 64 * 1024
"""Bytes looked at to see who wrote a transcript: its first record says so."""
KIND = b'"type"'
"""A member of every record of either client."""
WHERE = "sm archive list names the transcripts of a session; Claude Code keeps them below ~/.claude/projects"


def transcript_view(path: Path, provider: str | None) -> dict[str, Any]:
    likely = likely_provider(path)
    provider = provider or likely
    reader = claude.TranscriptReader(path) if provider == "claude" else codex.TranscriptReader(path)
    reading = reader.read_whole()
    if reader.problem is not None:
        raise error("unreadable", f"{path}: {reader.problem}", "give the path of a transcript")
    policy = _policy()
    window = reading.window or (windows.window_of(reading.model) if provider == "claude" else None)
    assumed = window is None
    window = window or policy.assumed_window
    if window is not None and reading.tokens is not None and reading.tokens > window:
        window = None
    usable = windows.usable_of(window) if provider == "claude" else window
    monitor = measured(Monitor(), reading, usable)
    return {
        "tokens": reading.tokens,
        "projected": monitor.projected,
        "source": reading.source.value,
        "level": level(monitor, policy).value,
        "exact": reading.exact,
        "stale": reading.stale,
        "lower_bound": reading.lower_bound,
        "compactions": reading.compactions,
        "malformed": reading.malformed,
        "model": reading.model,
        "window": window,
        "window_assumed": assumed and window is not None,
        "usable": usable,
        "percent": monitor.percent,
        "messages": reading.messages,
        "output_tokens": reading.output_tokens,
    }


def _policy() -> Policy:
    """The thresholds configured here; the defaults where the configuration is no use, which others say."""
    try:
        return load(Path.cwd(), os.environ).policy()
    except SmError:
        return Policy()


def likely_provider(path: Path) -> str:
    """Who wrote the file, by its first records; an error if none of its lines is a record."""
    try:
        with jsonl.opened(path) as descriptor:
            if codex.is_rollout(os.pread(descriptor, HEAD, 0)):
                return "codex"
            found = any(map(_is_record, _lines(descriptor)))
    except (OSError, ValueError) as problem:  # ValueError: a path with NUL
        reason = getattr(problem, "strerror", None) or problem
        raise error("unreadable", f"{path}: {reason}", "give the path of a transcript") from problem
    if not found:
        raise error("unreadable", f"{path} is not a transcript: no line of it is a record", WHERE)
    return "claude"


def _lines(descriptor: int) -> Iterator[bytes]:
    end = 0
    for line, end in jsonl.lines_forward((KIND,), descriptor, 0):  # noqa: B007  # the last one is needed
        yield line
    yield os.pread(descriptor, HEAD, end)  # a last record that lacks its LF


def _is_record(line: bytes) -> bool:
    return KIND in line and line.strip(b"\xef\xbb\xbf\0 \t\r").startswith(b"{")
