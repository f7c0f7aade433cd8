"""Sessions in a table: children below their parents, the self-report beside them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

from sm.cli.descriptions import plain, says
from sm.cli.format import ago, bar, tokens
from sm.cli.tables import Column

COLOURS = {
    "idle": "32",
    "working": "36",
    "rotating": "35",
    "compacting": "35",
    "waiting": "33",
    "silent": "33",
    "blocked": "31",
    "limited": "33",
    "crashed": "31",
    "exited": "90",
}
BRANCH = "└ "
LONGEST_NAME = 24


def in_tree(sessions: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """Each session with its depth, children right behind their parent; one whose parent is not shown stands alone."""
    shown = {one["id"] for one in sessions}

    def below(parent: str | None, depth: int) -> Iterator[tuple[int, dict[str, Any]]]:
        for one in sessions:
            above = one.get("parent") if one.get("parent") in shown else None
            if above == parent:
                yield depth, one
                yield from below(one["id"], depth + 1)

    return list(below(None, 0))


def session_columns(sessions: list[dict[str, Any]]) -> list[Column]:
    """Of the ranks: at 60 columns a session is still known by name, status, context, and when it was last seen."""
    tree = in_tree(sessions)
    rows = [one for _, one in tree]
    return [
        Column("NAME", [_branch(depth) + plain(one["name"])[:LONGEST_NAME] for depth, one in tree]),
        Column("ID", [one["id"] for one in rows], rank=4),
        _status(rows),
        _context(rows),
        Column("ROT", [str(one.get("rotations", "-")) for one in rows], rank=3),
        Column("HANDOFF", [(one.get("handoff") or {}).get("phase") or "-" for one in rows], rank=2),
        _seen(rows),
        *([_says(rows, rank=5)] if any(one.get("report") for one in rows) else []),
        Column("DIR", [plain(_short_path(one.get("dir") or "-")) for one in rows], rank=6),
    ]


def child_columns(children: list[dict[str, Any]]) -> list[Column]:
    """What a parent wants to know: how each stands and what it has said, whatever the width."""
    return [
        Column("NAME", [plain(one["name"])[:LONGEST_NAME] for one in children]),
        Column("ID", [one["id"] for one in children], rank=1),
        _status(children),
        _context(children, rank=3),
        _seen(children, rank=2),
        _says(children),
    ]


def _branch(depth: int) -> str:
    return "  " * (depth - 1) + BRANCH if depth else ""


def _status(rows: list[dict[str, Any]]) -> Column:
    return Column("STATUS", [one["status"] for one in rows], colours=[COLOURS.get(one["status"]) for one in rows])


def _context(rows: list[dict[str, Any]], rank: int = 0) -> Column:
    return Column("CONTEXT", [_gauge(one.get("context") or {}) for one in rows], rank=rank)


def _seen(rows: list[dict[str, Any]], rank: int = 0) -> Column:
    cells = [ago(seconds_since(one)) if one.get("created") else "-" for one in rows]
    return Column("SEEN", cells, rank=rank)


def _says(rows: list[dict[str, Any]], rank: int = 0) -> Column:
    return Column("SAYS", [says(one.get("report")) for one in rows], rank=rank, shrinks=True)


def _gauge(context: dict[str, Any]) -> str:
    percent = context.get("percent")
    size = context.get("projected") if context.get("projected") is not None else context.get("tokens")
    if percent is not None:
        return f"{bar(percent, 6)} {percent:3.0f}%"
    return tokens(size) if size is not None else "-"


def seconds_since(session: dict[str, Any]) -> float:
    return time.time() - (session.get("last_activity") or session.get("created") or 0)  # noqa: TID251  # a person's clock


def _short_path(path: str) -> str:
    own = os.environ.get("HOME", "")
    return f"~{path[len(own) :]}" if own and (path == own or path.startswith(f"{own}/")) else path
