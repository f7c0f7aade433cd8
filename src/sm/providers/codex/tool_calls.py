"""What a tool call and its result tell: a command, a file, the plan, something in the background (Codex 0.171.0).

The newest models, from gpt-6 on, have one tool `exec` that runs a script, which calls the others: what these do has
items as otherwise, but a plan is in the script alone, and so is a command that the sandbox has made fail.

A call of the shell has an item once its command has ended, before its result. It has none where the sandbox has made
the command fail, and where the command was refused: then the result tells. A command that runs on after its result has
its item later, and one that ends with the client has the exit code -1. A patch, also one in a shell command, has one
that names the files; the plan has none.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from sm.digest import transcript_events as events
from sm.providers.codex.records import Json, RolloutRecord, member, objects, string, text
from sm.providers.codex.utterances import CALLS, RESULTS, USER_SHELL, command_line
from sm.providers.jsonl import well_formed

MAX_OPEN_CALLS = 256
"""Calls without a result that are remembered; a client has a handful open at a time."""
MAX_COMMAND_CHARS = 4_000
MAX_OUTPUT_CHARS = 64 * 1024
SHELL, PATCH, PLAN, QUESTION = "exec_command", "apply_patch", "update_plan", "request_user_input"
EXITED = re.compile(r"^Process exited with code (-?\d+)$", re.MULTILINE)
RUNS_ON = re.compile(r"^Process running with session ID \d+$", re.MULTILINE)
OUTPUT = "\nOutput:\n"
"""Between what the client says of a command's result and what the command has put out."""
REFUSED = re.compile(r"exec_command failed: .*rejected by user")
ABORTED = re.compile(r"(?:Wall time: [\d.]+ seconds\n)?aborted by user(?: after [\d.]+s)?\s*")
PLANNED = "Plan updated"
SCRIPT = "exec"
SCRIPT_ENDED = "Script completed\n"
_QUOTED = r"""("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\$]|\\.)*`)"""
SCRIPT_COMMAND = re.compile(rf"""\bcmd["']?\s*:\s*{_QUOTED}""")
SCRIPT_STEP = re.compile(rf"""\bstep["']?\s*:\s*{_QUOTED}\s*,\s*["']?status["']?\s*:\s*{_QUOTED}""")
"""A step of a plan as the tool names its members, with both texts written out."""
NOTE = "user_note: "
"""How what the user adds to an answer begins."""
CHANGES = {"add": events.Change.CREATED, "delete": events.Change.DELETED, "update": events.Change.EDITED}
LIVES = frozenset({"pending_init", "running"})
"""States of a subagent that works."""
ENDED_WITH_THE_CLIENT = -1


@dataclass(frozen=True, slots=True)
class _Call:
    tool: str
    given: Json

    @property
    def name(self) -> str:
        """What the call is known by."""
        return (string(self.given, "cmd") or self._in_script(SCRIPT_COMMAND))[:MAX_COMMAND_CHARS] or self.tool

    @property
    def script(self) -> str:
        return string(self.given, SCRIPT)

    def _in_script(self, pattern: re.Pattern[str]) -> str:
        found = pattern.search(self.script)
        return _unquoted(found[1]) if found else ""


@dataclass(slots=True)
class RolloutCalls:
    open: OrderedDict[str, _Call] = field(default_factory=OrderedDict)
    background: dict[str, str] = field(default_factory=dict)
    """Commands that run on, by their calls."""

    def response(self, record: RolloutRecord) -> Iterator[events.TranscriptEvent]:
        identity = string(record.payload, "call_id")
        if record.response in CALLS:
            self._begun(identity, record.payload)
        elif record.response in RESULTS:
            call = self.open.pop(identity, None)
            if call is not None:
                yield from self._result(identity, call, text(record.payload.get("output")))

    def item(self, item: Json) -> Iterator[events.TranscriptEvent]:
        match item.get("type"):
            case "CommandExecution":
                yield from self._command_ended(item)
            case "FileChange":
                yield from self._files_changed(item)
            case "CollabAgentToolCall":
                yield from _subagents(item)
            case "SubAgentActivity":
                yield from _subagent(item)

    def unfinished(self) -> Iterator[events.TranscriptEvent]:
        yield from (events.CallInterrupted(call.name) for call in self.open.values())

    def _begun(self, identity: str, call: Json) -> None:
        self.open[identity] = _Call(string(call, "name"), _arguments(call))
        if len(self.open) > MAX_OPEN_CALLS:
            self.open.popitem(last=False)

    def _result(self, identity: str, call: _Call, output: str) -> Iterator[events.TranscriptEvent]:
        header, _, shown = output.partition(OUTPUT)
        if ABORTED.fullmatch(header) or REFUSED.match(header):
            yield events.CallInterrupted(call.name, refused=not ABORTED.fullmatch(header))
        elif call.tool == SHELL and RUNS_ON.search(header):
            self.background[identity] = call.name
            yield events.TaskStarted(identity, "", call.name)
        elif call.tool == SHELL and (exited := EXITED.search(header)):
            yield _ran(call.name, failed=exited[1] != "0", output=shown)
        elif output.startswith(SCRIPT_ENDED) and (steps := SCRIPT_STEP.findall(call.script)):
            yield events.TodosChanged(tuple((_unquoted(step), _state(_unquoted(status))) for step, status in steps))
        elif call.tool == PLAN and output == PLANNED:
            yield events.TodosChanged(_todos(call.given.get("plan")))
        elif call.tool == QUESTION:
            yield from _answers(call.given, output)

    def _command_ended(self, item: Json) -> Iterator[events.TranscriptEvent]:
        command, output = command_line(item)[:MAX_COMMAND_CHARS], string(item, "aggregated_output")
        if item.get("source") == USER_SHELL:
            yield events.UserRanCommand(command, _held(output).strip())
            return
        identity, code = string(item, "id"), item.get("exit_code")
        self.open.pop(identity, None)
        if self.background.pop(identity, None) is not None:
            yield events.TaskEnded(identity)
        if command and code != ENDED_WITH_THE_CLIENT:
            yield _ran(command, failed=code != 0, output=output)

    def _files_changed(self, item: Json) -> Iterator[events.TranscriptEvent]:
        call = self.open.pop(string(item, "id"), None)
        changed = {well_formed(path): change for path, change in member(item, "changes").items()}
        if item.get("status") == "declined":
            yield from (events.CallInterrupted(call.name if call else PATCH, path, refused=True) for path in changed)
        elif item.get("status") == "completed":
            yield from (_changed(path, change) for path, change in changed.items() if isinstance(change, dict))


def _arguments(call: Json) -> Json:
    if string(call, "name") == SCRIPT:
        return {SCRIPT: call.get("input")}
    try:
        arguments = msgspec.json.decode(string(call, "arguments"))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _ran(command: str, *, failed: bool, output: str) -> events.CommandRan:
    return events.CommandRan(command, failed, _held(output) if failed or "commit" in command else "")


def _held(output: str) -> str:
    if len(output) <= MAX_OUTPUT_CHARS:
        return output
    return output[: MAX_OUTPUT_CHARS // 2] + "\n" + output[-MAX_OUTPUT_CHARS // 2 :]


def _changed(path: str, change: Json) -> events.FileChanged:
    moved = string(change, "move_path")
    if moved and moved != path:
        return events.FileChanged(moved, events.Change.RENAMED, source=path)
    return events.FileChanged(path, CHANGES.get(string(change, "type"), events.Change.EDITED))


def _todos(plan: object) -> tuple[tuple[str, events.TodoState], ...]:
    steps = ((string(step, "step"), string(step, "status")) for step in objects(plan))
    return tuple((step, _state(status)) for step, status in steps if step.strip())


def _state(status: str) -> events.TodoState:
    return next((state for state in events.TodoState if state.value == status), events.TodoState.OPEN)


def _unquoted(quoted: str) -> str:
    """Return the text of a string of a script; as it is written where its escapes are none of JSON."""
    inner = re.sub(r"\\(['`])", r"\1", quoted[1:-1])
    escaped = re.sub(r'(\\.)|"', lambda found: found[1] or '\\"', inner).replace("\n", "\\n")
    try:
        return well_formed(msgspec.json.decode(f'"{escaped}"', type=str))
    except (msgspec.MsgspecError, UnicodeDecodeError, UnicodeEncodeError):
        return inner


def _answers(given: Json, output: str) -> Iterator[events.TranscriptEvent]:
    try:
        answered = msgspec.json.decode(output)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return
    by_question = member(answered, "answers") if isinstance(answered, dict) else {}
    for question in objects(given.get("questions")):
        answers = member(by_question, string(question, "id")).get("answers")
        said = (
            [well_formed(answer) for answer in answers if isinstance(answer, str)] if isinstance(answers, list) else []
        )
        notes = "\n".join(answer.removeprefix(NOTE) for answer in said if answer.startswith(NOTE))
        chosen = ", ".join(answer for answer in said if not answer.startswith(NOTE))
        if chosen or notes:
            yield events.QuestionAnswered(string(question, "question"), chosen, notes)


def _subagents(item: Json) -> Iterator[events.TranscriptEvent]:
    """A state is a word, or an object with that and the subagent's last words."""
    for identity, state in member(item, "agents_states").items():
        if item.get("tool") == "spawn_agent":
            yield events.TaskStarted(identity, string(item, "prompt")[:MAX_COMMAND_CHARS])
        elif not (isinstance(state, str) and state in LIVES):
            yield events.TaskEnded(identity)


def _subagent(item: Json) -> Iterator[events.TranscriptEvent]:
    """Of the newest models, which know a subagent by a path."""
    identity = string(item, "agent_thread_id")
    if item.get("kind") == "started":
        yield events.TaskStarted(identity, string(item, "agent_path"))
    elif item.get("kind") == "completed":
        yield events.TaskEnded(identity)
