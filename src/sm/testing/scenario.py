"""The language in which a test describes how the model behaves: turns, each a condition and the steps that answer it.

    scenario(
        Turn("fix (?P<what>.+)", steps=[Call("Bash", command="true"), Say("Fixed {{what}}.")]),
        Turn(context="context is at", steps=[Call("Bash", command="sm handoff -")]),
    )

The first turn that matches what is new in a request answers it; its other steps follow as the tool results come in.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from sm.testing.request import Request

PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class Usage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    input: int = 0
    cache_read: int = 0
    cache_creation: int = 0
    output: int = 0


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An error reply."""

    status: int
    message: str = ""
    retry_after: float | None = None
    should_retry: bool | None = None
    """The x-should-retry header; the client decides by itself if it is missing."""
    headers: dict[str, str] = {}
    """Further headers, as those of a usage limit."""


class ToolCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    input: dict[str, Any] = {}


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One reply of the model. Written with Say, Call, Together and Fail; refined with `but`."""

    say: str = ""
    think: str = ""
    calls: list[ToolCall] = []
    error: Fault | None = None
    context: int | None = None
    """Total tokens of this request's prompt; later requests of the conversation grow from here."""
    usage: Usage | None = None
    """Exact usage, instead of a total."""
    delay: float = 0.0
    """Seconds before the first byte."""
    chunk_delay: float = 0.0
    """Seconds between the pieces of a streamed text."""
    stop_reason: str | None = None

    def but(self, **changes: Any) -> Step:  # noqa: ANN401  # the fields above, checked by msgspec
        return msgspec.structs.replace(self, **changes)


def Say(text: str, **options: Any) -> Step:  # noqa: ANN401, N802  # reads as a word of the language
    return Step(say=text, **options)


def Call(name: str, /, **tool_input: Any) -> Step:  # noqa: ANN401, N802  # whatever the tool takes
    return Step(calls=[ToolCall(name, tool_input)])


def Together(*steps: Step, **options: Any) -> Step:  # noqa: ANN401, N802  # fields of Step
    """Several calls in one reply, after the text of all steps."""
    text = "\n".join(step.say for step in steps if step.say)
    return Step(say=text, calls=[call for step in steps for call in step.calls], **options)


def Fail(status: int, message: str = "", **options: Any) -> Step:  # noqa: ANN401, N802  # fields of Fault
    return Step(error=Fault(status, message, **options))


def TooLong(tokens: int = 205_000, maximum: int = 200_000) -> Step:  # noqa: N802  # a word of the language
    """The answer to a prompt over the model's window; it makes the client compact and try again."""
    return Fail(400, f"prompt is too long: {tokens} tokens > {maximum} maximum")


class Turn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A condition and the steps that answer it. All conditions given must hold; without any it always matches."""

    when: str = ""
    """Searched in the user's new text, literally or as a regular expression whose groups are placeholders."""
    steps: list[Step] = []
    context: str = ""
    """The same in new text of hooks and the client (additional context, reminders)."""
    result: str = ""
    """The same in the new tool results."""
    anywhere: str = ""
    """The same in the whole request, system prompt and history included."""
    model: str = ""
    times: int | None = None
    """How often it may fire."""
    skip: int = 0
    """How many matches are skipped before it fires."""
    name: str = ""

    @property
    def label(self) -> str:
        return self.name or self.when or self.context or self.result or self.anywhere or "always"

    @property
    def is_catch_all(self) -> bool:
        """True without a condition on what is new in a request: such a turn never interrupts another."""
        return not (self.when or self.context or self.result)

    def match(self, request: Request) -> dict[str, str] | None:
        """Return the placeholders' values if the request fulfils every condition, otherwise None."""
        fields = (
            (self.when, request.user_text),
            (self.context, request.context_text),
            (self.result, "\n".join(result.text for result in request.tool_results)),
            (self.anywhere, request.all_text if self.anywhere else ""),
            (self.model, request.model),
        )
        values: dict[str, str] = {}
        for expression, text in fields:
            found = _found(expression, text)
            if found is None:
                return None
            values |= found
        return values


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    turns: list[Turn] = []
    otherwise: Step = Step(say="Understood.")
    """Answers requests that no turn matches."""
    compaction: Step = Step(say="The work so far, in short.")
    """Answers the client's request for a summary."""
    side: Step = Step(say='{"name": "scripted-session", "title": "Scripted session"}')
    """Answers requests of the client itself: names and titles are wanted as JSON, the rest takes any text."""
    context: int = 20_000
    """Tokens of a conversation's first request."""
    growth: int = 500
    """Tokens by which each further request of it is larger."""


def scenario(*turns: Turn, **options: Any) -> Scenario:  # noqa: ANN401  # fields of Scenario
    return Scenario(turns=list(turns), **options)


def parse_scenario(text: str, *, toml: bool = False) -> Scenario:
    """Return the scenario a JSON or TOML document describes; its keys are the fields above."""
    return msgspec.convert(tomllib.loads(text), Scenario) if toml else msgspec.json.decode(text, type=Scenario)


def fill_in(value: Any, known: dict[str, str]) -> Any:  # noqa: ANN401  # any JSON value
    """Return the value with each {{placeholder}} replaced; unknown ones stay, since code may contain braces."""
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda match: known.get(match[1], match[0]), value)
    if isinstance(value, dict):
        return {key: fill_in(item, known) for key, item in value.items()}
    return [fill_in(item, known) for item in value] if isinstance(value, list) else value


def _found(expression: str, text: str) -> dict[str, str] | None:
    """Return the groups of an expression that occurs in the text, literally or as a regular expression."""
    if expression in text:
        return {}
    match = re.search(expression, text, re.DOTALL)
    return _groups(match) if match else None


def _groups(match: re.Match[str]) -> dict[str, str]:
    numbered = {str(number): text for number, text in enumerate(match.groups(""), start=1)}
    return numbered | match.groupdict("")
