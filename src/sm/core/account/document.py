"""The document: what of the ledger may be said, in which section, and how much each piece matters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sm.core.account.cues import NEXT
from sm.core.account.failures import Failure
from sm.core.account.happenings import Change, TodoState
from sm.core.account.inheritance import lasting
from sm.core.account.ledger import FileStory, Ledger
from sm.core.account.outputs import without_random
from sm.core.account.sections import Piece, Section, Weight, arranged
from sm.core.account.sentences import has, is_question, sentences
from sm.core.account.statements import Kind, statements
from sm.core.account.wishes import Wish, Wishes, wishes
from sm.core.handoff import REPLY_LIMIT

LONGEST_LINE = 700
LONGEST_COMMAND = 160
LONGEST_EXPLANATION = 300
LONGEST_QUOTE = 1_500
"""Of the person's last words, which are quoted whole."""
LONGEST_REPLY = 2_000
SURE = 2.3
"""Weight from which what is said in the last words is a rule, and not a part of the question they ask."""
JUST_NOW = 0.05
"""Share of the happenings that is the end of a conversation."""
AT_ONCE = 2
"""Happenings within which a command was only run again."""
MOST_PATHS = 20
LATEST_DONE = 3


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


def _line(text: str, longest: int = LONGEST_LINE) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= longest else joined[:longest] + "…"


def _command(text: str) -> str:
    return f"`{_line(without_random(text), LONGEST_COMMAND)}`"


def _between(bounds: tuple[float, float], weight: float) -> float:
    low, high = bounds
    return max(low, min(weight, high))


# --- what the person wants ------------------------------------------------------------------------------------------


def _wanted(kept: Ledger, _: Repository) -> Iterator[Piece]:
    found = wishes(kept.words)
    for wish in found.requests:
        note = " (the latest)" if wish is found.latest and len(found.requests) > 1 else ""
        yield Piece(Section.INTENT, _request_weight(wish, found), _quoted(wish) + note)
    quoted_whole = kept.words[-1].number if kept.words and len(kept.words[-1].text) <= LONGEST_QUOTE else None
    for wish in found.rules:
        if wish.number != quoted_whole or wish.weight >= SURE:
            yield Piece(Section.CONSTRAINTS, _between(Weight.RULE, 55 + 9 * wish.weight), _quoted(wish))
    for wish in found.remarks:
        if wish.number != quoted_whole:
            weight = Weight.REMARK if wish.weight else Weight.ACCOUNT
            yield Piece(Section.FEEDBACK, weight + 12 * wish.interrupting + 20 * bool(wish.answering), _quoted(wish))


def _told(kept: Ledger, _: Repository) -> Iterator[Piece]:
    ends = Weight.ORDER if kept.words else Weight.TASK
    for place, message in enumerate(kept.told):
        weight = ends if place in {0, len(kept.told) - 1} else Weight.MESSAGE
        yield Piece(Section.TOLD, weight, f'- {message.sender}: "{_line(message.text, LONGEST_QUOTE)}"')


def _request_weight(wish: Wish, found: Wishes) -> float:
    if wish is found.latest:
        return Weight.LATEST_REQUEST
    return Weight.TURNING_REQUEST if wish is found.requests[0] or wish.turning else Weight.REQUEST


def _quoted(wish: Wish) -> str:
    answering = f" (answering the agent's question: {_line(wish.answering)})" if wish.answering else ""
    return f'- "{_line(wish.text)}"{answering}'


# --- what happened --------------------------------------------------------------------------------------------------


def _course(kept: Ledger, _: Repository) -> Iterator[Piece]:
    compacted = f", compacted {kept.compactions} ×" if kept.compactions else ""
    counts = f"{_counted(len(kept.words) + kept.nods, 'message')} of the user, "
    if kept.told:
        counts += f"{_counted(len(kept.told), 'message')} of other agents, "
    counts += f"{_counted(len(kept.texts), 'text')} of the agent"
    yield Piece(Section.HAPPENED, Weight.COUNTS, f"- {counts}{compacted}.")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _failures(kept: Ledger, _: Repository) -> Iterator[Piece]:
    for failure in sorted(kept.failures.known.values(), key=lambda failure: not failure.open):
        age = (kept.number - failure.last) / kept.number
        times = f" {failure.times} ×" if failure.times > 1 else ""
        error = f": {failure.error}" if failure.error else ""
        what = f"{_command(failure.command)} failed{times}{error}"
        if failure.open:
            note = "**open**, last run" if failure.times > 1 else "failed once, not run again"
            yield Piece(Section.ERRORS, _open_weight(failure, age), f"- {note}: {what}")
        else:
            said = f" — {_line(failure.said, LONGEST_EXPLANATION)}" if failure.said else ""
            yield Piece(Section.ERRORS, _fixed_weight(failure, age), f"- fixed, now passes: {what}{said}")


def _open_weight(failure: Failure, age: float) -> float:
    if failure.is_question:
        return Weight.QUESTION
    if failure.times > 1:
        return Weight.FAILING
    return Weight.FAILED_JUST_NOW if age < JUST_NOW else Weight.FAILED_ONCE


def _fixed_weight(failure: Failure, age: float) -> float:
    if failure.worked:
        return Weight.FIXED - 5 * age
    only_again = failure.settled is not None and failure.settled - failure.first <= AT_ONCE
    return Weight.FLAKY if only_again else Weight.RERUN - 5 * age


def _changes(kept: Ledger, _: Repository) -> Iterator[Piece]:
    ranks = Counter[Change]()
    for story in sorted(kept.files.values(), key=lambda story: (-story.edits, story.path)):
        weight = Weight.FILE_EDITED if story.change is Change.EDITED else Weight.FILE_MADE_OR_GONE
        yield Piece(Section.CHANGES, weight - ranks[story.change], _story(story))
        ranks[story.change] += 1


def _story(story: FileStory) -> str:
    edits = f", {story.edits} edits" if story.edits > 1 else ""
    source = f" from `{story.source}`" if story.source and story.change is Change.RENAMED else ""
    return f"- `{_line(story.path)}`: {story.change.value}{source}{edits}"


# --- where it stands ------------------------------------------------------------------------------------------------


def _standing(kept: Ledger, _: Repository) -> Iterator[Piece]:
    for cut in kept.cut:
        what = f"the edit of `{_line(cut.path)}`" if cut.path else _command(cut.what)
        how = "Refused by the user" if cut.refused else "Interrupted"
        yield Piece(Section.WORK, Weight.CUT_SHORT, f"- {how}, not applied: {what}")
    for task in kept.tasks.values():
        command = f" ({_command(task.command)})" if task.command else ""
        text = f"- Still running in the background: {_line(task.name)}{command}, id {task.id}"
        yield Piece(Section.WORK, Weight.RUNNING_TASK, text)
    done = [text for text, state in kept.todos if state is TodoState.DONE]
    if kept.todos:
        yield Piece(Section.WORK, Weight.TODO_COUNT, f"- Todo list: {len(done)} of {len(kept.todos)} done")
    for text, state in kept.todos:
        told = _line(text, LONGEST_EXPLANATION)
        if state is TodoState.DONE:
            weight = Weight.DONE_TODO if text in done[-LATEST_DONE:] else Weight.OLD_DONE_TODO
            yield Piece(Section.WORK, weight, f"- [x] {told}")
        else:
            mark = "[~] in progress:" if state is TodoState.STARTED else "[ ]"
            yield Piece(Section.WORK, Weight.OPEN_TODO, f"- {mark} {told}")


def _last_exchange(kept: Ledger, _: Repository) -> Iterator[Piece]:
    exchange: list[tuple[int, Piece]] = []
    if kept.words:
        last = kept.words[-1]
        pasted = f"\n(and {_counted(last.pasted, 'pasted line')})" if last.pasted else ""
        said = f"**User:**\n{_block_quote(last.text, LONGEST_QUOTE)}{pasted}"
        exchange.append((last.number, Piece(Section.QUOTE, Weight.LAST_WORDS, said)))
    if kept.texts:
        reply = f"**Assistant:**\n{_block_quote(kept.texts[-1].text, LONGEST_REPLY)}"
        exchange.append((kept.texts[-1].number, Piece(Section.QUOTE, Weight.LAST_REPLY, reply)))
    for _number, piece in sorted(exchange, key=lambda said: said[0]):  # a reply from before the words answers them not
        yield piece


def _block_quote(text: str, longest: int) -> str:
    if len(text) > longest:
        text = f"{text[: longest // 2]} […] {text[-longest // 2 :]}"
    return "\n".join(f"> {line}" for line in text.splitlines() if line.strip())


def _next(kept: Ledger, _: Repository) -> Iterator[Piece]:
    closing = [sentences(text.text) for text in kept.texts if text.closing][-2:]
    announced = [found for found in map(_announcement, closing) if found][-1:]
    for one in announced:
        yield Piece(Section.NEXT, Weight.ANNOUNCED, f"- Announced: {_line(one)}")
    if len(closing) > 1 and closing[0] and closing[0][-1] not in announced:
        text = f"- The turn before the last ended with: {_line(closing[0][-1])}"
        yield Piece(Section.NEXT, Weight.EARLIER_ANNOUNCEMENT, text)
    for text, state in kept.todos:
        if state is TodoState.STARTED:
            yield Piece(Section.NEXT, Weight.STARTED_TODO, f"- The todo in progress: {_line(text)}")


def _announcement(said: list[str]) -> str:
    """The last sentence that tells what is to come."""
    return next((one for one in reversed(said) if has(NEXT, one) and not is_question(one)), "")


KINDS = {Kind.FINDING: Section.GOTCHAS, Kind.REPORT: Section.HAPPENED}


def _stated(kept: Ledger, _: Repository) -> Iterator[Piece]:
    for chose in kept.choices:
        text = f'- The user chose for "{_line(chose.question)}": {_line(chose.answer)}'
        yield Piece(Section.DECISIONS, Weight.CHOICE, text)
    told = {one.said for one in kept.failures.known.values() if len(one.said) <= LONGEST_EXPLANATION}
    last = kept.texts[-1].number if kept.texts else None
    for one in statements([text for text in kept.texts if text.text not in told]):
        if one.kind is Kind.DECISION:
            yield Piece(Section.DECISIONS, _between(Weight.DECISION, 52 + 6 * one.weight), f"- {_line(one.text)}")
        elif one.number != last:  # the last text is quoted whole
            yield Piece(KINDS[one.kind], _between(Weight.STATEMENT, 48 + 8 * one.weight), f"- {_line(one.text)}")


# --- where it is ----------------------------------------------------------------------------------------------------


def _git(kept: Ledger, repository: Repository) -> Iterator[Piece]:
    branch = repository.branch or (kept.place.branch if kept.place else "")
    if branch and branch != "HEAD":  # what the client writes where there is no branch
        yield Piece(Section.GIT, Weight.BRANCH, f"- Branch: `{_line(branch)}`")
    low, high = Weight.COMMIT
    for age, commit in enumerate(reversed(kept.commits)):
        text = f"- Committed in this session: {commit.hash} {_line(commit.subject)}"
        yield Piece(Section.GIT, max(high - age, low), text)
    known = {commit.subject for commit in kept.commits}
    for line in repository.commits:
        if not any(subject in line for subject in known):
            yield Piece(Section.GIT, Weight.OLD_COMMIT, f"- Earlier commit: {_line(line)}")
    for line in repository.status[:MOST_PATHS]:
        yield Piece(Section.GIT, Weight.NOT_COMMITTED, f"- Not committed: `{line[:LONGEST_LINE]}`")
    more = len(repository.status) - MOST_PATHS
    if more > 0:
        yield Piece(Section.GIT, Weight.NOT_COMMITTED, f"- and {more} more uncommitted paths")
    if repository.problem:
        yield Piece(Section.GIT, Weight.NOT_COMMITTED, f"- {repository.problem}")


def _before(kept: Ledger, _: Repository) -> Iterator[Piece]:
    if kept.inherited is None:
        return
    yield Piece(Section.INHERITED, Weight.INHERITED, f"- Its id: {kept.inherited.id}")
    for place, line in enumerate(lasting(kept.inherited.document), 1):
        yield Piece(Section.INHERITED, Weight.INHERITED - place / 2, f"- {line}")


Source = Callable[[Ledger, Repository], Iterator[Piece]]
SOURCES: tuple[Source, ...] = (
    _wanted,
    _told,
    _course,
    _failures,
    _changes,
    _standing,
    _last_exchange,
    _next,
    _stated,
    _git,
    _before,
)
