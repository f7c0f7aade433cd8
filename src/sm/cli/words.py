"""What commands say about a session, in words. `sm status` of an agent loads no more than this."""

from __future__ import annotations

from sm.cli.output import bar, tokens

TYPE_CHECKING = False  # `typing` costs 3 ms
if TYPE_CHECKING:
    from typing import Any


ENDED = frozenset({"exited", "crashed"})
"""Statuses of a session whose client has ended."""


def plain(text: str) -> str:
    """A name in one line: what would move the cursor or turn the writing direction is shown as `?`."""
    return "".join(character if character.isprintable() else "?" for character in text)


def status_lines(view: dict[str, Any]) -> str:
    lines = [
        f"{plain(view['name'])} ({view['id']}) {view['status']}",
        f"context {context_line(view['context'])}",
        f"handoff {handoff_line(view['handoff'], 'none yet')}",
    ]
    if view.get("report"):
        lines.append(f"report {says(view['report'])}")
    lines += [f"child {plain(one['name'])} ({one['id']}) {one['status']}" for one in view.get("children") or ()]
    return "\n".join(lines)


def says(report: dict[str, Any] | None) -> str:
    """A self-report in one line."""
    if report is None:
        return "-"
    text = plain(report["text"])
    if not report["done"]:
        return text
    return f"done: {text}" if text else "done"


def context_line(view: dict[str, Any]) -> str:
    percent = view.get("percent")
    size = view.get("projected") if view.get("projected") is not None else view.get("tokens")
    if size is None:
        return "unknown"
    share = f" ({percent:.1f}% of usable {tokens(view.get('usable'))})" if percent is not None else ""
    remarks = "".join(f", {words}" for name, words in REMARKS if view.get(name))
    return f"{bar(percent)} {size:,} tokens{share}, {view.get('level', 'unknown')}{remarks}"


REMARKS = (
    ("window_assumed", "window of this model assumed: context_monitor.context_limit_estimate sets it"),
    ("stale", "newer work not counted yet"),
)
"""What limits the worth of a reading, in words."""


def handoff_line(view: dict[str, Any], none: str = "No handoff yet") -> str:
    if view.get("phase") is None:
        return none
    note = f": {view['note']}" if view.get("note") else ""
    return plain(f"{view['phase']}{note} ({view['path']})")
