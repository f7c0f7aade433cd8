"""Context over time: the readings of a session, thinned to what a chart can show, and what happened between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

MAX_POINTS = 1_500
READINGS = ("ContextRead", "ContextReported")
MARKS = {
    "AgentWarned": "warned",
    "CompactionEnded": "compacted",
    "HandoffRequested": "handoff",
    "ConversationStarted": "new context",
}
KINDS = (*READINGS, *MARKS)


class ChartMark(msgspec.Struct):
    at: float
    words: str


class Chart(msgspec.Struct):
    """What the chart draws; times in UTC seconds."""

    at: list[float]
    tokens: list[int]
    marks: list[ChartMark]
    warning: int | None = None
    critical: int | None = None
    usable: int | None = None


def chart(rows: Iterable[Mapping[str, Any]], context: Mapping[str, Any]) -> Chart:
    """`rows`: events of KINDS, oldest first; `context`: of the session's view."""
    found = Chart([], [], [], context.get("warning"), context.get("critical"), context.get("usable"))
    for row in rows:
        data = msgspec.json.decode(str(row["data"]))
        if row["kind"] in MARKS:
            found.marks.append(ChartMark(float(row["at"]), _words(str(row["kind"]), data)))
            continue
        tokens = data.get("tokens") if row["kind"] == "ContextReported" else (data.get("reading") or {}).get("tokens")
        if isinstance(tokens, int):
            found.at.append(float(row["at"]))
            found.tokens.append(tokens)
    return _thinned(found)


def _words(kind: str, data: Mapping[str, Any]) -> str:
    if kind == "AgentWarned":
        return f"warned: {data.get('level')}"
    if kind == "ConversationStarted":
        return {"clear": "rotated", "compact": "compacted", "startup": "started"}.get(str(data.get("origin")), "began")
    return MARKS[kind]


def _thinned(found: Chart) -> Chart:
    """Of each stretch of readings keep the highest: a peak is what a reader looks for."""
    step = -(-len(found.at) // MAX_POINTS)
    if step > 1:
        starts = range(0, len(found.at), step)
        best = [max(range(start, min(start + step, len(found.at))), key=found.tokens.__getitem__) for start in starts]
        found.at, found.tokens = [found.at[index] for index in best], [found.tokens[index] for index in best]
    return found
