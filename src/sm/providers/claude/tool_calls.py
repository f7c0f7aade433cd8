"""What a tool call and its result tell: a command, a file, the to-do list, something in the background.

A result is the bulk of a transcript, so of most of them it is only seen that there is one, and that it is no error.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from sm.digest import transcript_events as events
from sm.providers.claude import authorship
from sm.providers.jsonl import well_formed

RESULT_OF = re.compile(rb'"tool_use_id"\s*:\s*"([^"\\]{1,200})"')
BESIDE = (b'"type":"text","text":', b'"type": "text", "text":')
"""A block of text, which may be the user's words next to the result: as the client writes it, and as others do."""
ERROR = b'"is_error"'
FAILED = re.compile(rb'"is_error"\s*:\s*true')
CREATED = re.compile(rb'"type"\s*:\s*"create"')
BACKGROUND = b'"backgroundTaskId"'
EXIT = re.compile(r"\AExit code \d+\n?")
TOOL_ERROR = "<tool_use_error>"
STILL_RUNS = re.compile(r"<status>\s*(?:running|pending)\s*</status>")
LAUNCHED = re.compile(r"with ID: ([\w-]+)")
NUMBER = re.compile(r"#(\d+)")
MAX_OPEN_CALLS = 256
"""Calls without a result that are remembered; a client has a handful open at a time."""
MAX_COMMAND_CHARS = 4_000
MAX_OUTPUT_CHARS = 64 * 1024
EDITS = {"Edit": "file_path", "MultiEdit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"}
SHELLS = ("Bash", "PowerShell")
AGENTS = ("Task", "Agent")
LOOKS = {"TaskOutput": "task_id", "BashOutput": "bash_id", "AgentOutputTool": "agentId"}
STOPS = {"TaskStop": "task_id", "KillShell": "shell_id", "KillBash": "shell_id"}
PLAN = "ExitPlanMode"
QUESTION = "AskUserQuestion"
TOLD = (QUESTION, PLAN, "TaskCreate", *AGENTS, *LOOKS)
"""Tools whose result is read even if all went well."""
NEEDED = {
    **dict.fromkeys(SHELLS, ("command", "description")),
    **dict.fromkeys(AGENTS, ("description",)),
    **{tool: (member,) for tool, member in (EDITS | LOOKS | STOPS).items()},
    "TaskCreate": ("subject",),
    "TaskUpdate": ("taskId", "status", "subject"),
    "TodoWrite": ("todos",),
    PLAN: ("plan",),
}


TITLES = {PLAN: "the plan", QUESTION: "the question"}

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    tool: str
    input: Json
    """Only the members that are needed, and not at any length."""

    def member(self, name: str) -> str:
        value = self.input.get(name)
        return value if isinstance(value, str) else ""

    @property
    def command(self) -> str:
        return self.member("command")

    @property
    def name(self) -> str:
        """What the call is known by."""
        path = self.member(EDITS[self.tool]) if self.tool in EDITS else ""
        return self.command or self.member("description") or path or TITLES.get(self.tool, self.tool)


@dataclass(slots=True)
class Calls:
    """The calls that have no result yet, and the to-do list that calls keep one entry at a time."""

    open: OrderedDict[str, Call] = field(default_factory=OrderedDict)
    tasks: dict[str, tuple[str, events.TodoState]] = field(default_factory=dict)

    def begun(self, block: Json) -> None:
        tool, given = block.get("name"), block.get("input")
        if isinstance(block.get("id"), str) and isinstance(tool, str) and isinstance(given, dict):
            self.open[block["id"]] = Call(tool, _needed(tool, given))
            if len(self.open) > MAX_OPEN_CALLS:
                self.open.popitem(last=False)

    def seen(self, line: bytes) -> Iterator[events.TranscriptEvent] | None:
        """What a result tells by being there; None if it must be decoded."""
        if line.count(b'"tool_use_id"') > 1 or BESIDE[b'": ' in line[:64]] in line:
            return None
        found = RESULT_OF.search(line)
        identity = found[1].decode("ascii", "replace") if found else ""
        call = self.open.get(identity)
        if call is not None and _is_told(call, line):
            return None
        self.open.pop(identity, None)
        if call is None:
            return iter(())
        return self._went_well(call, created=call.tool == "Write" and CREATED.search(line) is not None)

    def ended(self, block: Json, details: object) -> Iterator[events.TranscriptEvent]:
        call = self.open.pop(str(block.get("tool_use_id")), None) if block.get("type") == "tool_result" else None
        if call is not None:
            yield from self._result(call, block, details)

    def answered(self, content: object) -> str:
        """What the first call is known by whose result this is."""
        found = (self.open.get(str(block.get("tool_use_id"))) for block in authorship.blocks(content))
        return next((call.name for call in found if call is not None), "")

    def unfinished(self) -> Iterator[events.TranscriptEvent]:
        yield from map(_cut_short, self.open.values())

    def _went_well(self, call: Call, *, created: bool) -> Iterator[events.TranscriptEvent]:
        if call.tool in EDITS:
            change = events.Change.CREATED if created and call.tool == "Write" else events.Change.EDITED
            yield events.FileChanged(call.member(EDITS[call.tool]), change)
        elif call.tool in SHELLS:
            yield events.CommandRan(call.command, failed=False)
        elif call.tool == "TodoWrite":
            yield events.TodosChanged(_todos(call.input.get("todos")))
        elif call.tool == "TaskUpdate":
            yield from self._task_updated(call)
        elif call.tool in STOPS:
            yield events.TaskEnded(call.member(STOPS[call.tool]))

    def _result(self, call: Call, block: Json, details: object) -> Iterator[events.TranscriptEvent]:
        output = authorship.text(block.get("content"))
        if block.get("is_error") is True:
            yield from self._went_wrong(call, output)
        elif call.tool in SHELLS:
            yield from _command_result(call, output, details)
        elif call.tool in AGENTS:
            yield from _agent_result(call, details)
        elif call.tool in {QUESTION, PLAN}:
            yield from _decided(call, details if isinstance(details, dict) else {})
        elif call.tool == "TaskCreate":
            yield from self._task_created(call, output, details)
        elif call.tool in LOOKS:
            if "<status>" in output and not STILL_RUNS.search(output):
                yield events.TaskEnded(call.member(LOOKS[call.tool]))
        else:
            created = isinstance(details, dict) and details.get("type") == "create"
            yield from self._went_well(call, created=created)

    def _went_wrong(self, call: Call, output: str) -> Iterator[events.TranscriptEvent]:
        if authorship.refused(output):
            yield from _refused(call, authorship.reason(output))
        elif call.tool in SHELLS and not output.startswith(TOOL_ERROR):
            yield events.CommandRan(call.command, failed=True, output=_held(EXIT.sub("", output)))

    def _task_created(self, call: Call, output: str, details: object) -> Iterator[events.TranscriptEvent]:
        task = details.get("task") if isinstance(details, dict) else None
        number = NUMBER.search(output)
        identity = task.get("id") if isinstance(task, dict) else number and number[1]
        if identity:
            self.tasks[str(identity)] = (call.member("subject"), events.TodoState.OPEN)
            yield events.TodosChanged(tuple(self.tasks.values()))

    def _task_updated(self, call: Call) -> Iterator[events.TranscriptEvent]:
        identity, status = call.member("taskId"), call.member("status")
        subject, state = self.tasks.get(identity, ("", events.TodoState.OPEN))
        subject = call.member("subject") or subject or f"task {identity}"
        if status == "deleted":
            self.tasks.pop(identity, None)
        else:
            self.tasks[identity] = (subject, _state(status, state))
        yield events.TodosChanged(tuple(self.tasks.values()))


def _is_told(call: Call, line: bytes) -> bool:
    """Whether the result itself says something, beyond that the call went well."""
    at = line.find(ERROR)  # many times as fast as the expression, which only has to read what is found
    if call.tool in TOLD or (at >= 0 and FAILED.search(line, at)):
        return True
    return call.tool in SHELLS and (BACKGROUND in line or "commit" in call.command)


def _needed(tool: str, given: Json) -> Json:
    return {name: _clipped(given[name]) for name in NEEDED.get(tool, ()) if name in given}


def _clipped(value: object) -> object:
    return well_formed(value[:MAX_COMMAND_CHARS]) if isinstance(value, str) else value


def _held(output: str) -> str:
    if len(output) <= MAX_OUTPUT_CHARS:
        return output
    return output[: MAX_OUTPUT_CHARS // 2] + "\n" + output[-MAX_OUTPUT_CHARS // 2 :]


def _state(status: object, otherwise: events.TodoState = events.TodoState.OPEN) -> events.TodoState:
    return next((state for state in events.TodoState if state.value == status), otherwise)


def _todos(given: object) -> tuple[tuple[str, events.TodoState], ...]:
    rows = [(row.get("content"), _state(row.get("status"))) for row in authorship.blocks(given)]
    return tuple((well_formed(text), state) for text, state in rows if isinstance(text, str) and text.strip())


def _command_result(call: Call, output: str, details: object) -> Iterator[events.TranscriptEvent]:
    task = details.get("backgroundTaskId") if isinstance(details, dict) else None
    found = LAUNCHED.search(output) if task is None and output.startswith("Command running in background") else None
    identity = task if isinstance(task, str) else found and found[1]
    if identity:
        yield events.TaskStarted(identity, call.member("description"), call.command)
    else:
        yield events.CommandRan(call.command, failed=False, output=_held(output))


def _agent_result(call: Call, details: object) -> Iterator[events.TranscriptEvent]:
    if isinstance(details, dict) and details.get("isAsync") is True and isinstance(details.get("agentId"), str):
        yield events.TaskStarted(details["agentId"], call.member("description"))


def _refused(call: Call, words: str) -> Iterator[events.TranscriptEvent]:
    """A plan is not refused for good, and a question that is put aside is not refused at all."""
    if call.tool == PLAN:
        yield events.PlanDecided(call.member("plan"), approved=False)
    elif call.tool != QUESTION:
        yield replace(_cut_short(call), refused=True)
    if words.startswith(authorship.PUT_ASIDE):
        yield from (events.QuestionAnswered(*found) for found in authorship.answers(words))
    elif words:
        yield events.UserSaid(words, interrupting=True, about_call=call.name, refusing=True)


def _decided(call: Call, details: Json) -> Iterator[events.TranscriptEvent]:
    if call.tool == QUESTION:
        yield from _choices(details)
    else:
        plan = details.get("plan")  # the user may have edited it
        yield events.PlanDecided(well_formed(plan) if isinstance(plan, str) else call.member("plan"), approved=True)


def _choices(details: Json) -> Iterator[events.TranscriptEvent]:
    answers, notes = details.get("answers"), details.get("annotations")
    for question, answer in answers.items() if isinstance(answers, dict) else ():
        note = notes.get(question) if isinstance(notes, dict) else None
        said = note.get("notes") if isinstance(note, dict) else None
        if isinstance(answer, str) and answer.strip():
            yield events.QuestionAnswered(
                well_formed(question), well_formed(answer), well_formed(said) if isinstance(said, str) else ""
            )
    free = details.get("response")
    if isinstance(free, str) and free.strip():
        asked = [block.get("question") for block in authorship.blocks(details.get("questions"))]
        yield events.QuestionAnswered(
            " / ".join(well_formed(question) for question in asked if isinstance(question, str)), well_formed(free)
        )


def _cut_short(call: Call) -> events.CallInterrupted:
    return events.CallInterrupted(call.name, call.member(EDITS[call.tool]) if call.tool in EDITS else None)
