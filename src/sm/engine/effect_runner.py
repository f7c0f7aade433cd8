"""One function per effect. What takes time runs behind, in the engine's task group, and comes back as an event."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.errors import SmError
from sm.core.model.forked_document import FORK_PROMPT, FORK_TIMEOUT_S, MAX_FORK_CHARACTERS, forked_document
from sm.core.model.framing import cleaned, defused
from sm.core.model.handoff import Artefacts, Handoff, HandoffType, LoadedHandoff, loaded_block
from sm.core.model.session import Session, Status
from sm.core.ports.clock import Clock
from sm.core.ports.documents import Documents
from sm.core.ports.policies import Policies
from sm.core.ports.provider import ClientOrder, NoAnswerError, TranscriptEvidence
from sm.engine.actor import Actor
from sm.engine.context_reader import SETTLE_INTERVALS_S, ContextReaders
from sm.engine.foreground_terminal import signal_client
from sm.engine.messages import Messages
from sm.engine.tasks import Spawn
from sm.engine.ticket import ReplyDraft
from sm.engine.transcripts import shows_progress, transcript_of

log = structlog.get_logger()
WHOLE_CHARACTERS = 150_000
"""Of a document that the plugin in the client gives; as many arrived whole (2.1.328)."""
LAST_RECORD_INTERVALS_S = (0.0, *SETTLE_INTERVALS_S, *SETTLE_INTERVALS_S, 0.2, 0.4, 0.8)
"""Pauses before the transcript is looked at for the last record of a turn: a busy machine delays it by a second."""


@dataclass(frozen=True, slots=True)
class EffectRunner:
    documents: Documents
    clock: Clock
    providers: Mapping[str, TranscriptEvidence]
    spawn: Spawn
    messages: Messages
    end: Callable[[str], None]
    """Begin to end a session's client."""
    policies: Policies
    note: Callable[[str], None]
    """A handoff's row of this channel has changed."""
    context_readers: ContextReaders
    switch: Callable[[Actor], None]
    """Begin to exchange a session's client for another."""

    def run_effect(self, actor: Actor, effect: ef.Effect, reply: ReplyDraft) -> None:
        FUNCTIONS[type(effect)](self, effect, actor, reply)


def _add_context(_: EffectRunner, effect: ef.AddContext, __: Actor, reply: ReplyDraft) -> None:
    reply.context.append(effect.text)
    reply.notices.extend(effect.notices)
    reply.messages.extend(effect.messages)


def _inject_handoff(runner: EffectRunner, effect: ef.InjectHandoff, actor: Actor, reply: ReplyDraft) -> None:
    handoff = effect.handoff
    late = 0.0
    try:
        document = runner.documents.text(handoff)
        late = (effect.until or handoff.created) - runner.documents.written(handoff)
    except (OSError, SmError) as problem:
        log.warning("handoff document cannot be used", handoff=handoff.id, problem=type(problem).__name__)
        reason = problem.strerror if isinstance(problem, OSError) else problem.refused.message
        document = f"(The document cannot be read: {reason}. Its path: {handoff.shown_path})"
    if handoff.readable and not runner.documents.holds(handoff):
        handoff = replace(handoff, readable=False)
    directory = actor.session.directory
    instructions, here = runner.policies.instructions(directory), runner.documents.location(directory)
    artefacts = _artefacts(runner, handoff.session, effect.snapshot)
    loaded = LoadedHandoff(handoff, document, artefacts, instructions, late, here, effect.said, actor.session.scope)
    block = loaded_block(loaded, actor.traits)
    cut = defused(document, actor.traits).rstrip("\n") not in block
    if cut and actor.session.driver is ev.DrivenBy.MOD:
        reply.whole = loaded_block(loaded, replace(actor.traits, reply_characters=WHOLE_CHARACTERS))
    elif cut:
        log.info("handoff document cut", handoff=handoff.id, characters=len(document))
    # The reply's limit is for all of it: the document outranks whatever else this hook would have said.
    reply.context[:] = [block]
    reply.document = handoff.id


def _artefacts(runner: EffectRunner, session: str, snapshot: str | None) -> Artefacts:
    """Return what there is to look into of the session that handed off; of the user's own file nothing is known."""
    if not session:
        return Artefacts(snapshot=snapshot)
    log, whole = runner.documents.log_kept(session)
    return Artefacts("" if log is None else str(log), snapshot, whole=whole, session=session)


def _record_handoff(runner: EffectRunner, effect: ef.RecordHandoff, _: Actor, __: ReplyDraft) -> None:
    """The row is on disk with its event; the manifest follows."""
    runner.note(effect.handoff.channel)


def _block(
    _: EffectRunner, effect: ef.BlockPrompt | ef.DenyTool | ef.BlockCompaction, __: Actor, reply: ReplyDraft
) -> None:
    reply.block = effect.reason


def _refresh_document(runner: EffectRunner, effect: ef.RefreshDocument, actor: Actor, _: ReplyDraft) -> None:
    handoff, current = effect.handoff, actor.session.conversation
    if handoff.type is HandoffType.COMPACTION:
        if current is not None and current.id == handoff.conversation and not effect.written:
            actor.pane_queue.document_written = written = asyncio.Event()
            runner.spawn(_make_again(runner, actor, effect, written))
    elif effect.written:
        runner.documents.refresh(handoff, effect.written, runner.clock.now())
    elif handoff.readable and not runner.documents.holds(handoff):
        log.warning("the handoff's file holds something else; the kept copy serves", handoff=handoff.id)
        actor.put(ev.DocumentGone(at=runner.clock.now(), handoff=handoff.id))


async def _make_again(runner: EffectRunner, actor: Actor, effect: ef.RefreshDocument, written: asyncio.Event) -> None:
    """Add to the document what the agent has done since, the last record of a turn that is over too; set `written`."""
    session, handoff = actor.session, effect.handoff
    provider = runner.providers[session.provider]
    transcript = transcript_of(provider, session)
    try:
        answer, problem = await _forked(runner, actor, handoff) if effect.fork else ("", "")
        if transcript is None:
            return
        is_over = session.at_prompt or session.status is Status.BLOCKED
        for pause in LAST_RECORD_INTERVALS_S if is_over else ():
            await asyncio.sleep(pause)
            if provider.finished(transcript):
                break
        facts = await _document(runner, session, transcript)
        text = forked_document(answer, facts) if answer else facts
        await asyncio.to_thread(runner.documents.rewrite, handoff, text, runner.clock.now())
        if effect.fork:
            actor.put(ev.DocumentForked(at=runner.clock.now(), handoff=handoff.id, problem=problem))
    finally:
        written.set()


async def _forked(runner: EffectRunner, actor: Actor, handoff: Handoff) -> tuple[str, str]:
    """Return what a fork of the agent's model answers, as it may be kept, or an empty text and why there is none."""
    number = -int(handoff.created * 1000)
    try:
        async with asyncio.timeout(FORK_TIMEOUT_S):
            result = await actor.link.ask(ClientOrder("fork", FORK_PROMPT), number)
    except TimeoutError:
        return "", "no answer in time"
    except NoAnswerError as problem:
        return "", str(problem)
    text = cleaned(result.text)[:MAX_FORK_CHARACTERS]
    answer = await asyncio.to_thread(runner.documents.without_secrets, text)
    return answer, result.refused or ("" if answer else "an empty answer")


async def _document(runner: EffectRunner, session: Session, transcript: str) -> str:
    write = runner.providers[session.provider].auto_handoff
    return await asyncio.to_thread(write, transcript, session.directory, session.policy.leaves_out)


def _tell_user(_: EffectRunner, effect: ef.TellUser, actor: Actor, reply: ReplyDraft) -> None:
    log.warning("told the user", session=actor.session.id, what=effect.text)
    reply.shown = effect.text


def _keep_document(runner: EffectRunner, effect: ef.KeepDocument, actor: Actor, _: ReplyDraft) -> None:
    runner.spawn(_keep(runner, actor, Path(effect.path)))


async def _keep(runner: EffectRunner, actor: Actor, path: Path) -> None:
    at = runner.clock.now()
    try:
        handoff = await asyncio.to_thread(runner.documents.schedule, actor.session, path, at, "", HandoffType.MANUAL)
    except SmError as problem:
        log.warning("document not kept", session=actor.session.id, code=problem.refused.code)
        return
    actor.put(ev.DocumentKept(at=runner.clock.now(), handoff=handoff))


def _make_document(runner: EffectRunner, effect: ef.MakeDocument, actor: Actor, _: ReplyDraft) -> None:
    runner.spawn(_make_and_keep(runner, actor, actor.session, effect))


async def _make_and_keep(runner: EffectRunner, actor: Actor, session: Session, effect: ef.MakeDocument) -> None:
    """Make and keep it in a thread: a long transcript takes seconds. Without one nothing is rotated."""
    current, at = session.conversation, runner.clock.now()
    provider = runner.providers[session.provider]
    transcript = transcript_of(provider, session)
    if current is None or transcript is None:
        log.warning("no transcript to make a document of", session=session.id)
        return
    if effect.kind is HandoffType.CRASH and not await asyncio.to_thread(provider.resumable, transcript):
        return  # nothing has been done yet
    text = await _document(runner, session, transcript)
    handoff = await asyncio.to_thread(runner.documents.keep, session, text, effect.kind, at)
    progress = not effect.rotate or await asyncio.to_thread(shows_progress, provider, session)
    actor.put(ev.DocumentKept(at=runner.clock.now(), handoff=handoff, rotate=effect.rotate, progress=progress))


def _tell_parent(runner: EffectRunner, effect: ef.TellParent, actor: Actor, _: ReplyDraft) -> None:
    log.warning("told the parent", session=actor.session.id, what=effect.text)
    if actor.session.parent is not None:
        runner.messages.tell(actor.session.parent, effect.text)


def _end_client(runner: EffectRunner, _: ef.Effect, actor: Actor, __: ReplyDraft) -> None:
    signal_client(actor.session, signal.SIGTERM)
    runner.end(actor.session.id)


def _switch_client(runner: EffectRunner, _: ef.Effect, actor: Actor, __: ReplyDraft) -> None:
    runner.switch(actor)


def _fetch_messages(runner: EffectRunner, effect: ef.FetchMessages, actor: Actor, _: ReplyDraft) -> None:
    runner.spawn(runner.messages.fetch(actor, effect))


def _find_messages(runner: EffectRunner, effect: ef.FindMessages, actor: Actor, _: ReplyDraft) -> None:
    runner.spawn(runner.messages.find(actor, effect))


def _read_context(runner: EffectRunner, effect: ef.ReadContext, actor: Actor, _: ReplyDraft) -> None:
    runner.context_readers.read(actor, effect)


Function = Callable[[EffectRunner, ef.Effect, Actor, ReplyDraft], None]
FUNCTIONS: dict[type[ef.Effect], Function] = dict(
    (
        ev.on(ef.AddContext, _add_context),
        ev.on(ef.InjectHandoff, _inject_handoff),
        ev.on(ef.RecordHandoff, _record_handoff),
        ev.on(ef.BlockPrompt, _block),
        ev.on(ef.DenyTool, _block),
        ev.on(ef.ReadContext, _read_context),
        ev.on(ef.RefreshDocument, _refresh_document),
        ev.on(ef.FetchMessages, _fetch_messages),
        ev.on(ef.FindMessages, _find_messages),
        ev.on(ef.TellParent, _tell_parent),
        ev.on(ef.BlockCompaction, _block),
        ev.on(ef.TellUser, _tell_user),
        ev.on(ef.KeepDocument, _keep_document),
        ev.on(ef.MakeDocument, _make_document),
        ev.on(ef.EndClient, _end_client),
        ev.on(ef.SwitchClient, _switch_client),
    )
)
