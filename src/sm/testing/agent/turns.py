"""A turn from its prompt to its end: requests, tools, hooks and their order, as the client has it.

Runs in the worker's thread. What it needs from the terminal it asks of the Stage, and Escape ends it through `cancel`.
"""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from sm.testing.agent import tools
from sm.testing.agent.background import Background
from sm.testing.agent.conversation import ScriptedConversation, messages_of
from sm.testing.agent.firing import Hooks, Outcome, child_environment
from sm.testing.agent.loop import Cancel, InterruptedTurn, Loop
from sm.testing.agent.mind import Mind, Refusal, request_body
from sm.testing.agent.record import StateFile, TranscriptWriter, transcript_path
from sm.testing.agent.settings import Start

Json: TypeAlias = dict[str, Any]

MOST_STOP_BLOCKS = 8
SESSION_END_CAP = 1.5
"""Seconds a SessionEnd hook may take (2.1.328)."""
SETTLES = 0.03
"""Seconds from a Stop hook's end to the state `idle` (seen: 0.05 after it began)."""
MOST_RETRIES = 10
REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed."
)
TOO_LONG = "prompt is too long"
LIMIT = "Context limit reached · /compact or /clear to continue"
SUMMARY_REQUEST = "Your task is to create a detailed summary of the conversation so far."
ERRORS = {401: "authentication_failed", 413: "invalid_request", 429: "rate_limit"}
SERVER_ERRORS = 500
"""And above; whatever has no name is `unknown`, a plain 400 too (2.1.328)."""


@dataclass(slots=True)
class Queued:
    """A prompt sent while a turn runs, or a command that waits for its end."""

    text: str
    outcome: Outcome | None = None
    """What the UserPromptSubmit hooks said, once they have."""


class Stage(Protocol):
    """The terminal, as turns see it. Every method may be called from the worker's thread."""

    def say(self, text: str, sign: str = "●") -> None: ...
    def cleared(self) -> None: ...
    def put_back(self, text: str) -> None: ...
    def take_prompts(self) -> list[Queued]: ...
    def permitted(self, tool: str, given: Json, cancel: Cancel) -> bool: ...
    def wake(self, text: str) -> None: ...


class TurnEndedEarlyError(Exception):
    """A hook or the client itself ended the turn: there is no Stop."""


@dataclass(slots=True)
class Worker:
    start: Start
    loop: Loop
    stage: Stage
    mind: Mind
    state: StateFile = field(init=False)
    hooks: Hooks = field(init=False)
    background: Background = field(init=False)
    talk: ScriptedConversation = field(init=False)
    cancel: Cancel = field(default_factory=Cancel)
    asking: Cancel = field(default_factory=Cancel)
    """Cuts off the one request that runs, not its turn."""

    def __post_init__(self) -> None:
        start = self.start
        kept = start.persists and not start.flags.no_state_file
        self.state = StateFile(start.config / "sessions", start.directory, kept)
        self.background = Background(self._background_ended)
        self.talk = self._conversation(start.session)
        if start.resumed:
            self.talk.messages = messages_of(self.talk.transcript.path)
        self.hooks = Hooks(start.hooks, self.environment, start.directory, self.stage.wake)

    def _conversation(self, name: str) -> ScriptedConversation:
        path = transcript_path(self.start.config, self.start.directory, name)
        return ScriptedConversation(
            name, TranscriptWriter(path, name, self.start.directory, self.loop, self.start.persists)
        )

    def environment(self) -> dict[str, str]:
        return child_environment(self.talk.id, self.start.directory)

    # What the terminal starts.

    def begin(self) -> None:
        self.state.write(self.talk.id, "idle")
        self._session_start("resume" if self.start.resumed else "startup")

    def submit(self, prompt: Queued) -> None:
        self.cancel = Cancel()
        self.talk.prompt_id = str(uuid.uuid4())
        self.state.write(self.talk.id, "busy")
        try:
            self._submit(prompt)
        except InterruptedTurn:
            self._interrupted("[Request interrupted by user]")
        except TurnEndedEarlyError:
            pass
        self.settle()

    def _submit(self, prompt: Queued) -> None:
        outcome = prompt.outcome or self.check(prompt.text, self.cancel)
        if outcome.blocks:
            self.refuse(prompt.text, outcome)
            return
        self.stage.say(prompt.text, "❯")
        self.talk.prompt(prompt.text)
        self.talk.hooks_say("UserPromptSubmit", outcome.contexts)
        self._converse()

    def check(self, text: str, cancel: Cancel | None = None) -> Outcome:
        """Ask the UserPromptSubmit hooks about a prompt."""
        return self._fire("UserPromptSubmit", cancel, {"prompt": text})

    def refuse(self, text: str, outcome: Outcome) -> None:
        self.stage.say(f"UserPromptSubmit operation blocked by hook:\n{outcome.blocks[0]}", "⎿")
        self.stage.put_back(text)

    def shell(self, command: str) -> None:
        """`!`: the command is run, then the model answers; no UserPromptSubmit (2.1.328)."""
        self.cancel = Cancel()
        self.state.write(self.talk.id, "busy")
        try:
            result = tools.run("Bash", {"command": command}, self.start.directory, self.environment(), self.cancel)
            self.stage.say(result.text, "⎿")
            self.talk.meta(f"<bash-input>{command}</bash-input>\n<bash-stdout>{result.text}</bash-stdout>")
            self._converse()
        except InterruptedTurn:
            self._interrupted("[Request interrupted by user]")
        except TurnEndedEarlyError:
            pass
        self.settle()

    def clear(self) -> None:
        self._fire("SessionEnd", None, {"reason": "clear"}, cap=SESSION_END_CAP)
        self.talk = self._conversation(str(uuid.uuid4()))
        self.stage.cleared()
        self.state.write(self.talk.id, self.background.resting_status())
        self.talk.note_command("clear")
        self._session_start("clear")

    def compact(self) -> None:
        self.cancel = Cancel()
        self.state.write(self.talk.id, "busy")
        try:
            self._compact("manual")
        except InterruptedTurn:
            self.stage.say("Compaction interrupted", "⎿")
        self.settle()

    def end(self, reason: str) -> None:
        """Leave: from whatever thread, while a turn may be running."""
        self.cancel.call()
        self._fire("SessionEnd", None, {"reason": reason}, cap=SESSION_END_CAP)
        self.talk.transcript.flush()
        self.state.remove()

    def settle(self) -> None:
        time.sleep(SETTLES)
        self.state.write(self.talk.id, self.background.resting_status())

    def _background_ended(self, note: str) -> None:
        self.stage.wake(note)

    # Hooks.

    def _fire(self, event: str, cancel: Cancel | None, members: Json, *, subject: str = "", cap: float = 0) -> Outcome:
        if self.start.flags.crash_on == event:
            os.kill(os.getpid(), signal.SIGKILL)
        talk = self.talk
        payload: Json = {"session_id": talk.id, "transcript_path": str(talk.transcript.path)}
        payload["cwd"] = self.start.directory
        if talk.prompt_id:
            payload["prompt_id"] = talk.prompt_id
        if event not in {"SessionStart", "SessionEnd"}:
            payload["permission_mode"] = self.start.permissions.mode
        if event not in {"SessionStart", "SessionEnd", "UserPromptSubmit"}:
            payload["effort"] = {"level": "medium"}
        payload |= {"hook_event_name": event, **members}
        return self.hooks.fire(payload, subject=subject, cancel=cancel, cap=cap)

    def _session_start(self, source: str) -> None:
        model = {} if source == "clear" else {"model": self.start.model}
        outcome = self._fire("SessionStart", None, {"source": source, **model}, subject=source)
        self.talk.hooks_say("SessionStart", outcome.contexts)

    # The turn.

    def _converse(self) -> None:
        goes_on, active, asked = True, False, 0
        while goes_on:
            said = self._reply()
            told: Json = {"stop_hook_active": active, "last_assistant_message": said}
            told |= {"background_tasks": self.background.tasks(), "session_crons": []}
            outcome = self._fire("Stop", self.cancel, told)
            goes_on = asked < MOST_STOP_BLOCKS and self._asked_for_more(outcome)
            active, asked = True, asked + 1

    def _asked_for_more(self, outcome: Outcome) -> bool:
        for reason in outcome.blocks:
            self.talk.meta(f"Stop hook feedback:\n{reason}")
        self.talk.hooks_say("Stop", outcome.contexts)
        return bool(outcome.blocks or outcome.contexts)

    def _reply(self) -> str:
        """Play requests and tool calls until the model has nothing more to do; return its last words."""
        while True:
            reply = self._answer()
            self.talk.replied(reply)
            text = tools.texts(reply["content"])
            if text:
                self.stage.say(text)
            calls = [block for block in reply["content"] if block["type"] == "tool_use"]
            if not calls:
                return text
            self._call_all(calls)
            self._absorb()

    def _absorb(self) -> None:
        for prompt in self.stage.take_prompts():
            self.stage.say(prompt.text, "❯")
            self.talk.absorb(prompt.text)
            self.talk.hooks_say("UserPromptSubmit", prompt.outcome.contexts if prompt.outcome else ())

    def _answer(self) -> Json:
        self._mind_the_limits()
        self.talk.flush_context()
        tries, compacted = 0, False
        while True:
            reply = self._asked()
            if not isinstance(reply, Refusal):
                return reply
            if TOO_LONG in reply.message and not compacted and self._compact("auto"):
                compacted = True
                continue
            tries += 1
            if not reply.retried or tries > int(os.environ.get("CLAUDE_CODE_MAX_RETRIES", MOST_RETRIES)):
                self._fail(reply)
            self.cancel.sleep(min(0.1 * 2**tries, 8))

    def _asked(self) -> Json | Refusal:
        while True:
            self.asking = Cancel()
            try:
                with self.cancel.undoing(self.asking.call):
                    return self.mind.ask(self._request(self.talk.messages), self.asking)
            except InterruptedTurn:
                self.cancel.check()
                self._absorb()
                self.talk.flush_context()

    def _request(self, messages: list[Json]) -> Json:
        return request_body(self.start.model, self.talk.id, messages)

    def _mind_the_limits(self) -> None:
        flags, tokens = self.start.flags, self.talk.tokens
        if flags.compact_at is not None and tokens >= flags.compact_at:
            self._compact("auto")
        elif flags.refuse_at is not None and tokens >= flags.refuse_at:
            self.talk.made_up(LIMIT, "invalid_request")
            self.stage.say(LIMIT)
            raise TurnEndedEarlyError

    def _fail(self, refusal: Refusal) -> None:
        error = ERRORS.get(refusal.status, "server_error" if refusal.status >= SERVER_ERRORS else "unknown")
        text = f"API Error: {refusal.status} {refusal.message}"
        self.talk.made_up(text, error, refusal.status)
        self.stage.say(text)
        told = {"error": error, "error_details": refusal.message, "last_assistant_message": text}
        self._fire("StopFailure", self.cancel, told)
        raise TurnEndedEarlyError

    def _compact(self, trigger: str) -> bool:
        """Replace the conversation by its summary; False if a hook forbade it."""
        told = {"trigger": trigger, "custom_instructions": None}
        if self._fire("PreCompact", self.cancel, told, subject=trigger).blocks:
            if trigger == "manual":
                self.stage.say("Compaction blocked by PreCompact hook", "⎿")
            return False
        wish = {"role": "user", "content": [{"type": "text", "text": SUMMARY_REQUEST}]}
        reply = self.mind.ask(self._request([*self.talk.messages, wish]), self.cancel)
        if isinstance(reply, Refusal):
            return False
        summary = tools.texts(reply["content"])
        self.talk.compacted(summary, trigger)
        self._session_start("compact")
        self._fire("PostCompact", self.cancel, {"trigger": trigger, "compact_summary": summary}, subject=trigger)
        self.stage.say("Conversation compacted", "✻")
        return True

    # Tools.

    def _call_all(self, calls: Sequence[Json]) -> None:
        for number, call in enumerate(calls):
            try:
                self._call(call)
            except InterruptedTurn:
                for left in calls[number:]:
                    self.talk.tool_result(left["id"], REJECTED, f"Error: {REJECTED}", failed=True)
                self._interrupted("[Request interrupted by user for tool use]")
                raise TurnEndedEarlyError from None

    def _interrupted(self, text: str) -> None:
        self.stage.say("Interrupted · What should Claude do instead?", "⎿")
        message = {"role": "user", "content": [{"type": "text", "text": text}]}
        self.talk.transcript.add("user", {"message": message})
        self.talk.tell("user", text)

    def _call(self, call: Json) -> None:
        name, given = call["name"], call["input"]
        self.stage.say(f"{name}({_summary(given)})")
        if not self._allowed(name, given):
            raise InterruptedTurn
        began = time.monotonic()
        result = self._run(name, given)
        self.stage.say(result.text or "Done", "  ⎿ ")
        self.cancel.check()
        self.talk.tool_result(call["id"], result.text, result.response or result.text, failed=result.failed)
        self._after(call, result, int((time.monotonic() - began) * 1000))

    def _allowed(self, name: str, given: Json) -> bool:
        asks = self.start.permissions.asks(name, given, self.start.directory)
        return not asks or self.stage.permitted(name, given, self.cancel)

    def ask_hooks(self, name: str, given: Json) -> None:
        """PermissionRequest; its dialog does not wait for it (2.1.328)."""
        told = {"tool_name": name, "tool_input": given, "permission_suggestions": []}
        self._fire("PermissionRequest", None, told, subject=name)

    def _run(self, name: str, given: Json) -> tools.Result:
        folder = self.start.directory
        if self.start.permissions.denied(name, given, folder):
            return tools.Result(f"Permission to use {name} has been denied.", {}, failed=True)
        if name == "Bash" and given.get("run_in_background"):
            process = tools.start_command(given["command"], folder, self.environment())
            task = self.background.shell(process, given["command"])
            return _in_background(f"Command running in background with ID: {task}.", task)
        if name in {"Agent", "Task"}:
            task = self.background.subagent(str(given.get("description", "")), self.start.flags.subagent_seconds)
            return _in_background("Async agent launched successfully.", task)
        return tools.run(name, given, folder, self.environment(), self.cancel)

    def _after(self, call: Json, result: tools.Result, duration: int) -> None:
        event = "PostToolUseFailure" if result.failed else "PostToolUse"
        told = {"error": result.text, "is_interrupt": False} if result.failed else {"tool_response": result.response}
        about = {"tool_name": call["name"], "tool_input": call["input"], "tool_use_id": call["id"]}
        outcome = self._fire(event, self.cancel, {**about, **told, "duration_ms": duration}, subject=call["name"])
        self.talk.hooks_say(event, outcome.contexts)
        self.talk.waiting += [f"{event}:{call['name']} hook blocking error: {reason}" for reason in outcome.blocks]
        if outcome.ends_turn:
            raise TurnEndedEarlyError


def _in_background(text: str, task: str) -> tools.Result:
    response = {"stdout": "", "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
    return tools.Result(text, {**response, "backgroundTaskId": task})


def _summary(given: Json) -> str:
    value = next((given[name] for name in ("command", "file_path", "description") if name in given), "")
    return str(value).split("\n", 1)[0][:60]
