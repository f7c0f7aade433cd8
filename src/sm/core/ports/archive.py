"""What the engine needs of the archive of past contexts."""

from __future__ import annotations

from typing import Protocol

from sm.core.model.history import Artefact, Hit, Past, Stretch


class Archive(Protocol):
    """The files of past contexts. Everything here may take long: never on the loop."""

    def tend(self, pasts: list[Past], now: float) -> None:
        """Turn over what has grown, take in what is new for the search, prune once a day."""

    def stretches(self, past: Past) -> list[Stretch]:
        """From where to where each context goes in the log of the session's terminal."""

    def artefacts(self, past: Past) -> list[Artefact]: ...
    def prune(self, pasts: list[Past], now: float, *, dry_run: bool = False) -> list[Artefact]: ...
    def search(self, query: str, sessions: tuple[str, ...] | None, limit: int) -> list[Hit]:
        """The newest hits; SmError if there is no word in the query."""
