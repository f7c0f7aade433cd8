"""What happened in a conversation, read once from the start of Claude Code's transcript.

Only what may matter is decoded: of a tool's result mostly that there is one, since results are the bulk of a
transcript. Subagents have files of their own; what they said is no part of this.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from sm.core.account import happenings as hp
from sm.providers import jsonl
from sm.providers.claude import speech
from sm.providers.jsonl import well_formed

SPEAKERS = (b'"user"', b'"assistant"')
NOTED = (b'"queued_command"', b'"compact_boundary"', b"HANDOFF LOADED")
"""Records that are neither and matter all the same."""
WORDS = SPEAKERS + NOTED
RESULT_OF = re.compile(rb'"tool_use_id"\s*:\s*"([^"\\]{1,200})"')
FAILED = re.compile(rb'"is_error"\s*:\s*true')
CREATED = re.compile(rb'"type"\s*:\s*"create"')
BACKGROUND = b'"backgroundTaskId"'
ONLY_THOUGHT = re.compile(rb'"content"\s*:\s*\[\s*\{\s*"type"\s*:\s*"(?:redacted_)?thinking"')
OTHER_BLOCK = re.compile(rb'"type"\s*:\s*"(?:text|tool_use)"')
EXIT = re.compile(r"\AExit code \d+\n?")
TOOL_ERROR = "<tool_use_error>"
TASK = re.compile(r"<task-id>\s*([^<\s]+)\s*</task-id>")
STILL_RUNS = re.compile(r"<status>\s*(?:running|pending)\s*</status>")
LAUNCHED = re.compile(r"with ID: ([\w-]+)")
LOADED = re.compile(
    r"=== HANDOFF LOADED \(ID: ([^)\n]{1,80})\) ===\n(?:(?:Channel|Previous Session|Type): .*\n)*((?s:.*?))(?:\n=== END HANDOFF ===|\Z)"
)
NUMBER = re.compile(r"#(\d+)")
OPEN_CALLS = 256
"""Calls without a result that are remembered; a client has a handful open at a time."""
LONGEST_COMMAND = 4_000
LONGEST_OUTPUT = 64 * 1024
EDITS = {"Edit": "file_path", "MultiEdit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"}
SHELLS = ("Bash", "PowerShell")
LOOKS = {"TaskOutput": "task_id", "BashOutput": "bash_id", "AgentOutputTool": "agentId"}
STOPS = {"TaskStop": "task_id", "KillShell": "shell_id", "KillBash": "shell_id"}
TOLD = ("AskUserQuestion", "TaskCreate", "Task", "Agent", *LOOKS)
"""Tools whose result is read even if all went well."""

Json = dict[str, Any]


class _Message(msgspec.Struct):
    id: Any = None
    model: Any = None
    content: Any = None
    stop_reason: Any = None


class _Record(msgspec.Struct, rename="camel"):
    type: Any = None
    subtype: Any = None
    parent_uuid: Any = None
    is_sidechain: Any = None
    is_meta: Any = None
    is_compact_summary: Any = None
    origin: Any = None
    cwd: Any = None
    git_branch: Any = None
    message: _Message | None = None
    attachment: Any = None
    tool_use_result: Any = None


_DECODER = msgspec.json.Decoder(_Record)
_SHAPE: Json = {"message": {}}


@dataclass(frozen=True, slots=True)
class _Call:
    tool: str
    input: Json
    """Only the members that are needed, and not at any length."""


def happenings(path: Path) -> Iterator[hp.Happening]:
    """What the file holds, in order; OSError if it cannot be read."""
    reader = _Reader()
    with jsonl.opened(path) as fd:
        for line in _lines(fd):
            yield from reader.line(line)
    yield from reader.unfinished()


def _lines(fd: int) -> Iterator[bytes]:
    end = 0
    for line, end in jsonl.lines_forward(WORDS, fd, 0):  # noqa: B007  # the last one is needed
        yield line
    rest = os.pread(fd, jsonl.LONGEST_REPLY, end)
    if rest.rstrip().endswith(b"}"):  # a last record that lacks only its LF
        yield rest


@dataclass(slots=True)
class _Reader:
    calls: OrderedDict[str, _Call] = field(default_factory=OrderedDict)
    tasks: dict[str, tuple[str, hp.TodoState]] = field(default_factory=dict)
    """The list that TaskCreate and TaskUpdate keep, by id."""
    place: hp.Place | None = None
    prompts: dict[object, int] = field(default_factory=dict)
    """How much the person had said before each of their prompts, by the record it follows."""
    said: int = 0

    def line(self, line: bytes) -> Iterator[hp.Happening]:
        if b'"tool_result"' in line:
            yield from self._results(line)
        elif any(word in line for word in WORDS) and not _is_thought(line):
            record = _record(line)
            if record is not None:
                yield from self._placed(record)
                yield from self._record(record)

    def _record(self, record: _Record) -> Iterator[hp.Happening]:
        if record.type == "assistant" and record.message is not None:
            yield from self._reply(record.message)
        elif record.type == "user" and record.message is not None:
            yield from self._prompt(record, record.message)
        elif record.type == "attachment" and isinstance(record.attachment, dict):
            yield from self._attached(record.attachment)
        elif record.type == "system" and record.subtype == "compact_boundary":
            yield hp.Compacted()

    def _placed(self, record: _Record) -> Iterator[hp.Happening]:
        if isinstance(record.cwd, str) and isinstance(record.git_branch, str):
            place = hp.Place(well_formed(record.cwd), well_formed(record.git_branch))
            if place != self.place:
                self.place = place
                yield place

    # --- the agent ----------------------------------------------------------------------------------------------

    def _reply(self, message: _Message) -> Iterator[hp.Happening]:
        if message.model == speech.SYNTHETIC:
            return
        for block in speech.blocks(message.content):
            if block.get("type") == "tool_use":
                self._called(block)
        said = speech.text(message.content).strip()
        if said:
            yield hp.Replied(said, closing=message.stop_reason != "tool_use")

    def _called(self, block: Json) -> None:
        tool, given = block.get("name"), block.get("input")
        if isinstance(block.get("id"), str) and isinstance(tool, str) and isinstance(given, dict):
            self.calls[block["id"]] = _Call(tool, _needed(tool, given))
            if len(self.calls) > OPEN_CALLS:
                self.calls.popitem(last=False)

    # --- results ------------------------------------------------------------------------------------------------

    def _results(self, line: bytes) -> Iterator[hp.Happening]:
        first = RESULT_OF.search(line)
        call = self.calls.get(first[1].decode("ascii", "replace")) if first else None
        if call is None and line.count(b'"tool_use_id"') < 2:  # noqa: PLR2004  # several results in one record
            return
        if call and not _is_told(call, line) and line.count(b'"tool_use_id"') == 1:
            assert first
            del self.calls[first[1].decode("ascii", "replace")]
            yield from self._went_well(call, created=bool(CREATED.search(line)))
            return
        record = _record(line)
        if record is None or record.message is None or record.is_sidechain is True:
            return
        for block in speech.blocks(record.message.content):
            done = self.calls.pop(str(block.get("tool_use_id")), None) if block.get("type") == "tool_result" else None
            if done is not None:
                yield from self._result(done, block, record.tool_use_result)

    def _went_well(self, call: _Call, *, created: bool) -> Iterator[hp.Happening]:
        if call.tool in EDITS:
            change = hp.Change.CREATED if created and call.tool == "Write" else hp.Change.EDITED
            yield hp.Touched(_member(call, EDITS[call.tool]), change)
        elif call.tool in SHELLS:
            yield hp.Ran(_member(call, "command"), failed=False)
        elif call.tool == "TodoWrite":
            yield hp.Planned(_todos(call.input.get("todos")))
        elif call.tool == "TaskUpdate":
            yield from self._task_updated(call)
        elif call.tool in STOPS:
            yield hp.TaskEnded(_member(call, STOPS[call.tool]))

    def _result(self, call: _Call, block: Json, details: object) -> Iterator[hp.Happening]:
        output = speech.text(block.get("content"))
        if block.get("is_error") is True:
            yield from self._went_wrong(call, output)
        elif call.tool in SHELLS:
            yield from _command_result(call, output, details)
        elif call.tool in ("Task", "Agent"):
            yield from _agent_result(call, details)
        elif call.tool == "AskUserQuestion" and isinstance(details, dict):
            yield from _choices(details.get("answers"))
        elif call.tool == "TaskCreate":
            yield from self._task_created(call, output, details)
        elif call.tool in LOOKS:
            if "<status>" in output and not STILL_RUNS.search(output):
                yield hp.TaskEnded(_member(call, LOOKS[call.tool]))
        else:
            created = isinstance(details, dict) and details.get("type") == "create"
            yield from self._went_well(call, created=created)

    def _went_wrong(self, call: _Call, output: str) -> Iterator[hp.Happening]:
        if speech.refused(output):
            words = speech.reason(output)
            yield _cut_short(call)
            if words:
                yield from self._said(words, interrupting=True)
        elif call.tool in SHELLS and not output.startswith(TOOL_ERROR):
            yield hp.Ran(_member(call, "command"), failed=True, output=_held(EXIT.sub("", output)))

    def _task_created(self, call: _Call, output: str, details: object) -> Iterator[hp.Happening]:
        task = details.get("task") if isinstance(details, dict) else None
        number = NUMBER.search(output)
        identity = task.get("id") if isinstance(task, dict) else number and number[1]
        if identity:
            self.tasks[str(identity)] = (_member(call, "subject"), hp.TodoState.OPEN)
            yield hp.Planned(tuple(self.tasks.values()))

    def _task_updated(self, call: _Call) -> Iterator[hp.Happening]:
        identity, status = _member(call, "taskId"), _member(call, "status")
        subject, state = self.tasks.get(identity, ("", hp.TodoState.OPEN))
        subject = _member(call, "subject") or subject or f"task {identity}"
        if status == "deleted":
            self.tasks.pop(identity, None)
        else:
            self.tasks[identity] = (subject, _state(status, state))
        yield hp.Planned(tuple(self.tasks.values()))

    # --- the person, and what looks like one ----------------------------------------------------------------------

    def _prompt(self, record: _Record, message: _Message) -> Iterator[hp.Happening]:
        raw = speech.text(message.content)
        if raw.startswith("<task-notification>"):
            yield from _notified(raw)
        elif True not in (record.is_sidechain, record.is_meta, record.is_compact_summary) and _human(record.origin):
            words = speech.order(raw) or speech.personal_text(message.content)
            if words:
                yield from self._gone_back(record.parent_uuid)
                yield from self._said(words, interrupting=False)

    def _gone_back(self, parent: object) -> Iterator[hp.Happening]:
        """Two prompts that follow the same record: the person took the earlier one back."""
        before = self.prompts.get(parent) if parent is not None else None
        if before is not None:
            self.said = before
            self.prompts = {key: count for key, count in self.prompts.items() if count < before}
            yield hp.Rewound(before)
        self.prompts[parent] = self.said

    def _said(self, words: str, *, interrupting: bool) -> Iterator[hp.Happening]:
        text, lines = speech.without_pastes(words)
        if text or lines:
            self.said += 1
            yield hp.Said(text, interrupting, lines)

    def _attached(self, attachment: Json) -> Iterator[hp.Happening]:
        kind = attachment.get("type")
        if kind == "queued_command":
            prompt = attachment.get("prompt")
            raw = speech.text(prompt)
            if raw.startswith("<task-notification>"):
                yield from _notified(raw)
            elif attachment.get("isMeta") is not True and _human(attachment.get("origin")):
                yield from self._said(speech.personal_text(prompt) or "", interrupting=True)
        elif kind == "hook_additional_context" and attachment.get("hookEvent") == "SessionStart":
            found = LOADED.search(_joined(attachment.get("content")))
            if found:
                yield hp.Inherited(found[1], found[2])

    def unfinished(self) -> Iterator[hp.Happening]:
        yield from map(_cut_short, self.calls.values())


def _record(line: bytes) -> _Record | None:
    return jsonl.decoded(_DECODER, line, _SHAPE)


def _is_thought(line: bytes) -> bool:
    return bool(ONLY_THOUGHT.search(line)) and not OTHER_BLOCK.search(line)


def _is_told(call: _Call, line: bytes) -> bool:
    """Whether the result itself says something, beyond that the call went well."""
    if call.tool in TOLD or FAILED.search(line):
        return True
    return call.tool in SHELLS and (BACKGROUND in line or "commit" in _member(call, "command"))


def _human(origin: object) -> bool:
    """Older records do not say."""
    return not isinstance(origin, dict) or origin.get("kind") in (None, "human")


NEEDED = {
    **dict.fromkeys(SHELLS, ("command", "description")),
    **dict.fromkeys(("Task", "Agent"), ("description",)),
    **{tool: (member,) for tool, member in (EDITS | LOOKS | STOPS).items()},
    "TaskCreate": ("subject",),
    "TaskUpdate": ("taskId", "status", "subject"),
    "TodoWrite": ("todos",),
}


def _needed(tool: str, given: Json) -> Json:
    return {name: _clipped(given[name]) for name in NEEDED.get(tool, ()) if name in given}


def _clipped(value: object) -> object:
    return well_formed(value[:LONGEST_COMMAND]) if isinstance(value, str) else value


def _held(output: str) -> str:
    if len(output) <= LONGEST_OUTPUT:
        return output
    return output[: LONGEST_OUTPUT // 2] + "\n" + output[-LONGEST_OUTPUT // 2 :]


def _member(call: _Call, name: str) -> str:
    value = call.input.get(name)
    return value if isinstance(value, str) else ""


def _state(status: object, otherwise: hp.TodoState = hp.TodoState.OPEN) -> hp.TodoState:
    return next((state for state in hp.TodoState if state.value == status), otherwise)


def _todos(given: object) -> tuple[tuple[str, hp.TodoState], ...]:
    rows = [(row.get("content"), _state(row.get("status"))) for row in speech.blocks(given)]
    return tuple((well_formed(text), state) for text, state in rows if isinstance(text, str) and text.strip())


def _command_result(call: _Call, output: str, details: object) -> Iterator[hp.Happening]:
    task = details.get("backgroundTaskId") if isinstance(details, dict) else None
    found = LAUNCHED.search(output) if task is None and output.startswith("Command running in background") else None
    identity = task if isinstance(task, str) else found and found[1]
    if identity:
        yield hp.TaskStarted(identity, _member(call, "description"), _member(call, "command"))
    else:
        yield hp.Ran(_member(call, "command"), failed=False, output=_held(output))


def _agent_result(call: _Call, details: object) -> Iterator[hp.Happening]:
    if isinstance(details, dict) and details.get("isAsync") is True and isinstance(details.get("agentId"), str):
        yield hp.TaskStarted(details["agentId"], _member(call, "description"))


def _choices(answers: object) -> Iterator[hp.Happening]:
    if isinstance(answers, dict):
        for question, answer in answers.items():
            if isinstance(answer, str) and answer.strip():
                yield hp.Chose(well_formed(question), well_formed(answer))


def _notified(raw: str) -> Iterator[hp.Happening]:
    found = TASK.search(raw)
    if found and not STILL_RUNS.search(raw):
        yield hp.TaskEnded(found[1])


def _joined(content: object) -> str:
    parts = content if isinstance(content, list) else [content]
    return well_formed("\n".join(part for part in parts if isinstance(part, str)))


def _cut_short(call: _Call) -> hp.CutShort:
    path = _member(call, EDITS[call.tool]) if call.tool in EDITS else None
    return hp.CutShort(_member(call, "command") or _member(call, "description") or path or call.tool, path)
