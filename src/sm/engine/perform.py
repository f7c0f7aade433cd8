"""One function per effect. What takes time runs behind, in the engine's task group, and comes back as an event."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path

import structlog

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.context import ContextReading, is_due
from sm.core.errors import SmError
from sm.core.handoff import Artefacts, Handoff, HandoffType, Loaded, loaded_block
from sm.core.ports import Clock, Documents, Policies, Provider, Transcript
from sm.core.session import Session
from sm.engine.actor import Actor, Reply
from sm.engine.mail import Mail
from sm.engine.terminal import signal_client

log = structlog.get_logger()
SETTLE = (0.04, 0.06, 0.1)
"""Pauses before the newest record is looked for again: it lands 13 to 190 ms after its hook (2.1.328)."""

Spawn = Callable[[Coroutine[object, object, None]], None]


@dataclass(slots=True)
class Meter:
    """Reads one session's context; one reading at a time, requests meanwhile are one more."""

    transcript: Transcript
    path: str
    last: ContextReading | None = None
    busy: bool = False
    caught_up: bool = False
    counting: bool = False
    again: ef.ReadContext | None = None


@dataclass(slots=True)
class Performer:
    documents: Documents
    clock: Clock
    providers: dict[str, Provider]
    spawn: Spawn
    mail: Mail
    end: Callable[[str], None]
    """Begin to end a session's client."""
    policies: Policies
    note: Callable[[str], None]
    """A handoff's row of this channel has changed."""
    meters: dict[str, Meter] = field(default_factory=dict)

    def perform(self, actor: Actor, effect: ef.Effect, reply: Reply) -> None:
        PERFORM[type(effect)](self, actor, effect, reply)


def _add_context(_: Performer, __: Actor, effect: ef.Effect, reply: Reply) -> None:
    assert isinstance(effect, ef.AddContext)
    reply.context.append(effect.text)
    reply.notices.extend(effect.notices)
    reply.messages.extend(effect.messages)


def _inject_handoff(performer: Performer, actor: Actor, effect: ef.Effect, reply: Reply) -> None:
    assert isinstance(effect, ef.InjectHandoff)
    handoff = effect.handoff
    late = 0.0
    try:
        document = performer.documents.text(handoff)
        late = (effect.until or handoff.created) - performer.documents.written(handoff)
    except (OSError, SmError) as problem:
        log.warning("handoff document cannot be used", handoff=handoff.id, problem=type(problem).__name__)
        reason = problem.strerror if isinstance(problem, OSError) else problem.refused.message
        document = f"(The document cannot be read: {reason}. Its path: {handoff.told_path})"
    artefacts = Artefacts(str(performer.documents.log(handoff.session or actor.session.id)), effect.snapshot)
    instructions = performer.policies.instructions(actor.session.directory)
    block = loaded_block(Loaded(handoff, document, artefacts, instructions, late))
    if document.rstrip("\n") not in block:
        log.info("handoff document cut", handoff=handoff.id, characters=len(document))
    # The reply's limit is for all of it: the document outranks whatever else this hook would have said.
    reply.context[:] = [block]


def _record_handoff(performer: Performer, _: Actor, effect: ef.Effect, __: Reply) -> None:
    """The row is on disk with its event; the manifest follows."""
    assert isinstance(effect, ef.RecordHandoff)
    performer.note(effect.handoff.channel)


def _block_prompt(_: Performer, __: Actor, effect: ef.Effect, reply: Reply) -> None:
    assert isinstance(effect, ef.BlockPrompt)
    reply.block = effect.reason


def _deny_tool(_: Performer, __: Actor, effect: ef.Effect, reply: Reply) -> None:
    assert isinstance(effect, ef.DenyTool)
    reply.block = effect.reason


def _refresh_document(performer: Performer, actor: Actor, effect: ef.Effect, _: Reply) -> None:
    assert isinstance(effect, ef.RefreshDocument)
    if effect.handoff.type is HandoffType.COMPACTION:
        performer.spawn(_account_again(performer, actor.session, effect.handoff))
    elif effect.handoff.readable and not performer.documents.refresh(effect.handoff):
        log.warning("handoff file is gone; the copy taken at scheduling serves", handoff=effect.handoff.id)
        actor.put(ev.DocumentGone(at=performer.clock.now(), handoff=effect.handoff.id))


async def _account_again(performer: Performer, session: Session, handoff: Handoff) -> None:
    """What the agent has done since belongs into its document, once the turn's last record is there."""
    transcript = session.conversation.transcript if session.conversation else None
    if transcript is None:
        return
    provider = performer.providers[session.provider]
    for pause in (0.0, *SETTLE, *SETTLE):
        await asyncio.sleep(pause)
        if provider.finished(transcript):
            break
    text = await _document(performer, session, transcript)
    await asyncio.to_thread(performer.documents.rewrite, handoff, text, performer.clock.now())


async def _document(performer: Performer, session: Session, transcript: str) -> str:
    write = performer.providers[session.provider].account
    return await asyncio.to_thread(write, transcript, session.directory, session.policy.leaves_out)


def _block_compaction(_: Performer, __: Actor, effect: ef.Effect, reply: Reply) -> None:
    assert isinstance(effect, ef.BlockCompaction)
    reply.block = effect.reason


def _tell_person(_: Performer, actor: Actor, effect: ef.Effect, reply: Reply) -> None:
    assert isinstance(effect, ef.TellPerson)
    log.warning("told the person", session=actor.session.id, what=effect.text)
    reply.shown = effect.text


def _keep_document(performer: Performer, actor: Actor, effect: ef.Effect, _: Reply) -> None:
    assert isinstance(effect, ef.KeepDocument)
    performer.spawn(_keep(performer, actor, Path(effect.path)))


async def _keep(performer: Performer, actor: Actor, path: Path) -> None:
    at = performer.clock.now()
    try:
        handoff = await asyncio.to_thread(performer.documents.schedule, actor.session, path, at, "", HandoffType.MANUAL)
    except SmError as problem:
        log.warning("document not kept", session=actor.session.id, code=problem.refused.code)
        return
    actor.put(ev.DocumentKept(at=performer.clock.now(), handoff=handoff))


def _make_document(performer: Performer, actor: Actor, effect: ef.Effect, _: Reply) -> None:
    assert isinstance(effect, ef.MakeDocument)
    performer.spawn(_account(performer, actor, actor.session, effect))


async def _account(performer: Performer, actor: Actor, session: Session, effect: ef.MakeDocument) -> None:
    """Make and keep it in a thread: a long transcript takes seconds. Without one nothing is rotated."""
    current, at = session.conversation, performer.clock.now()
    if current is None or current.transcript is None:
        log.warning("no transcript to make a document of", session=session.id)
        return
    resumable = performer.providers[session.provider].resumable
    if effect.kind is HandoffType.CRASH and not await asyncio.to_thread(resumable, current.transcript):
        return  # nothing has been done yet
    text = await _document(performer, session, current.transcript)
    handoff = await asyncio.to_thread(performer.documents.keep, session, text, effect.kind, at)
    actor.put(ev.DocumentKept(at=performer.clock.now(), handoff=handoff, rotate=effect.rotate))


def _tell_parent(performer: Performer, actor: Actor, effect: ef.Effect, _: Reply) -> None:
    assert isinstance(effect, ef.TellParent)
    log.warning("handoff too late", session=actor.session.id, what=effect.text)
    if actor.session.parent is not None:
        performer.mail.tell(actor.session.parent, effect.text)


def _end_client(performer: Performer, actor: Actor, _: ef.Effect, __: Reply) -> None:
    signal_client(actor.session, signal.SIGTERM)
    performer.end(actor.session.id)


def _fetch_messages(performer: Performer, actor: Actor, effect: ef.Effect, _: Reply) -> None:
    assert isinstance(effect, ef.FetchMessages)
    performer.spawn(performer.mail.fetch(actor, effect))


def _find_messages(performer: Performer, actor: Actor, effect: ef.Effect, _: Reply) -> None:
    assert isinstance(effect, ef.FindMessages)
    performer.spawn(performer.mail.find(actor, effect))


def _read_context(performer: Performer, actor: Actor, effect: ef.Effect, _: Reply) -> None:
    assert isinstance(effect, ef.ReadContext)
    if effect.transcript is None:
        return
    meter = performer.meters.get(actor.session.id)
    if meter is None or meter.path != effect.transcript:
        provider = performer.providers[actor.session.provider]
        meter = Meter(provider.transcript(effect.transcript), effect.transcript)
        performer.meters[actor.session.id] = meter
    if meter.busy:
        meter.again = effect
        return
    if meter.caught_up:
        meter.caught_up = False  # the hook's own reading has just found this call's record
        return
    meter.busy = True
    performer.spawn(_measure(performer, actor, meter, effect))


async def _measure(performer: Performer, actor: Actor, meter: Meter, order: ef.ReadContext) -> None:
    try:
        while True:
            await _read_until_news(performer, actor, meter, order)
            if meter.again is None:
                return
            order, meter.again = meter.again, None
    finally:
        meter.busy = False


async def _read_until_news(performer: Performer, actor: Actor, meter: Meter, order: ef.ReadContext) -> None:
    for pause in (0.0, *(SETTLE if order.settle else ())):
        await asyncio.sleep(pause)
        cold = meter.last is None
        reading = await asyncio.to_thread(meter.transcript.read) if cold else meter.transcript.read()
        if reading == meter.last:
            continue
        meter.last = reading
        _report(performer, actor, reading, order)
        if not cold:
            return


def catch_up(performer: Performer, actor: Actor) -> None:
    """Read what has been written since, before a tool call is judged: a warning then rides on this call's own reply.

    The record of a call that took more than about 0.1 s is on disk by now. Never the first reading, which may be long.
    """
    current = actor.session.conversation
    meter = performer.meters.get(actor.session.id)
    if current is None or not is_due(current.monitor.tool_calls + 1, actor.session.policy):
        return
    if meter is None or meter.last is None or meter.path != current.transcript:
        return
    reading = meter.transcript.read()
    if reading != meter.last:
        meter.last, meter.caught_up = reading, True
        _report(performer, actor, reading, ef.ReadContext(current.id, current.transcript, current.epoch))


def _report(performer: Performer, actor: Actor, reading: ContextReading, order: ef.ReadContext) -> None:
    session = actor.session
    told = replace(reading, window=reading.window or session.window)
    provider, assumed = performer.providers[session.provider], session.policy.assumed_window
    sized, usable = provider.sized(told, session.auto_compact, assumed)
    at = performer.clock.now()
    actor.put(ev.ContextRead(at=at, conversation=order.conversation, epoch=order.epoch, reading=sized, usable=usable))


def count_in_background(performer: Performer, actor: Actor) -> None:
    """Count the whole file's replies and compactions behind, and tell it: an idle agent is not read again."""
    meter = performer.meters.get(actor.session.id)
    if meter is not None and not meter.counting:
        meter.counting = True
        performer.spawn(_count(performer, actor, meter))


async def _count(performer: Performer, actor: Actor, meter: Meter) -> None:
    try:
        while not await asyncio.to_thread(meter.transcript.scan):
            await asyncio.sleep(0.05)
    finally:
        meter.counting = False
    current = actor.session.conversation
    if current is not None and current.transcript == meter.path:
        _read_context(performer, actor, ef.ReadContext(current.id, meter.path, current.epoch), Reply())


Function = Callable[[Performer, Actor, ef.Effect, Reply], None]
PERFORM: dict[type[ef.Effect], Function] = {
    ef.AddContext: _add_context,
    ef.InjectHandoff: _inject_handoff,
    ef.RecordHandoff: _record_handoff,
    ef.BlockPrompt: _block_prompt,
    ef.DenyTool: _deny_tool,
    ef.ReadContext: _read_context,
    ef.RefreshDocument: _refresh_document,
    ef.FetchMessages: _fetch_messages,
    ef.FindMessages: _find_messages,
    ef.TellParent: _tell_parent,
    ef.BlockCompaction: _block_compaction,
    ef.TellPerson: _tell_person,
    ef.KeepDocument: _keep_document,
    ef.MakeDocument: _make_document,
    ef.EndClient: _end_client,
}
