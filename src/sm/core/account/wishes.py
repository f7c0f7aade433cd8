"""What the person wants: their requests, the rules they gave on the way, and what else they said to the work.

Their words are quoted, never retold. What may be a request is given as one of several in their order, since only the
last that contradicts another holds; a nod is nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sm.core.account.ledger import Words
from sm.core.account.sentences import ASIDE, PAST, REQUEST, SHIFT, has, is_nod, rule_weight, sentences

LONG = 3
"""Sentences from which a message is an account of something, with a wish in it at most."""
RULE_FROM = 0.7
LONGEST_QUOTE = 700


@dataclass(frozen=True, slots=True)
class Wish:
    """Sentences of one message, quoted together."""

    text: str
    number: int
    weight: float
    interrupting: bool = False
    answering: str = ""


@dataclass(frozen=True, slots=True)
class Wishes:
    requests: tuple[Wish, ...]
    """The first one, and each that looks like a further or another one; oldest first."""
    rules: tuple[Wish, ...]
    remarks: tuple[Wish, ...]
    current: Wish | None
    """The request that looks like the one that holds."""


def wishes(said: Sequence[Words]) -> Wishes:
    requests: list[Wish] = []
    rules: list[Wish] = []
    remarks: list[Wish] = []
    current: Wish | None = None
    for position, words in enumerate(said):
        parts = [part for part in sentences(words.text) if not is_nod(part) or len(sentences(words.text)) == 1]
        ruling = [part for part in parts if rule_weight(part, len(parts)) >= RULE_FROM]
        goal = _goal(parts, ruling, first=position == 0)
        if goal:
            request = _wish(words, goal, 2.0)
            requests.append(request)
            current = request if current is None or has(SHIFT, words.text) else current
        rules.extend(_wish(words, [part], rule_weight(part, len(parts))) for part in ruling if part not in goal)
        rest = [part for part in parts if part not in goal and part not in ruling]
        if rest:
            remarks.append(_wish(words, rest, max(rule_weight(part, len(parts)) for part in rest)))
    return Wishes(tuple(requests), tuple(rules), tuple(remarks), current)


def _goal(parts: list[str], ruling: list[str], *, first: bool) -> list[str]:
    """The sentences of a message that say what is to be done; the first message always does."""
    if first:
        leading = [part for part in parts if part not in ruling]
        return leading or parts[:1]
    asking = [part for part in parts if has(REQUEST, part) and not has(ASIDE, part) and not part.endswith(("?", "？"))]
    shifting = [part for part in parts if has(SHIFT, part) and not has(ASIDE, part)]
    if not shifting and (not asking or len(parts) > LONG or has(PAST, " ".join(parts))):
        return []
    if not shifting and all(part in ruling for part in asking):
        return []
    return parts if len(parts) <= LONG + 1 and (asking or len(parts) > 1) else asking or []


def _wish(words: Words, parts: list[str], weight: float) -> Wish:
    text = " ".join(parts)
    return Wish(text[:LONGEST_QUOTE], words.number, weight, words.interrupting, words.asked)
