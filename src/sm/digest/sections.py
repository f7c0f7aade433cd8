"""Sections of the document, and which items it holds: the heaviest, until the room of a reply is used up.

The headings are those of the guide that the skill gives an agent, so that both kinds of document read alike; the order
is that of a reader who has to continue: the state of work, what the user wants, what holds, and then what has happened.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

HEAD = "# Session Continuation\n\nMade by sm from the transcript, without a model: quotes and counts, no judgement.\n"
EMPTY = "None\n"


class Section(Enum):
    """Heading, the line under it that says how to read what follows, and whether an empty section is written."""

    WORK = "What Was Being Worked On", "", True
    QUOTE = "Direct Quote", "", True
    NEXT = "Next Step", "", True
    INTENT = (
        "Primary Intent",
        "Messages of the user, word for word, oldest first; a later one replaces an earlier one it contradicts:",
        True,
    )
    AGENT_MESSAGES = (
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
    (
        "Conversation Summary",
        (Section.INTENT, Section.FEEDBACK, Section.AGENT_MESSAGES, Section.INHERITED, Section.FORKED),
    ),
    (
        "Important Context",
        (Section.CONSTRAINTS, Section.PLAN, Section.DECISIONS, Section.GOTCHAS, Section.PATTERNS),
    ),
    ("Work So Far", (Section.HAPPENED, Section.ERRORS, Section.CHANGES)),
    ("Artifact Validation", (Section.GIT, Section.VERIFY, Section.TODOS)),
)


class Weight:
    """How much items matter: above 90 what the next step needs, above 70 what the user or the project would miss.

    The rest is written as far as there is room. Where a range is given, the item itself decides in it.
    """

    LAST_WORDS = 99.0
    LAST_REPLY = 98.0
    ANNOUNCED = 97.0
    LATEST_REQUEST = 96.0
    TASK = 96.0
    """The first and last message of other agents, where the user said nothing: the task of a child."""
    BRANCH = 95.0
    PLAN = 94.5
    TODO_COUNT = 94.0
    RUNNING_TASK = 93.0
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
    ORDER = 82.0
    """The first and last message of other agents, where the user spoke as well."""
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
    """A closing text, whole."""
    FAILED_ONCE = 30.0
    NARRATIVE = 30.0
    """Messages that tell something and ask for nothing."""
    FLAKY = 25.0
    OLD_DONE_TODO = 20.0
    TALK = 18.0
    """Messages that ask for nothing and tell nothing."""


@dataclass(frozen=True, slots=True)
class DigestItem:
    section: Section
    weight: float
    text: str


def arrange(items: Sequence[DigestItem], limit: int, left_out: Collection[Section] = ()) -> str:
    """Return the document: the chosen items in their sections, in the order given; "None" in empty ones."""
    parts = [
        (f"\n## {name}\n", [section for section in sections if section not in left_out]) for name, sections in PARTS
    ]
    kept = [section for _, sections in parts for section in sections if section.always]
    fixed = len(HEAD) + sum(len(title) for title, _ in parts) + sum(len(section.title + EMPTY) for section in kept)
    chosen = _choose(items, limit - fixed)
    text = [HEAD]
    for title, sections in parts:
        blocks = "".join(_block(section, chosen) for section in sections)
        text.append(title + blocks if blocks else "")
    return "".join(text)


def _choose(items: Sequence[DigestItem], room: int) -> list[DigestItem]:
    """Choose the heaviest first; one that does not fit leaves its room to lighter ones; doubles are dropped."""
    places: list[int] = []
    begun: set[Section] = set()
    seen: set[tuple[Section, str]] = set()
    for place in sorted(range(len(items)), key=lambda place: -items[place].weight):
        item = items[place]
        cost = len(item.text) + 1 + (0 if item.section in begun else _opening_cost(item.section))
        if cost <= room and (item.section, item.text) not in seen:
            places.append(place)
            begun.add(item.section)
            seen.add((item.section, item.text))
            room -= cost
    return [items[place] for place in sorted(places)]


def _opening_cost(section: Section) -> int:
    """Return what the first item of a section costs besides itself."""
    return len(section.lead) - len(EMPTY) if section.always else len(section.title + section.lead)


def _block(section: Section, chosen: Sequence[DigestItem]) -> str:
    texts = [f"{item.text}\n" for item in chosen if item.section is section]
    if texts:
        return section.title + section.lead + "".join(texts)
    return section.title + EMPTY if section.always else ""
