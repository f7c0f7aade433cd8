"""What is asked of a run while it works: attributes of the run in the engine, which an issue reads before it begins."""

from __future__ import annotations

from collections.abc import Mapping

_STOP = "stop"
_SKIP = "skip "
_RAISE = "raise "
STOPPED = "you have stopped the run"
LEFT_OUT = "you have left it out of the run"


def stopping(reason: str = STOPPED) -> dict[str, str]:
    """Return the attribute after which no more issues are begun."""
    return {_STOP: reason}


def skipping(issue: str) -> dict[str, str]:
    """Return the attribute that leaves one issue out."""
    return {_SKIP + issue: LEFT_OUT}


def raising(issue: str, at: float) -> dict[str, str]:
    """Return the attribute that puts one issue before the others; `at` is when that was asked for."""
    return {_RAISE + issue: f"{at:017.6f}"}


def raised(attributes: Mapping[str, str]) -> list[str]:
    """Return the issues that were put before the others, the last one first."""
    found = sorted(((at, name) for name, at in attributes.items() if name.startswith(_RAISE)), reverse=True)
    return [name.removeprefix(_RAISE) for _, name in found]


def unwanted(attributes: Mapping[str, str], issue: str) -> str:
    """Return why an issue is not begun any more; empty for one that is."""
    return attributes.get(_SKIP + issue) or attributes.get(_STOP, "")
