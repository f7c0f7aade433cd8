"""Sentences, and what tells a rule, a choice or a finding from talk.

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
ENDS = re.compile(
    r"(?<=[.!?])(?<!\d\.)(?<!\b[A-Z]\.)(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)[\"')\]]*\s+"
    "|(?<=[。\N{FULLWIDTH QUESTION MARK}\N{FULLWIDTH EXCLAMATION MARK}])"
    r"|\n+"
)
"""A number with a point is a date or an item in many languages, so no sentence ends there."""
STEM = 6
NAME_PARTS = re.compile(r"[^\W\d_]?[^\W\d_A-Z]{3,}|[A-Z]{3,}\d*|\d{2,}")
"""Words of four letters and more, also within a name of several, and numbers."""
COLON = re.compile(r"\w[:;]\s")
"""What follows one often is the reason of what stands before."""
WIDE = 0x2E80
"""Where East Asian scripts begin."""
BRIEF = 28
"""A text less wide than this that names nothing exactly tells nothing by itself."""
FEW = 3
"""Sentences up to which a message is said for the sake of each of them."""


def sentences(text: str) -> list[str]:
    return [part for part in (one.strip() for one in ENDS.split(text) if one) if part]


def joined(parts: list[str]) -> str:
    """Sentences one after the other, with a space where their script has one."""
    return "".join(part if ord(part[-1]) > WIDE else f"{part} " for part in parts).strip()


def width(text: str) -> int:
    """About how many letters it would have in Latin script."""
    return sum(2 if ord(c) > WIDE else 1 for c in text)


def is_brief(text: str) -> bool:
    return width(text) < BRIEF and not has(MARKS, text) and not has(CONTRAST, text)


def is_nod(text: str) -> bool:
    if not any(map(str.isalpha, text)):  # +1, a thumb
        return True
    return is_brief(text) and NODS.fullmatch(text.strip()) is not None


def is_question(text: str) -> bool:
    return text.endswith(QUESTION_MARKS)


def is_aside(parts: list[str]) -> bool:
    """A longer message that ends with a nod tells something and asks for nothing."""
    return len(parts) >= FEW and is_brief(parts[-1]) and not is_question(parts[-1])


def stems(text: str) -> set[str]:
    """The longer words of a text and the parts of its names, as far as they are the same in all their forms."""
    return {word[:STEM].casefold() for word in NAME_PARTS.findall(text)}


def has(cue: re.Pattern[str], text: str) -> bool:
    return cue.search(text) is not None


def rule_weight(sentence: str, siblings: list[str]) -> float:
    """How much it looks like something a person wants to hold; `siblings` are the sentences of its message."""
    strong = has(STRONG, sentence)
    if is_question(sentence) or is_nod(sentence):
        return -1.0
    if is_aside(siblings) and (has(PAST, sentence) or not strong):
        return -1.0
    cues = min(len(set(map(str.casefold, RULE.findall(sentence)))), 3)
    weight = 1.6 * strong + 0.7 * cues + 0.5 * has(MARKS, sentence) + 0.3 * (len(siblings) < FEW)
    weight -= 0.6 * min(len(PAST.findall(sentence)), 3) + 0.8 * (has(TELLING, sentence) and not strong)
    weight -= 0.6 * ((has(REQUEST, sentence) or has(SHIFT, sentence)) and not strong)
    return weight - (0.6 if len(siblings) < FEW else 3.0) * has(ASIDE, sentence)


def decision_weight(text: str) -> float:
    """How much it looks like a choice of the one who speaks, with its reason or what it was chosen over."""
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


def runs(text: str, length: int) -> frozenset[str]:
    """Every run of so many words."""
    words = re.findall(r"\w+", text.casefold())
    return frozenset(" ".join(words[at : at + length]) for at in range(len(words) - length + 1))
