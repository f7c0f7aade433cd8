"""What commands say about a session, in words. `sm status` of an agent loads no more than this."""

from __future__ import annotations

from sm.cli.output import bar, tokens

TYPE_CHECKING = False  # `typing` costs 3 ms
if TYPE_CHECKING:
    from typing import Any


def plain(text: str) -> str:
    """A name in one line: what would move the cursor or turn the writing direction is shown as `?`."""
    return "".join(character if character.isprintable() else "?" for character in text)


def status_lines(view: dict[str, Any]) -> str:
    return (
        f"{plain(view['name'])} ({view['id']}) {view['status']}\n"
        f"context {context_line(view['context'])}\n"
        f"handoff {handoff_line(view['handoff'])}"
    )


def context_line(view: dict[str, Any]) -> str:
    percent = view.get("percent")
    size = view.get("projected") if view.get("projected") is not None else view.get("tokens")
    if size is None:
        return "unknown"
    share = f" ({percent:.1f}% of usable {tokens(view.get('usable'))})" if percent is not None else ""
    return f"{bar(percent)} {size:,} tokens{share}, {view.get('level', 'unknown')}"


def handoff_line(view: dict[str, Any]) -> str:
    if view.get("phase") is None:
        return "No handoff yet"
    note = f": {view['note']}" if view.get("note") else ""
    return plain(f"{view['phase']}{note}  ({view['path']})")
