"""Plays a scenario: which step answers a request, and how large the conversation is by then.

A turn continues where the results of its own tool calls come in, so parallel sessions and subagents never mix. A turn
that matches something new in between interrupts it; once that one has played all its steps, the interrupted continues.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import msgspec

from sm.testing.request import Request, RequestKind
from sm.testing.scenario import Scenario, Step, ToolCall, Turn, Usage, fill_in

CHARACTERS_PER_TOKEN = 4
UNCACHED_TOKENS = 3
"""Tokens that the client never caches: input_tokens in a real reply to a cached request."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    id: str
    call: ToolCall


@dataclass(frozen=True, slots=True)
class Answer:
    """A step with its placeholders filled in, ready to be sent."""

    step: Step
    usage: Usage
    matched: str | None = None
    tool_uses: tuple[ToolUse, ...] = ()

    @property
    def stop_reason(self) -> str:
        return self.step.stop_reason or ("tool_use" if self.tool_uses else "end_turn")


@dataclass(slots=True)
class PlayedTurn:
    """One turn being played."""

    turn: Turn
    values: dict[str, str]
    interrupted: PlayedTurn | None = None
    position: int = 0

    def unfinished(self) -> PlayedTurn | None:
        """Return this run, or the nearest interrupted one, that has steps left."""
        if self.position < len(self.turn.steps):
            return self
        return self.interrupted.unfinished() if self.interrupted else None

    @property
    def is_at_text(self) -> bool:
        return not self.turn.steps[self.position - 1].calls

    def next_step(self) -> Step:
        self.position += 1
        return self.turn.steps[self.position - 1]


@dataclass(slots=True)
class Player:
    scenario: Scenario
    prefix: str = "scripted"
    """Distinguishes the tool ids of two servers, for a client that resumes a conversation on another one."""
    _matches: Counter[int] = field(default_factory=Counter)
    _by_tool: dict[str, PlayedTurn] = field(default_factory=dict)
    _latest: dict[str, PlayedTurn] = field(default_factory=dict)
    """The turn played last, by session."""
    _compacted: set[str] = field(default_factory=set)
    """Sessions that got a summary and have not used it yet."""
    _failed: dict[object, PlayedTurn] = field(default_factory=dict)
    _size: dict[tuple[str, str], int] = field(default_factory=dict)
    """Tokens, by conversation; a compacted one starts from 0."""
    _issued: int = 0
    """Tool ids."""

    def answer(self, request: Request) -> Answer:
        """Return the reply to a request and remember that it was given."""
        if request.kind is RequestKind.COMPACTION:
            return self._summary(request)
        if request.kind is not RequestKind.MAIN:
            return Answer(self.scenario.side, Usage(input=tokens(request.all_text), output=1))
        run = self._turn_for(request)
        if run is None:
            return self._reply(self.scenario.otherwise, request)
        return self._play(run, request)

    def _play(self, run: PlayedTurn, request: Request) -> Answer:
        step = run.next_step()
        values = {"prompt": request.user_text, **_results(request), **run.values}
        self._latest[request.session] = run
        if step.error:
            self._failed[_identity(request)] = run
        answer = self._reply(_filled(step, values), request, run.turn.label)
        self._by_tool.update({use.id: run for use in answer.tool_uses})
        return answer

    def _turn_for(self, request: Request) -> PlayedTurn | None:
        retried = self._failed.pop(_identity(request), None)
        if retried and (run := retried.unfinished()):
            return run
        running = self._continued(request) or self._resumable(request)
        return self._started(request, running) or running

    def _continued(self, request: Request) -> PlayedTurn | None:
        runs = (self._by_tool.get(result.id) for result in request.tool_results)
        return next((unfinished for run in runs if run and (unfinished := run.unfinished())), None)

    def _resumable(self, request: Request) -> PlayedTurn | None:
        """Return a turn that continues after a text (as for a Stop hook), or whose tool result a compaction removed.

        Not one that stopped at a tool call: the user interrupted it and wants something else.
        """
        run = self._latest.get(request.session)
        continues = run and (run.is_at_text or request.session in self._compacted)
        return run.unfinished() if run and continues else None

    def _started(self, request: Request, running: PlayedTurn | None) -> PlayedTurn | None:
        for turn in self.scenario.turns:
            if turn.is_catch_all and (running or request.tool_results):
                continue
            values = turn.match(request)
            if values is not None and self._may_fire(turn):
                return PlayedTurn(turn, values, interrupted=running).unfinished()
        return None

    def _may_fire(self, turn: Turn) -> bool:
        self._matches[id(turn)] += 1
        fired = self._matches[id(turn)] - turn.skip
        return fired > 0 and (turn.times is None or fired <= turn.times)

    def _reply(self, step: Step, request: Request, matched: str | None = None) -> Answer:
        before = 0 if request.session in self._compacted else self._size.get(request.conversation, 0)
        self._compacted.discard(request.session)
        usage = step.usage or self._usage(step, before)
        self._size[request.conversation] = usage.input + usage.cache_read + usage.cache_creation
        uses = tuple(ToolUse(self._tool_id(), call) for call in step.calls)
        return Answer(step, usage, matched, uses)

    def _usage(self, step: Step, before: int) -> Usage:
        grown = before + self.scenario.growth if before else self.scenario.context
        total = grown if step.context is None else step.context
        cached = min(before, max(total - UNCACHED_TOKENS, 0))
        fresh = min(UNCACHED_TOKENS, total)
        return Usage(fresh, cached, total - cached - fresh, _output_tokens(step))

    def _summary(self, request: Request) -> Answer:
        step = self.scenario.compaction
        if request.path.startswith("/v1/messages") and "<summary>" not in step.say:
            step = step.but(say=f"<analysis>\nscripted\n</analysis>\n<summary>\n{step.say}\n</summary>")
        self._compacted.add(request.session)
        size = self._size.get(request.conversation, 0)
        return Answer(step, Usage(UNCACHED_TOKENS, size, 0, _output_tokens(step)), "compaction")

    def _tool_id(self) -> str:
        self._issued += 1
        return f"toolu_{self.prefix}{self._issued:08d}"


def tokens(text: str) -> int:
    """A guess, good enough for token counts that no test asserts."""
    return max(1, len(text) // CHARACTERS_PER_TOKEN)


def _output_tokens(step: Step) -> int:
    return tokens(step.say + step.think + "".join(msgspec.json.encode(call).decode() for call in step.calls))


def _identity(request: Request) -> tuple[object, ...]:
    """Return a key that a request and its retry share."""
    results = tuple(result.id for result in request.tool_results)
    return request.session, len(request.messages), request.user_text, results


def _results(request: Request) -> dict[str, str]:
    return {"result": "\n".join(result.text for result in request.tool_results)}


def _filled(step: Step, values: dict[str, str]) -> Step:
    calls = [ToolCall(call.name, fill_in(call.input, values)) for call in step.calls]
    return step.but(say=fill_in(step.say, values), calls=calls)
