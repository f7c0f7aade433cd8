"""Templates of the page, with every text escaped, and how numbers and times read there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sm.fleet import UNKNOWN
from sm.plain_text import plain
from sm.web.pages.markdown import rendered

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent.parent / "templates"
TEN_S, MINUTE_S, HOUR_S, DAY_S = 9.95, 60, 3600, 86_400
THOUSAND = 1_000
MILLION = 1_000_000


def duration(seconds: float | None) -> str:
    """Return `12 s`, `4 min`, `3 h 5 min` or `2 d 4 h`."""
    if seconds is None:
        return UNKNOWN
    whole = max(0, int(seconds))
    if whole < MINUTE_S:
        return f"{whole} s"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S} min"
    if whole < DAY_S:
        return f"{whole // HOUR_S} h {whole % HOUR_S // MINUTE_S} min"
    return f"{whole // DAY_S} d {whole % DAY_S // HOUR_S} h"


def span(seconds: float) -> str:
    """Return a length as `duration` does, with tenths below ten seconds."""
    return f"{max(0.0, seconds):.1f} s" if seconds < TEN_S else duration(seconds)


def tokens(count: float | None) -> str:
    if count is None:
        return UNKNOWN
    if count >= MILLION:
        return f"{count / MILLION:.1f}M"
    return f"{count / THOUSAND:.0f}k" if count >= THOUSAND else f"{count:.0f}"


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@cache
def environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415  # 30 ms of a server's start

    found = Environment(
        loader=FileSystemLoader(FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    filters: dict[str, Callable[..., object]] = {
        "duration": duration, "span": span, "tokens": tokens, "iso": iso, "markdown": rendered,
        "plain": lambda text: plain(str(text)),
    }  # fmt: skip
    found.filters.update(filters)
    return found


def render(name: str, /, **values: object) -> str:
    return environment().get_template(name).render(**values)
