"""What the engine needs of handoff documents and of logs as files."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

from sm.core.model.channel import Location
from sm.core.model.handoff import Handoff, HandoffType, StoredHandoff
from sm.core.model.handoff_offer import ContinuationPrompt, ProjectDocument
from sm.core.model.session import Session


class Documents(Protocol):
    """The handoff documents and snapshots as files."""

    def schedule(
        self, session: Session, path: Path, at: float, reason: str, kind: HandoffType, *, confined: bool = False
    ) -> Handoff:
        """Check the agent's file and keep a copy; SmError with the reason if it is not fit to be handed off.

        `confined` to what an agent may hand off: a file of the session's directory, or a document of its repository.
        """

    def import_file(self, session: Session, path: Path, conversation: str, at: float) -> Handoff:
        """Keep a copy of the user's file for a session that is to begin from it."""

    def keep(self, session: Session, text: str, kind: HandoffType, at: float) -> Handoff:
        """Keep a document that was made for the session."""

    def channel(self, directory: str) -> str:
        """Return the channel of a directory."""

    def location(self, directory: str) -> Location:
        """Return a directory with what is checked out there."""

    def is_same_place(self, one: str, other: str) -> bool:
        """Return whether two directories of one channel are in one work tree, and not in two worktrees."""

    def folder(self, directory: str) -> Path:
        """Return where the handoff documents of a directory's channel are."""

    def checked(self, handoff: Handoff) -> Handoff:
        """Return the handoff, for another session; SmError if its document is gone or another's."""

    def foreign(self, directory: str, entries: Sequence[StoredHandoff]) -> tuple[ProjectDocument, ...]:
        """Return documents in a project that are no copy of these handoffs, or that git tracks."""

    def prompt(self, directory: str, entries: Sequence[StoredHandoff], since: float) -> ContinuationPrompt | None:
        """Return a continuation prompt of the project, written since then, whose newest handoff has expired."""

    def write_manifest(self, channel: str, entries: Sequence[StoredHandoff]) -> None:
        """Write a channel's manifest, from its rows."""

    def set_aside(self, known: Collection[str]) -> None:
        """Move documents that belong to no known handoff out of the way."""

    def prepare(self, directory: str) -> None:
        """Make a project ready for the documents an agent writes there, where `sm` may write."""

    def message_folder(self, session: str) -> Path:
        """Return the folder with the bodies of messages to this session only."""

    def message_file(self, session: str, message: str, body: str) -> str:
        """Keep a body that is too long to be typed; return its path."""

    def may_work_in(self, own: str, other: str) -> bool:
        """Return whether `other` is in `own`, or in the same repository or another worktree of it."""

    def text(self, handoff: Handoff) -> str:
        """Return the document; SmError if the file there is another's."""

    def written(self, handoff: Handoff) -> float:
        """Return when the agent last wrote it, UTC seconds."""

    def holds(self, handoff: Handoff) -> bool:
        """Return whether the agent's own file still holds the document that was handed off."""

    def refresh(self, handoff: Handoff, written: str, at: float) -> None:
        """Copy the agent's own file again, if that is the file which its tools have just written."""

    def place_snapshot(self, session: str, at: float) -> str:
        """Return a path that no other snapshot has."""

    def keep_snapshot(self, path: str, text: str) -> None:
        """Keep what a pane has shown, without secrets. May take long: never on the loop."""

    def without_secrets(self, text: str) -> str:
        """Return a text as it may be kept. May take long: never on the loop."""

    def json_without_secrets(self, text: str) -> str:
        """Return a JSON text as it may be kept, still JSON. May take long: never on the loop."""

    def rewrite(self, handoff: Handoff, text: str, at: float) -> None:
        """Put a newer text into a document that was kept."""

    def log(self, session: str) -> Path: ...
    def log_kept(self, session: str) -> tuple[Path | None, bool]:
        """Return the log of the session's terminal, if one was kept, and whether its file holds all of it."""

    def log_end(self, session: str) -> int:
        """Return how many bytes the session's terminal has shown since its first start."""
