"""What a tool was given, as a reader of a transcript sees it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


def named_members(members: Mapping[str, object]) -> str:
    """Return the members of a call's input, each with its name on a line of its own; what is null is left out."""
    return "\n".join(f"{name}: {_shown(item)}" for name, item in members.items() if item is not None)


def _shown(item: object) -> str:
    return item if isinstance(item, str) else msgspec.json.encode(item).decode()
