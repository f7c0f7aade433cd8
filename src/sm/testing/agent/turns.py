"""Runs a turn from its prompt to its end: requests, tools and hooks in the client's order.

Runs in the worker's thread. It uses the terminal through TurnUi, and Escape ends it through `cancel`.
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
from sm.testing.agent.background import BackgroundTasks
from sm.testing.agent.conversation import ScriptedConversation, messages_of
from sm.testing.agent.hooks import HookOutcome, HookRunner, child_environment
from sm.testing.agent.loop import Cancellation, InterruptedTurn, TerminalLoop
from sm.testing.agent.model_client import ApiRefusal, ModelClient, request_body
from sm.testing.agent.settings import StartOptions
from sm.testing.agent.transcript import StateFile, TranscriptWriter, transcript_path

Json: TypeAlias = dict[str, Any]

MAX_STOP_BLOCKS = 8
SESSION_END_TIMEOUT_S = 1.5
"""How long a SessionEnd hook may take (2.1.328)."""
IDLE_DELAY_S = 0.03
"""From a Stop hook's end to the state `idle` (seen: 0.05 after it began)."""
MAX_RETRIES = 10
REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed."
)
TOO_LONG = "prompt is too long"
LIMIT_REACHED = "Context limit reached · /compact or /clear to continue"
SUMMARY_REQUEST = "Your task is to create a detailed summary of the conversation so far."
ERRORS = {401: "authentication_failed", 413: "invalid_request", 429: "rate_limit"}
SERVER_ERRORS = 500
"""This status and above; a status without a name is `unknown`, a plain 400 too (2.1.328)."""


@dataclass(slots=True)
class QueuedPrompt:
    """A prompt sent while a turn runs, or a command that waits for its end."""

    text: str
    outcome: HookOutcome | None = None
    """The answers of the UserPromptSubmit hooks, once they have ended."""


class TurnUi(Protocol):
    """The terminal, as turns see it. Every method may be called from the worker's thread."""

    def say(self, text: str, sign: str = "●") -> None: ...
    def cleared(self) -> None: ...
    def put_back(self, text: str) -> None: ...
    def take_prompts(self) -> list[QueuedPrompt]: ...
    def permitted(self, tool: str, given: Json, cancel: Cancellation) -> bool: ...
    def wake(self, text: str) -> None: ...


class TurnEndedEarlyError(Exception):
    """A hook or the client itself ended the turn, without a Stop."""


@dataclass(slots=True)
class TurnRunner:
    start: StartOptions
    loop: TerminalLoop
    ui: TurnUi
    model: ModelClient
    state: StateFile = field(init=False)
    hooks: HookRunner = field(init=False)
    background: BackgroundTasks = field(init=False)
    conversation: ScriptedConversation = field(init=False)
    cancel: Cancellation = field(default_factory=Cancellation)
    request_cancel: Cancellation = field(default_factory=Cancellation)
    """Cancels the running request, not its turn."""

    def __post_init__(self) -> None:
        start = self.start
        kept = start.persists and not start.flags.no_state_file
        self.state = StateFile(start.config / "sessions", start.directory, kept)
        self.background = BackgroundTasks(self._background_ended)
        self.conversation = self._conversation(start.session)
        if start.resumed:
            self.conversation.messages = messages_of(self.conversation.transcript.path)
        self.hooks = HookRunner(start.hooks, self.environment, start.directory, self.ui.wake)

    def _conversation(self, name: str) -> ScriptedConversation:
        path = transcript_path(self.start.config, self.start.directory, name)
        return ScriptedConversation(
            name, TranscriptWriter(path, name, self.start.directory, self.loop, self.start.persists)
        )

    def environment(self) -> dict[str, str]:
        return child_environment(self.conversation.id, self.start.directory)

    # Started by the terminal.

    def begin(self) -> None:
        self.state.write(self.conversation.id, "idle")
        self._session_start("resume" if self.start.resumed else "startup")

    def submit(self, prompt: QueuedPrompt) -> None:
        self.cancel = Cancellation()
        self.conversation.prompt_id = str(uuid.uuid4())
        self.state.write(self.conversation.id, "busy")
        try:
            self._submit(prompt)
        except InterruptedTurn:
            self._interrupted("[Request interrupted by user]")
        except TurnEndedEarlyError:
            pass
        self.settle()

    def _submit(self, prompt: QueuedPrompt) -> None:
        outcome = prompt.outcome or self.check(prompt.text, self.cancel)
        if outcome.blocks:
            self.refuse(prompt.text, outcome)
            return
        self.ui.say(prompt.text, "❯")
        self.conversation.prompt(prompt.text)
        self.conversation.add_hook_context("UserPromptSubmit", outcome.contexts)
        self._converse()

    def check(self, text: str, cancel: Cancellation | None = None) -> HookOutcome:
        """Ask the UserPromptSubmit hooks about a prompt."""
        return self._fire("UserPromptSubmit", cancel, {"prompt": text})

    def refuse(self, text: str, outcome: HookOutcome) -> None:
        self.ui.say(f"UserPromptSubmit operation blocked by hook:\n{outcome.blocks[0]}", "⎿")
        self.ui.put_back(text)

    def shell(self, command: str) -> None:
        """Run a `!` command, then let the model answer; no UserPromptSubmit (2.1.328)."""
        self.cancel = Cancellation()
        self.state.write(self.conversation.id, "busy")
        try:
            result = tools.run("Bash", {"command": command}, self.start.directory, self.environment(), self.cancel)
            self.ui.say(result.text, "⎿")
            self.conversation.meta(f"<bash-input>{command}</bash-input>\n<bash-stdout>{result.text}</bash-stdout>")
            self._converse()
        except InterruptedTurn:
            self._interrupted("[Request interrupted by user]")
        except TurnEndedEarlyError:
            pass
        self.settle()

    def clear(self) -> None:
        self._fire("SessionEnd", None, {"reason": "clear"}, timeout=SESSION_END_TIMEOUT_S)
        self.conversation = self._conversation(str(uuid.uuid4()))
        self.ui.cleared()
        self.state.write(self.conversation.id, self.background.resting_status())
        self.conversation.note_command("clear")
        self._session_start("clear")

    def compact(self) -> None:
        self.cancel = Cancellation()
        self.state.write(self.conversation.id, "busy")
        try:
            self._compact("manual")
        except InterruptedTurn:
            self.ui.say("Compaction interrupted", "⎿")
        self.settle()

    def end(self, reason: str) -> None:
        """End the session; called from any thread, also during a turn."""
        self.cancel.call()
        self._fire("SessionEnd", None, {"reason": reason}, timeout=SESSION_END_TIMEOUT_S)
        self.conversation.transcript.flush()
        self.state.remove()

    def settle(self) -> None:
        time.sleep(IDLE_DELAY_S)
        self.state.write(self.conversation.id, self.background.resting_status())

    def _background_ended(self, note: str) -> None:
        self.ui.wake(note)

    # Hooks.

    def _fire(
        self, event: str, cancel: Cancellation | None, members: Json, *, subject: str = "", timeout: float = 0
    ) -> HookOutcome:
        if self.start.flags.crash_on == event:
            os.kill(os.getpid(), signal.SIGKILL)
        conversation = self.conversation
        payload: Json = {"session_id": conversation.id, "transcript_path": str(conversation.transcript.path)}
        payload["cwd"] = self.start.directory
        if conversation.prompt_id:
            payload["prompt_id"] = conversation.prompt_id
        if event not in {"SessionStart", "SessionEnd"}:
            payload["permission_mode"] = self.start.permissions.mode
        if event not in {"SessionStart", "SessionEnd", "UserPromptSubmit"}:
            payload["effort"] = {"level": "medium"}
        payload |= {"hook_event_name": event, **members}
        return self.hooks.fire(payload, subject=subject, cancel=cancel, timeout=timeout)

    def _session_start(self, source: str) -> None:
        model = {} if source == "clear" else {"model": self.start.model}
        outcome = self._fire("SessionStart", None, {"source": source, **model}, subject=source)
        self.conversation.add_hook_context("SessionStart", outcome.contexts)

    # The turn.

    def _converse(self) -> None:
        continues, active, asked = True, False, 0
        while continues:
            said = self._reply()
            payload: Json = {"stop_hook_active": active, "last_assistant_message": said}
            payload |= {"background_tasks": self.background.tasks(), "session_crons": []}
            outcome = self._fire("Stop", self.cancel, payload)
            continues = asked < MAX_STOP_BLOCKS and self._continues_after(outcome)
            active, asked = True, asked + 1

    def _continues_after(self, outcome: HookOutcome) -> bool:
        for reason in outcome.blocks:
            self.conversation.meta(f"Stop hook feedback:\n{reason}")
        self.conversation.add_hook_context("Stop", outcome.contexts)
        return bool(outcome.blocks or outcome.contexts)

    def _reply(self) -> str:
        """Run requests and tool calls until the model ends its turn; return its last text."""
        while True:
            reply = self._answer()
            self.conversation.replied(reply)
            text = tools.texts(reply["content"])
            if text:
                self.ui.say(text)
            calls = [block for block in reply["content"] if block["type"] == "tool_use"]
            if not calls:
                return text
            self._call_all(calls)
            self._absorb()

    def _absorb(self) -> None:
        for prompt in self.ui.take_prompts():
            self.ui.say(prompt.text, "❯")
            self.conversation.absorb(prompt.text)
            self.conversation.add_hook_context("UserPromptSubmit", prompt.outcome.contexts if prompt.outcome else ())

    def _answer(self) -> Json:
        self._check_limits()
        self.conversation.flush_context()
        tries, compacted = 0, False
        while True:
            reply = self._request_reply()
            if not isinstance(reply, ApiRefusal):
                return reply
            if TOO_LONG in reply.message and not compacted and self._compact("auto"):
                compacted = True
                continue
            tries += 1
            if not reply.retried or tries > int(os.environ.get("CLAUDE_CODE_MAX_RETRIES", MAX_RETRIES)):
                self._fail(reply)
            self.cancel.sleep(min(0.1 * 2**tries, 8))

    def _request_reply(self) -> Json | ApiRefusal:
        while True:
            self.request_cancel = Cancellation()
            try:
                with self.cancel.on_cancel(self.request_cancel.call):
                    return self.model.ask(self._request_body(self.conversation.messages), self.request_cancel)
            except InterruptedTurn:
                self.cancel.check()
                self._absorb()
                self.conversation.flush_context()

    def _request_body(self, messages: list[Json]) -> Json:
        return request_body(self.start.model, self.conversation.id, messages)

    def _check_limits(self) -> None:
        flags, tokens = self.start.flags, self.conversation.tokens
        if flags.compact_at is not None and tokens >= flags.compact_at:
            self._compact("auto")
        elif flags.refuse_at is not None and tokens >= flags.refuse_at:
            self.conversation.synthetic(LIMIT_REACHED, "invalid_request")
            self.ui.say(LIMIT_REACHED)
            raise TurnEndedEarlyError

    def _fail(self, refusal: ApiRefusal) -> None:
        error = ERRORS.get(refusal.status, "server_error" if refusal.status >= SERVER_ERRORS else "unknown")
        text = f"API Error: {refusal.status} {refusal.message}"
        self.conversation.synthetic(text, error, refusal.status)
        self.ui.say(text)
        payload = {"error": error, "error_details": refusal.message, "last_assistant_message": text}
        self._fire("StopFailure", self.cancel, payload)
        raise TurnEndedEarlyError

    def _compact(self, trigger: str) -> bool:
        """Replace the conversation by its summary; False if a hook forbade it."""
        payload = {"trigger": trigger, "custom_instructions": None}
        if self._fire("PreCompact", self.cancel, payload, subject=trigger).blocks:
            if trigger == "manual":
                self.ui.say("Compaction blocked by PreCompact hook", "⎿")
            return False
        summary_request = {"role": "user", "content": [{"type": "text", "text": SUMMARY_REQUEST}]}
        reply = self.model.ask(self._request_body([*self.conversation.messages, summary_request]), self.cancel)
        if isinstance(reply, ApiRefusal):
            return False
        summary = tools.texts(reply["content"])
        self.conversation.compacted(summary, trigger)
        self._session_start("compact")
        self._fire("PostCompact", self.cancel, {"trigger": trigger, "compact_summary": summary}, subject=trigger)
        self.ui.say("Conversation compacted", "✻")
        return True

    # Tools.

    def _call_all(self, calls: Sequence[Json]) -> None:
        for number, call in enumerate(calls):
            try:
                self._call(call)
            except InterruptedTurn:
                for left in calls[number:]:
                    self.conversation.tool_result(left["id"], REJECTED, f"Error: {REJECTED}", failed=True)
                self._interrupted("[Request interrupted by user for tool use]")
                raise TurnEndedEarlyError from None

    def _interrupted(self, text: str) -> None:
        self.ui.say("Interrupted · What should Claude do instead?", "⎿")
        message = {"role": "user", "content": [{"type": "text", "text": text}]}
        self.conversation.transcript.add("user", {"message": message})
        self.conversation.add_text("user", text)

    def _call(self, call: Json) -> None:
        name, given = call["name"], call["input"]
        self.ui.say(f"{name}({_summary(given)})")
        if not self._allowed(name, given):
            raise InterruptedTurn
        began = time.monotonic()
        result = self._run(name, given)
        self.ui.say(result.text or "Done", "  ⎿ ")
        self.cancel.check()
        self.conversation.tool_result(call["id"], result.text, result.response or result.text, failed=result.failed)
        self._after(call, result, int((time.monotonic() - began) * 1000))

    def _allowed(self, name: str, given: Json) -> bool:
        asks = self.start.permissions.asks(name, given, self.start.directory)
        return not asks or self.ui.permitted(name, given, self.cancel)

    def ask_hooks(self, name: str, given: Json) -> None:
        """Run the PermissionRequest hooks; the dialog does not wait for them (2.1.328)."""
        payload = {"tool_name": name, "tool_input": given, "permission_suggestions": []}
        self._fire("PermissionRequest", None, payload, subject=name)

    def _run(self, name: str, given: Json) -> tools.CallResult:
        folder = self.start.directory
        if self.start.permissions.denied(name, given, folder):
            return tools.CallResult(f"Permission to use {name} has been denied.", {}, failed=True)
        if name == "Bash" and given.get("run_in_background"):
            process = tools.start_command(given["command"], folder, self.environment())
            task = self.background.shell(process, given["command"])
            return _in_background(f"Command running in background with ID: {task}.", task)
        if name in {"Agent", "Task"}:
            task = self.background.subagent(str(given.get("description", "")), self.start.flags.subagent_seconds)
            return _in_background("Async agent launched successfully.", task)
        return tools.run(name, given, folder, self.environment(), self.cancel)

    def _after(self, call: Json, result: tools.CallResult, duration: int) -> None:
        event = "PostToolUseFailure" if result.failed else "PostToolUse"
        payload = {"error": result.text, "is_interrupt": False} if result.failed else {"tool_response": result.response}
        about = {"tool_name": call["name"], "tool_input": call["input"], "tool_use_id": call["id"]}
        outcome = self._fire(event, self.cancel, {**about, **payload, "duration_ms": duration}, subject=call["name"])
        self.conversation.add_hook_context(event, outcome.contexts)
        self.conversation.waiting += [
            f"{event}:{call['name']} hook blocking error: {reason}" for reason in outcome.blocks
        ]
        if outcome.ends_turn:
            raise TurnEndedEarlyError


def _in_background(text: str, task: str) -> tools.CallResult:
    response = {"stdout": "", "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
    return tools.CallResult(text, {**response, "backgroundTaskId": task})


def _summary(given: Json) -> str:
    value = next((given[name] for name in ("command", "file_path", "description") if name in given), "")
    return str(value).split("\n", 1)[0][:60]
