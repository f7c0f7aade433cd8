"""Makes the document: which items the collector gives, in which section, and the weight of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from sm.digest.agent_statements import StatementKind, paragraphs, skeleton, statements
from sm.digest.collector import AgentText, Collector, FileHistory, UserMessage
from sm.digest.failures import Failure
from sm.digest.keywords import LOOKING, NEXT
from sm.digest.outputs import without_random
from sm.digest.previous_handoff import LATEST, lasting_lines
from sm.digest.requests import UserRequests, user_requests
from sm.digest.sections import DigestItem, Section, Weight, arrange
from sm.digest.sentences import has, is_brief, is_question, joined, sentences, width
from sm.digest.transcript_events import CallInterrupted, Change, TodoState

MAX_LINE_CHARS = 700
MAX_COMMAND_CHARS = 160
MAX_EXPLANATION_CHARS = 300
MAX_QUOTE_CHARS = 1_500
"""Of the user's last message, which is quoted whole."""
MAX_REPLY_CHARS = 2_000
MAX_REPORT_CHARS = 1_500
MAX_PLAN_CHARS = 3_000
LONG_MESSAGE_CHARS = 700
ALL_MESSAGES_CHARS = 3_600
"""Up to so many characters all messages of the user are kept whole."""
SHORT_TALK_CHARS = 60
LONG_NARRATION_WIDTH = 45
MAX_CHECKS = 6
LIST_ITEM = re.compile(r"^\s{0,20}(?:[-*+•]|\d{1,4}[.)])\s")
RECENT_SHARE = 0.05
"""Share of the events that counts as the end of a conversation."""
RERUN_EVENTS = 2
"""A run within so many events of a failure is a plain rerun."""
MAX_PATHS = 20
MAX_RECENT_DONE = 3


@dataclass(frozen=True, slots=True)
class Repository:
    """What git says about the work tree; empty outside of any, or where it did not answer in time."""

    branch: str = ""
    status: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    problem: str = ""


BACKTICKS = re.compile("`+")
SECTION_NAMES = {"todos": Section.TODOS, "recent_files": Section.CHANGES, "git_status": Section.GIT}
"""Sections that the user may leave out, by the names in the configuration."""


def document(collector: Collector, repository: Repository, limit: int, leaves_out: Collection[str] = ()) -> str:
    items = [item for source in ITEM_SOURCES for item in source(collector, repository)]
    without = {SECTION_NAMES[name] for name in leaves_out if name in SECTION_NAMES}
    redacted = [replace(item, text=collector.redact(item.text)) for item in items if item.section not in without]
    return arrange(redacted, limit, without)


def _line(text: str, longest: int = MAX_LINE_CHARS) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= longest else joined[:longest] + "…"


def _command(text: str) -> str:
    return code(_line(without_random(text), MAX_COMMAND_CHARS))


def code(text: str) -> str:
    """Return a code span; text with backticks is put between more of them."""
    longest = max((len(run) for run in BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}" if longest else f"{fence}{text}{fence}"


def _clamped(bounds: tuple[float, float], weight: float) -> float:
    low, high = bounds
    return max(low, min(weight, high))


# --- what the user wants --------------------------------------------------------------------------------------------


def _intent_items(collector: Collector, _: Repository) -> Iterator[DigestItem]:
    found = user_requests(collector.messages)
    whole = sum(len(message.text) for message in found.asked) <= ALL_MESSAGES_CHARS
    all_whole = whole and sum(len(message.text) for message in (*found.asked, *found.talk)) <= ALL_MESSAGES_CHARS
    last = collector.messages[-1].number if collector.messages else None
    for message in found.asked:
        weight = _message_weight(message, found)
        kept_as_rule = message.number in found.only_rules and message.number != last
        weight = Weight.SAID_AS_RULE if kept_as_rule else max(weight, Weight.WORDS) if whole else weight
        latest = LATEST if message is found.latest and len(found.asked) > 1 else ""
        yield DigestItem(Section.INTENT, weight, _message(message) + latest)
    times = Counter(message.text for message in found.talk)
    for text, count in times.items():
        weight = Weight.REMARK if all_whole else Weight.NARRATIVE if len(text) > SHORT_TALK_CHARS else Weight.TALK
        yield DigestItem(Section.FEEDBACK, weight, f'- "{_line(text)}"' + (f" ({count} ×)" if count > 1 else ""))
    for rule in found.rules:
        weight = _clamped(Weight.RULE, 60 + 9 * rule.weight)
        weight = max(weight, Weight.TURNING_REQUEST) if rule.number in found.only_rules else weight
        yield DigestItem(Section.CONSTRAINTS, weight, f'- "{_line(rule.text)}"')
    for cut in collector.interrupted:
        if cut.refused:
            yield DigestItem(
                Section.FEEDBACK, Weight.REFUSED, f"- Refused by the user, not applied: {_interrupted_call(cut)}"
            )


def _message_weight(message: UserMessage, found: UserRequests) -> float:
    if message is found.latest:
        return Weight.LATEST_REQUEST
    if message.number in found.new_directions:
        return Weight.TURNING_REQUEST
    return Weight.REQUEST + 2 * (message.number in found.with_rules) - 16 * (len(message.text) > LONG_MESSAGE_CHARS)


def _message(message: UserMessage) -> str:
    """Return a message whole, with its lines, and what it answers."""
    text = _shortened(message.text, MAX_QUOTE_CHARS)
    notes = []
    if message.about_call:
        notes.append(f"said when {'refusing' if message.refusing else 'approving'} {_call(message.about_call)}")
    if message.asked:
        notes.append(f"answering: {_line(message.asked)}")
    if message.pasted:
        notes.append(f"and {_plural(message.pasted, 'pasted line')}, left out")
    note = f" ({'; '.join(notes)})" if notes else ""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    if "```" in text:
        return "\n  ".join([f"-{note}", *lines])
    return '- "' + "\n  ".join(lines) + f'"{note}'


def _call(name: str) -> str:
    return name if name.startswith("the ") else _command(name)


def _shortened(text: str, longest: int) -> str:
    """Return the beginning and the end, each to the last sentence that fits whole."""
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


def _agent_message_items(collector: Collector, _: Repository) -> Iterator[DigestItem]:
    ends = Weight.ORDER if collector.messages else Weight.TASK
    for place, message in enumerate(collector.agent_messages):
        weight = ends if place in {0, len(collector.agent_messages) - 1} else Weight.MESSAGE
        yield DigestItem(
            Section.AGENT_MESSAGES, weight, f'- {message.sender}: "{_line(message.text, MAX_QUOTE_CHARS)}"'
        )


def _forked_items(collector: Collector, _: Repository) -> Iterator[DigestItem]:
    for message in collector.forked_messages:
        if not message.nod:
            yield DigestItem(Section.FORKED, Weight.FORKED, f'- "{_line(message.text)}"')


def _plan_items(collector: Collector, _: Repository) -> Iterator[DigestItem]:
    if collector.plan is not None and collector.plan.plan:
        how = (
            "Approved by the user:" if collector.plan.approved else "Refused by the user, and no other approved since:"
        )
        yield DigestItem(Section.PLAN, Weight.PLAN, f"{how}\n{_block_quote(collector.plan.plan, MAX_PLAN_CHARS)}")


# --- what happened --------------------------------------------------------------------------------------------------


def _count_items(collector: Collector, _: Repository) -> Iterator[DigestItem]:
    compacted = f", compacted {collector.compactions} ×" if collector.compactions else ""
    counts = f"{_plural(len(collector.messages), 'message')} of the user, "
    if collector.agent_messages:
        counts += f"{_plural(len(collector.agent_messages), 'message')} of other agents, "
    counts += f"{_plural(len(collector.texts), 'text')} of the agent"
    yield DigestItem(Section.HAPPENED, Weight.COUNTS, f"- {counts}{compacted}.")
    for run in collector.run_by_user:
        told = f": {_line(run.output.splitlines()[-1], MAX_EXPLANATION_CHARS)}" if run.output else ""
        yield DigestItem(Section.HAPPENED, Weight.RAN_BY_USER, f"- The user ran {_command(run.command)}{told}")


def _plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _error_items(collector: Collector, _: Repository) -> Iterator[DigestItem]:
    for failure in sorted(collector.failures.known.values(), key=lambda failure: not failure.open):
        age = (collector.number - failure.last) / collector.number
        times = f" {failure.times} ×" if failure.times > 1 else ""
        error = f": {failure.error}" if failure.error else ""
        what = f"{_command(failure.command)} failed{times}{error}{_explained(failure)}"
        if not failure.open:
            yield DigestItem(Section.ERRORS, _fixed_weight(failure, age), f"- fixed, now passes: {what}")
        elif not failure.is_query:
            note = "**open**, last run" if failure.times > 1 else "failed once, not run again"
            yield DigestItem(Section.ERRORS, _open_weight(failure, age), f"- {note}: {what}")


def _explained(failure: Failure) -> str:
    """Return what the agent said when the command failed and when it passed."""
    said = [_line(text, MAX_EXPLANATION_CHARS) for text in (failure.suspicion, failure.said) if text]
    return "".join(f" — {text}" for text in dict.fromkeys(said))


def _open_weight(failure: Failure, age: float) -> float:
    if failure.times > 1:
        return Weight.FAILING
    return Weight.FAILED_JUST_NOW if age < RECENT_SHARE else Weight.FAILED_ONCE


def _fixed_weight(failure: Failure, age: float) -> float:
    if failure.fixed_by_change:
        return Weight.FIXED - 5 * age
    only_again = failure.passed_at is not None and failure.passed_at - failure.first <= RERUN_EVENTS
    return Weight.FLAKY if only_again else Weight.RERUN - 5 * age


def _change_items(collector: Collector, _: Repository) -> Iterator[DigestItem]:
    ranks = Counter[Change]()
    for history in sorted(collector.files.values(), key=lambda history: (-history.edits, history.path)):
        weight = Weight.FILE_EDITED if history.change is Change.EDITED else Weight.FILE_MADE_OR_GONE
        yield DigestItem(Section.CHANGES, weight - ranks[history.change], _file_line(history))
        ranks[history.change] += 1


def _file_line(history: FileHistory) -> str:
    edits = f", {history.edits} edits" if history.edits > 1 else ""
    source = f" from {code(history.source)}" if history.source and history.change is Change.RENAMED else ""
    return f"- {code(_line(history.path))}: {history.change.value}{source}{edits}"


# --- the state of work ----------------------------------------------------------------------------------------------


def _work_items(collector: Collector, _: Repository) -> Iterator[DigestItem]:
    for cut in collector.interrupted:
        if not cut.refused:
            yield DigestItem(Section.WORK, Weight.CUT_SHORT, f"- Interrupted, not applied: {_interrupted_call(cut)}")
    for task in collector.tasks.values():
        command = f" ({_command(task.command)})" if task.command else ""
        text = f"- Still running in the background: {_line(task.name)}{command}, id {task.id}"
        yield DigestItem(Section.WORK, Weight.RUNNING_TASK, text)
    for text, state in collector.todos:
        if state is TodoState.STARTED:
            yield DigestItem(Section.WORK, Weight.OPEN_TODO, f"- [~] in progress: {_line(text, MAX_EXPLANATION_CHARS)}")


def _interrupted_call(cut: CallInterrupted) -> str:
    return f"the edit of {code(_line(cut.path))}" if cut.path else _command(cut.what)


def _todo_items(collector: Collector, _: Repository) -> Iterator[DigestItem]:
    done = [text for text, state in collector.todos if state is TodoState.DONE]
    if collector.todos:
        yield DigestItem(Section.TODOS, Weight.TODO_COUNT, f"- Todo list: {len(done)} of {len(collector.todos)} done")
    for text, state in collector.todos:
        told = _line(text, MAX_EXPLANATION_CHARS)
        if state is TodoState.DONE:
            weight = Weight.DONE_TODO if text in done[-MAX_RECENT_DONE:] else Weight.OLD_DONE_TODO
            yield DigestItem(Section.TODOS, weight, f"- [x] {told}")
        elif state is TodoState.OPEN:
            yield DigestItem(Section.TODOS, Weight.OPEN_TODO, f"- [ ] {told}")


@dataclass(frozen=True, slots=True)
class _Exchange:
    """The user's last message, the text it answers, and the text that followed."""

    before: AgentText | None
    last: UserMessage | None
    since: AgentText | None

    @classmethod
    def of(cls, collector: Collector) -> _Exchange:
        last = collector.messages[-1] if collector.messages else None
        number = last.number if last else 0
        before = next((text for text in reversed(collector.texts) if text.closing and text.number < number), None)
        since = [text for text in collector.texts if text.number > number]
        telling = [text for text in since if text.closing] or [text for text in since if not has(LOOKING, text.text)]
        return cls(before, last, telling[-1] if telling else None)


def _quote_items(collector: Collector, _: Repository) -> Iterator[DigestItem]:
    found = _Exchange.of(collector)
    if found.before is not None:
        said = f"**Assistant, before that:**\n{_block_quote(found.before.text, MAX_REPORT_CHARS)}"
        yield DigestItem(Section.QUOTE, Weight.REPORT_BEFORE, said)
    if found.last is not None:
        pasted = f"\n(and {_plural(found.last.pasted, 'pasted line')})" if found.last.pasted else ""
        text = f"**User, last words:**\n{_block_quote(found.last.text, MAX_QUOTE_CHARS)}{pasted}"
        yield DigestItem(Section.QUOTE, Weight.LAST_WORDS, text)
    if found.since is not None:
        said = f"**Assistant, since then:**\n{_block_quote(found.since.text, MAX_REPLY_CHARS)}"
        yield DigestItem(Section.QUOTE, Weight.LAST_REPLY, said)


def _block_quote(text: str, longest: int) -> str:
    lines = [line for line in _shortened_lines(text.splitlines(), longest) if line.strip()]
    return "\n".join(f"> {line}" for line in lines)


def _shortened_lines(lines: list[str], longest: int) -> list[str]:
    """Return the beginning and the end in whole lines; each block of code is closed."""
    if sum(map(len, lines)) + len(lines) <= longest:
        return lines
    head = _whole_sentences(lines, longest * 2 // 3) or [lines[0][: longest * 2 // 3]]
    tail = _whole_sentences(lines[len(head) :][::-1], longest // 3)[::-1]
    fences = sum(line.lstrip().startswith("```") for line in head)
    closing = ["```"] if fences % 2 else []
    left = sum(line.lstrip().startswith("```") for line in tail)
    return [*head, *closing, "[…]", *(["```"] if left % 2 else []), *tail]


def _next_items(collector: Collector, _: Repository) -> Iterator[DigestItem]:
    last = collector.messages[-1].number if collector.messages else 0
    closed = next((text for text in reversed(collector.texts) if text.closing), None)
    answered = closed is not None and closed.number > last
    if last and not answered:
        text = "- The turn that the user's last words began has not ended: carry them out (see Direct Quote)."
        yield DigestItem(Section.NEXT, Weight.ANNOUNCED, text)
    announced = [
        found for found in map(_announcement, [text for text in collector.texts if text.closing][-2:]) if found
    ][-1:]
    for text in announced:
        yield DigestItem(Section.NEXT, Weight.ANNOUNCED, f"- Announced{'' if answered else ' before them'}: {text}")
    asked = sentences(closed.text)[-1:] if closed is not None and answered else []
    if asked and is_question(asked[0]):
        yield DigestItem(Section.NEXT, Weight.ANNOUNCED, f"- Asked the user, not answered: {_line(asked[0])}")
    for text, state in collector.todos:
        if state is TodoState.STARTED:
            yield DigestItem(Section.NEXT, Weight.STARTED_TODO, f"- The todo in progress: {_line(text)}")


def _announcement(said: AgentText) -> str:
    """Return the last list of next steps, or the last sentence about them."""
    text = said.text
    lines = [line for line in text.splitlines() if line.strip()]
    listed = [line.strip() for line in takewhile(LIST_ITEM.match, reversed(lines))][::-1]
    lead = lines[-len(listed) - 1] if listed and len(lines) > len(listed) else ""
    if lead and has(NEXT, lead):
        return _line(" ".join([lead, *listed]), MAX_LINE_CHARS)
    return _line(
        next(
            (sentence for sentence in reversed(sentences(text)) if has(NEXT, sentence) and not is_question(sentence)),
            "",
        )
    )


STATEMENT_SECTIONS = {StatementKind.FINDING: Section.GOTCHAS, StatementKind.REPORT: Section.HAPPENED}


def _report_items(collector: Collector, _: Repository) -> Iterator[DigestItem]:
    """Longer texts of the agent; a later one weighs more."""
    stated = {statement.text for statement in statements(collector.texts)}
    newest = {skeleton(text.text): text.number for text in collector.texts}
    exchange = _Exchange.of(collector)
    low, high = Weight.REPORT
    for text in collector.texts:
        said_again = newest[skeleton(text.text)] != text.number
        if text in (exchange.before, exchange.since) or said_again or not _is_report(text):
            continue
        parts = [part for part in paragraphs(text.text) if _line(part) not in stated]
        if parts:
            lines = "\n  ".join(line.rstrip() for part in parts for line in part.splitlines() if line.strip())
            yield DigestItem(Section.HAPPENED, low + (high - low) * text.number / collector.number, f"- {lines}")


def _is_report(text: AgentText) -> bool:
    return (text.closing and not is_brief(text.text)) or (
        width(text.text) >= LONG_NARRATION_WIDTH and not has(LOOKING, text.text)
    )


def _check_items(collector: Collector, _: Repository) -> Iterator[DigestItem]:
    for place, check in enumerate(reversed(collector.checks.passing()[-MAX_CHECKS:])):
        yield DigestItem(Section.VERIFY, Weight.VERIFY - 3 * place, f"- {_command(check.command)}")


def _statement_items(collector: Collector, _: Repository) -> Iterator[DigestItem]:
    for chose in collector.choices:
        note = f" (their note: {_line(chose.notes)})" if chose.notes else ""
        text = f'- The user chose for "{_line(chose.question)}": {_line(chose.answer) or "nothing"}{note}'
        yield DigestItem(Section.DECISIONS, Weight.CHOICE, text)
    failed = [failure for failure in collector.failures.known.values() if not failure.is_query]
    explaining = {_line(said) for failure in failed for said in (failure.said, failure.suspicion)}
    exchange = _Exchange.of(collector)
    quoted = {text.number for text in (exchange.before, exchange.since) if text is not None}
    for statement in statements(collector.texts):
        if statement.kind is StatementKind.DECISION:
            yield DigestItem(
                Section.DECISIONS, _clamped(Weight.DECISION, 52 + 6 * statement.weight), f"- {_line(statement.text)}"
            )
        elif statement.number not in quoted and statement.text not in explaining:
            yield DigestItem(
                STATEMENT_SECTIONS[statement.kind],
                _clamped(Weight.STATEMENT, 48 + 8 * statement.weight),
                f"- {_line(statement.text)}",
            )


# --- the repository -------------------------------------------------------------------------------------------------


def _git_items(collector: Collector, repository: Repository) -> Iterator[DigestItem]:
    branch = repository.branch or (collector.workplace.branch if collector.workplace else "")
    if branch and branch != "HEAD":  # the client's word for no branch
        yield DigestItem(Section.GIT, Weight.BRANCH, f"- Branch: {code(_line(branch))}")
    low, high = Weight.COMMIT
    for age, commit in enumerate(reversed(collector.commits)):
        text = f"- Committed in this session: {commit.hash} {_line(commit.subject)}"
        yield DigestItem(Section.GIT, max(high - age, low), text)
    known = {commit.subject for commit in collector.commits}
    for line in repository.commits:
        if not any(subject in line for subject in known):
            yield DigestItem(Section.GIT, Weight.OLD_COMMIT, f"- Earlier commit: {_line(line)}")
    for line in repository.status[:MAX_PATHS]:
        yield DigestItem(Section.GIT, Weight.NOT_COMMITTED, f"- Not committed: {code(line[:MAX_LINE_CHARS])}")
    more = len(repository.status) - MAX_PATHS
    if more > 0:
        yield DigestItem(Section.GIT, Weight.NOT_COMMITTED, f"- and {more} more uncommitted paths")
    if repository.problem:
        yield DigestItem(Section.GIT, Weight.NOT_COMMITTED, f"- {repository.problem}")


def _previous_handoff_items(collector: Collector, _: Repository) -> Iterator[DigestItem]:
    if collector.previous_handoff is None:
        return
    yield DigestItem(Section.INHERITED, Weight.INHERITED, f"- Its id: {collector.previous_handoff.id}")
    for place, line in enumerate(lasting_lines(collector.previous_handoff.document), 1):
        yield DigestItem(Section.INHERITED, Weight.INHERITED - place / 2, f"- {line}")


ItemSource = Callable[[Collector, Repository], Iterator[DigestItem]]
ITEM_SOURCES: tuple[ItemSource, ...] = (
    _work_items,
    _quote_items,
    _next_items,
    _intent_items,
    _agent_message_items,
    _forked_items,
    _previous_handoff_items,
    _plan_items,
    _statement_items,
    _count_items,
    _report_items,
    _error_items,
    _change_items,
    _git_items,
    _check_items,
    _todo_items,
)
