"""The document: what of the ledger may be said, in which section, and how much each piece matters.

Weights, from 0 to 100: above 90 what the next step needs, above 70 what the person or the project would miss, the rest
as far as there is room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sm.core.account.failures import Failure
from sm.core.account.happenings import Change, TodoState
from sm.core.account.inheritance import lasting
from sm.core.account.ledger import FileStory, Ledger
from sm.core.account.sections import Piece, Section, arranged
from sm.core.account.sentences import NEXT, has, is_question, sentences
from sm.core.account.statements import Kind, statements
from sm.core.account.wishes import Wish, wishes
from sm.core.handoff import REPLY_LIMIT

LONGEST_LINE = 700
LONGEST_QUOTE = 1_500
"""Of the person's last words, which are quoted whole."""
LONGEST_REPLY = 2_000


@dataclass(frozen=True, slots=True)
class Repository:
    """What git says about the work tree; empty where there is none, or where it did not answer in time."""

    branch: str = ""
    status: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    problem: str = ""


def document(kept: Ledger, repository: Repository, limit: int = REPLY_LIMIT) -> str:
    pieces = [piece for source in SOURCES for piece in source(kept, repository)]
    return arranged([replace(piece, text=kept.redact(piece.text)) for piece in pieces], limit)


def _quoted(wish: Wish, note: str = "") -> str:
    lead = f" (answer to the agent's question: {_line(wish.answering)})" if wish.answering else ""
    return f'- "{_line(wish.text)}"{note}{lead}'


def _line(text: str) -> str:
    return " ".join(text.split())[:LONGEST_LINE]


# --- what the person wants ------------------------------------------------------------------------------------------


def _wanted(kept: Ledger, _: Repository) -> Iterator[Piece]:
    found = wishes(kept.words)
    for wish in found.requests:
        latest = wish is found.current
        note = " (the latest that sets a goal)" if latest and len(found.requests) > 1 else ""
        weight = 96.0 if latest else 84.0 if wish is found.requests[0] else 76.0
        yield Piece(Section.INTENT, weight, _quoted(wish, note))
    last = kept.words[-1].number if kept.words and len(kept.words[-1].text) <= LONGEST_QUOTE else -1
    for wish in found.rules:
        if wish.number != last:
            yield Piece(Section.CONSTRAINTS, min(60.0 + 10 * wish.weight, 92.0), _quoted(wish))
    for wish in found.remarks:
        if wish.number != last:
            weight = 30.0 + 15 * wish.weight + 12 * wish.interrupting + 20 * bool(wish.answering)
            yield Piece(Section.FEEDBACK, weight, _quoted(wish))


# --- what happened --------------------------------------------------------------------------------------------------


def _course(kept: Ledger, _: Repository) -> Iterator[Piece]:
    times = "" if not kept.compactions else f", compacted {kept.compactions} ×"
    count = len(kept.words) + kept.nods
    yield Piece(Section.HAPPENED, 70.0, f"- {count} messages of the user, {len(kept.texts)} texts of the agent{times}.")


def _failures(kept: Ledger, _: Repository) -> Iterator[Piece]:
    for failure in sorted(kept.failures.known.values(), key=lambda failure: not failure.open):
        text, weight = _told(failure, kept)
        yield Piece(Section.ERRORS, weight, text)


def _told(failure: Failure, kept: Ledger) -> tuple[str, float]:
    age = (kept.number - failure.last) / max(kept.number, 1)
    command, error = f"`{_line(failure.command)[:160]}`", f": {failure.error}" if failure.error else ""
    times = f" {failure.times} ×" if failure.times > 1 else ""
    if failure.open:
        repeated = failure.times > 1 or age < 0.05
        weight = 91.0 if failure.times > 1 else 78.0 if repeated else 30.0
        note = "**open**, last run" if failure.times > 1 else "failed once, not run again"
        return f"- {note}: {command} failed{times}{error}", weight - 40 * failure.is_question
    said = f" — {_line(failure.said)[:300]}" if failure.said else ""
    weight = 80.0 - 5 * age if failure.worked else 60.0 - 5 * age
    if failure.settled is not None and failure.settled - failure.first <= 2 and not failure.worked:
        weight = 25.0
    return f"- fixed, now passes: {command} failed{times}{error}{said}", weight


def _changes(kept: Ledger, _: Repository) -> Iterator[Piece]:
    stories = sorted(kept.files.values(), key=lambda story: (-story.edits, story.path))
    ranks = Counter[Change]()
    for story in stories:
        plain = story.change is Change.EDITED
        yield Piece(Section.CHANGES, (80.0 if plain else 83.0) - ranks[story.change], _story(story))
        ranks[story.change] += 1


def _story(story: FileStory) -> str:
    edits = f", {story.edits} edits" if story.edits > 1 else ""
    source = f" from `{story.source}`" if story.source and story.change is Change.RENAMED else ""
    return f"- `{story.path}`: {story.change.value}{source}{edits}"


# --- where it stands ------------------------------------------------------------------------------------------------


def _standing(kept: Ledger, _: Repository) -> Iterator[Piece]:
    for cut in kept.cut:
        what = f"the edit of `{cut.path}`" if cut.path else f"`{_line(cut.what)[:160]}`"
        yield Piece(Section.WORK, 90.0, f"- Interrupted, not applied: {what}")
    for task in kept.tasks.values():
        command = f" (`{_line(task.command)[:160]}`)" if task.command else ""
        yield Piece(Section.WORK, 93.0, f"- Still running in the background: {_line(task.name)}{command}, id {task.id}")
    done = [text for text, state in kept.todos if state is TodoState.DONE]
    if kept.todos:
        yield Piece(Section.WORK, 94.0, f"- Todo list: {len(done)} of {len(kept.todos)} done")
    for text, state in kept.todos:
        if state is TodoState.DONE:
            yield Piece(Section.WORK, 66.0 if text in done[-3:] else 20.0, f"- [x] {_line(text)[:300]}")
        else:
            mark = "[~] in progress: " if state is TodoState.STARTED else "[ ] "
            yield Piece(Section.WORK, 92.0, f"- {mark}{_line(text)[:300]}")


def _last_exchange(kept: Ledger, _: Repository) -> Iterator[Piece]:
    if kept.words:
        last = kept.words[-1]
        pasted = f"\n(and {last.pasted} pasted lines)" if last.pasted else ""
        yield Piece(Section.QUOTE, 99.0, f"**User:**\n{_block_quote(last.text, LONGEST_QUOTE)}{pasted}")
    if kept.texts:
        yield Piece(Section.QUOTE, 98.0, f"**Assistant:**\n{_block_quote(kept.texts[-1].text, LONGEST_REPLY)}")


def _block_quote(text: str, most: int) -> str:
    if len(text) > most:
        text = f"{text[: most // 2]} […] {text[-most // 2 :]}"
    return "\n".join(f"> {line}" for line in text.splitlines() if line.strip())


def _next(kept: Ledger, _: Repository) -> Iterator[Piece]:
    closing = [sentences(text.text) for text in kept.texts if text.closing][-2:]
    announced = [found for found in map(_announcement, closing) if found]
    if announced:
        yield Piece(Section.NEXT, 97.0, f"- Announced: {_line(announced[-1])}")
    if len(closing) > 1 and closing[0] and closing[0][-1] not in announced[-1:]:
        yield Piece(Section.NEXT, 82.0, f"- The turn before the last ended with: {_line(closing[0][-1])}")
    for text, state in kept.todos:
        if state is TodoState.STARTED:
            yield Piece(Section.NEXT, 50.0, f"- The todo in progress: {_line(text)}")


def _announcement(said: list[str]) -> str:
    """The last sentence that tells what is to come."""
    return next((one for one in reversed(said) if has(NEXT, one) and not is_question(one)), "")


KINDS = {
    Kind.DECISION: Section.DECISIONS,
    Kind.FINDING: Section.GOTCHAS,
    Kind.REPORT: Section.HAPPENED,
}


def _stated(kept: Ledger, _: Repository) -> Iterator[Piece]:
    for _number, chose in kept.choices:
        text = f'- The user chose for "{_line(chose.question)}": {_line(chose.answer)}'
        yield Piece(Section.DECISIONS, 85.0, text)
    told = {failure.said for failure in kept.failures.known.values()}
    earlier = [text for text in kept.texts[:-1] if text.text not in told]
    for one in statements(earlier):
        weight = min(52.0 + 6 * one.weight, 84.0) if one.kind is Kind.DECISION else min(38.0 + 8 * one.weight, 70.0)
        yield Piece(KINDS[one.kind], weight, f"- {_line(one.text)}")


# --- where it is ----------------------------------------------------------------------------------------------------


def _git(kept: Ledger, repository: Repository) -> Iterator[Piece]:
    branch = repository.branch or (kept.place.branch if kept.place else "")
    if branch and branch != "HEAD":
        yield Piece(Section.GIT, 95.0, f"- Branch: `{branch}`")
    for age, commit in enumerate(reversed(kept.commits)):
        yield Piece(Section.GIT, max(86.0 - age, 60.0), f"- Committed in this session: {commit.hash} {commit.subject}")
    known = {commit.subject for commit in kept.commits}
    for line in repository.commits:
        if not any(subject in line for subject in known):
            yield Piece(Section.GIT, 40.0, f"- Earlier commit: {line}")
    for line in repository.status[:20]:
        yield Piece(Section.GIT, 58.0, f"- Not committed: `{line}`")
    if len(repository.status) > 20:
        yield Piece(Section.GIT, 58.0, f"- and {len(repository.status) - 20} more uncommitted paths")
    if repository.problem:
        yield Piece(Section.GIT, 58.0, f"- {repository.problem}")


def _before(kept: Ledger, _: Repository) -> Iterator[Piece]:
    if kept.inherited is None:
        return
    yield Piece(Section.INHERITED, 92.5, f"- Its id: {kept.inherited.id}")
    for age, line in enumerate(lasting(kept.inherited.document)):
        yield Piece(Section.INHERITED, 91.0 - age / 2, f"- {line}")


Source = Callable[[Ledger, Repository], Iterator[Piece]]
SOURCES: tuple[Source, ...] = (_wanted, _course, _failures, _changes, _standing, _last_exchange, _next, _stated, _git, _before)
