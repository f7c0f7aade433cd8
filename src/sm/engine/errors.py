"""The engine's one boundary: a fault of ours is logged and ends the piece of work it happened in, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

log = structlog.get_logger()


@dataclass(slots=True)
class Attempt:
    problem: Exception | None = None
    """What ended it early."""


@contextmanager
def unharmed(message: str, /, **where: str) -> Iterator[Attempt]:
    piece = Attempt()
    try:
        yield piece
    except Exception as problem:
        piece.problem = problem
        log.exception(message, **where)
