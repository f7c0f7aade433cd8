"""Sections of the document, and which pieces are said: the heaviest, until the room a reply has is used up.

The headings are those of the guide that the skill gives an agent, so that both kinds of document read alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

HEAD = "# Session Continuation\n\nMade by sm from the transcript, without a model: quotes and counts, no judgement.\n"


class Section(Enum):
    """Heading, and the line under it that says how to read what follows."""

    INTENT = (
        "Primary Intent",
        "What the user asked for, word for word, oldest first; a later request replaces an earlier one it contradicts:",
    )
    TOLD = "Messages of Other Agents", "Not the user's words, but they may be what the work is for; oldest first:"
    HAPPENED = "What Happened", ""
    FEEDBACK = "User Feedback", "Further words of the user, oldest first:"
    ERRORS = "Errors and Resolutions", ""
    CHANGES = "Code Changes", ""
    WORK = "What Was Being Worked On", ""
    QUOTE = "Direct Quote", "The last exchange, word for word."
    NEXT = "Next Step", ""
    DECISIONS = "Decisions Made", "Oldest first; a later one replaces an earlier one it contradicts:"
    GOTCHAS = "Gotchas Discovered", "What the agent stated, oldest first:"
    CONSTRAINTS = "User-Specified Constraints", "Word for word, oldest first; a later one replaces an earlier one:"
    INHERITED = "From the Handoff Before", "What the document said that this conversation began from:"
    GIT = "Current Git Status", ""

    @property
    def heading(self) -> str:
        return self.value[0]

    @property
    def opening(self) -> str:
        lead = f"{self.value[1]}\n" if self.value[1] else ""
        return f"\n### {self.heading}\n{lead}"


PARTS = (
    (
        "Conversation Summary",
        (Section.INTENT, Section.TOLD, Section.HAPPENED, Section.FEEDBACK, Section.ERRORS, Section.CHANGES),
    ),
    ("Resume Point", (Section.WORK, Section.QUOTE, Section.NEXT)),
    ("Important Context", (Section.INHERITED, Section.DECISIONS, Section.GOTCHAS, Section.CONSTRAINTS)),
    ("Artifact Validation", (Section.GIT,)),
)


class Weight:
    """How much pieces matter: above 90 what the next step needs, above 70 what the person or the project would miss.

    The rest is said as far as there is room. Where a range is given, what the piece itself shows decides in it.
    """

    LAST_WORDS = 99.0
    LAST_REPLY = 98.0
    ANNOUNCED = 97.0
    LATEST_REQUEST = 96.0
    BRANCH = 95.0
    TODO_COUNT = 94.0
    RUNNING_TASK = 93.0
    INHERITED = 92.0
    OPEN_TODO = 92.0
    RULE = (55.0, 92.0)
    FAILING = 91.0
    CUT_SHORT = 90.0
    COMMIT = (60.0, 86.0)
    CHOICE = 85.0
    TURNING_REQUEST = 84.0
    """The first one, and those that give the work another direction."""
    DECISION = (52.0, 84.0)
    FILE_MADE_OR_GONE = 83.0
    EARLIER_ANNOUNCEMENT = 82.0
    FIXED = 80.0
    FILE_EDITED = 80.0
    FAILED_JUST_NOW = 78.0
    REQUEST = 76.0
    TASK = 96.0
    """What another agent said first and last, where no person said anything: the task of a child."""
    ORDER = 82.0
    """The same where a person did."""
    MESSAGE = 64.0
    COUNTS = 70.0
    STATEMENT = (48.0, 74.0)
    DONE_TODO = 66.0
    RERUN = 60.0
    REMARK = 60.0
    NOT_COMMITTED = 58.0
    STARTED_TODO = 50.0
    OLD_COMMIT = 40.0
    FAILED_ONCE = 30.0
    ACCOUNT = 30.0
    """What the person told, asking for nothing."""
    FLAKY = 25.0
    OLD_DONE_TODO = 20.0
    QUESTION = 10.0
    """A command that asks, and was answered by failing."""


@dataclass(frozen=True, slots=True)
class Piece:
    section: Section
    weight: float
    text: str


def arranged(pieces: Sequence[Piece], limit: int) -> str:
    """The document: each piece that is said in its section, in the order given."""
    titles = [(f"\n## {name}\n", sections) for name, sections in PARTS]
    chosen = _chosen(pieces, limit - len(HEAD) - sum(len(title) for title, _ in titles))
    parts = [HEAD]
    for title, sections in titles:
        blocks = "".join(_block(section, chosen) for section in sections)
        parts.append(title + blocks if blocks else "")
    return "".join(parts)


def _chosen(pieces: Sequence[Piece], room: int) -> list[Piece]:
    """Heaviest first; one that does not fit leaves its room to lighter ones. What is said twice is said once."""
    places: list[int] = []
    begun: set[Section] = set()
    told: set[tuple[Section, str]] = set()
    for place in sorted(range(len(pieces)), key=lambda place: -pieces[place].weight):
        piece = pieces[place]
        cost = len(piece.text) + 1 + (0 if piece.section in begun else len(piece.section.opening))
        if cost <= room and (piece.section, piece.text) not in told:
            places.append(place)
            begun.add(piece.section)
            told.add((piece.section, piece.text))
            room -= cost
    return [pieces[place] for place in sorted(places)]


def _block(section: Section, chosen: Sequence[Piece]) -> str:
    texts = [f"{piece.text}\n" for piece in chosen if piece.section is section]
    return section.opening + "".join(texts) if texts else ""
