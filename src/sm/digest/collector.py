"""Keeps what of a conversation may matter later, in bounded memory, while its events are read.

The choice is made by the document, by weights that only the whole conversation gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import assert_never

from sm.digest import shell
from sm.digest import transcript_events as events
from sm.digest.checks import Checks
from sm.digest.failures import Failures
from sm.digest.keywords import OPTIONS
from sm.digest.own_text import is_our_command, is_ours
from sm.digest.sentences import has, is_brief, is_nod, is_question, stems

MAX_MESSAGES = 600
MAX_TEXTS = 1_200
MAX_AGENT_MESSAGES = 200
MAX_FILES = 2_000
MAX_ECHO_STEMS = 400
MAX_RUN_BY_USER = 10
MAX_TEXT_CHARS = 4_000
MAX_REDACTED_CHARS = 64_000
"""Of a text, searched for secrets before it is clipped further."""

ANSWER_FIELDS = ("question", "answer", "notes")

Redact = Callable[[str], str]


@dataclass(slots=True)
class UserMessage:
    """A message of the user."""

    text: str
    number: int
    """Number of the event."""
    interrupting: bool = False
    pasted: int = 0
    asked: str = ""
    """What it answers: the question that ended the previous turn, or where the message is short its last line."""
    nod: bool = False
    about_call: str = ""
    """The call that the user approved or refused with it."""
    refusing: bool = False
    echo: set[str] = field(default_factory=set)
    """Stems of the words in what the agent said and did next."""


@dataclass(slots=True)
class AgentText:
    """A text of the agent."""

    text: str
    number: int
    closing: bool


@dataclass(slots=True)
class AgentMessage:
    """A message of another agent."""

    text: str
    number: int
    sender: str


@dataclass(slots=True)
class FileHistory:
    path: str
    change: events.Change
    edits: int = 0
    source: str | None = None
    number: int = 0


@dataclass(slots=True)
class Collector:
    redact: Redact
    number: int = 0
    messages: list[UserMessage] = field(default_factory=list)
    forked_messages: list[UserMessage] = field(default_factory=list)
    """Messages of the user in the conversation that this one was forked from."""
    agent_messages: list[AgentMessage] = field(default_factory=list)
    texts: list[AgentText] = field(default_factory=list)
    files: dict[str, FileHistory] = field(default_factory=dict)
    failures: Failures = field(init=False)
    checks: Checks = field(default_factory=Checks)
    todos: tuple[tuple[str, events.TodoState], ...] = ()
    tasks: dict[str, events.TaskStarted] = field(default_factory=dict)
    interrupted: list[events.CallInterrupted] = field(default_factory=list)
    commits: list[shell.Commit] = field(default_factory=list)
    choices: list[events.QuestionAnswered] = field(default_factory=list)
    plan: events.PlanDecided | None = None
    run_by_user: list[events.UserRanCommand] = field(default_factory=list)
    previous_handoff: events.HandoffRead | None = None
    compactions: int = 0
    workplace: events.WorkingDirectory | None = None
    _event_numbers: list[int] = field(default_factory=list)
    """Event number of each message to the agent, with nods and our own texts."""

    def __post_init__(self) -> None:
        self.failures = Failures(self.redact)

    def add(self, event: events.TranscriptEvent) -> None:  # noqa: C901, PLR0912, PLR0915  # a case for each event
        self.number += 1
        match event:
            case events.UserSaid():
                self._user_said(event)
            case events.AgentMessaged():
                self._agent_messaged(event)
            case events.Rewound():
                self._rewound(event)
            case events.AgentReplied():
                self._agent_replied(event)
            case events.CommandRan():
                self._command_ran(event)
            case events.FileChanged():
                self._file_changed(event)
            case events.TodosChanged():
                self.todos = event.todos
            case events.QuestionAnswered():
                self._question_answered(event)
            case events.PlanDecided():
                self._plan_decided(event)
            case events.UserRanCommand():
                self._user_ran_command(event)
            case events.Forked():
                self._forked()
            case events.TaskStarted():
                self.tasks[event.id] = event
            case events.TaskEnded():
                self.tasks.pop(event.id, None)
            case events.CallInterrupted():
                self._call_interrupted(event)
            case events.HandoffRead():
                self.previous_handoff = event
            case events.Compacted():
                self.compactions += 1
            case events.WorkingDirectory():
                self.workplace = event
            case _:
                assert_never(event)

    def _user_said(self, said: events.UserSaid) -> None:
        self._event_numbers.append(self.number)
        text = self.redact(_clipped(said.text, MAX_REDACTED_CHARS))
        if is_ours(text):
            return
        nod = is_nod(text) and not said.pasted
        words = UserMessage(
            _clipped(text), self.number, said.interrupting, said.pasted, self._question_before(text), nod
        )
        words.about_call, words.refusing = self.redact(said.about_call), said.refusing
        self.messages.append(words)
        if len(self.messages) > MAX_MESSAGES:  # the first one says what the work is about
            del self.messages[next((at for at, message in enumerate(self.messages) if at and message.nod), 1)]

    def _agent_messaged(self, told: events.AgentMessaged) -> None:
        self._event_numbers.append(self.number)
        self.agent_messages.append(
            AgentMessage(_clipped(self.redact(_clipped(told.text, MAX_REDACTED_CHARS))), self.number, told.sender)
        )
        if len(self.agent_messages) > MAX_AGENT_MESSAGES:
            del self.agent_messages[1]  # the first one may be the task of the session

    def _question_before(self, words: str) -> str:
        """Return the question that ended the previous turn; or its last line, where the message alone says little."""
        last = self.texts[-1].text.rstrip() if self.texts and self.texts[-1].closing else ""
        end = last.splitlines()[-1][-300:] if last else ""
        chooses = is_brief(words) and not is_nod(words) and not is_question(words) and has(OPTIONS, end)
        return end if chooses or is_question(last) else ""

    def _rewound(self, rewound: events.Rewound) -> None:
        if rewound.said < len(self._event_numbers):
            gone = self._event_numbers[rewound.said]
            del self._event_numbers[rewound.said :]
            self.messages = [message for message in self.messages if message.number < gone]
            self.texts = [text for text in self.texts if text.number < gone]
            self.agent_messages = [message for message in self.agent_messages if message.number < gone]

    def _agent_replied(self, replied: events.AgentReplied) -> None:
        text = self.redact(_clipped(replied.text, MAX_REDACTED_CHARS))
        self.failures.said(text, self.number)
        self._echo(text)
        self.texts.append(AgentText(_clipped(text), self.number, replied.closing))
        if len(self.texts) > MAX_TEXTS:
            self._forget_texts()

    def _echo(self, text: str) -> None:
        if self.messages and len(self.messages[-1].echo) < MAX_ECHO_STEMS:
            self.messages[-1].echo |= stems(text[:MAX_TEXT_CHARS])

    def _forget_texts(self) -> None:
        """Drop the shorter half of the older texts: what matters is said at some length."""
        half = len(self.texts) // 2
        older, middle = self.texts[:half], sorted(len(text.text) for text in self.texts[:half])[half // 2]
        self.texts = [text for text in older if len(text.text) > middle] + self.texts[half:]

    def _command_ran(self, run: events.CommandRan) -> None:
        if is_our_command(run.command):
            return
        self._echo(run.command)
        self.failures.ran(run, self.number)
        self.checks.ran(run, self.number)
        if run.failed:
            return
        for change in shell.file_changes(run.command):
            self._changed(self._relative(change.path), change.change, change.source and self._relative(change.source))
        if "commit" in run.command:
            self.commits.extend(shell.commits(self.redact(run.output)))

    def _file_changed(self, touched: events.FileChanged) -> None:
        path = self._relative(touched.path)
        self._changed(path, touched.change, touched.source and self._relative(touched.source))
        self.interrupted = [call for call in self.interrupted if call.path != touched.path]

    def _changed(self, path: str, change: events.Change, source: str | None) -> None:
        self.failures.changed(self.number)
        self.checks.changed()
        self._echo(path)
        history = self.files.pop(path, None) or (self.files.pop(source, None) if source else None)
        history = history or FileHistory(path, change)
        if change in {events.Change.DELETED, events.Change.RENAMED} or history.change is events.Change.DELETED:
            history.change = change
        history.path, history.source, history.number = path, history.source or source, self.number
        history.edits += change in {events.Change.CREATED, events.Change.EDITED}
        self.files[path] = history
        if len(self.files) > MAX_FILES:
            del self.files[next(iter(self.files))]

    def _relative(self, path: str) -> str:
        return path.removeprefix(self.workplace.directory.rstrip("/") + "/") if self.workplace else path

    def _question_answered(self, chose: events.QuestionAnswered) -> None:
        self.choices.append(replace(chose, **{name: self.redact(getattr(chose, name)) for name in ANSWER_FIELDS}))

    def _plan_decided(self, proposed: events.PlanDecided) -> None:
        """An approved plan holds until another one is approved; a refused one is kept only while there is no other."""
        if proposed.approved or self.plan is None or not self.plan.approved:
            self.plan = replace(proposed, plan=_clipped(self.redact(_clipped(proposed.plan, MAX_REDACTED_CHARS))))

    def _user_ran_command(self, run: events.UserRanCommand) -> None:
        shown = events.UserRanCommand(self.redact(run.command), self.redact(_clipped(run.output)))
        self.run_by_user = [*self.run_by_user[1 - MAX_RUN_BY_USER :], shown]
        self.commits.extend(shell.commits(shown.output))

    def _forked(self) -> None:
        """Keep only the user's messages of the parent, apart; this conversation begins here."""
        fresh = Collector(self.redact, number=self.number, workplace=self.workplace)
        fresh.previous_handoff = self.previous_handoff
        fresh.forked_messages, fresh._event_numbers = self.messages, self._event_numbers
        for name in fresh.__slots__:
            setattr(self, name, getattr(fresh, name))

    def _call_interrupted(self, cut: events.CallInterrupted) -> None:
        if not is_our_command(cut.what):
            self.interrupted = [*self.interrupted[-9:], cut]


def _clipped(text: str, longest: int = MAX_TEXT_CHARS) -> str:
    if len(text) <= longest:
        return text
    return f"{text[: longest // 2]} […] {text[-longest // 2 :]}"


def collected(events: Iterable[events.TranscriptEvent], redact: Redact) -> Collector:
    collector = Collector(redact)
    for event in events:
        collector.add(event)
    return collector
