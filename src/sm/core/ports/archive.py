"""What the engine needs of the archive of past contexts."""

from __future__ import annotations

from typing import Protocol

from sm.core.model.history import Artefact, Hit, LogRange, SessionHistory


class Archive(Protocol):
    """The files of past contexts. Everything here may take long: never on the loop."""

    def tend(self, histories: list[SessionHistory], now: float) -> None:
        """Rotate logs that have grown, index what is new for the search, prune once a day."""

    def log_ranges(self, history: SessionHistory) -> list[LogRange]:
        """Return which part of the log of the session's terminal each context has."""

    def artefacts(self, history: SessionHistory) -> list[Artefact]: ...
    def prune(self, histories: list[SessionHistory], now: float, *, dry_run: bool = False) -> list[Artefact]: ...
    def search(self, query: str, sessions: tuple[str, ...] | None, limit: int) -> list[Hit]:
        """Return the newest hits; SmError if the query has no word."""
