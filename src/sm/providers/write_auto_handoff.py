"""What a provider is given to make a document of a transcript without a model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from sm.digest.transcript_events import TranscriptEvent


class WriteAutoHandoff(Protocol):
    """What happened, where, and what is left out → the document made of it."""

    def __call__(
        self, transcript_events: Iterable[TranscriptEvent], directory: str, /, *, leaves_out: tuple[str, ...]
    ) -> str: ...
