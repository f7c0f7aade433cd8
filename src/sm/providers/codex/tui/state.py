"""What a running Codex says of itself, by the threads it has open, their rollouts, and its hooks (Codex 0.171.0).

That a dialog is open no file tells. A hook comes before the dialog of a permission, and the client shows that only
once the hook has been answered; what the user has answered shows in the next hook, in the turn's end, or in a process
that the client has started since.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from sm.core.events import Activity
from sm.core.ports.provider import ClientState
from sm.processes import RunState, run_state, start_time
from sm.providers.codex.hooks import HELD_HOOK, HookPayload
from sm.providers.codex.tui import threads
from sm.providers.codex.tui.threads import OpenThread
from sm.providers.codex.tui.turn import RolloutTurn

MAX_REMEMBERED = 512
TICK_S = 0.1
"""Seconds after which another change has another time: the times of files are a few milliseconds apart."""
COMMAND_RUNS_S = 1.0
"""Seconds after which a process that was started while a dialog was open is what it asked for, and no hook."""
STOPPED = "the client is stopped, as by Ctrl-Z; fg in its own terminal or kill -CONT {pid} continues it"
ASKS = "permission for {}"
QUESTION = "a question of the agent"


@dataclass(slots=True)
class OpenAsk:
    """A permission that a hook asks for."""

    tool: str
    call: str
    at: float
    beside: frozenset[int] | None = None
    """The processes that ran when it was first seen."""

    def has_begun(self, client: int) -> bool:
        """Whether the client has started a process since then that lasts: the command that it was allowed."""
        running = frozenset(threads.children(client))
        if self.beside is None:
            self.beside = running
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        return any(now - _started(child) >= COMMAND_RUNS_S for child in running - self.beside)


@dataclass(frozen=True, slots=True)
class _Found:
    """What was found open in a process, and when a thread was opened or left last."""

    pid: int
    changed: float
    since: float
    """When that was seen first, by the monotonic clock."""
    at: float
    threads: tuple[OpenThread, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing can be different as long as no thread is opened or left."""
        return self.at - self.since >= TICK_S and all(thread.rollout is not None for thread in self.threads)


@dataclass(slots=True)
class TuiStates:
    """What is remembered between looks, of all clients."""

    _asks: OrderedDict[str, OpenAsk] = field(default_factory=OrderedDict)
    """By thread."""
    _children: OrderedDict[str, str] = field(default_factory=OrderedDict)
    """A subagent's thread → its session's."""
    _heard: OrderedDict[str, float] = field(default_factory=OrderedDict)
    """When a thread's hooks were heard last."""
    _found: OrderedDict[int, _Found] = field(default_factory=OrderedDict)
    _turns: OrderedDict[Path, RolloutTurn] = field(default_factory=OrderedDict)

    def hear(self, payload: HookPayload, at: float) -> None:
        """Take a hook, before it is answered."""
        thread = payload.thread
        if not thread:
            return
        if payload.agent_id:
            _remember(self._children, thread, payload.session_id)
        elif payload.hook_event_name != "SessionEnd":  # it comes long after its thread was left
            _remember(self._heard, thread, at)
        if payload.hook_event_name == HELD_HOOK:
            _remember(self._asks, thread, OpenAsk(payload.tool_name or "", payload.command, at))
        elif payload.hook_event_name not in BESIDE or self._is_asked(thread, payload):
            self._asks.pop(thread, None)

    def _is_asked(self, thread: str, payload: HookPayload) -> bool:
        """Whether it tells of the call that is asked about: several calls run side by side."""
        asked = self._asks.get(thread)
        called = payload.hook_event_name == "PostToolUse"
        return called and asked is not None and (payload.tool_name, payload.command) == (asked.tool, asked.call)

    def client_state(self, config: str, pid: int) -> ClientState | None:
        found = self._look(config, pid)
        current = self._current(found.threads) if found is not None else None
        if found is None or current is None:
            return None
        match run_state(found.pid):
            case RunState.GONE:
                self._found.pop(pid, None)
                return None
            case RunState.STOPPED:
                return ClientState(Activity.STOPPED, STOPPED.format(pid=found.pid), current.id)
        return self._activity(found, current)

    def _activity(self, found: _Found, current: OpenThread) -> ClientState:
        """The lock of a new thread is there before its first prompt, with which its first hook comes."""
        turn = self._turn(current)
        runs = turn.runs(current.since)
        asked = self._asked(found, current)
        activity, detail, since = Activity.BUSY if runs else Activity.IDLE, "", turn.since
        if asked is not None:
            activity, detail, since = Activity.WAITING, ASKS.format(asked.tool), asked.at
        elif runs and turn.question:
            activity, detail = Activity.WAITING, QUESTION
        return ClientState(activity, detail, current.id, since, leads=True)

    def _look(self, config: str, pid: int) -> _Found | None:
        """Look through the process's files only where a thread was opened or left, or has yet to get its rollout."""
        known, changed = self._found.get(pid), threads.changed(config)
        if known is not None and known.changed == changed and known.complete:
            return known
        client = known.pid if known is not None else threads.client_process(Path(config), pid)
        opened = threads.open_threads(Path(config), client) if client is not None else []
        if client is None or not opened:
            self._found.pop(pid, None)
            return None
        now = time.clock_gettime(time.CLOCK_MONOTONIC)
        since = known.since if known is not None and known.changed == changed else now
        found = _Found(client, changed, since, now, tuple(opened))
        _remember(self._found, pid, found)
        return found

    def _current(self, opened: tuple[OpenThread, ...]) -> OpenThread | None:
        """The thread that the user sees: the newest, unless the hooks of one that was opened before came later."""
        shown = [thread for thread in opened if not threads.is_subagents(thread)]
        return max(shown, key=lambda thread: max(thread.since, self._heard.get(thread.id, 0.0)), default=None)

    def _turn(self, thread: OpenThread) -> RolloutTurn:
        if thread.rollout is None:
            return RolloutTurn(Path())
        turn = self._turns.get(thread.rollout) or RolloutTurn(thread.rollout)
        _remember(self._turns, thread.rollout, turn)
        turn.follow()
        return turn

    def _asked(self, found: _Found, current: OpenThread) -> OpenAsk | None:
        """What the client asks its user in that thread, or in one of its subagents', if the turn there still runs."""
        for thread in found.threads:
            asked = self._asks.get(thread.id)
            owner = self._children.get(thread.id, thread.id)
            if asked is None or owner != current.id:
                continue
            if self._turn(thread).runs(thread.since) and not asked.has_begun(found.pid):
                return asked
            self._asks.pop(thread.id)
        return None


BESIDE = frozenset({"PreToolUse", "PostToolUse"})
"""Hooks of one call, beside which another may wait for its permission."""


def _started(pid: int) -> float:
    """When a process was started, in seconds since the machine was."""
    ticks = start_time(pid)
    return int(ticks) / os.sysconf("SC_CLK_TCK") if ticks.isdecimal() else float("inf")


Key = TypeVar("Key")
Value = TypeVar("Value")


def _remember(memory: OrderedDict[Key, Value], key: Key, value: Value) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > MAX_REMEMBERED:
        memory.popitem(last=False)
