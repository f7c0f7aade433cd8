"""The engine's one boundary: an exception is logged and ends the piece of work it happened in, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Self

import structlog

log = structlog.get_logger()


@dataclass(slots=True)
class Attempt:
    """A `with` block; a class, since each hook enters four and a generator's context manager costs three times that."""

    message: str
    where: dict[str, str]
    problem: Exception | None = None
    """The exception that ended it early."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, problem: BaseException | None, __: TracebackType | None) -> bool:
        if not isinstance(problem, Exception):
            return False
        self.problem = problem
        log.error(self.message, exc_info=problem, **self.where)
        return True


def logged(message: str, /, **where: str) -> Attempt:
    """Return the boundary for a `with` block: it logs an exception under `message` and suppresses it."""
    return Attempt(message, where)
