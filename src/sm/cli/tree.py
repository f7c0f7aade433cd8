"""Tables of sessions: children below their parents, with the self-report."""

from __future__ import annotations

import os
import time
from typing import Any

from sm.cli.descriptions import report_line
from sm.cli.format import ago, bar, tokens
from sm.cli.tables import Column, shortened
from sm.fleet import UNKNOWN, in_tree
from sm.plain_text import plain

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
BRANCH_MARK = "└ "
MAX_NAME_COLUMNS = 24


def session_columns(sessions: list[dict[str, Any]]) -> list[Column]:
    """Return the columns. By their ranks 60 columns still hold name, status, context, and when it was last seen."""
    tree = in_tree(sessions)
    rows = [session for _, session in tree]
    return [
        Column("NAME", [_branch(depth) + _name(session) for depth, session in tree]),
        Column("ID", [session["id"] for session in rows], rank=4),
        _status(rows),
        _context(rows),
        Column("ROT", [str(session.get("rotations", "-")) for session in rows], rank=3),
        Column("HANDOFF", [(session.get("handoff") or {}).get("phase") or "-" for session in rows], rank=2),
        _seen(rows),
        *([_says(rows, rank=5)] if any(session.get("report") for session in rows) else []),
        Column("DIR", [plain(_short_path(session.get("dir") or "-")) for session in rows], rank=6),
    ]


def child_columns(children: list[dict[str, Any]]) -> list[Column]:
    """Return the columns for a parent; status and report are always shown."""
    return [
        Column("NAME", [_name(child) for child in children]),
        Column("ID", [child["id"] for child in children], rank=1),
        _status(children),
        _context(children, rank=3),
        _seen(children, rank=2),
        _says(children),
    ]


def _name(session: dict[str, Any]) -> str:
    return shortened(plain(session["name"]), MAX_NAME_COLUMNS)


def _branch(depth: int) -> str:
    return "  " * (depth - 1) + BRANCH_MARK if depth else ""


def _status(rows: list[dict[str, Any]]) -> Column:
    return Column(
        "STATUS", [session["status"] for session in rows], colours=[COLOURS.get(session["status"]) for session in rows]
    )


def _context(rows: list[dict[str, Any]], rank: int = 0) -> Column:
    return Column("CONTEXT", [_gauge(session.get("context") or {}) for session in rows], rank=rank)


def _seen(rows: list[dict[str, Any]], rank: int = 0) -> Column:
    cells = [ago(seconds_since(session)) if session.get("created") else "-" for session in rows]
    return Column("SEEN", cells, rank=rank)


def _says(rows: list[dict[str, Any]], rank: int = 0) -> Column:
    return Column("SAYS", [report_line(session.get("report")) for session in rows], rank=rank, shrinks=True)


def _gauge(context: dict[str, Any]) -> str:
    percent = context.get("percent")
    size = context.get("projected") if context.get("projected") is not None else context.get("tokens")
    if percent is not None:
        return f"{bar(percent, 6)} {percent:3.0f}%"
    if size is not None:
        return tokens(size)
    return UNKNOWN if context else "-"  # another's is not told at all


def seconds_since(session: dict[str, Any]) -> float:
    return time.time() - (session.get("last_activity") or session.get("created") or 0)  # noqa: TID251  # the user's clock


def _short_path(path: str) -> str:
    own = os.environ.get("HOME", "")
    return f"~{path[len(own) :]}" if own and (path == own or path.startswith(f"{own}/")) else path
