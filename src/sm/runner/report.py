"""What a run has done, in Markdown: what was delivered and on which evidence, and what waits for the user."""

from __future__ import annotations

from collections.abc import Iterable

from sm.runner.outcome import Checked, IssueOutcome, Result, Review, RunOutcome, Spent

HEADINGS = {
    Result.DELIVERED: "Delivered",
    Result.NEEDS_YOU: "Needs you",
    Result.UNFINISHED: "Unfinished",
    Result.SKIPPED: "Not begun",
}
MAX_OUTPUT_LINES = 20
MAX_WAITING = 5
"""Issues that a notification names."""


def summary(found: RunOutcome) -> str:
    """Return the run in one line."""
    counts = {result: sum(outcome.result is result for outcome in found.outcomes) for result in Result}
    words = [f"{count} {HEADINGS[result].lower()}" for result, count in counts.items() if count]
    return f"run {found.run}: {', '.join(words) or 'nothing was begun'}"


def in_words(found: RunOutcome) -> str:
    """Return what a notification says of it: the counts, and which issues wait for the user."""
    waiting = [outcome.issue for outcome in found.outcomes if outcome.result is Result.NEEDS_YOU]
    more = f" and {len(waiting) - MAX_WAITING} more" if len(waiting) > MAX_WAITING else ""
    named = f"; waiting for you: {', '.join(waiting[:MAX_WAITING])}{more}" if waiting else ""
    return f"{summary(found)}{named}"


def report(found: RunOutcome) -> str:
    sections = (
        (heading, [outcome for outcome in found.outcomes if outcome.result is result])
        for result, heading in HEADINGS.items()
    )
    parts = [f"# {summary(found)}", f"Project: {_code(found.project)}"]
    total = found.spent
    if total.tokens:
        parts.append(f"Used by all: {used(total)}")
    for heading, outcomes in sections:
        if outcomes:
            parts += [f"## {heading}", *("\n".join(_lines(outcome)) for outcome in outcomes)]
    return "\n\n".join(parts) + "\n"


def used(spent: Spent) -> str:
    """Return `1,200,000 tokens, $5.10`; without dollars where no price is known."""
    more = " and what has no price" if spent.unpriced else ""
    dollars = f", ${spent.usd:,.2f}{more}" if spent.usd or not spent.unpriced else ""
    return f"{spent.tokens:,} tokens{dollars}"


def _lines(outcome: IssueOutcome) -> Iterable[str]:
    yield f"### {outcome.issue} {_plain(outcome.title)}".rstrip()
    yield ""
    if outcome.reason:
        yield f"- Why: {_plain(outcome.reason)}"
    if outcome.hint:
        yield f"- Next: {_code(outcome.hint)}"
    if outcome.merge:
        yield f"- Merged as {_code(outcome.merge)}, commits of its own: {outcome.commits}"
    elif outcome.offered:
        yield f"- Waits for you to merge it: {_code(outcome.offered)}, commits of its own: {outcome.commits}"
    elif outcome.branch:
        yield f"- Branch: {_code(outcome.branch)}"
    if outcome.checked is not None:
        yield from _check_lines(outcome.check, outcome.checked)
    yield from _review_lines(outcome.review)
    yield from _agent_lines(outcome)
    yield from (f"- Note: {_plain(note)}" for note in outcome.notes)


def _agent_lines(outcome: IssueOutcome) -> Iterable[str]:
    if outcome.session:
        yield f"- Session: {outcome.session}, attempt {outcome.attempts}, {outcome.continuations} continuations"
    if outcome.spent is not None:
        yield f"- Used: {used(outcome.spent)}"
    if outcome.document and not outcome.merge:
        yield f"- Last document: {_code(outcome.document)}"
    if outcome.said:
        yield "- The last message of its agent:"
        yield from (f"      {_plain(line)}".rstrip() for line in outcome.said.splitlines())


def _check_lines(command: str, checked: Checked) -> Iterable[str]:
    how = "was ended" if checked.code is None else f"exit code {checked.code}"
    yield f"- Check: {_code(command)}: {how} after {checked.seconds:.1f} s at {_code(checked.head[:12])}"
    if not checked.passed:
        yield from (f"      {_plain(line)}" for line in checked.output.splitlines()[-MAX_OUTPUT_LINES:])


VERDICTS = {True: "passed", False: "objects", None: "no verdict"}


def _review_lines(review: Review | None) -> Iterable[str]:
    if review is None:
        return
    yield f"- Review: {VERDICTS[review.passed]}, session {review.session}"
    yield from (f"      {_plain(line)}" for line in review.objection.splitlines()[-MAX_OUTPUT_LINES:])


def _plain(text: str) -> str:
    """Return a text in one line, without what a terminal would act on."""
    return "".join(character if character.isprintable() else "?" for character in " ".join(text.split()))


def _code(text: str) -> str:
    plain = _plain(text)
    return f"``{plain}``" if "`" in plain else f"`{plain}`"
