"""The engine's one boundary: an exception is logged and ends the piece of work it happened in, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

log = structlog.get_logger()


@dataclass(slots=True)
class Attempt:
    problem: Exception | None = None
    """The exception that ended it early."""


@contextmanager
def logged(message: str, /, **where: str) -> Iterator[Attempt]:
    attempt = Attempt()
    try:
        yield attempt
    except Exception as problem:
        attempt.problem = problem
        log.exception(message, **where)
