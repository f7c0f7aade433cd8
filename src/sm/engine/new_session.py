"""What a new session is asked for with, whoever asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sm.core.errors import error
from sm.core.model.foreground import Foreground

MAX_SHOWN = 200
"""Characters of a path that a refusal repeats."""


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


def existing_directory(directory: str) -> Path:
    """Return it as the file system knows it: without links and `..`. A client names its project by that, too."""
    path = Path(directory)
    try:
        if path.is_absolute() and path.is_dir():
            return path.resolve()
        why = ""
    except (OSError, ValueError) as problem:
        why = f" ({getattr(problem, 'strerror', None) or problem})"
    shown = directory if len(directory) <= MAX_SHOWN else f"{directory[:MAX_SHOWN]}…"
    raise error("no_directory", f"No such directory: {shown}{why}", "give an existing directory")
