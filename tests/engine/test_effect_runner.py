"""Readings of the context: one at a time, and however many were asked for meanwhile, one more."""

import asyncio
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import get_args

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.errors import error
from sm.core.model.channel import Location
from sm.core.model.context import ContextReading, Policy, Source
from sm.core.model.forked_document import FACTS, FORK_PROMPT, HEAD, MAX_FORK_CHARACTERS
from sm.core.model.handoff import HandoffType
from sm.core.ports.provider import ClientOrder, NoAnswerError, OrderResult
from sm.engine.context_reader import ContextReaders
from sm.engine.effect_runner import FUNCTIONS, EffectRunner
from sm.engine.pane_queue import PaneQueue
from sm.engine.ticket import ReplyDraft
from sm.providers.claude.traits import CLAUDE
from tests.core.playbook import HANDOFF, idle_session
from tests.fakes.clock import FakeClock, run_on_virtual_time


class SlowTranscript:
    """Its first reading lasts until it is let go; each has one token more."""

    def __init__(self):
        self.go = threading.Event()
        self.readings = 0

    def read(self):
        self.go.wait(10)
        self.readings += 1
        return ContextReading(tokens=self.readings, source=Source.USAGE)


class FakeProvider:
    def __init__(self):
        self.slow, self.moved_to = SlowTranscript(), None

    def found_transcript(self, config, conversation):
        return self.moved_to

    def transcript(self, path):
        return self.slow

    def sized(self, reading, limits, assumed):
        return reading, assumed or 100


class FakeActor:
    def __init__(self):
        self.session, self.traits = idle_session(), CLAUDE
        self.events = []

    def put(self, event, ticket=None):
        self.events.append(event)


class NoDocuments:
    def text(self, handoff):
        raise FileNotFoundError(2, "No such file or directory")

    def holds(self, handoff):
        return True

    def location(self, directory):
        return Location(directory)

    def log_kept(self, session):
        return None, True


class NoInstructions:
    def instructions(self, directory):
        return ""


def runner_of(documents, provider, group):
    providers, clock = {"claude": provider}, FakeClock()
    return EffectRunner(
        documents=documents,
        clock=clock,
        providers=providers,
        spawn=group.create_task,
        messages=None,
        end=None,
        policies=NoInstructions(),
        note=lambda _: None,
        context_readers=ContextReaders(clock, providers, group.create_task),
        switch=lambda _: None,
    )


@pytest.fixture
async def performing():
    provider = FakeProvider()
    async with asyncio.TaskGroup() as group:
        runner = runner_of(NoDocuments(), provider, group)
        yield runner, FakeActor(), provider.slow


READ = ef.ReadContext("c0", "/t0", 0)


async def seen(actor, count):
    async with asyncio.timeout(5):
        while len(actor.events) < count:
            await asyncio.sleep(0.001)


async def test_readings_asked_for_while_one_is_taken_are_one_more(performing):
    runner, actor, transcript = performing
    for _ in range(20):
        runner.run_effect(actor, READ, ReplyDraft())
        await asyncio.sleep(0)
    transcript.go.set()
    await seen(actor, 2)
    await asyncio.sleep(0.05)
    assert [event.reading.tokens for event in actor.events] == [1, 2]


async def test_the_first_reading_is_never_taken_while_a_hook_waits(performing):
    runner, actor, transcript = performing
    runner.run_effect(actor, READ, ReplyDraft())
    runner.context_readers.catch_up(actor)
    assert actor.events == []
    transcript.go.set()
    await seen(actor, 1)
    runner.context_readers.catch_up(actor)
    assert [event.reading.tokens for event in actor.events] == [1, 2]


async def test_a_report_of_the_size_that_was_read_last_brings_the_weight_of_its_reply(performing):
    runner, actor, transcript = performing
    transcript.go.set()
    runner.run_effect(actor, READ, ReplyDraft())
    await seen(actor, 1)
    [read] = actor.events
    for tokens, kinds in (
        (read.reading.tokens, [ev.ContextReported, ev.ContextRead]),
        (read.reading.tokens + 1, [ev.ContextReported]),
    ):
        actor.events.clear()
        runner.context_readers.reported(actor, "c0", tokens, 200_000)
        assert [type(event) for event in actor.events] == kinds


async def test_a_report_finds_a_transcript_that_was_moved_and_is_judged_by_it(performing):
    runner, actor, _ = performing
    runner.context_readers.providers["claude"].moved_to = "/worktree/t0"
    actor.session = replace(actor.session, config="/c")
    runner.context_readers.reported(actor, "c0", 7, 200_000)
    moved, reported = actor.events
    assert (type(moved), moved.transcript) == (ev.TranscriptMoved, "/worktree/t0")
    assert (type(reported), reported.tokens) == (ev.ContextReported, 7)


async def test_with_a_lower_frequency_only_every_nth_call_is_read_before_it_is_judged(performing):
    runner, actor, transcript = performing
    transcript.go.set()
    runner.run_effect(actor, READ, ReplyDraft())
    await seen(actor, 1)
    actor.session = replace(actor.session, policy=Policy(check_frequency=3))
    for calls, readings in ((0, 1), (1, 1), (2, 2), (3, 2)):
        current = actor.session.conversation
        monitor = replace(current.monitor, tool_calls=calls)
        actor.session = replace(actor.session, conversation=replace(current, monitor=monitor))
        runner.context_readers.catch_up(actor)
        assert len(actor.events) == readings, calls


async def test_a_window_that_nothing_tells_is_the_one_the_sessions_configuration_assumes(performing):
    runner, actor, transcript = performing
    transcript.go.set()
    actor.session = replace(actor.session, policy=Policy(assumed_window=700))
    runner.run_effect(actor, READ, ReplyDraft())
    await seen(actor, 1)
    assert actor.events[0].usable == 700


async def test_a_document_that_cannot_be_read_is_named_in_its_place(performing):
    runner, actor, _ = performing
    reply = ReplyDraft()
    runner.run_effect(actor, ef.InjectHandoff(HANDOFF, None), reply)
    assert "The document cannot be read: No such file" in reply.value().context
    assert HANDOFF.path in reply.value().context
    assert reply.document == HANDOFF.id
    assert actor.events == []


class Rewritten:
    """Documents that remember what was written into them."""

    def __init__(self):
        self.texts = []

    def rewrite(self, handoff, text, at):
        self.texts.append(text)

    def without_secrets(self, text):
        return text.replace("sk-secret", "[REDACTED]")


class SlowlyFinished:
    """A client whose last record of a turn comes only after so many looks."""

    def __init__(self, looks):
        self.looks = looks

    def finished(self, transcript):
        self.looks -= 1
        return self.looks <= 0

    def auto_handoff(self, transcript, directory, leaves_out):
        return "whole" if self.looks <= 0 else "without the last record"

    def shows_progress(self, transcript):
        return self.looks > 0

    def found_transcript(self, config, conversation):
        return "/t0"


@pytest.mark.parametrize(("looks", "text"), [(1, "whole"), (8, "whole"), (99, "without the last record")])
async def test_the_pane_waits_until_the_document_made_at_a_compaction_holds_the_turns_last_record(looks, text):
    run_on_virtual_time(asyncio.get_running_loop())
    compaction = replace(HANDOFF, type=HandoffType.COMPACTION, conversation="c0")
    actor, documents = FakeActor(), Rewritten()
    actor.pane_queue = PaneQueue(actor.put, FakeClock())
    async with asyncio.TaskGroup() as group:
        runner = runner_of(documents, SlowlyFinished(looks), group)
        runner.run_effect(actor, ef.RefreshDocument(compaction), ReplyDraft())
        await actor.pane_queue.document_written.wait()
        assert documents.texts == [text]


MADE = replace(HANDOFF, type=HandoffType.COMPACTION, conversation="c0", created=12.345)


class Plugin:
    """Answers orders with what it is given; an exception is raised, None is never an answer."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    async def ask(self, order, number):
        self.asked.append((order, number))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            await asyncio.Event().wait()
        return answer


async def forked(answer):
    """The document that comes of it, what was asked, and the event."""
    run_on_virtual_time(asyncio.get_running_loop())
    actor, documents = FakeActor(), Rewritten()
    actor.pane_queue, actor.link = PaneQueue(actor.put, FakeClock()), Plugin(answer)
    async with asyncio.TaskGroup() as group:
        runner = runner_of(documents, SlowlyFinished(1), group)
        runner.run_effect(actor, ef.RefreshDocument(MADE, fork=True), ReplyDraft())
        await actor.pane_queue.document_written.wait()
    ([text], [event]) = documents.texts, actor.events
    return text, actor.link.asked, replace(event, at=0.0)


async def test_a_fork_of_the_model_writes_the_document_and_code_adds_the_facts():
    text, asked, done = await forked(OrderResult("", "# Goal\n\nShip it.\x1b[31m The key is sk-secret\u200b.\n"))
    assert text == f"{HEAD}\n\n# Goal\n\nShip it. The key is [REDACTED].\n\n{FACTS}\n\nwhole"
    assert asked == [(ClientOrder("fork", FORK_PROMPT), -12345)]
    assert done == ev.DocumentForked(at=0.0, handoff=MADE.id)


async def test_an_answer_without_end_is_cut():
    text, _, __ = await forked(OrderResult("", "x" * (MAX_FORK_CHARACTERS + 7)))
    assert text.count("x") == MAX_FORK_CHARACTERS + (HEAD + FACTS).count("x")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (OrderResult("no answer: api-error"), "no answer: api-error"),
        (OrderResult("", " \n"), "an empty answer"),
        (NoAnswerError("the client loaded the plugin again"), "the client loaded the plugin again"),
        (None, "no answer in time"),
    ],
)
async def test_where_no_fork_answers_the_document_made_by_code_stands_alone(answer, problem):
    text, _, done = await forked(answer)
    assert (text, done) == ("whole", ev.DocumentForked(at=0.0, handoff=MADE.id, problem=problem))


async def test_a_reading_names_the_conversation_it_was_asked_for(performing):
    runner, actor, transcript = performing
    transcript.go.set()
    runner.run_effect(actor, ef.ReadContext("an-old-one", "/t0", 3), ReplyDraft())
    await seen(actor, 1)
    assert isinstance(actor.events[0], ev.ContextRead)
    assert (actor.events[0].conversation, actor.events[0].epoch) == ("an-old-one", 3)


def test_each_effect_is_an_order_to_the_pane_a_record_or_has_its_function():
    """A record is on disk with its event; of a handoff's the manifest follows."""
    effects = {kind for kind in vars(ef).values() if isinstance(kind, type) and issubclass(kind, ef.Effect)}
    orders = {kind for kind in effects if issubclass(kind, ef.PaneCommand)}
    written = {*get_args(ef.Record)} - {ef.RecordHandoff}
    assert effects - {ef.Effect} == orders | written | FUNCTIONS.keys()
    assert not (orders | written) & FUNCTIONS.keys()


class Kept:
    """Documents that remember what was kept; `refused` is why the user's own cannot be."""

    def __init__(self, refused=None):
        self.refused = refused
        self.texts = []

    def schedule(self, session, path, at, note, kind):
        if self.refused:
            raise self.refused
        return replace(HANDOFF, path=str(path), type=kind)

    def keep(self, session, text, kind, at):
        self.texts.append(text)
        return replace(HANDOFF, type=kind)


class WithTranscript(SlowlyFinished):
    def __init__(self, *, resumable=True, transcript="/t0"):
        super().__init__(1)
        self.looks, self.is_resumable, self.path = 0, resumable, transcript

    def resumable(self, transcript):
        return self.is_resumable

    def found_transcript(self, config, conversation):
        return self.path


async def performed(effect, documents, provider, actor):
    async with asyncio.TaskGroup() as group:
        runner_of(documents, provider, group).run_effect(actor, effect, ReplyDraft())
    return [replace(event, at=0.0) for event in actor.events]


async def test_the_document_that_the_user_has_named_is_kept():
    done = await performed(ef.KeepDocument("/p/h.md"), Kept(), WithTranscript(), FakeActor())
    assert done == [ev.DocumentKept(at=0.0, handoff=replace(HANDOFF, path="/p/h.md", type=HandoffType.MANUAL))]


async def test_a_document_that_cannot_be_kept_moves_nothing():
    unfit = Kept(error("file_unfit", "The document is empty"))
    assert await performed(ef.KeepDocument("/p/h.md"), unfit, WithTranscript(), FakeActor()) == []


async def test_a_document_is_made_of_the_transcript_and_kept():
    documents = Kept()
    effect = ef.MakeDocument(rotate=True, kind=HandoffType.CRASH)
    done = await performed(effect, documents, WithTranscript(), FakeActor())
    made = replace(HANDOFF, type=HandoffType.CRASH)
    assert done == [ev.DocumentKept(at=0.0, handoff=made, rotate=True, progress=False)]
    assert documents.texts == ["whole"]


@pytest.mark.parametrize("provider", [WithTranscript(transcript=None), WithTranscript(resumable=False)])
async def test_of_a_conversation_in_which_nothing_was_done_no_document_is_made(provider):
    actor, documents = FakeActor(), Kept()
    actor.session = replace(actor.session, conversation=replace(actor.session.conversation, transcript=provider.path))
    assert await performed(ef.MakeDocument(rotate=False, kind=HandoffType.CRASH), documents, provider, actor) == []
    assert documents.texts == []


class Changed(NoDocuments):
    """The file holds something else than was handed off."""

    def __init__(self):
        self.written_again = []

    def holds(self, handoff):
        return False

    def refresh(self, handoff, path, at):
        self.written_again.append(path)


async def test_a_file_that_holds_something_else_is_no_longer_pointed_to(performing):
    runner, actor, _ = performing
    runner, readable = replace(runner, documents=Changed()), replace(HANDOFF, readable=True)
    runner.run_effect(actor, ef.RefreshDocument(readable), ReplyDraft())
    assert [replace(event, at=0.0) for event in actor.events] == [ev.DocumentGone(at=0.0, handoff=HANDOFF.id)]


async def test_what_the_agent_has_written_refreshes_its_document(performing):
    runner, actor, _ = performing
    documents = Changed()
    replace(runner, documents=documents).run_effect(actor, ef.RefreshDocument(HANDOFF, written="/p/h.md"), ReplyDraft())
    assert (documents.written_again, actor.events) == (["/p/h.md"], [])


async def test_a_reply_carries_a_reason_to_block_and_what_the_user_is_shown(performing):
    runner, actor, _ = performing
    reply = ReplyDraft()
    runner.run_effect(actor, ef.BlockPrompt("hand off first"), reply)
    runner.run_effect(actor, ef.TellUser("the context is full"), reply)
    assert (reply.block, reply.shown) == ("hand off first", "the context is full")


async def test_a_parent_is_told_what_its_child_could_not_hand_off(performing):
    runner, actor, _ = performing
    told = []
    messages = SimpleNamespace(tell=lambda session, text: told.append((session, text)))
    runner = replace(runner, messages=messages)
    runner.run_effect(actor, ef.TellParent("too late"), ReplyDraft())
    actor.session = replace(actor.session, parent="b" * 8)
    runner.run_effect(actor, ef.TellParent("too late"), ReplyDraft())
    assert told == [("b" * 8, "too late")]


async def test_a_client_that_is_to_end_is_ended_with_its_session(performing):
    runner, actor, _ = performing
    ended = []
    replace(runner, end=ended.append).run_effect(actor, ef.EndClient(), ReplyDraft())
    assert ended == [actor.session.id]
