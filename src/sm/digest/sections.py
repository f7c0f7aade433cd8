"""Sections of the document, and which pieces are said: the heaviest, until the room a reply has is used up.

The headings are those of the guide that the skill gives an agent, so that both kinds of document read alike; the order
is that of a reader who has to go on: where it is, what the user wants, what holds, and then what has happened.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

HEAD = "# Session Continuation\n\nMade by sm from the transcript, without a model: quotes and counts, no judgement.\n"
NONE = "None\n"


class Section(Enum):
    """Heading, the line under it that says how to read what follows, and whether it is there if it is empty."""

    WORK = "What Was Being Worked On", "", True
    QUOTE = "Direct Quote", "", True
    NEXT = "Next Step", "", True
    INTENT = (
        "Primary Intent",
        "Messages of the user, word for word, oldest first; a later one replaces an earlier one it contradicts:",
        True,
    )
    TOLD = (
        "Messages of Other Agents",
        "Not the user's words, but they may be what the work is for; oldest first:",
        False,
    )
    FEEDBACK = "User Feedback", "", True
    INHERITED = "From the Handoff Before", "What the document said that this conversation began from:", False
    FORKED = (
        "From the Conversation It Was Forked From",
        "The user said this there, before this conversation; it need not be wanted here:",
        False,
    )
    CONSTRAINTS = (
        "User-Specified Constraints",
        "Sentences of the user that sound like rules, oldest first; a later one replaces an earlier one:",
        True,
    )
    PLAN = "Plan", "", False
    DECISIONS = "Decisions Made", "Oldest first; a later one replaces an earlier one it contradicts:", True
    GOTCHAS = "Gotchas Discovered", "What the agent stated, oldest first:", True
    PATTERNS = "Patterns Being Followed", "", True
    HAPPENED = "What Happened", "", True
    ERRORS = "Errors and Resolutions", "", True
    CHANGES = "Code Changes", "", True
    GIT = "Current Git Status", "", True
    VERIFY = "How to Verify", "Commands that passed when they last ran, the latest first:", True
    TODOS = "Todo List State", "", True

    @property
    def heading(self) -> str:
        return self.value[0]

    @property
    def title(self) -> str:
        return f"\n### {self.heading}\n"

    @property
    def lead(self) -> str:
        return f"{self.value[1]}\n" if self.value[1] else ""

    @property
    def always(self) -> bool:
        return self.value[2]


PARTS = (
    ("Resume Point", (Section.WORK, Section.QUOTE, Section.NEXT)),
    ("Conversation Summary", (Section.INTENT, Section.FEEDBACK, Section.TOLD, Section.INHERITED, Section.FORKED)),
    (
        "Important Context",
        (Section.CONSTRAINTS, Section.PLAN, Section.DECISIONS, Section.GOTCHAS, Section.PATTERNS),
    ),
    ("Work So Far", (Section.HAPPENED, Section.ERRORS, Section.CHANGES)),
    ("Artifact Validation", (Section.GIT, Section.VERIFY, Section.TODOS)),
)


class Weight:
    """How much pieces matter: above 90 what the next step needs, above 70 what the person or the project would miss.

    The rest is said as far as there is room. Where a range is given, what the piece itself shows decides in it.
    """

    LAST_WORDS = 99.0
    LAST_REPLY = 98.0
    ANNOUNCED = 97.0
    LATEST_REQUEST = 96.0
    TASK = 96.0
    """What another agent said first and last, where no person said anything: the task of a child."""
    BRANCH = 95.0
    PLAN = 94.5
    TODO_COUNT = 94.0
    RUNNING_TASK = 93.0
    SINCE = 93.0
    """What the agent has said since the user's last words."""
    INHERITED = 92.0
    OPEN_TODO = 92.0
    RULE = (55.0, 92.0)
    FAILING = 91.0
    CUT_SHORT = 90.0
    WORDS = 88.0
    """The user's messages while they fit together."""
    REPORT_BEFORE = 87.0
    """What the user's last words answer."""
    COMMIT = (60.0, 86.0)
    CHOICE = 85.0
    TURNING_REQUEST = 84.0
    """The first one, and those that give the work another direction."""
    DECISION = (52.0, 84.0)
    FILE_MADE_OR_GONE = 83.0
    EARLIER_ANNOUNCEMENT = 82.0
    ORDER = 82.0
    """What another agent said first and last, where a person spoke as well."""
    FIXED = 80.0
    FILE_EDITED = 80.0
    FAILED_JUST_NOW = 78.0
    REQUEST = 81.0
    VERIFY = 75.0
    STARTED_TODO = 71.0
    SAID_AS_RULE = 71.0
    """A message that is a rule and nothing else: it is under the rules as well."""
    COUNTS = 70.0
    FORKED = 68.0
    STATEMENT = (40.0, 74.0)
    REFUSED = 67.0
    DONE_TODO = 66.0
    MESSAGE = 64.0
    RERUN = 60.0
    REMARK = 60.0
    RAN_BY_USER = 72.0
    NOT_COMMITTED = 58.0
    OLD_COMMIT = 38.0
    REPORT = (22.0, 36.0)
    """A closing text whole, if there is room for it."""
    FAILED_ONCE = 30.0
    ACCOUNT = 30.0
    """What the person told, asking for nothing."""
    FLAKY = 25.0
    OLD_DONE_TODO = 20.0
    TALK = 18.0
    """Words that ask for nothing and tell nothing."""


@dataclass(frozen=True, slots=True)
class Piece:
    section: Section
    weight: float
    text: str


def arranged(pieces: Sequence[Piece], limit: int, left_out: Collection[Section] = ()) -> str:
    """The document: each piece that is said in its section, in the order given; "None" in what is empty."""
    parts = [
        (f"\n## {name}\n", [section for section in sections if section not in left_out]) for name, sections in PARTS
    ]
    kept = [section for _, sections in parts for section in sections if section.always]
    fixed = len(HEAD) + sum(len(title) for title, _ in parts) + sum(len(one.title + NONE) for one in kept)
    chosen = _chosen(pieces, limit - fixed)
    text = [HEAD]
    for title, sections in parts:
        blocks = "".join(_block(section, chosen) for section in sections)
        text.append(title + blocks if blocks else "")
    return "".join(text)


def _chosen(pieces: Sequence[Piece], room: int) -> list[Piece]:
    """Heaviest first; one that does not fit leaves its room to lighter ones. What is said twice is said once."""
    places: list[int] = []
    begun: set[Section] = set()
    told: set[tuple[Section, str]] = set()
    for place in sorted(range(len(pieces)), key=lambda place: -pieces[place].weight):
        piece = pieces[place]
        cost = len(piece.text) + 1 + (0 if piece.section in begun else _opening(piece.section))
        if cost <= room and (piece.section, piece.text) not in told:
            places.append(place)
            begun.add(piece.section)
            told.add((piece.section, piece.text))
            room -= cost
    return [pieces[place] for place in sorted(places)]


def _opening(section: Section) -> int:
    """What the first piece of a section costs beside itself."""
    return len(section.lead) - len(NONE) if section.always else len(section.title + section.lead)


def _block(section: Section, chosen: Sequence[Piece]) -> str:
    texts = [f"{piece.text}\n" for piece in chosen if piece.section is section]
    if texts:
        return section.title + section.lead + "".join(texts)
    return section.title + NONE if section.always else ""
