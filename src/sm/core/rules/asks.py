"""Which answer fits what a client asks, and who may give it.

Only the user answers, never by a timer or by default; in a run that they have configured so, what is asked is denied
(`runner.on_ask`). A parent may answer its child where the user has configured it, but not for always: a lasting
permission may be the parent's own.
"""

from __future__ import annotations

from collections.abc import Sequence

from sm.core.errors import Refused
from sm.core.model.ask import (
    Ask,
    AskAnswer,
    AskDetails,
    AskKind,
    AskReply,
    AskState,
    Decision,
    Question,
    StoredAsk,
)
from sm.core.rules.session.asks import RESTARTED

KIND_WORDS = {
    AskKind.PERMISSION: "a permission request",
    AskKind.QUESTION: "a question",
    AskKind.PLAN: "a plan to approve",
}
HINTS = {
    AskKind.PERMISSION: "sm approve {id}, or sm deny {id} REASON",
    AskKind.QUESTION: "sm answer {id} TEXT, or sm answer {id} --choice N",
    AskKind.PLAN: "sm approve {id}, or sm deny {id} REASON to send it back",
}


def over(ask: Ask, called: str) -> Refused:
    """Refuse an answer that comes too late; `called` is what a command calls its session."""
    if ask.state is AskState.ANSWERED:
        words = {Decision.ALLOW: "allowed", Decision.DENY: "denied"}.get(ask.decision or Decision.ANSWER, "answered")
        return Refused("ask_over", f"Ask {ask.id} was {words} already{' by a session' if ask.by else ''}", "sm asks")
    if ask.state is AskState.WITHDRAWN:
        return Refused("ask_over", f"Ask {ask.id} is over: {ask.reason}", "sm asks")
    reason = f": {ask.reason}" if ask.reason else ""
    again = "try again in a moment, or " if ask.reason == RESTARTED else ""
    hint = f"{again}answer it in its dialog: sm attach {called}"
    return Refused("ask_over", f"The client no longer waits for an answer to ask {ask.id}{reason}", hint)


def recorded_answer(stored: StoredAsk, details: AskDetails) -> AskAnswer | None:
    """Return the answer that the record has; None if it has none, or not word for word."""
    match stored.ask.decision:
        case Decision.ALLOW | Decision.DENY as decision:
            return AskAnswer(decision, stored.answer, stored.ask.always)
        case Decision.ANSWER if len(stored.answers) == len(details.questions):
            return AskAnswer(Decision.ANSWER, answers=stored.answers)
    return None


def unfit(ask: Ask, details: AskDetails, answer: AskAnswer) -> Refused | None:
    """Return why this is no answer to what is asked."""
    answered = answer.decision is Decision.ANSWER
    if answered is not (ask.kind is AskKind.QUESTION) and answer.decision is not Decision.DENY:
        return Refused("bad_request", f"Ask {ask.id} is {KIND_WORDS[ask.kind]}", HINTS[ask.kind].format(id=ask.id))
    if answer.always and (answer.decision is not Decision.ALLOW or not details.always):
        message = f"The client offers no lasting permission with ask {ask.id}"
        return Refused("bad_request", message, "leave out --always")
    return None


def too_long(ask: Ask, words: Sequence[str], most: int) -> Refused | None:
    """Refuse own words of more bytes than a message may have."""
    size = sum(len(text.encode("utf-8", "replace")) for text in words)
    if size <= most:
        return None
    message = f"The answer to ask {ask.id} has {size:,} bytes; at most {most:,} bytes (limits.message_bytes)"
    return Refused("too_large", message, "put it into a file and name the file")


def resolved(ask: Ask, questions: Sequence[Question], replies: Sequence[AskReply]) -> tuple[str, ...] | Refused:
    """Return the words of the answer to each question."""
    if len(replies) != len(questions):
        asked, came = _counted(len(questions), "question"), _counted(len(replies), "answer")
        message = f"Ask {ask.id} has {asked}, and {came} came"
        return Refused("bad_request", message, f"sm asks {ask.id} shows them; give one answer for each, in order")
    found = []
    for question, reply in zip(questions, replies, strict=True):
        words = reply if isinstance(reply, str) else _chosen(question, [reply] if isinstance(reply, int) else reply)
        if words is None or not words.strip():
            hint = f"a number from 1 to {len(question.options)}{'' if question.several else ', and only one'}"
            return Refused("bad_request", f"{reply!r} does not answer {question.text!r}", hint)
        found.append(words)
    return tuple(found)


def _chosen(question: Question, numbers: Sequence[int]) -> str | None:
    in_range = all(0 < number <= len(question.options) for number in numbers)
    if not in_range or not numbers or (len(numbers) > 1 and not question.several):
        return None
    return ", ".join(question.options[number - 1].label for number in numbers)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
