"""Plays a scenario: which step answers a request, and how large the conversation is by then.

A turn goes on where the results of its own tool calls come in, so parallel sessions and subagents never mix. A turn
that matches something new in between interrupts it; once that one has played all its steps, the interrupted goes on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import msgspec

from sm.providers.scripted.request import Kind, Request
from sm.providers.scripted.scenario import Scenario, Step, ToolCall, Turn, Usage, fill_in

CHARACTERS_PER_TOKEN = 4
UNCACHED = 3
"""Tokens the client never caches: what a real reply shows as input_tokens of a cached request."""


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
class Run:
    """One turn being played."""

    turn: Turn
    values: dict[str, str]
    interrupted: Run | None = None
    position: int = 0

    def unfinished(self) -> Run | None:
        """Return this run, or the nearest interrupted one, that has steps left."""
        if self.position < len(self.turn.steps):
            return self
        return self.interrupted.unfinished() if self.interrupted else None

    def next_step(self) -> Step:
        self.position += 1
        return self.turn.steps[self.position - 1]


@dataclass(slots=True)
class Player:
    scenario: Scenario
    prefix: str = "scripted"
    """Keeps the tool ids of two servers apart, for a client that resumes a conversation on another one."""
    _matches: Counter[int] = field(default_factory=Counter)
    _by_tool: dict[str, Run] = field(default_factory=dict)
    _by_session: dict[str, Run] = field(default_factory=dict)
    _failed: dict[object, Run] = field(default_factory=dict)
    _size: dict[str, int] = field(default_factory=dict)
    _issued: int = 0

    def answer(self, request: Request) -> Answer:
        """Return the reply to a request and remember that it was given."""
        if request.kind is Kind.COMPACTION:
            return self._summary(request)
        if request.kind is not Kind.MAIN:
            return Answer(self.scenario.side, Usage(input=tokens(request.all_text), output=1))
        run = self._run_for(request)
        if run is None:
            return self._reply(self.scenario.otherwise, request)
        return self._play(run, request)

    def _play(self, run: Run, request: Request) -> Answer:
        step = run.next_step()
        values = {"prompt": request.user_text, **_results(request), **run.values}
        self._by_session[request.session] = run
        if step.error:
            self._failed[_identity(request)] = run
        answer = self._reply(_filled(step, values), request, run.turn.label)
        self._by_tool.update({use.id: run for use in answer.tool_uses})
        return answer

    def _run_for(self, request: Request) -> Run | None:
        retried = self._failed.pop(_identity(request), None)
        if retried and (run := retried.unfinished()):
            return run
        running = self._continued(request)
        return self._started(request, running) or running or self._left_over(request)

    def _continued(self, request: Request) -> Run | None:
        runs = (self._by_tool.get(result.id) for result in request.tool_results)
        return next((unfinished for run in runs if run and (unfinished := run.unfinished())), None)

    def _left_over(self, request: Request) -> Run | None:
        """A turn with steps behind its last text, or one whose tool result a compaction took away."""
        run = self._by_session.get(request.session)
        return run.unfinished() if run else None

    def _started(self, request: Request, running: Run | None) -> Run | None:
        for turn in self.scenario.turns:
            if running and turn.is_catch_all:
                continue
            values = turn.match(request)
            if values is not None and self._may_fire(turn):
                return Run(turn, values, interrupted=running).unfinished()
        return None

    def _may_fire(self, turn: Turn) -> bool:
        self._matches[id(turn)] += 1
        fired = self._matches[id(turn)] - turn.skip
        return fired > 0 and (turn.times is None or fired <= turn.times)

    def _reply(self, step: Step, request: Request, matched: str | None = None) -> Answer:
        usage = step.usage or self._usage(step, request.session)
        self._size[request.session] = usage.input + usage.cache_read + usage.cache_creation
        uses = tuple(ToolUse(self._tool_id(), call) for call in step.calls)
        return Answer(step, usage, matched, uses)

    def _usage(self, step: Step, session: str) -> Usage:
        before = self._size.get(session, 0)
        grown = before + self.scenario.growth if before else self.scenario.context
        total = grown if step.context is None else step.context
        cached = min(before, max(total - UNCACHED, 0))
        fresh = min(UNCACHED, total)
        return Usage(fresh, cached, total - cached - fresh, _output_tokens(step))

    def _summary(self, request: Request) -> Answer:
        step = self.scenario.compaction
        if "<summary>" not in step.say:
            step = step.but(say=f"<analysis>\nscripted\n</analysis>\n<summary>\n{step.say}\n</summary>")
        size = self._size.get(request.session, 0) if step.error else self._size.pop(request.session, 0)
        return Answer(step, Usage(UNCACHED, size, 0, _output_tokens(step)), "compaction")

    def _tool_id(self) -> str:
        self._issued += 1
        return f"toolu_{self.prefix}{self._issued:08d}"


def tokens(text: str) -> int:
    """A guess good enough for token counts nobody asserts on."""
    return max(1, len(text) // CHARACTERS_PER_TOKEN)


def _output_tokens(step: Step) -> int:
    return tokens(step.say + step.think + "".join(msgspec.json.encode(call).decode() for call in step.calls))


def _identity(request: Request) -> tuple[object, ...]:
    """The same for a request and its retry."""
    results = tuple(result.id for result in request.tool_results)
    return request.session, len(request.messages), request.user_text, results


def _results(request: Request) -> dict[str, str]:
    return {"result": "\n".join(result.text for result in request.tool_results)}


def _filled(step: Step, values: dict[str, str]) -> Step:
    calls = [ToolCall(call.name, fill_in(call.input, values)) for call in step.calls]
    return step.but(say=fill_in(step.say, values), calls=calls)
