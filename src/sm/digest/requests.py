"""What the person wants: their messages whole, apart from talk, and the sentences in them that are to hold.

Their words are quoted, never retold. A message is talk if nothing in it asks or rules and the agent took up none of it;
which of several requests is the current one is left to the reader, since only the last that contradicts another holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sm.digest.collector import Words
from sm.digest.keywords import ASIDE, MARKS, PAST, REQUEST, SHIFT
from sm.digest.sentences import (
    FEW,
    has,
    is_aside,
    is_brief,
    is_nod,
    is_question,
    joined,
    rule_weight,
    sentences,
    stems,
    width,
)

RULE_FROM = 1.5
LONG = 90
"""Width from which a message that is no account is said for a reason."""
COMMON = 3
"""Turns in which a word may come up and still show that the agent took up a message."""


@dataclass(frozen=True, slots=True)
class Rule:
    text: str
    number: int
    weight: float


@dataclass(frozen=True, slots=True)
class Wishes:
    asked: tuple[Words, ...]
    """The first message, and each that asks, rules or was taken up; oldest first."""
    turning: frozenset[int]
    """Numbers of those that give the work another direction; the first one with them."""
    ruling: frozenset[int]
    only_rules: frozenset[int]
    """Those that are nothing else."""
    latest: Words | None
    """The last request, unless that is but a question."""
    rules: tuple[Rule, ...]
    talk: tuple[Words, ...]


def wishes(said: Sequence[Words]) -> Wishes:
    told = [one for one in said if one.text and (not one.nod or is_question(one.asked))]
    rare = _rare(told)
    repeated = {text for text, times in Counter(_bare(one.text) for one in told).items() if times > 1}
    rules = {one.number: [*_rules(one, first=one is told[0])] for one in told}
    first = next((one for one in told if not one.nod), None)
    asked = [
        one
        for one in told
        if one is first or (_is_wish(one, rare) and (_bare(one.text) not in repeated or rules[one.number]))
    ]
    kept = {one.number for one in asked}
    turning = frozenset(
        one.number for one in asked if one is first or (has(SHIFT, one.text) and not _is_account(one.text))
    )
    goals = [one for one in asked if one.number in turning or _asks(one.text)] or asked
    return Wishes(
        tuple(asked),
        turning,
        frozenset(number for number, found in rules.items() if found),
        frozenset(one.number for one in told if one is not first and _is_all(rules[one.number], one.text)),
        goals[-1] if goals else None,
        tuple(rule for one in told for rule in rules[one.number]),
        tuple(one for one in told if one.number not in kept),
    )


def _rules(words: Words, *, first: bool) -> Iterator[Rule]:
    """Its sentences that rule; a short message of nothing else whole, for it is not to be torn."""
    whole = sentences(words.text)
    found = []
    for place, part in enumerate(whole):
        weight = rule_weight(part, whole)
        if weight >= RULE_FROM + (first and not place):  # what a conversation begins with is a goal
            found.append(Rule(part, words.number, weight))
    if len(found) == len(whole) <= FEW and found:
        yield Rule(joined(whole), words.number, max(rule.weight for rule in found))
    else:
        yield from found


def _is_all(rules: Sequence[Rule], text: str) -> bool:
    return bool(rules) and all(is_nod(part) or any(part in rule.text for rule in rules) for part in sentences(text))


def _is_wish(words: Words, rare: frozenset[str]) -> bool:
    text = words.text
    if words.beside or words.pasted or words.asked:
        return True
    whole = sentences(text)
    if any(rule_weight(part, whole) >= RULE_FROM for part in whole):
        return True
    if _is_account(text):
        return False
    if (
        has(REQUEST, text)
        or has(SHIFT, text)
        or "?" in text
        or "\N{FULLWIDTH QUESTION MARK}" in text
        or width(text) >= LONG
    ):
        return True
    return not is_brief(text) and (has(MARKS, text) or not stems(text).isdisjoint(words.echo & rare))


def _asks(text: str) -> bool:
    return not is_question(text) and not _is_account(text) and (has(REQUEST, text) or not has(PAST, text))


def _is_account(text: str) -> bool:
    """It tells of something that was, or ends with a nod: nothing in it asks for anything."""
    whole = sentences(text)
    plain = [part for part in whole if has(REQUEST, part) and not has(ASIDE, part) and not is_nod(part)]
    return not plain and (
        is_aside(whole) or sum(has(PAST, part) or has(ASIDE, part) for part in whole) * 2 > len(whole)
    )


def _rare(said: Sequence[Words]) -> frozenset[str]:
    """Words that came up in few turns: those of every turn show nothing."""
    turns = Counter(word for one in said for word in one.echo)
    return frozenset(word for word, times in turns.items() if times <= COMMON)


def _bare(text: str) -> str:
    return " ".join(text.casefold().split())
