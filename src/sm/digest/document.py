"""The document: what of the collector may be said, in which section, and how much each piece matters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from sm.core.model.handoff import REPLY_LIMIT
from sm.digest.agent_statements import StatementKind, paragraphs, skeleton, statements
from sm.digest.collector import AgentText, Collector, FileStory, Words
from sm.digest.failures import Failure
from sm.digest.keywords import LOOKING, NEXT
from sm.digest.outputs import without_random
from sm.digest.previous_handoff import LATEST, lasting
from sm.digest.requests import Wishes, wishes
from sm.digest.sections import Piece, Section, Weight, arranged
from sm.digest.sentences import has, is_brief, is_question, joined, sentences, width
from sm.digest.transcript_events import Change, CutShort, TodoState

LONGEST_LINE = 700
LONGEST_COMMAND = 160
LONGEST_EXPLANATION = 300
LONGEST_QUOTE = 1_500
"""Of the person's last words, which are quoted whole."""
LONGEST_REPLY = 2_000
LONGEST_BEFORE = 1_500
LONGEST_PLAN = 3_000
LONG_MESSAGE = 700
WHOLE_TOGETHER = 3_600
"""Characters up to which all that the user said is kept."""
SHORT_TALK = 60
LONG_NARRATION = 45
MOST_CHECKS = 6
ITEM = re.compile(r"^\s{0,20}(?:[-*+•]|\d{1,4}[.)])\s")
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


BACKTICKS = re.compile("`+")
LEFT_OUT = {"todos": Section.TODOS, "recent_files": Section.CHANGES, "git_status": Section.GIT}
"""Sections that a person may not want, by the names in their configuration."""


def document(
    kept: Collector, repository: Repository, limit: int = REPLY_LIMIT, leaves_out: Collection[str] = ()
) -> str:
    pieces = [piece for source in SOURCES for piece in source(kept, repository)]
    without = {LEFT_OUT[name] for name in leaves_out if name in LEFT_OUT}
    redacted = [replace(piece, text=kept.redact(piece.text)) for piece in pieces if piece.section not in without]
    return arranged(redacted, limit, without)


def _line(text: str, longest: int = LONGEST_LINE) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= longest else joined[:longest] + "…"


def _command(text: str) -> str:
    return code(_line(without_random(text), LONGEST_COMMAND))


def code(text: str) -> str:
    """A code span; one that holds backticks is put between more of them."""
    longest = max((len(run) for run in BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}" if longest else f"{fence}{text}{fence}"


def _between(bounds: tuple[float, float], weight: float) -> float:
    low, high = bounds
    return max(low, min(weight, high))


# --- what the person wants ------------------------------------------------------------------------------------------


def _wanted(kept: Collector, _: Repository) -> Iterator[Piece]:
    found = wishes(kept.words)
    whole = sum(len(one.text) for one in found.asked) <= WHOLE_TOGETHER
    all_whole = whole and sum(len(one.text) for one in (*found.asked, *found.talk)) <= WHOLE_TOGETHER
    last = kept.words[-1].number if kept.words else None
    for one in found.asked:
        weight = _message_weight(one, found)
        kept_as_rule = one.number in found.only_rules and one.number != last
        weight = Weight.SAID_AS_RULE if kept_as_rule else max(weight, Weight.WORDS) if whole else weight
        latest = LATEST if one is found.latest and len(found.asked) > 1 else ""
        yield Piece(Section.INTENT, weight, _message(one) + latest)
    times = Counter(one.text for one in found.talk)
    for text, count in times.items():
        weight = Weight.REMARK if all_whole else Weight.ACCOUNT if len(text) > SHORT_TALK else Weight.TALK
        yield Piece(Section.FEEDBACK, weight, f'- "{_line(text)}"' + (f" ({count} ×)" if count > 1 else ""))
    for rule in found.rules:
        weight = _between(Weight.RULE, 60 + 9 * rule.weight)
        weight = max(weight, Weight.TURNING_REQUEST) if rule.number in found.only_rules else weight
        yield Piece(Section.CONSTRAINTS, weight, f'- "{_line(rule.text)}"')
    for cut in kept.cut:
        if cut.refused:
            yield Piece(Section.FEEDBACK, Weight.REFUSED, f"- Refused by the user, not applied: {_cut(cut)}")


def _message_weight(one: Words, found: Wishes) -> float:
    if one is found.latest:
        return Weight.LATEST_REQUEST
    if one.number in found.turning:
        return Weight.TURNING_REQUEST
    return Weight.REQUEST + 2 * (one.number in found.ruling) - 16 * (len(one.text) > LONG_MESSAGE)


def _message(one: Words) -> str:
    """A message whole, with its lines, and what it was said to."""
    text = _shortened(one.text, LONGEST_QUOTE)
    notes = []
    if one.beside:
        notes.append(f"said when {'refusing' if one.refusing else 'approving'} {_call(one.beside)}")
    if one.asked:
        notes.append(f"answering: {_line(one.asked)}")
    if one.pasted:
        notes.append(f"and {_counted(one.pasted, 'pasted line')}, left out")
    note = f" ({'; '.join(notes)})" if notes else ""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    if "```" in text:
        return "\n  ".join([f"-{note}", *lines])
    return '- "' + "\n  ".join(lines) + f'"{note}'


def _call(name: str) -> str:
    return name if name.startswith("the ") else _command(name)


def _shortened(text: str, longest: int) -> str:
    """The beginning and the end, each to the last sentence that fits whole."""
    if len(text) <= longest:
        return text
    parts = sentences(text)
    head = _whole_sentences(parts, longest * 2 // 3) or [text[: longest // 2]]
    tail = _whole_sentences(parts[len(head) :][::-1], longest // 3)[::-1] or [text[-longest // 3 :]]
    return f"{joined(head)} […] {joined(tail)}"


def _whole_sentences(parts: list[str], room: int) -> list[str]:
    found: list[str] = []
    for part in parts:
        room -= len(part) + 1
        if room < 0:
            break
        found.append(part)
    return found


def _told(kept: Collector, _: Repository) -> Iterator[Piece]:
    ends = Weight.ORDER if kept.words else Weight.TASK
    for place, message in enumerate(kept.told):
        weight = ends if place in {0, len(kept.told) - 1} else Weight.MESSAGE
        yield Piece(Section.TOLD, weight, f'- {message.sender}: "{_line(message.text, LONGEST_QUOTE)}"')


def _forked(kept: Collector, _: Repository) -> Iterator[Piece]:
    for one in kept.forked:
        if not one.nod:
            yield Piece(Section.FORKED, Weight.FORKED, f'- "{_line(one.text)}"')


def _planned(kept: Collector, _: Repository) -> Iterator[Piece]:
    if kept.plan is not None and kept.plan.plan:
        how = "Approved by the user:" if kept.plan.approved else "Refused by the user, and no other approved since:"
        yield Piece(Section.PLAN, Weight.PLAN, f"{how}\n{_block_quote(kept.plan.plan, LONGEST_PLAN)}")


# --- what happened --------------------------------------------------------------------------------------------------


def _course(kept: Collector, _: Repository) -> Iterator[Piece]:
    compacted = f", compacted {kept.compactions} ×" if kept.compactions else ""
    counts = f"{_counted(len(kept.words), 'message')} of the user, "
    if kept.told:
        counts += f"{_counted(len(kept.told), 'message')} of other agents, "
    counts += f"{_counted(len(kept.texts), 'text')} of the agent"
    yield Piece(Section.HAPPENED, Weight.COUNTS, f"- {counts}{compacted}.")
    for run in kept.run_by_user:
        told = f": {_line(run.output.splitlines()[-1], LONGEST_EXPLANATION)}" if run.output else ""
        yield Piece(Section.HAPPENED, Weight.RAN_BY_USER, f"- The user ran {_command(run.command)}{told}")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _failures(kept: Collector, _: Repository) -> Iterator[Piece]:
    for failure in sorted(kept.failures.known.values(), key=lambda failure: not failure.open):
        age = (kept.number - failure.last) / kept.number
        times = f" {failure.times} ×" if failure.times > 1 else ""
        error = f": {failure.error}" if failure.error else ""
        what = f"{_command(failure.command)} failed{times}{error}{_explained(failure)}"
        if not failure.open:
            yield Piece(Section.ERRORS, _fixed_weight(failure, age), f"- fixed, now passes: {what}")
        elif not failure.is_question:
            note = "**open**, last run" if failure.times > 1 else "failed once, not run again"
            yield Piece(Section.ERRORS, _open_weight(failure, age), f"- {note}: {what}")


def _explained(failure: Failure) -> str:
    """What the agent said when it failed and when it passed."""
    said = [_line(text, LONGEST_EXPLANATION) for text in (failure.suspected, failure.said) if text]
    return "".join(f" — {text}" for text in dict.fromkeys(said))


def _open_weight(failure: Failure, age: float) -> float:
    if failure.times > 1:
        return Weight.FAILING
    return Weight.FAILED_JUST_NOW if age < JUST_NOW else Weight.FAILED_ONCE


def _fixed_weight(failure: Failure, age: float) -> float:
    if failure.worked:
        return Weight.FIXED - 5 * age
    only_again = failure.settled is not None and failure.settled - failure.first <= AT_ONCE
    return Weight.FLAKY if only_again else Weight.RERUN - 5 * age


def _changes(kept: Collector, _: Repository) -> Iterator[Piece]:
    ranks = Counter[Change]()
    for story in sorted(kept.files.values(), key=lambda story: (-story.edits, story.path)):
        weight = Weight.FILE_EDITED if story.change is Change.EDITED else Weight.FILE_MADE_OR_GONE
        yield Piece(Section.CHANGES, weight - ranks[story.change], _story(story))
        ranks[story.change] += 1


def _story(story: FileStory) -> str:
    edits = f", {story.edits} edits" if story.edits > 1 else ""
    source = f" from {code(story.source)}" if story.source and story.change is Change.RENAMED else ""
    return f"- {code(_line(story.path))}: {story.change.value}{source}{edits}"


# --- where it stands ------------------------------------------------------------------------------------------------


def _standing(kept: Collector, _: Repository) -> Iterator[Piece]:
    for cut in kept.cut:
        if not cut.refused:
            yield Piece(Section.WORK, Weight.CUT_SHORT, f"- Interrupted, not applied: {_cut(cut)}")
    for task in kept.tasks.values():
        command = f" ({_command(task.command)})" if task.command else ""
        text = f"- Still running in the background: {_line(task.name)}{command}, id {task.id}"
        yield Piece(Section.WORK, Weight.RUNNING_TASK, text)
    for text, state in kept.todos:
        if state is TodoState.STARTED:
            yield Piece(Section.WORK, Weight.OPEN_TODO, f"- [~] in progress: {_line(text, LONGEST_EXPLANATION)}")


def _cut(cut: CutShort) -> str:
    return f"the edit of {code(_line(cut.path))}" if cut.path else _command(cut.what)


def _todos(kept: Collector, _: Repository) -> Iterator[Piece]:
    done = [text for text, state in kept.todos if state is TodoState.DONE]
    if kept.todos:
        yield Piece(Section.TODOS, Weight.TODO_COUNT, f"- Todo list: {len(done)} of {len(kept.todos)} done")
    for text, state in kept.todos:
        told = _line(text, LONGEST_EXPLANATION)
        if state is TodoState.DONE:
            weight = Weight.DONE_TODO if text in done[-LATEST_DONE:] else Weight.OLD_DONE_TODO
            yield Piece(Section.TODOS, weight, f"- [x] {told}")
        elif state is TodoState.OPEN:
            yield Piece(Section.TODOS, Weight.OPEN_TODO, f"- [ ] {told}")


@dataclass(frozen=True, slots=True)
class _Exchange:
    """The last words of the user between what they answer and what came of them."""

    before: AgentText | None
    last: Words | None
    since: AgentText | None

    @classmethod
    def of(cls, kept: Collector) -> _Exchange:
        last = kept.words[-1] if kept.words else None
        number = last.number if last else 0
        before = next((text for text in reversed(kept.texts) if text.closing and text.number < number), None)
        since = [text for text in kept.texts if text.number > number]
        telling = [text for text in since if text.closing] or [text for text in since if not has(LOOKING, text.text)]
        return cls(before, last, telling[-1] if telling else None)


def _last_exchange(kept: Collector, _: Repository) -> Iterator[Piece]:
    found = _Exchange.of(kept)
    if found.before is not None:
        said = f"**Assistant, before that:**\n{_block_quote(found.before.text, LONGEST_BEFORE)}"
        yield Piece(Section.QUOTE, Weight.REPORT_BEFORE, said)
    if found.last is not None:
        pasted = f"\n(and {_counted(found.last.pasted, 'pasted line')})" if found.last.pasted else ""
        text = f"**User, last words:**\n{_block_quote(found.last.text, LONGEST_QUOTE)}{pasted}"
        yield Piece(Section.QUOTE, Weight.LAST_WORDS, text)
    if found.since is not None:
        said = f"**Assistant, since then:**\n{_block_quote(found.since.text, LONGEST_REPLY)}"
        yield Piece(Section.QUOTE, Weight.LAST_REPLY, said)


def _block_quote(text: str, longest: int) -> str:
    lines = [line for line in _shortened_lines(text.splitlines(), longest) if line.strip()]
    return "\n".join(f"> {line}" for line in lines)


def _shortened_lines(lines: list[str], longest: int) -> list[str]:
    """The beginning and the end by whole lines, and no block of code that does not end."""
    if sum(map(len, lines)) + len(lines) <= longest:
        return lines
    head = _whole_sentences(lines, longest * 2 // 3) or [lines[0][: longest * 2 // 3]]
    tail = _whole_sentences(lines[len(head) :][::-1], longest // 3)[::-1]
    fences = sum(line.lstrip().startswith("```") for line in head)
    closing = ["```"] if fences % 2 else []
    left = sum(line.lstrip().startswith("```") for line in tail)
    return [*head, *closing, "[…]", *(["```"] if left % 2 else []), *tail]


def _next(kept: Collector, _: Repository) -> Iterator[Piece]:
    last = kept.words[-1].number if kept.words else 0
    closed = next((text for text in reversed(kept.texts) if text.closing), None)
    answered = closed is not None and closed.number > last
    if last and not answered:
        text = "- The turn that the user's last words began has not ended: carry them out (see Direct Quote)."
        yield Piece(Section.NEXT, Weight.ANNOUNCED, text)
    announced = [found for found in map(_announcement, [text for text in kept.texts if text.closing][-2:]) if found][
        -1:
    ]
    for one in announced:
        yield Piece(Section.NEXT, Weight.ANNOUNCED, f"- Announced{'' if answered else ' before them'}: {one}")
    asked = sentences(closed.text)[-1:] if closed is not None and answered else []
    if asked and is_question(asked[0]):
        yield Piece(Section.NEXT, Weight.ANNOUNCED, f"- Asked the user, not answered: {_line(asked[0])}")
    for text, state in kept.todos:
        if state is TodoState.STARTED:
            yield Piece(Section.NEXT, Weight.STARTED_TODO, f"- The todo in progress: {_line(text)}")


def _announcement(said: AgentText) -> str:
    """The last list of what is to come, or the last sentence that tells of it."""
    text = said.text
    lines = [line for line in text.splitlines() if line.strip()]
    listed = [line.strip() for line in takewhile(ITEM.match, reversed(lines))][::-1]
    lead = lines[-len(listed) - 1] if listed and len(lines) > len(listed) else ""
    if lead and has(NEXT, lead):
        return _line(" ".join([lead, *listed]), LONGEST_LINE)
    return _line(next((one for one in reversed(sentences(text)) if has(NEXT, one) and not is_question(one)), ""))


KINDS = {StatementKind.FINDING: Section.GOTCHAS, StatementKind.REPORT: Section.HAPPENED}


def _reported(kept: Collector, _: Repository) -> Iterator[Piece]:
    """What the agent said at some length, as far as there is room, the latest first."""
    stated = {one.text for one in statements(kept.texts)}
    newest = {skeleton(text.text): text.number for text in kept.texts}
    exchange = _Exchange.of(kept)
    low, high = Weight.REPORT
    for text in kept.texts:
        said_again = newest[skeleton(text.text)] != text.number
        if text in (exchange.before, exchange.since) or said_again or not _tells(text):
            continue
        parts = [part for part in paragraphs(text.text) if _line(part) not in stated]
        if parts:
            lines = "\n  ".join(line.rstrip() for part in parts for line in part.splitlines() if line.strip())
            yield Piece(Section.HAPPENED, low + (high - low) * text.number / kept.number, f"- {lines}")


def _tells(text: AgentText) -> bool:
    return (text.closing and not is_brief(text.text)) or (
        width(text.text) >= LONG_NARRATION and not has(LOOKING, text.text)
    )


def _verified(kept: Collector, _: Repository) -> Iterator[Piece]:
    for place, one in enumerate(reversed(kept.passes.checks()[-MOST_CHECKS:])):
        yield Piece(Section.VERIFY, Weight.VERIFY - 3 * place, f"- {_command(one.command)}")


def _stated(kept: Collector, _: Repository) -> Iterator[Piece]:
    for chose in kept.choices:
        note = f" (their note: {_line(chose.notes)})" if chose.notes else ""
        text = f'- The user chose for "{_line(chose.question)}": {_line(chose.answer) or "nothing"}{note}'
        yield Piece(Section.DECISIONS, Weight.CHOICE, text)
    failed = [one for one in kept.failures.known.values() if not one.is_question]
    explaining = {_line(said) for one in failed for said in (one.said, one.suspected)}
    exchange = _Exchange.of(kept)
    quoted = {text.number for text in (exchange.before, exchange.since) if text is not None}
    for one in statements(kept.texts):
        if one.kind is StatementKind.DECISION:
            yield Piece(Section.DECISIONS, _between(Weight.DECISION, 52 + 6 * one.weight), f"- {_line(one.text)}")
        elif one.number not in quoted and one.text not in explaining:
            yield Piece(KINDS[one.kind], _between(Weight.STATEMENT, 48 + 8 * one.weight), f"- {_line(one.text)}")


# --- where it is ----------------------------------------------------------------------------------------------------


def _git(kept: Collector, repository: Repository) -> Iterator[Piece]:
    branch = repository.branch or (kept.place.branch if kept.place else "")
    if branch and branch != "HEAD":  # what the client writes where there is no branch
        yield Piece(Section.GIT, Weight.BRANCH, f"- Branch: {code(_line(branch))}")
    low, high = Weight.COMMIT
    for age, commit in enumerate(reversed(kept.commits)):
        text = f"- Committed in this session: {commit.hash} {_line(commit.subject)}"
        yield Piece(Section.GIT, max(high - age, low), text)
    known = {commit.subject for commit in kept.commits}
    for line in repository.commits:
        if not any(subject in line for subject in known):
            yield Piece(Section.GIT, Weight.OLD_COMMIT, f"- Earlier commit: {_line(line)}")
    for line in repository.status[:MOST_PATHS]:
        yield Piece(Section.GIT, Weight.NOT_COMMITTED, f"- Not committed: {code(line[:LONGEST_LINE])}")
    more = len(repository.status) - MOST_PATHS
    if more > 0:
        yield Piece(Section.GIT, Weight.NOT_COMMITTED, f"- and {more} more uncommitted paths")
    if repository.problem:
        yield Piece(Section.GIT, Weight.NOT_COMMITTED, f"- {repository.problem}")


def _before(kept: Collector, _: Repository) -> Iterator[Piece]:
    if kept.inherited is None:
        return
    yield Piece(Section.INHERITED, Weight.INHERITED, f"- Its id: {kept.inherited.id}")
    for place, line in enumerate(lasting(kept.inherited.document), 1):
        yield Piece(Section.INHERITED, Weight.INHERITED - place / 2, f"- {line}")


Source = Callable[[Collector, Repository], Iterator[Piece]]
SOURCES: tuple[Source, ...] = (
    _standing,
    _last_exchange,
    _next,
    _wanted,
    _told,
    _forked,
    _before,
    _planned,
    _stated,
    _course,
    _reported,
    _failures,
    _changes,
    _git,
    _verified,
    _todos,
)
