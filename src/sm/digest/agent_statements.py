"""What the agent said that outlives its turn: choices with their reasons, and what it found out.

A turn's closing paragraph and a longer text between two calls are where agents put these; one line that says what is
looked at next is not. An earlier choice that a later one names as the loser is left out.
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
    runs,
    sentences,
    width,
)

LIST = re.compile(r"^\s*(?:[-*+•]|\d+[.)]|\||#|```)")
LONGEST = 420
SHORT = 45
"""A text between two calls must be longer than this to be more than an announcement."""
UNUSUAL = 1.6
"""So many times as long as what is usually said there: something else than an announcement."""
BEGINNING = 12
"""Characters within which a sentence shows that it gives the reason of the one before."""
WHOLE = 3
"""Sentences of a closing paragraph that are one statement; more of them are weighed one by one."""
HABIT = 3
"""So many choices in the same words are none."""
ONLY = 0.4
"""What its place says for a text that is all that a turn ended with: the rest of a report may stand in it."""
IN_PASSING = 0.6
"""What a sentence of a report needs more that does not say who has chosen."""
MOST = 400
"""Statements among which one that a later one reverses is looked for."""
DECISION_FROM = 2.8
FINDING_FROM = 1.6


class StatementKind(Enum):
    DECISION = auto()
    FINDING = auto()
    REPORT = auto()
    """What was done, as far as anything tells."""


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
        for piece, bonus in _pieces(text, usual):
            statement = _weighed(piece, text.number, bonus)
            if statement is not None:
                found.pop(statement.text, None)
                found[statement.text] = statement
    return _without_losers(_without_habits(list(found.values())))


def skeleton(text: str) -> str:
    """A text without what it names: the same for all that are said of one thing after the other."""
    return " ".join("*" if has(MARKS, word) else word.casefold() for word in text.split())


def _without_habits(found: Sequence[Statement]) -> list[Statement]:
    """No choices that are made in the same words again and again, for they are habits of speech."""
    forms = Counter(form for one in found if one.kind is StatementKind.DECISION for form in _forms(one.text))
    return [
        replace(one, kind=StatementKind.REPORT, weight=0.0)
        if one.kind is StatementKind.DECISION and max(forms[form] for form in _forms(one.text)) >= HABIT
        else one
        for one in found
    ]


def _forms(text: str) -> set[str]:
    """Its skeleton, and how it ends."""
    bare = skeleton(text)
    end = bare.split()[-3:]
    return {bare, " ".join(end) if "*" not in end else bare}


def _usual_width(between: Sequence[AgentText]) -> float:
    """Of what is said between two calls."""
    return median([width(text.text) for text in between]) if between else 0.0


def _pieces(text: AgentText, usual: float) -> Iterable[tuple[str, float]]:
    """Stretches of a text, each with what its place says for it."""
    parts = paragraphs(text.text)
    if not text.closing and len(parts) < 2:  # noqa: PLR2004  # a text of paragraphs is a report wherever it stands
        size = width(text.text)
        yield " ".join(text.text.split()), -2.0 if size < SHORT else 1.6 if size > UNUSUAL * usual else 0.8
        return
    *before, last = parts or [""]
    for part in before:
        yield from ((piece, 0.0) for piece in _of_paragraph(part))
    listed = LIST.match(last) or len(sentences(last)) > WHOLE
    yield from ((piece, 0.0 if listed else 1.5 if before else ONLY) for piece in _of_paragraph(last))


def paragraphs(text: str) -> list[str]:
    """Stretches between empty lines, and blocks of code whole."""
    found: list[str] = []
    for place, part in enumerate(text.split("```")):
        if place % 2:
            found.append(f"```{part}```")
        else:
            found += [one.strip() for one in re.split(r"\n[ \t]*\n", part) if one.strip()]
    return found


def _of_paragraph(paragraph: str) -> Iterable[str]:
    """A short one whole, for its sentences are about one thing; another one by sentences."""
    if paragraph.startswith("```"):
        return []
    if LIST.match(paragraph) or len(sentences(paragraph)) > WHOLE:
        return _sentences_with_reasons(paragraph)
    return [" ".join(paragraph.split())]


def _sentences_with_reasons(paragraph: str) -> Iterable[str]:
    parts = sentences(paragraph)
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        is_reason = not LIST.match(following) and has(REASON, following[:BEGINNING]) and not has(REASON, part)
        yield joined([part, following]) if is_reason else part


def _weighed(piece: str, number: int, bonus: float) -> Statement | None:
    text = LIST.sub("", piece).strip()
    if not text or has(LOOKING, text) or is_question(text):
        return None
    deciding, finding = _deciding(text, alone=bonus > ONLY), finding_weight(text)
    weight = max(deciding, finding) + bonus
    if weight < 1.0:
        return None
    cut = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    kind = StatementKind.FINDING if finding >= FINDING_FROM or bonus > 1 else StatementKind.REPORT
    return Statement(cut, number, weight, StatementKind.DECISION if deciding >= DECISION_FROM else kind)


def _deciding(text: str, *, alone: bool) -> float:
    """What stands alone is one choice with its reason; in a report each sentence is about something else."""
    if alone:
        return decision_weight(text)
    return max(decision_weight(one) - IN_PASSING * (not has(OWN, one)) for one in sentences(text))


def _without_losers(found: Sequence[Statement]) -> list[Statement]:
    heaviest = sorted(found, key=lambda one: -one.weight)[:MOST]
    choices = [
        _Choice.of(one) for one in sorted(heaviest, key=lambda one: one.number) if one.kind is StatementKind.DECISION
    ]
    losers = {
        id(earlier.statement)
        for place, earlier in enumerate(choices)
        if any(later.beats(earlier) for later in choices[place + 1 :])
    }
    return [one for one in found if id(one) not in losers]


@dataclass(frozen=True, slots=True)
class _Choice:
    """A statement as runs of words: of what it chose, of what it decided against, and of all of it."""

    statement: Statement
    chosen: frozenset[str]
    against: frozenset[str]
    start: frozenset[str]
    whole: frozenset[str]

    @classmethod
    def of(cls, one: Statement) -> _Choice:
        contrast = CONTRAST.search(one.text)
        head, tail = (one.text[: contrast.start()], one.text[contrast.end() :]) if contrast else (one.text, "")
        said = CHOICE.search(head)
        start = runs(head[said.end() :] if said else head, 3)
        return cls(one, runs(head, 4), runs(tail, 4), start, runs(one.text, 3))

    def beats(self, earlier: _Choice) -> bool:
        """It names, as what it decided against, what the earlier one had chosen, and has not chosen the same."""
        return not self.against.isdisjoint(earlier.chosen) and self.start.isdisjoint(earlier.whole)
