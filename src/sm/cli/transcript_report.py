"""`sm context --transcript FILE`: reads the whole file, without a server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sm.core.errors import SmError, error
from sm.core.model.capacity import NO_LIMITS
from sm.core.model.context import Monitor, Policy
from sm.core.ports.provider import TranscriptSource
from sm.core.rules.context_thresholds import level, measured
from sm.providers import jsonl
from sm.providers.claude.evidence import ClaudeTranscripts
from sm.providers.codex.evidence import CodexTranscripts
from sm.providers.codex.transcript import is_rollout
from sm.settings import load

SOURCES: dict[str, TranscriptSource] = {"claude": ClaudeTranscripts(), "codex": CodexTranscripts()}
HEAD_BYTES = 64 * 1024
"""Read to find the writer of a transcript: its first record shows it."""
TYPE_MEMBER = b'"type"'
"""A member of every record of both clients."""
TRANSCRIPTS_HINT = "sm archive list names the transcripts of a session; Claude Code keeps them below ~/.claude/projects"


def transcript_view(path: Path, provider: str | None) -> dict[str, Any]:
    likely = likely_provider(path)
    source = SOURCES[provider or likely]
    transcript = source.transcript(str(path))
    whole = transcript.read_whole()
    if transcript.problem is not None:
        raise error("unreadable", f"{path}: {transcript.problem}", "give the path of a transcript")
    policy = _policy()
    reading, usable = source.sized(whole, NO_LIMITS, policy.assumed_window)
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
        "window": reading.window,
        "window_assumed": reading.assumed,
        "usable": usable,
        "percent": monitor.percent,
        "messages": reading.messages,
        "output_tokens": reading.output_tokens,
    }


def _policy() -> Policy:
    """Return the thresholds configured here; the defaults for an invalid configuration, which other commands report."""
    try:
        return load(Path.cwd(), os.environ).policy()
    except SmError:
        return Policy()


def likely_provider(path: Path) -> str:
    """Return the provider that wrote the file, by its first records; SmError if no line is a record."""
    try:
        with jsonl.opened(path) as descriptor:
            if is_rollout(os.pread(descriptor, HEAD_BYTES, 0)):
                return "codex"
            found = any(map(_is_record, _lines(descriptor)))
    except (OSError, ValueError) as problem:  # ValueError: a path with NUL
        reason = getattr(problem, "strerror", None) or problem
        raise error("unreadable", f"{path}: {reason}", "give the path of a transcript") from problem
    if not found:
        raise error("unreadable", f"{path} is not a transcript: no line of it is a record", TRANSCRIPTS_HINT)
    return "claude"


def _lines(descriptor: int) -> Iterator[bytes]:
    end = 0
    for line, end in jsonl.lines_forward((TYPE_MEMBER,), descriptor, 0):  # noqa: B007  # the last one is needed
        yield line
    yield os.pread(descriptor, HEAD_BYTES, end)  # a last record without LF


def _is_record(line: bytes) -> bool:
    return TYPE_MEMBER in line and line.strip(b"\xef\xbb\xbf\0 \t\r").startswith(b"{")
