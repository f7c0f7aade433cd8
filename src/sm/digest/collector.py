"""What of a conversation may matter later, kept in bounded room while its happenings come by.

Nothing is chosen here for good: the document chooses, by weights that only the whole conversation gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import ClassVar

from sm.digest import shell
from sm.digest import transcript_events as hp
from sm.digest.failures import Failures
from sm.digest.keywords import OPTIONS
from sm.digest.own_text import is_our_command, is_ours
from sm.digest.passes import Passes
from sm.digest.sentences import has, is_brief, is_nod, is_question, stems

MOST_WORDS = 600
MOST_TEXTS = 1_200
MOST_TOLD = 200
MOST_FILES = 2_000
MOST_ECHO = 400
MOST_RUN_BY_USER = 10
LONGEST_TEXT = 4_000
LOOKED_AT = 64_000
"""Characters of a text in which secrets are looked for, before it is clipped further."""

CHOSEN = ("question", "answer", "notes")

Redact = Callable[[str], str]


@dataclass(slots=True)
class Words:
    """What a person said at one time."""

    text: str
    number: int
    """Of the happening."""
    interrupting: bool = False
    pasted: int = 0
    asked: str = ""
    """What it answers: the question that the turn before ended with, or where the words are few how it ended."""
    nod: bool = False
    beside: str = ""
    """The call that was approved or refused with these words."""
    refusing: bool = False
    echo: set[str] = field(default_factory=set)
    """Words of what the agent said and did next."""


@dataclass(slots=True)
class AgentText:
    """What the agent said at one time."""

    text: str
    number: int
    closing: bool


@dataclass(slots=True)
class AgentMessage:
    """What another agent said at one time."""

    text: str
    number: int
    sender: str


@dataclass(slots=True)
class FileStory:
    path: str
    change: hp.Change
    edits: int = 0
    source: str | None = None
    number: int = 0


@dataclass(slots=True)
class Collector:
    redact: Redact
    number: int = 0
    words: list[Words] = field(default_factory=list)
    forked: list[Words] = field(default_factory=list)
    """What a person said in the conversation that this one was forked from."""
    told: list[AgentMessage] = field(default_factory=list)
    texts: list[AgentText] = field(default_factory=list)
    files: dict[str, FileStory] = field(default_factory=dict)
    failures: Failures = field(init=False)
    passes: Passes = field(default_factory=Passes)
    todos: tuple[tuple[str, hp.TodoState], ...] = ()
    tasks: dict[str, hp.TaskStarted] = field(default_factory=dict)
    cut: list[hp.CutShort] = field(default_factory=list)
    commits: list[shell.Commit] = field(default_factory=list)
    choices: list[hp.Chose] = field(default_factory=list)
    plan: hp.Proposed | None = None
    run_by_user: list[hp.RanByUser] = field(default_factory=list)
    inherited: hp.Inherited | None = None
    compactions: int = 0
    place: hp.Workplace | None = None
    _counted: list[int] = field(default_factory=list)
    """The number of the happening of everything that was said to the agent, nods and frames of ours included."""

    def __post_init__(self) -> None:
        self.failures = Failures(self.redact)

    def take(self, happening: hp.Happening) -> None:
        self.number += 1
        self.TAKE[type(happening)](self, happening)

    def _said(self, said: hp.Happening) -> None:
        assert isinstance(said, hp.Said)
        self._counted.append(self.number)
        text = self.redact(_clipped(said.text, LOOKED_AT))
        if is_ours(text):
            return
        nod = is_nod(text) and not said.pasted
        words = Words(_clipped(text), self.number, said.interrupting, said.pasted, self._answered(text), nod)
        words.beside, words.refusing = self.redact(said.beside), said.refusing
        self.words.append(words)
        if len(self.words) > MOST_WORDS:  # the first one says what it was all about
            del self.words[next((at for at, one in enumerate(self.words) if at and one.nod), 1)]

    def _told(self, told: hp.Happening) -> None:
        assert isinstance(told, hp.Told)
        self._counted.append(self.number)
        self.told.append(AgentMessage(_clipped(self.redact(_clipped(told.text, LOOKED_AT))), self.number, told.sender))
        if len(self.told) > MOST_TOLD:
            del self.told[1]  # the first one may be what the session is for

    def _answered(self, words: str) -> str:
        """The question that the turn before ended with; or its end, where the words alone say little."""
        last = self.texts[-1].text.rstrip() if self.texts and self.texts[-1].closing else ""
        end = last.splitlines()[-1][-300:] if last else ""
        chooses = is_brief(words) and not is_nod(words) and not is_question(words) and has(OPTIONS, end)
        return end if chooses or is_question(last) else ""

    def _rewound(self, rewound: hp.Happening) -> None:
        assert isinstance(rewound, hp.Rewound)
        if rewound.said < len(self._counted):
            gone = self._counted[rewound.said]
            del self._counted[rewound.said :]
            self.words = [one for one in self.words if one.number < gone]
            self.texts = [one for one in self.texts if one.number < gone]
            self.told = [one for one in self.told if one.number < gone]

    def _replied(self, replied: hp.Happening) -> None:
        assert isinstance(replied, hp.Replied)
        text = self.redact(_clipped(replied.text, LOOKED_AT))
        self.failures.said(text, self.number)
        self._echo(text)
        self.texts.append(AgentText(_clipped(text), self.number, replied.closing))
        if len(self.texts) > MOST_TEXTS:
            self._forget_texts()

    def _echo(self, text: str) -> None:
        if self.words and len(self.words[-1].echo) < MOST_ECHO:
            self.words[-1].echo |= stems(text[:LONGEST_TEXT])

    def _forget_texts(self) -> None:
        """Let go of the shorter half of the older texts: what mattered was said at some length."""
        half = len(self.texts) // 2
        older, middle = self.texts[:half], sorted(len(one.text) for one in self.texts[:half])[half // 2]
        self.texts = [one for one in older if len(one.text) > middle] + self.texts[half:]

    def _ran(self, run: hp.Happening) -> None:
        assert isinstance(run, hp.Ran)
        if is_our_command(run.command):
            return
        self._echo(run.command)
        self.failures.ran(run, self.number)
        self.passes.ran(run, self.number)
        if run.failed:
            return
        for change in shell.file_changes(run.command):
            self._changed(self._relative(change.path), change.change, change.source and self._relative(change.source))
        if "commit" in run.command:
            self.commits.extend(shell.commits(self.redact(run.output)))

    def _touched(self, touched: hp.Happening) -> None:
        assert isinstance(touched, hp.Touched)
        path = self._relative(touched.path)
        self._changed(path, touched.change, None)
        self.cut = [one for one in self.cut if one.path != touched.path]

    def _changed(self, path: str, change: hp.Change, source: str | None) -> None:
        self.failures.changed(self.number)
        self.passes.changed()
        self._echo(path)
        story = self.files.pop(path, None) or (self.files.pop(source, None) if source else None)
        story = story or FileStory(path, change)
        if change in {hp.Change.DELETED, hp.Change.RENAMED} or story.change is hp.Change.DELETED:
            story.change = change
        story.path, story.source, story.number = path, story.source or source, self.number
        story.edits += change in {hp.Change.CREATED, hp.Change.EDITED}
        self.files[path] = story
        if len(self.files) > MOST_FILES:
            del self.files[next(iter(self.files))]

    def _relative(self, path: str) -> str:
        return path.removeprefix(self.place.directory.rstrip("/") + "/") if self.place else path

    def _planned(self, planned: hp.Happening) -> None:
        assert isinstance(planned, hp.Planned)
        self.todos = planned.todos

    def _chose(self, chose: hp.Happening) -> None:
        assert isinstance(chose, hp.Chose)
        self.choices.append(replace(chose, **{name: self.redact(getattr(chose, name)) for name in CHOSEN}))

    def _proposed(self, proposed: hp.Happening) -> None:
        """A plan that is approved holds until another one is; a refused one shows only while there is no other."""
        assert isinstance(proposed, hp.Proposed)
        if proposed.approved or self.plan is None or not self.plan.approved:
            self.plan = replace(proposed, plan=_clipped(self.redact(_clipped(proposed.plan, LOOKED_AT))))

    def _ran_by_user(self, run: hp.Happening) -> None:
        assert isinstance(run, hp.RanByUser)
        shown = hp.RanByUser(self.redact(run.command), self.redact(_clipped(run.output)))
        self.run_by_user = [*self.run_by_user[1 - MOST_RUN_BY_USER :], shown]
        self.commits.extend(shell.commits(shown.output))

    def _forked(self, _: hp.Happening) -> None:
        """Only what the person said is kept of the parent, apart; this conversation's own account begins here."""
        fresh = Collector(self.redact, number=self.number, place=self.place, inherited=self.inherited)
        fresh.forked, fresh._counted = self.words, self._counted
        for name in fresh.__slots__:
            setattr(self, name, getattr(fresh, name))

    def _task_started(self, task: hp.Happening) -> None:
        assert isinstance(task, hp.TaskStarted)
        self.tasks[task.id] = task

    def _task_ended(self, task: hp.Happening) -> None:
        assert isinstance(task, hp.TaskEnded)
        self.tasks.pop(task.id, None)

    def _cut_short(self, cut: hp.Happening) -> None:
        assert isinstance(cut, hp.CutShort)
        if not is_our_command(cut.what):
            self.cut = [*self.cut[-9:], cut]

    def _inherited(self, inherited: hp.Happening) -> None:
        assert isinstance(inherited, hp.Inherited)
        self.inherited = inherited

    def _compacted(self, _: hp.Happening) -> None:
        self.compactions += 1

    def _placed(self, place: hp.Happening) -> None:
        assert isinstance(place, hp.Workplace)
        self.place = place

    TAKE: ClassVar[dict[type, Callable[[Collector, hp.Happening], None]]] = {
        hp.Said: _said,
        hp.Told: _told,
        hp.Rewound: _rewound,
        hp.Replied: _replied,
        hp.Ran: _ran,
        hp.Touched: _touched,
        hp.Planned: _planned,
        hp.Chose: _chose,
        hp.Proposed: _proposed,
        hp.RanByUser: _ran_by_user,
        hp.Forked: _forked,
        hp.TaskStarted: _task_started,
        hp.TaskEnded: _task_ended,
        hp.CutShort: _cut_short,
        hp.Inherited: _inherited,
        hp.Compacted: _compacted,
        hp.Workplace: _placed,
    }


def _clipped(text: str, longest: int = LONGEST_TEXT) -> str:
    if len(text) <= longest:
        return text
    return f"{text[: longest // 2]} […] {text[-longest // 2 :]}"


def collected(happenings: Iterable[hp.Happening], redact: Redact) -> Collector:
    kept = Collector(redact)
    for happening in happenings:
        kept.take(happening)
    return kept
