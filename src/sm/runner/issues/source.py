"""The port: where issues come from, and where their status goes. All of it blocks; no event loop runs here."""

from __future__ import annotations

from typing import Protocol

from sm.runner.issues.issue import Issue, IssueList, IssueStatus


class IssueSource(Protocol):
    """Each of its changes may be made twice: what is there already is not made again."""

    def list(self) -> IssueList:
        """Return every issue, whatever its status, with what could not be read."""

    def read(self, issue: str) -> Issue:
        """Return one as it is now; SmError if it is unknown or cannot be used."""

    def set_status(self, issue: str, status: IssueStatus, note: str = "") -> None:
        """Write the status, and why: what the user has to know, or what an attempt has left.

        A done item of a checklist takes no note: its box is ticked, and nothing else changes.
        """

    def answer(self, issue: str, text: str) -> None:
        """Add the user's words to the issue; one that waited for them is open again."""
