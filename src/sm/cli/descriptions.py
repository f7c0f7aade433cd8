"""Texts about a session that several commands print. `sm status` of an agent loads only this."""

from __future__ import annotations

import time

from sm.cli.format import bar, tokens
from sm.plain_text import plain

TYPE_CHECKING = False  # `typing` costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def interrupted_words(session: dict[str, Any]) -> str:
    import shlex  # noqa: PLC0415  # for few sessions only

    called = shlex.quote(plain(session["name"]))
    return f"its client ended in the middle of a turn; to continue it: sm send {called} continue"


def status_lines(view: dict[str, Any]) -> str:
    lines = [
        f"{plain(view['name'])} ({view['id']}) {view['status']}",
        f"context {context_line(view['context'])}",
        f"handoff {handoff_line(view['handoff'], 'none yet')}",
        f"driver {driver_line(view)}",
    ]
    lines += [f"permission mode {plain(view['mode'])}"] if view.get("mode") else []
    lines += [f"handoff {words}" for words in loop_guard_words(view.get("loop_guard") or {})]
    if view.get("budget"):
        lines.append(f"budget {view['budget']['level']}: {plain(view['budget']['text'])}")
    if view.get("report"):
        lines.append(f"report {report_line(view['report'])}")
    lines += [f"child {plain(child['name'])} ({child['id']}) {child['status']}" for child in view.get("children") or ()]
    return "\n".join(lines)


def loop_guard_words(view: dict[str, Any]) -> Iterator[str]:
    if view.get("needed") is not None:
        yield f"possible from {view['needed']:,} tokens on: this context began from one"
    if view.get("without_progress"):
        yield f"without progress: {view['without_progress']} in a row{_of(view.get('limit'))}"


def _of(limit: int | None) -> str:
    return f", at most {limit}" if limit else ""


def driver_line(view: dict[str, Any]) -> str:
    """Return how the client is cleared and given prompts, and why not by its plugin."""
    name = "the plugin in the client" if view["driver"] == "mod" else view["driver"]
    return f"{name} ({plain(view['driver_note'])})" if view["driver_note"] else str(name)


def report_line(report: dict[str, Any] | None) -> str:
    """Return a self-report in one line."""
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
    remarks = [words for name, words in REMARKS if view.get(name)]
    remarks += [warning_words(level, at) for level, at in (view.get("crossed_at") or {}).items()]
    if view.get("handoffs_too_late"):
        remarks.append(too_late_words(view["handoffs_too_late"]))
    if view.get("limit"):
        remarks.append(limit_words(view["limit"]))
    return f"{bar(percent)} {size:,} tokens{share}, {', '.join([view.get('level', 'unknown'), *remarks])}"


def clock(at: float) -> str:
    """Return the local time of day."""
    return time.strftime("%H:%M", time.localtime(at))


def moment(at: float) -> str:
    """Return the local time of day, with the date where it is not within a day."""
    day = 86_400
    return clock(at) if abs(at - time.time()) < day else time.strftime("%d %b %H:%M", time.localtime(at))  # noqa: TID251  # the user's clock


def warning_words(level: str, at: float) -> str:
    return f"{'critical warning' if level == 'critical' else level} given at {clock(at)}"


def too_late_words(count: int) -> str:
    return f"compacted {count} {'time' if count == 1 else 'times'} before a handoff"


LIMIT_KINDS = {"five_hour": "5-hour", "seven_day": "weekly"}


def limit_kind(kind: str) -> str:
    return LIMIT_KINDS.get(kind, plain(kind).replace("_", " "))


def seconds_since_reset(limit: dict[str, Any]) -> float | None:
    """Return how long ago a usage limit has reset; None if it has not, as far as is known."""
    resets_at, now = limit.get("resets_at"), time.time()  # noqa: TID251  # the user's clock
    return now - resets_at if resets_at and resets_at <= now else None


def limit_words(limit: dict[str, Any]) -> str:
    name = f"{limit_kind(limit['kind'])} limit"
    if seconds_since_reset(limit) is not None:
        return f"{name} has reset"
    return f"{name} until {moment(limit['resets_at'])}" if limit.get("resets_at") else name


def limited_words(session: dict[str, Any], called: str) -> str:
    """Return why a session is limited, and until when or what continues it."""
    limit, detail = session["limit"], plain(session["detail"])
    if limit.get("asks"):
        return f"{detail} {called}"
    if seconds_since_reset(limit) is not None:
        return f"{limit_words(limit)}; sm limits shows when it continues"
    return f"{detail} at {moment(limit['resets_at'])}" if limit.get("resets_at") else detail


REMARKS = (
    ("window_assumed", "window of this model assumed: context_monitor.context_limit_estimate sets it"),
    ("stale", "newer work not counted yet"),
)
"""Texts for members that make a reading less reliable."""


def handoff_line(view: dict[str, Any], none: str = "No handoff yet") -> str:
    if view.get("phase") is None:
        return none
    note = f": {view['note']}" if view.get("note") else ""
    return plain(f"{view['phase']}{note} ({view['path'] or 'no document: sm clear'})")
