"""Writes docs/rotation-states.md: the phases of a rotation and what moves it, from the tables that decide it.

Run it after changing one of them: `.venv/bin/python scripts/diagram.py`. A test compares.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from sm.core.model.rotation import Phase
from sm.core.rules import foreground_rotation, rotation
from sm.core.rules.rotation import Row

PAGE = Path(__file__).resolve().parent.parent / "docs/rotation-states.md"
HEAD = """\
# States of a rotation

Generated from `core/rules/rotation.py:TRANSITIONS` and `core/rules/foreground_rotation.py:TRANSITIONS` by
`scripts/diagram.py`. An arrow names the events (`sm help reference`) that move a rotation; in brackets what the event
has to mean where more than the phase decides. Every other event leaves the phase as it is.

Outside the tables: a rotation begins as `pending`, or as `reserved` if the turn is already over
(`core/rules/rotation.py:start`); a session that begins from a document has one in `empty`
(`core/rules/rotation.py:taken_up`). During a usage limit no rotation leaves `pending` or `failed` by an order of sm,
and `empty` waits for its end (`core/rules/session/advance.py`). A compaction that sm does not hold back cancels a
pending rotation whose document was only to spare it (`core/rules/session/context.py`).
"""
IN_FOREGROUND = """\
## In the user's own terminal

`sm run` ends its client and starts it again. These arrows come before those above.
"""


def render() -> str:
    return "\n".join((
        HEAD,
        *_phases(),
        "",
        *_drawn(rotation.TRANSITIONS),
        "",
        IN_FOREGROUND,
        *_drawn(foreground_rotation.TRANSITIONS),
        "",
    ))  # fmt: skip


def _phases() -> Iterator[str]:
    yield "| phase | meaning |\n| --- | --- |"
    body = ast.parse(textwrap.dedent(inspect.getsource(Phase))).body[0]
    assert isinstance(body, ast.ClassDef)
    for member, text in pairwise(body.body):
        match member, text:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(said))):
                yield f"| `{Phase[name]}` | {said} |"


def _drawn(transitions: Mapping[Row, Phase]) -> Iterator[str]:
    arrows: dict[tuple[Phase, Phase], list[str]] = {}
    for row, phase in transitions.items():
        arrows.setdefault((row[0], phase), []).append(_label(row))
    order = list(Phase)
    yield "```mermaid\nstateDiagram-v2"
    for before, after in sorted(arrows, key=lambda arrow: (order.index(arrow[0]), order.index(arrow[1]))):
        yield f"    {before} --> {after}: {', '.join(sorted(arrows[before, after]))}"
    yield "```"


def _label(row: Row) -> str:
    _, kind, *verdict = row
    return " ".join((kind.__name__, *(f"({word})" for word in verdict)))


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    print(f"written: {PAGE.name}")
