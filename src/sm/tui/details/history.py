"""A session's context over time as its chart shows it: shares of what could be used then, signs for what happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ChartReading:
    at: float
    percent: float
    tokens: int


@dataclass(frozen=True, slots=True)
class ChartSign:
    """Something that happened to the context."""

    at: float
    sign: str


SIGNS = {"w": "warned", "C": "critical", "↻": "rotated", "≈": "compacted"}
SIGN_OF = {"warned: warning": "w", "warned: unknown": "w", "warned: critical": "C", "rotated": "↻", "compacted": "≈"}
"""By the words of the server."""


@dataclass(frozen=True, slots=True)
class ChartContent:
    readings: tuple[ChartReading, ...] = ()
    marks: tuple[ChartSign, ...] = ()


def history(found: dict[str, Any]) -> ChartContent:
    """Return what the server tells (`wire.ContextHistoryView`), without what cannot be shown as a share."""
    readings = zip(found["at"], found["tokens"], found["usable"], strict=True)
    return ChartContent(
        tuple(ChartReading(at, 100 * tokens / usable, tokens) for at, tokens, usable in readings if usable),
        tuple(ChartSign(mark["at"], SIGN_OF[mark["words"]]) for mark in found["marks"] if mark["words"] in SIGN_OF),
    )
