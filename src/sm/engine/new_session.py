"""What a new session is asked for with, whoever asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sm.core.model.foreground import Foreground


@dataclass(frozen=True, slots=True)
class NewSession:
    directory: str
    env: Mapping[str, str]
    """Of whoever asks: sent with the request, never stored."""
    provider: str
    name: str | None = None
    model: str | None = None
    prompt: str | None = None
    arguments: tuple[str, ...] = ()
    command: str | None = None
    parent: str | None = None
    handoff: str | None = None
    """What it begins from: a handoff's id, a file's path, or, empty, what waits in the project; None for nothing."""
    attempt: str = ""
    scope: str = ""
    handoff_at: float | None = None
    headless: bool = False
    """Its client shows no screen. That is asked for at each start: restored by its user it has one."""
    foreground: Foreground | None = None
    """Of a client that the caller starts itself, in a terminal of its own."""
