"""What the person wants: their requests, the rules they gave on the way, and what else they said to the work.

Their words are quoted, never retold. What may be a request is given as one of several in their order, since only the
last that contradicts another holds; a nod is nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sm.core.account.cues import ASIDE, PAST, REQUEST, SHIFT
from sm.core.account.ledger import Words
from sm.core.account.sentences import FEW, has, is_aside, is_nod, is_question, joined, rule_weight, sentences

RULE_FROM = 0.7
LONGEST_QUOTE = 700


@dataclass(frozen=True, slots=True)
class Wish:
    """Sentences of one message, quoted together."""

    text: str
    number: int
    weight: float = 0.0
    turning: bool = False
    """It gives the work another direction."""
    interrupting: bool = False
    answering: str = ""


@dataclass(frozen=True, slots=True)
class Wishes:
    requests: tuple[Wish, ...]
    """The first one, and each that looks like a further or another one; oldest first."""
    rules: tuple[Wish, ...]
    remarks: tuple[Wish, ...]
    latest: Wish | None
    """The last request, unless that is but a question."""


def wishes(said: Sequence[Words]) -> Wishes:
    requests: list[Wish] = []
    rules: list[Wish] = []
    remarks: list[Wish] = []
    for position, words in enumerate(said):
        whole = sentences(words.text)
        parts = [part for part in whole if not is_nod(part)] or whole
        ruling = [part for part in parts if not is_nod(part) and rule_weight(part, whole) >= RULE_FROM]
        goal = _goal(whole, parts, ruling, first=position == 0)
        if goal:
            requests.append(replace(_wish(words, goal), turning=has(SHIFT, words.text)))
        rules.extend(_wish(words, [part], rule_weight(part, whole)) for part in ruling if part not in goal)
        rest = [part for part in parts if part not in goal and part not in ruling]
        if rest:
            remarks.append(_wish(words, rest, 0.0 if _is_account(whole) else 2.0))
    goals = [one for one in requests if one.turning or not is_question(one.text)] or requests
    latest = goals[-1] if goals else None
    return Wishes(tuple(requests), tuple(rules), tuple(remarks), latest)


def _goal(whole: list[str], parts: list[str], ruling: list[str], *, first: bool) -> list[str]:
    """The sentences of a message that say what is to be done; the first message always does."""
    if first:
        return [part for part in parts if part not in ruling or part is parts[0]]
    plain = [part for part in parts if not has(ASIDE, part) and (has(REQUEST, part) or not is_question(part))]
    asking = [part for part in plain if has(REQUEST, part)]
    if any(has(SHIFT, part) and not has(ASIDE, part) for part in whole) and not is_aside(whole):
        return whole if len(parts) <= FEW + 1 else [part for part in parts if part not in ruling or has(REQUEST, part)]
    if len(whole) > FEW or is_aside(whole) or has(PAST, " ".join(parts)) or all(part in ruling for part in asking):
        return []
    return parts


def _is_account(whole: list[str]) -> bool:
    """It tells of something that was, or ends with a nod: nothing in it asks for anything."""
    return is_aside(whole) or sum(has(PAST, part) for part in whole) * 2 > len(whole)


def _wish(words: Words, parts: list[str], weight: float = 0.0) -> Wish:
    text = joined(parts)
    return Wish(text[:LONGEST_QUOTE], words.number, weight, interrupting=words.interrupting, answering=words.asked)
