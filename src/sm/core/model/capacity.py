"""How much a context can hold: what limits it, where that is known from, and where its agent is warned."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """What the client's arguments, environment and settings say about where it compacts."""

    auto_compact: int | None = None
    """Its auto-compact window in tokens."""
    by_model: tuple[tuple[str, int | None], ...] = ()
    """The same for single models; None is that model's own window."""
    percent: float | None = None
    """A share of the window, in percent, at which it compacts where that comes first."""
    max_output: int | None = None
    """Tokens it keeps free for a reply, where fewer than usual."""
    max_context: int | None = None
    """The window of models that it does not know."""
    no_long_window: bool = False
    """No model has more than the smallest usual window."""
    never_compacts: bool = False
    """Compaction is switched off: the client refuses to continue instead."""


NO_LIMITS = ClientLimits()


@dataclass(frozen=True, slots=True)
class Threshold:
    """A share of the usable context, a number of tokens, or both: then whichever comes first."""

    share: float | None = None
    tokens: int | None = None

    def at(self, usable: int | None, fallback: int | None = None) -> int | None:
        """Tokens at which it is crossed; `fallback` for a share alone of a context whose size is not known."""
        known = [self.tokens, None if self.share is None or usable is None else round(self.share * usable)]
        return min((tokens for tokens in known if tokens is not None), default=fallback)


WARNING = Threshold(0.6, 150_000)
CRITICAL = Threshold(0.8, 200_000)
LOWERED = 0.75
"""Of the threshold to hand off: where the warning moves that is not below it."""
SMALLEST_WINDOW = 200_000
"""The smallest usual window: a model that nothing tells about is assumed to have it."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """Where the client compacted a conversation by itself: with that model it will do so again."""

    model: str | None
    tokens: int


def taught(usable: int | None, lesson: Lesson | None, model: str | None) -> int | None:
    """The usable context by what is known of the client, and by what it has shown."""
    if lesson is None or lesson.model != model:
        return usable
    return lesson.tokens if usable is None else min(usable, lesson.tokens)


def named(told: str | None, known: str | None) -> str | None:
    """The model that a reply names, by the name its client has: only that has in brackets what was asked for with it,
    as a longer window.
    """
    plain, bracket, asked = (known or "").partition("[")
    if told is None:
        return known
    return f"{told}[{asked}" if bracket and plain in told and "[" not in told else told
