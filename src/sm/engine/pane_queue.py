"""One writer per pane: a session's commands to its pane run one at a time, and the newest replaces the one before.

A command gives way before its next key, never between its text and the Enter that belongs to it without taking the text
back; the next one starts only after that. Results name the command's step.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.errors import SmError
from sm.core.ports.clock import Clock
from sm.core.ports.documents import Documents
from sm.core.ports.panes import Pane, PaneError
from sm.core.ports.provider import Driver, Leave, ReadyOptions, TranscriptEvidence
from sm.engine.errors import logged

log = structlog.get_logger()
SNAPSHOT_TIMEOUT_S = 10.0
WITHDRAW_INTERVAL_S = 0.1
BEING_WRITTEN = "the handoff document is being written"


@dataclass(slots=True)
class PaneWriter:
    """What types into one session's pane and looks at it."""

    session: str
    transcripts: TranscriptEvidence
    pane: Pane | None
    """None where nothing can be typed: the user's own terminal."""
    driver: Driver
    documents: Documents
    clock: Clock


@dataclass(slots=True)
class PaneQueue:
    put: Callable[[ev.Event], None]
    clock: Clock
    writer: PaneWriter | None = None
    """None while there is no client to type to."""
    restart: ef.RestartClient | None = None
    """The command that waits for `sm run` to take it."""
    awaited: asyncio.Future[None] | None = None
    """Done once there is one."""
    document_written: asyncio.Event | None = None
    """Set once the document that the next context begins from says what the agent did last."""
    snapshot_kept: asyncio.Task[None] | None = None
    """Writes what the pane has shown, while the client is cleared: a long history takes longer than the clear."""
    _newest: ef.PaneCommand | None = None
    _woken: asyncio.Event = field(default_factory=asyncio.Event)

    def give(self, command: ef.PaneCommand) -> None:
        self._newest, self.restart = command, None
        self._woken.set()

    async def offer(self, seconds: float) -> ef.RestartClient | None:
        """Return the command that waits for `sm run`, or the next one to come within so many seconds."""
        if self.restart is None:
            self.awaited = self.awaited or asyncio.get_running_loop().create_future()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await asyncio.shield(self.awaited)
        return self.restart

    def release(self) -> None:
        """Answer whoever waits for a command."""
        if self.awaited is not None and not self.awaited.done():
            self.awaited.set_result(None)
        self.awaited = None

    async def run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            command = self._newest
            if command is not None:
                await self._carry_out(command)

    async def _carry_out(self, command: ef.PaneCommand) -> None:
        def leave() -> bool:
            return self._newest is not command

        function = FUNCTIONS[type(command)]
        if self.writer is None:
            return
        result: ev.Event | None = None
        with logged("pane command failed", session=self.writer.session, what=type(command).__name__) as attempt:
            result = await function(self, command, self.writer, leave)
        if attempt.problem is not None:
            reason = f"sm failed at it: {type(attempt.problem).__name__}"
            result = ev.TypingRefused(at=self.clock.now(), step=command.step, reason=reason)
        if result is not None:
            self.put(result)


Function = Callable[[PaneQueue, ef.PaneCommand, PaneWriter, Leave], Awaitable[ev.Event | None]]


async def _await_composer(
    queue: PaneQueue, command: ef.AwaitComposer, writer: PaneWriter, leave: Leave
) -> ev.Event | None:
    def held(reason: str) -> None:
        queue.put(ev.ComposerHeld(at=writer.clock.now(), step=command.step, reason=reason))

    while writer.clock.now() < command.after and not leave():
        await asyncio.sleep(0.05)
    if queue.document_written is not None:  # the client is cleared or ended next, and the new context reads it at once
        if not queue.document_written.is_set():
            held(BEING_WRITTEN)
        await queue.document_written.wait()
    if await writer.driver.ready(ReadyOptions(command.own, patience=command.patience), held, leave):
        return ev.ComposerReady(at=writer.clock.now(), step=command.step)
    return None


async def _await_box(queue: PaneQueue, command: ef.AwaitBox, writer: PaneWriter, leave: Leave) -> ev.Event | None:
    def held(reason: str) -> None:
        queue.put(ev.ComposerHeld(at=writer.clock.now(), step=command.step, reason=reason))

    if await writer.driver.ready(ReadyOptions(command.own, busy=True, patience=0.0), held, leave):
        return ev.BoxFree(at=writer.clock.now(), step=command.step)
    return None


async def _take_snapshot(
    queue: PaneQueue, command: ef.TakeSnapshot, writer: PaneWriter, leave: Leave
) -> ev.Event | None:
    del leave  # a snapshot presses no key
    if writer.pane is None:  # the terminal is the user's own
        return ev.SnapshotTaken(at=writer.clock.now(), step=command.step, path=None)
    try:
        async with asyncio.timeout(SNAPSHOT_TIMEOUT_S):
            text = await writer.pane.history()
        path = await asyncio.to_thread(_place_snapshot, writer) if text.strip() else None
    except (OSError, TimeoutError, PaneError, SmError) as problem:
        log.warning("snapshot failed", session=writer.session, problem=type(problem).__name__)
        path = None
    if path is not None:
        queue.snapshot_kept = asyncio.create_task(_keep_snapshot(writer, path, text))  # noqa: TID251  # it logs its own
    return ev.SnapshotTaken(at=writer.clock.now(), step=command.step, path=path)


def _place_snapshot(writer: PaneWriter) -> str:
    return writer.documents.place_snapshot(writer.session, writer.clock.now())


async def _keep_snapshot(writer: PaneWriter, path: str, text: str) -> None:
    with logged("snapshot not kept", session=writer.session):
        await asyncio.to_thread(writer.documents.keep_snapshot, path, text)


async def _type_text(_: PaneQueue, command: ef.TypeText, writer: PaneWriter, leave: Leave) -> ev.Event | None:
    return await _typed(writer, command, writer.driver.prompt(command.text, leave, now=command.now))


async def _clear_context(_: PaneQueue, command: ef.ClearContext, writer: PaneWriter, leave: Leave) -> ev.Event | None:
    return await _typed(writer, command, writer.driver.clear(leave))


async def _typed(writer: PaneWriter, command: ef.PaneCommand, typing: Awaitable[str | None]) -> ev.Event:
    try:
        refused = await typing
    except PaneError as problem:
        refused = str(problem)
    if refused is not None:
        return ev.TypingRefused(at=writer.clock.now(), step=command.step, reason=refused)
    return ev.Typed(at=writer.clock.now(), step=command.step)


async def _find_prompt(_: PaneQueue, command: ef.FindPrompt, writer: PaneWriter, leave: Leave) -> ev.Event | None:
    del leave
    path = command.transcript
    text = writer.transcripts.submitted(path, command.digest, command.position) if path else None
    at = writer.clock.now()
    if text is None:
        return ev.PromptMissing(at=at, step=command.step)
    return ev.PromptSubmitted(at=at, conversation=command.conversation, text=text, replayed=True)


async def _restart_client(
    queue: PaneQueue, command: ef.RestartClient, writer: PaneWriter, leave: Leave
) -> ev.Event | None:
    """Hand the command to `sm run`, which waits for it; the client's own hooks and files show what it does."""
    del writer, leave
    queue.restart = command
    queue.release()
    return None


async def _leave_pane(_: PaneQueue, __: ef.LeavePane, writer: PaneWriter, leave: Leave) -> ev.Event | None:
    """Leave nothing that `sm` has typed in the box: perhaps nothing else is ever typed there."""
    with contextlib.suppress(PaneError):
        while not leave() and await writer.driver.withdraw() is not None:
            await asyncio.sleep(WITHDRAW_INTERVAL_S)
    return None


FUNCTIONS: dict[type[ef.PaneCommand], Function] = dict(
    (
        ev.on(ef.AwaitComposer, _await_composer),
        ev.on(ef.AwaitBox, _await_box),
        ev.on(ef.TakeSnapshot, _take_snapshot),
        ev.on(ef.ClearContext, _clear_context),
        ev.on(ef.TypeText, _type_text),
        ev.on(ef.FindPrompt, _find_prompt),
        ev.on(ef.RestartClient, _restart_client),
        ev.on(ef.LeavePane, _leave_pane),
    )
)
