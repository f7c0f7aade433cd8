"""Splits text into sentences and weighs them as rules, decisions or findings.

Structure decides first: who speaks, where in a turn, how long, with what around it. Words only add to that.
"""

from __future__ import annotations

import re

from sm.digest.keywords import (
    ASIDE,
    BECAUSE,
    CAUSE,
    CHOICE,
    CHOSEN_OVER,
    CONTRAST,
    FOUND,
    LOOKING,
    MARKS,
    NODS,
    OWN,
    PASSIVE,
    PAST,
    PURPOSE,
    REASON,
    REQUEST,
    RULE,
    SHIFT,
    STRONG,
    TELLING,
)

QUESTION_MARKS = ("?", "\N{FULLWIDTH QUESTION MARK}")
SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!\d\.)(?<!\b[A-Z]\.)(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)[\"')\]]*\s+"
    "|(?<=[。\N{FULLWIDTH QUESTION MARK}\N{FULLWIDTH EXCLAMATION MARK}])"
    r"|\n+"
)
"""No sentence ends after a number and a point: in many languages that is a date or an item."""
STEM_CHARS = 6
NAME_PARTS = re.compile(r"[^\W\d_]?[^\W\d_A-Z]{3,}|[A-Z]{3,}\d*|\d{2,}")
"""Words of four letters and more, also within a name of several, and numbers."""
COLON = re.compile(r"\w[:;]\s")
"""Often a reason follows it."""
FIRST_WIDE = 0x2E80
"""The first code point of East Asian scripts."""
BRIEF_WIDTH = 28
"""A narrower text without an exact name says nothing by itself."""
FEW_SENTENCES = 3
"""In a message of fewer sentences each one counts."""


def sentences(text: str) -> list[str]:
    return [part for part in (part.strip() for part in SENTENCE_END.split(text) if part) if part]


def joined(parts: list[str]) -> str:
    """Join sentences, with a space where their script has one."""
    return "".join(part if ord(part[-1]) > FIRST_WIDE else f"{part} " for part in parts).strip()


def width(text: str) -> int:
    """Return about how many letters it would have in Latin script."""
    return sum(2 if ord(c) > FIRST_WIDE else 1 for c in text)


def is_brief(text: str) -> bool:
    return width(text) < BRIEF_WIDTH and not has(MARKS, text) and not has(CONTRAST, text)


def is_nod(text: str) -> bool:
    if not any(map(str.isalpha, text)):  # +1, a thumb
        return True
    return is_brief(text) and NODS.fullmatch(text.strip()) is not None


def is_question(text: str) -> bool:
    return text.endswith(QUESTION_MARKS)


def is_aside(parts: list[str]) -> bool:
    """Whether a longer message ends with a nod: it tells something and asks for nothing."""
    return len(parts) >= FEW_SENTENCES and is_brief(parts[-1]) and not is_question(parts[-1])


def stems(text: str) -> set[str]:
    """Return the beginnings of a text's longer words and of the parts of its names, which all their forms share."""
    return {word[:STEM_CHARS].casefold() for word in NAME_PARTS.findall(text)}


def has(cue: re.Pattern[str], text: str) -> bool:
    return cue.search(text) is not None


def rule_weight(sentence: str, siblings: list[str]) -> float:
    """Return how much it looks like a rule of the user; `siblings` are the sentences of its message."""
    strong = has(STRONG, sentence)
    if is_question(sentence) or is_nod(sentence):
        return -1.0
    if is_aside(siblings) and (has(PAST, sentence) or not strong):
        return -1.0
    cues = min(len(set(map(str.casefold, RULE.findall(sentence)))), 3)
    weight = 1.6 * strong + 0.7 * cues + 0.5 * has(MARKS, sentence) + 0.3 * (len(siblings) < FEW_SENTENCES)
    weight -= 0.6 * min(len(PAST.findall(sentence)), 3) + 0.8 * (has(TELLING, sentence) and not strong)
    weight -= 0.6 * ((has(REQUEST, sentence) or has(SHIFT, sentence)) and not strong)
    return weight - (0.6 if len(siblings) < FEW_SENTENCES else 3.0) * has(ASIDE, sentence)


def decision_weight(text: str) -> float:
    """Return how much it looks like the speaker's decision, with its reason or its alternative."""
    kinds = [has(CHOICE, text), has(CONTRAST, text), has(REASON, text) or has(COLON, text)]
    weight = (0.0, 0.6, 1.8, 3.6)[sum(kinds)]
    if not weight:
        return 0.0
    own = has(OWN, text)
    over = has(CHOSEN_OVER, text)
    weight += 1.0 * own + 1.2 * over + 1.2 * (own and has(BECAUSE, text)) + 0.6 * (over and has(PURPOSE, text))
    return weight - 2.5 * has(PASSIVE, text) - 2.0 * has(CAUSE, text)


def finding_weight(text: str) -> float:
    return 1.6 * has(FOUND, text) + 0.4 * has(MARKS, text) - 2.0 * has(LOOKING, text)


def word_runs(text: str, length: int) -> frozenset[str]:
    """Return every run of so many words."""
    words = re.findall(r"\w+", text.casefold())
    return frozenset(" ".join(words[at : at + length]) for at in range(len(words) - length + 1))
