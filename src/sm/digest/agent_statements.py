"""What the agent said that matters after its turn: decisions with their reasons, and findings.

Agents put these into a turn's closing paragraph and into longer texts between two calls; a line that announces the next
look is none. An earlier decision that a later one rejects by name is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from statistics import median

from sm.digest.collector import AgentText
from sm.digest.keywords import CHOICE, CONTRAST, LOOKING, MARKS, OWN, REASON
from sm.digest.sentences import (
    decision_weight,
    finding_weight,
    has,
    is_question,
    joined,
    sentences,
    width,
    word_runs,
)

LIST_ITEM = re.compile(r"^\s*(?:[-*+•]|\d+[.)]|\||#|```)")
MAX_STATEMENT_CHARS = 420
SHORT_WIDTH = 45
"""A text between two calls must be longer than this to be more than an announcement."""
UNUSUAL_RATIO = 1.6
"""A text that is this many times as wide as usual there is no announcement."""
REASON_WITHIN_CHARS = 12
"""A sentence that gives the reason of the one before shows it within these."""
MAX_WHOLE_SENTENCES = 3
"""Up to so many sentences of a closing paragraph are one statement; more of them are weighed one by one."""
MIN_HABIT_TIMES = 3
"""That many decisions in the same words are a habit of speech."""
ONLY_PARAGRAPH_BONUS = 0.4
"""For a text that is all a turn ended with: it may be a report."""
UNOWNED_PENALTY = 0.6
"""For a sentence of a report that does not say who has decided."""
MAX_COMPARED = 400
"""Statements that are compared with each other, to find reversed decisions."""
MIN_DECISION_WEIGHT = 2.8
MIN_FINDING_WEIGHT = 1.6


class StatementKind(Enum):
    DECISION = auto()
    FINDING = auto()
    REPORT = auto()
    """What was done, as far as the words show."""


@dataclass(frozen=True, slots=True)
class Statement:
    text: str
    number: int
    weight: float
    kind: StatementKind


def statements(texts: Iterable[AgentText]) -> list[Statement]:
    found: dict[str, Statement] = {}
    texts = list(texts)
    usual = _usual_width([text for text in texts if not text.closing])
    for text in texts:
        for passage, bonus in _passages(text, usual):
            statement = _statement(passage, text.number, bonus)
            if statement is not None:
                found.pop(statement.text, None)
                found[statement.text] = statement
    return _without_losers(_without_habits(list(found.values())))


def skeleton(text: str) -> str:
    """Return a text without the names in it: the same for sentences that say the same of one thing after the other."""
    return " ".join("*" if has(MARKS, word) else word.casefold() for word in text.split())


def _without_habits(found: Sequence[Statement]) -> list[Statement]:
    """Demote decisions that recur in the same words: they are habits of speech."""
    forms = Counter(
        form for statement in found if statement.kind is StatementKind.DECISION for form in _forms(statement.text)
    )
    return [
        replace(statement, kind=StatementKind.REPORT, weight=0.0)
        if statement.kind is StatementKind.DECISION
        and max(forms[form] for form in _forms(statement.text)) >= MIN_HABIT_TIMES
        else statement
        for statement in found
    ]


def _forms(text: str) -> set[str]:
    """Return its skeleton, and its end."""
    bare = skeleton(text)
    end = bare.split()[-3:]
    return {bare, " ".join(end) if "*" not in end else bare}


def _usual_width(between: Sequence[AgentText]) -> float:
    """Return the median width of texts between two calls."""
    return median([width(text.text) for text in between]) if between else 0.0


def _passages(text: AgentText, usual: float) -> Iterable[tuple[str, float]]:
    """Split a text; return each passage with a bonus for its position."""
    parts = paragraphs(text.text)
    if not text.closing and len(parts) < 2:  # noqa: PLR2004  # a text of paragraphs is a report wherever it is
        size = width(text.text)
        yield " ".join(text.text.split()), -2.0 if size < SHORT_WIDTH else 1.6 if size > UNUSUAL_RATIO * usual else 0.8
        return
    *before, last = parts or [""]
    for part in before:
        yield from ((passage, 0.0) for passage in _of_paragraph(part))
    listed = LIST_ITEM.match(last) or len(sentences(last)) > MAX_WHOLE_SENTENCES
    yield from (
        (passage, 0.0 if listed else 1.5 if before else ONLY_PARAGRAPH_BONUS) for passage in _of_paragraph(last)
    )


def paragraphs(text: str) -> list[str]:
    """Split at empty lines; blocks of code stay whole."""
    found: list[str] = []
    for place, part in enumerate(text.split("```")):
        if place % 2:
            found.append(f"```{part}```")
        else:
            found += [block.strip() for block in re.split(r"\n[ \t]*\n", part) if block.strip()]
    return found


def _of_paragraph(paragraph: str) -> Iterable[str]:
    """Return a short paragraph whole, for its sentences are about one thing; another one by sentences."""
    if paragraph.startswith("```"):
        return []
    if LIST_ITEM.match(paragraph) or len(sentences(paragraph)) > MAX_WHOLE_SENTENCES:
        return _sentences_with_reasons(paragraph)
    return [" ".join(paragraph.split())]


def _sentences_with_reasons(paragraph: str) -> Iterable[str]:
    parts = sentences(paragraph)
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        is_reason = (
            not LIST_ITEM.match(following) and has(REASON, following[:REASON_WITHIN_CHARS]) and not has(REASON, part)
        )
        yield joined([part, following]) if is_reason else part


def _statement(passage: str, number: int, bonus: float) -> Statement | None:
    text = LIST_ITEM.sub("", passage).strip()
    if not text or has(LOOKING, text) or is_question(text):
        return None
    deciding, finding = _deciding(text, alone=bonus > ONLY_PARAGRAPH_BONUS), finding_weight(text)
    weight = max(deciding, finding) + bonus
    if weight < 1.0:
        return None
    cut = text if len(text) <= MAX_STATEMENT_CHARS else text[:MAX_STATEMENT_CHARS] + "…"
    kind = StatementKind.FINDING if finding >= MIN_FINDING_WEIGHT or bonus > 1 else StatementKind.REPORT
    return Statement(cut, number, weight, StatementKind.DECISION if deciding >= MIN_DECISION_WEIGHT else kind)


def _deciding(text: str, *, alone: bool) -> float:
    """A text alone is one decision with its reason; in a report each sentence is about something else."""
    if alone:
        return decision_weight(text)
    return max(decision_weight(sentence) - UNOWNED_PENALTY * (not has(OWN, sentence)) for sentence in sentences(text))


def _without_losers(found: Sequence[Statement]) -> list[Statement]:
    heaviest = sorted(found, key=lambda statement: -statement.weight)[:MAX_COMPARED]
    choices = [
        _Choice.of(statement)
        for statement in sorted(heaviest, key=lambda statement: statement.number)
        if statement.kind is StatementKind.DECISION
    ]
    losers = {
        id(earlier.statement)
        for place, earlier in enumerate(choices)
        if any(later.beats(earlier) for later in choices[place + 1 :])
    }
    return [statement for statement in found if id(statement) not in losers]


@dataclass(frozen=True, slots=True)
class _Choice:
    """A decision as runs of words: what it chose, what it rejected, and all of it."""

    statement: Statement
    chosen: frozenset[str]
    against: frozenset[str]
    start: frozenset[str]
    whole: frozenset[str]

    @classmethod
    def of(cls, statement: Statement) -> _Choice:
        contrast = CONTRAST.search(statement.text)
        head, tail = (
            (statement.text[: contrast.start()], statement.text[contrast.end() :]) if contrast else (statement.text, "")
        )
        said = CHOICE.search(head)
        start = word_runs(head[said.end() :] if said else head, 3)
        return cls(statement, word_runs(head, 4), word_runs(tail, 4), start, word_runs(statement.text, 3))

    def beats(self, earlier: _Choice) -> bool:
        """Whether it rejects what the earlier one chose, and does not choose the same."""
        return not self.against.isdisjoint(earlier.chosen) and self.start.isdisjoint(earlier.whole)
