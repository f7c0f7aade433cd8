"""`sm context --transcript FILE`: reads the whole file, without a server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sm.core.context import Monitor, Policy, level, measured
from sm.core.errors import SmError, error
from sm.providers.claude import transcript as claude
from sm.providers.claude import windows
from sm.providers.codex import transcript as codex
from sm.settings import load

HEAD = 64 * 1024
"""Bytes looked at to see who wrote a transcript: its first record says so."""


def transcript_view(path: Path, provider: str | None) -> dict[str, Any]:
    provider = provider or likely_provider(path)
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
    """Who wrote the file, by its first records; Claude's reader tells what is wrong with one that says nothing."""
    try:
        # Without O_NONBLOCK a FIFO would hold us until somebody writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            head = os.read(descriptor, HEAD)
        finally:
            os.close(descriptor)
    except OSError:
        return "claude"
    return "codex" if codex.is_rollout(head) else "claude"
