"""What Claude Code gives its status line on standard input, as far as we use it; absent and null are unknown.

`context_window_size` is the model's window, whatever smaller one the client compacts at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from sm.core.model.usage_limit import UsedShare
from sm.core.ports.provider import StatusLine
from sm.providers.lenient import lenient

Tokens = Annotated[int, msgspec.Meta(gt=0, le=10**9)]


class Window(msgspec.Struct):
    context_window_size: Tokens | None = None


class Share(msgspec.Struct):
    used_percentage: float | None = None
    resets_at: Annotated[float, msgspec.Meta(gt=0, le=1 << 40)] | None = None


class Shares(msgspec.Struct):
    five_hour: Share | None = None
    seven_day: Share | None = None


class StatusPayload(msgspec.Struct):
    session_id: str = ""
    context_window: Window | None = None
    rate_limits: Shares | None = None


def decode(payload: bytes) -> StatusLine:
    """Parse it, an odd member counting as missing; ValueError if it is not an object or names no conversation."""
    parsed = lenient(StatusPayload, payload)
    if not parsed.session_id:
        raise ValueError("session_id is missing")
    window = parsed.context_window or Window()
    return StatusLine(
        conversation=parsed.session_id,
        window=window.context_window_size,
        shares=tuple(_used(parsed.rate_limits or Shares())),
    )


def _used(shares: Shares) -> Iterator[UsedShare]:
    for kind in ("five_hour", "seven_day"):
        share: Share | None = getattr(shares, kind)
        if share is not None and share.used_percentage is not None:
            yield UsedShare(kind, share.used_percentage, share.resets_at)
