"""What a session's events say of its context over time: readings, and what has happened to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

READINGS = frozenset({"ContextRead", "ContextReported"})
CLEARED = frozenset({"clear"})


@dataclass(frozen=True, slots=True)
class Reading:
    at: float
    percent: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened to the context."""

    at: float
    sign: str
    words: str


SIGNS = {"w": "warned", "C": "critical", "↻": "rotated", "≈": "compacted"}


@dataclass(frozen=True, slots=True)
class ContextHistory:
    readings: tuple[Reading, ...] = ()
    marks: tuple[Mark, ...] = ()


def history(events: Iterable[dict[str, Any]]) -> ContextHistory:
    readings: list[Reading] = []
    marks: list[Mark] = []
    for event in events:
        if event["kind"] in READINGS:
            readings += _reading(event)
        elif (sign := _sign(event)) is not None:
            marks.append(Mark(event["at"], sign, SIGNS[sign]))
    return ContextHistory(tuple(readings), tuple(marks))


def _reading(event: dict[str, Any]) -> list[Reading]:
    data = event.get("data") or {}
    found = data.get("reading") or data
    size, usable = found.get("projected"), data.get("usable")
    size = found.get("tokens") if size is None else size
    if not isinstance(size, int) or not isinstance(usable, int) or usable <= 0:
        return []
    return [Reading(event["at"], 100 * size / usable, size)]


def _sign(event: dict[str, Any]) -> str | None:
    data = event.get("data") or {}
    match event["kind"]:
        case "AgentWarned":
            return "C" if data.get("level") == "critical" else "w"
        case "ConversationStarted" if data.get("origin") in CLEARED:
            return "↻"
        case "CompactionEnded":
            return "≈"
    return None
