"""What the user wants: their messages whole, apart from talk, and the sentences in them that are rules.

Their words are quoted, never retold. A message is talk if it has no request and no rule and the agent did not respond
to it; which of several requests is the current one is left to the reader, since only the last that contradicts another
holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sm.digest.collector import UserMessage
from sm.digest.keywords import ASIDE, MARKS, PAST, REQUEST, SHIFT
from sm.digest.sentences import (
    FEW_SENTENCES,
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

MIN_RULE_WEIGHT = 1.5
LONG_MESSAGE_WIDTH = 90
"""A message from this width on that is no narrative is a request."""
MAX_RARE_TURNS = 3
"""A word of more turns does not show that the agent responded to a message."""


@dataclass(frozen=True, slots=True)
class Rule:
    text: str
    number: int
    weight: float


@dataclass(frozen=True, slots=True)
class UserRequests:
    asked: tuple[UserMessage, ...]
    """The first message, and each with a request, a rule or a response of the agent; oldest first."""
    new_directions: frozenset[int]
    """Numbers of those that give the work another direction, and of the first one."""
    with_rules: frozenset[int]
    """Numbers of those that hold a rule."""
    only_rules: frozenset[int]
    """Numbers of those that are rules and nothing else."""
    latest: UserMessage | None
    """The last request that is no question."""
    rules: tuple[Rule, ...]
    talk: tuple[UserMessage, ...]


def user_requests(said: Sequence[UserMessage]) -> UserRequests:
    told = [message for message in said if message.text and (not message.nod or is_question(message.asked))]
    rare = _rare(told)
    repeated = {text for text, times in Counter(_bare(message.text) for message in told).items() if times > 1}
    rules = {message.number: [*_rules(message, first=message is told[0])] for message in told}
    first = next((message for message in told if not message.nod), None)
    asked = [
        message
        for message in told
        if message is first
        or (_is_request(message, rare) and (_bare(message.text) not in repeated or rules[message.number]))
    ]
    kept = {message.number for message in asked}
    new_directions = frozenset(
        message.number
        for message in asked
        if message is first or (has(SHIFT, message.text) and not _is_narrative(message.text))
    )
    goals = [message for message in asked if message.number in new_directions or _asks(message.text)] or asked
    return UserRequests(
        tuple(asked),
        new_directions,
        frozenset(number for number, found in rules.items() if found),
        frozenset(
            message.number for message in told if message is not first and _is_all(rules[message.number], message.text)
        ),
        goals[-1] if goals else None,
        tuple(rule for message in told for rule in rules[message.number]),
        tuple(message for message in told if message.number not in kept),
    )


def _rules(words: UserMessage, *, first: bool) -> Iterator[Rule]:
    """Return its sentences that are rules; a short message of rules alone stays whole."""
    whole = sentences(words.text)
    found = []
    for place, part in enumerate(whole):
        weight = rule_weight(part, whole)
        if weight >= MIN_RULE_WEIGHT + (first and not place):  # what a conversation begins with is a goal
            found.append(Rule(part, words.number, weight))
    if len(found) == len(whole) <= FEW_SENTENCES and found:
        yield Rule(joined(whole), words.number, max(rule.weight for rule in found))
    else:
        yield from found


def _is_all(rules: Sequence[Rule], text: str) -> bool:
    return bool(rules) and all(is_nod(part) or any(part in rule.text for rule in rules) for part in sentences(text))


def _is_request(words: UserMessage, rare: frozenset[str]) -> bool:
    text = words.text
    if words.about_call or words.pasted or words.asked:
        return True
    whole = sentences(text)
    if any(rule_weight(part, whole) >= MIN_RULE_WEIGHT for part in whole):
        return True
    if _is_narrative(text):
        return False
    if (
        has(REQUEST, text)
        or has(SHIFT, text)
        or "?" in text
        or "\N{FULLWIDTH QUESTION MARK}" in text
        or width(text) >= LONG_MESSAGE_WIDTH
    ):
        return True
    return not is_brief(text) and (has(MARKS, text) or not stems(text).isdisjoint(words.echo & rare))


def _asks(text: str) -> bool:
    return not is_question(text) and not _is_narrative(text) and (has(REQUEST, text) or not has(PAST, text))


def _is_narrative(text: str) -> bool:
    """Whether it tells of the past, or ends with a nod, and asks for nothing."""
    whole = sentences(text)
    plain = [part for part in whole if has(REQUEST, part) and not has(ASIDE, part) and not is_nod(part)]
    return not plain and (
        is_aside(whole) or sum(has(PAST, part) or has(ASIDE, part) for part in whole) * 2 > len(whole)
    )


def _rare(said: Sequence[UserMessage]) -> frozenset[str]:
    """Return words of few turns: a word of every turn shows nothing."""
    turns = Counter(word for message in said for word in message.echo)
    return frozenset(word for word, times in turns.items() if times <= MAX_RARE_TURNS)


def _bare(text: str) -> str:
    return " ".join(text.casefold().split())
