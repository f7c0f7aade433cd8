"""Events are decided one at a time, on disk before anything is done, and a bad one ends nothing."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.errors import SmError, error
from sm.core.model.context import ContextReading, Source
from sm.core.model.session import Status
from sm.core.ports.provider import ClientOrder, HookReply, OrderResult
from sm.core.rules.session.advance import advance
from sm.engine.actor import Actor
from sm.engine.ticket import Ticket
from sm.providers.claude.traits import CLAUDE
from tests.core.playbook import idle_session
from tests.fakes.clock import FakeClock


class FakeStore:
    def __init__(self):
        self.rows = []
        self.transactions = []
        self.broken = False
        self.full = False
        self.single = False
        self.tries = 0

    async def commit(self, *steps):
        self.tries += 1
        if self.full:
            raise error("disk_full", "sm.db: database or disk is full", "make room on its file system")
        if self.broken:
            raise OSError("disk full")
        if self.single and len(steps) > 1:
            raise OSError("no two of them")
        self.transactions.append([type(step.event).__name__ for step in steps])
        self.rows += [(type(step.event).__name__, step.session.status) for step in steps]
        return [*range(len(self.rows) - len(steps) + 1, len(self.rows) + 1)]


@contextlib.asynccontextmanager
async def running_actor(run_effect=lambda *_: None):
    store = FakeStore()
    actor = Actor(
        idle_session(), CLAUDE, store, FakeClock(), run_effect, lambda *_: None, lambda *_: (), lambda _: None
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(actor.run())
        yield actor, store
        task.cancel()


async def ask(actor, event):
    ticket = Ticket(asyncio.get_running_loop().create_future())
    actor.put(event, ticket)
    async with asyncio.timeout(5):
        return await ticket.reply


def prompt(text="x"):
    return ev.PromptSubmitted(at=20.0, conversation="c0", text=text)


async def test_the_event_is_on_disk_before_its_effects_run():
    done = []

    def run_effect(actor, effect, reply):
        done.append((type(effect), len(actor.store.rows)))

    async with running_actor(run_effect) as (actor, _):
        await ask(actor, ev.TurnEnded(at=20.0, conversation="c0"))
    assert done[0] == (ef.ReadContext, 1)


async def test_an_event_that_cannot_be_stored_changes_nothing_and_is_answered():
    async with running_actor() as (actor, store):
        store.broken = True
        before = actor.session
        assert await ask(actor, prompt()) == HookReply()
        assert actor.session is before
        store.broken = False
        await ask(actor, prompt())
        assert actor.session.status is Status.WORKING


async def test_an_effect_that_fails_ends_neither_the_actor_nor_the_wait_of_its_hook():
    def run_effect(actor, effect, reply):
        raise ValueError("a fault of ours")

    async with running_actor(run_effect) as (actor, _):
        assert await ask(actor, ev.TurnEnded(at=20.0, conversation="c0")) == HookReply()
        await ask(actor, ev.SessionRenamed(at=21.0, name="still here"))
        assert actor.session.name == "still here"


async def test_what_a_hook_did_not_wait_for_is_owed_again():
    def run_effect(actor, effect, reply):
        if isinstance(effect, ef.AddContext):
            reply.context.append(effect.text)
            reply.notices.extend(effect.notices)

    async with running_actor(run_effect) as (actor, store):
        actor.session = owing(actor.session, "[sm context] hello")
        ticket = Ticket(asyncio.get_running_loop().create_future(), given_up=True)
        actor.put(prompt(), ticket)
        async with asyncio.timeout(5):
            while "ReplyLost" not in [name for name, _ in store.rows]:
                await asyncio.sleep(0.001)
        assert actor.session.conversation.monitor.owed == ("[sm context] hello",)


async def test_a_document_that_a_hook_did_not_wait_for_is_noted_as_lost():
    def run_effect(actor, effect, reply):
        reply.document = "HO-1"

    async with running_actor(run_effect) as (actor, store):
        actor.session = replace(owing(actor.session, "[sm context] hello"), told="HO-1")
        actor.put(prompt(), Ticket(asyncio.get_running_loop().create_future(), given_up=True))
        await written(store, "ReplyLost")
        assert (actor.session.told, actor.session.untold) == ("", "HO-1")


def owing(session, notice):
    monitor = replace(session.conversation.monitor, owed=(notice,))
    return replace(session, conversation=replace(session.conversation, monitor=monitor))


async def test_a_deadline_that_passes_rings_without_any_event():
    async with running_actor() as (actor, store):
        await ask(actor, prompt())
        actor.clock.advance(10_000.0)
        actor.put(ev.LatchesReset(at=actor.clock.now()))  # whatever comes next: the alarm has been waiting since
        async with asyncio.timeout(5):
            while "AlarmRang" not in [name for name, _ in store.rows]:
                await asyncio.sleep(0.001)
        assert actor.session.status is Status.SILENT


async def test_a_command_that_cannot_be_stored_fails_for_whoever_gave_it():
    async with running_actor() as (actor, store):
        store.broken = True
        ticket = Ticket(asyncio.get_running_loop().create_future(), strict=True)
        actor.put(ev.SessionRenamed(at=20.0, name="b"), ticket)
        with pytest.raises(OSError, match="disk full"):
            await asyncio.wait_for(ticket.reply, 5)


async def test_an_effect_that_fails_keeps_no_other_from_being_done():
    done = []

    def run_effect(actor, effect, reply):
        done.append(type(effect))
        raise ValueError("a fault of ours")

    async with running_actor(run_effect) as (actor, _):
        await ask(actor, ev.SessionKilled(at=20.0))
        await ask(actor, ev.SessionRenamed(at=21.0, name="b"))
    assert done == [ef.EndClient]


async def test_an_alarm_that_cannot_be_stored_rings_again_but_does_not_keep_the_actor_busy():
    async with running_actor() as (actor, store):
        await ask(actor, prompt())
        store.broken = True
        actor.clock.advance(10_000.0)
        actor.put(ev.LatchesReset(at=actor.clock.now()))
        await asyncio.sleep(0.3)
        assert store.tries <= 3
        store.broken = False
        async with asyncio.timeout(5):
            while actor.session.status is not Status.SILENT:
                await asyncio.sleep(0.01)


async def test_where_a_context_begins_or_ends_is_noted_as_the_event_comes():
    store = FakeStore()
    rest = [lambda *_: None, lambda *_: None, lambda *_: (), lambda *_: None]
    actor = Actor(idle_session(), CLAUDE, store, FakeClock(), *rest, log_end=len)
    actor.put(ev.ConversationEnded(at=20.0, conversation="c0"))
    actor.put(prompt())
    ended, _ = actor.inbox.get_nowait()
    assert ended.log_end == len("a" * 8)
    assert actor.inbox.get_nowait()[0] == prompt()


async def written(store, name):
    async with asyncio.timeout(10):
        while name not in [kind for kind, _ in store.rows]:
            await asyncio.sleep(0.01)


async def test_a_full_disk_delays_what_happened_and_loses_none_of_it():  # C41
    done = []
    async with running_actor(lambda *given: done.append(type(given[1]))) as (actor, store):
        store.full = True
        assert await ask(actor, prompt()) == HookReply()
        assert (actor.session.status, actor.shown.status) == (Status.IDLE, Status.WORKING), "shown as it is"
        assert await ask(actor, ev.TurnEnded(at=21.0, conversation="c0")) == HookReply()
        assert (actor.shown.status, store.rows, done) == (Status.IDLE, [], []), "nothing is done that is not on disk"
        ticket = Ticket(asyncio.get_running_loop().create_future(), strict=True)
        actor.put(ev.SessionRenamed(at=22.0, name="b"), ticket)
        with pytest.raises(SmError, match="disk is full"):
            await asyncio.wait_for(ticket.reply, 5)
        store.full = False
        await written(store, "TurnEnded")
        assert [name for name, _ in store.rows][:2] == ["PromptSubmitted", "TurnEnded"], "in order, without the command"
        assert ef.ReadContext in done
        await ask(actor, ev.SessionRenamed(at=23.0, name="c"))
        assert (actor.shown, actor.session.name, len(actor.owed)) == (actor.session, "c", 0)


async def test_what_happens_once_there_is_room_comes_after_what_is_owed():  # C41
    async with running_actor() as (actor, store):
        store.full = True
        await ask(actor, prompt())
        store.full = False
        await ask(actor, ev.TurnEnded(at=21.0, conversation="c0"))
        assert [name for name, _ in store.rows][:2] == ["PromptSubmitted", "TurnEnded"]


async def test_what_an_owed_event_had_for_its_agent_is_told_later():  # C41
    def run_effect(actor, effect, reply):
        if isinstance(effect, ef.AddContext):
            reply.context.append(effect.text)
            reply.notices.extend(effect.notices)

    async with running_actor(run_effect) as (actor, store):
        actor.session = owing(actor.session, "[sm context] hello")
        store.full = True
        assert await ask(actor, prompt()) == HookReply()
        store.full = False
        await written(store, "ReplyLost")
        assert actor.session.conversation.monitor.owed == ("[sm context] hello",)


async def carried_out(actor, result):
    """Do what the plugin in a client does: take the order, and acknowledge it."""
    actor.link.heard_from("g1")
    [given] = await actor.link.orders(actor.link.generation, 5)
    actor.link.acknowledged(given.id, result)
    return given.order


def speaks(actor, effect, reply):
    reply.context.append("news")
    reply.messages.append("m1")


async def driven(actor):
    await ask(actor, ev.DriverChanged(at=20.0, driver=ev.DrivenBy.MOD))
    actor.link.heard_from("g1")


@pytest.mark.parametrize("refused", ["", "the plugin may not"])
async def test_what_no_hook_waits_for_the_plugin_tells(refused):
    async with running_actor(speaks) as (actor, store):
        await driven(actor)
        actor.put(ev.TurnEnded(at=20.0, conversation="c0"))
        assert await carried_out(actor, OrderResult(refused)) == ClientOrder("tell", "news")
        while actor.link._orders:
            await asyncio.sleep(0)
        await ask(actor, prompt())
    assert [name for name, _ in store.rows].count("ReplyLost") == bool(refused)


async def test_a_hook_that_waits_is_answered_and_the_plugin_tells_nothing():
    async with running_actor(speaks) as (actor, store):
        await driven(actor)
        assert await ask(actor, ev.TurnEnded(at=20.0, conversation="c0")) == HookReply("news")
        assert await actor.link.orders(actor.link.generation, 0) == []
    assert "ReplyLost" not in [name for name, _ in store.rows]


async def test_what_may_have_been_told_is_looked_for_in_the_transcript():
    """A plugin that was loaded again may have told it before: the message is not queued a second time."""
    async with running_actor(speaks) as (actor, store):
        await driven(actor)
        actor.put(ev.TurnEnded(at=20.0, conversation="c0"))
        assert len(await actor.link.orders(actor.link.generation, 5)) == 1
        actor.link.heard_from("g2")
        await ask(actor, prompt())
    assert "ReplyLost" not in [name for name, _ in store.rows]


def reading(tokens, **changes):
    found = ContextReading(tokens=tokens, projected=tokens, source=Source.USAGE, exact=True, **changes)
    return ev.ContextRead(at=20.0, conversation="c0", epoch=0, reading=found, usable=150_000)


def used():
    return ev.ToolUsed(at=20.1, conversation="c0", tool="Bash")


async def put_both(actor, first, second):
    """As a hook does that has just read the transcript; return its reply."""
    actor.put(first)
    return await ask(actor, second)


async def test_a_hooks_event_is_written_with_the_reading_that_came_with_it():
    done = []

    def run_effect(actor, effect, reply):
        done.append(actor.store.transactions[-1])
        if isinstance(effect, ef.AddContext):
            reply.context.append(effect.text)

    async with running_actor(run_effect) as (actor, store):
        await ask(actor, prompt())
        reply = await put_both(actor, reading(140_000), used())
        assert ["ContextRead", "ToolUsed"] in store.transactions
        assert done[:2] == [["ContextRead", "ToolUsed"]] * 2
        assert "[sm context]" in reply.context
        assert actor.session.conversation.monitor.tool_calls == 1


async def test_what_cannot_be_written_together_is_written_one_by_one():
    async with running_actor() as (actor, store):
        store.single = True
        await put_both(actor, reading(40_000), used())
        assert store.transactions == [["ContextRead"], ["ToolUsed"]]
        assert actor.session.conversation.monitor.reading.tokens == 40_000
        assert actor.session.conversation.monitor.tool_calls == 1


async def test_a_hooks_event_that_fails_takes_no_reading_with_it(monkeypatch):
    def failing(session, event, traits):
        if type(event) is ev.ToolUsed:
            raise ValueError("a fault of ours")
        return advance(session, event, traits)

    monkeypatch.setattr("sm.engine.actor.advance", failing)
    async with running_actor() as (actor, store):
        assert await put_both(actor, reading(40_000), used()) == HookReply()
        assert store.transactions == [["ContextRead"]]


async def test_a_reading_that_means_more_than_a_figure_is_acted_on_first():
    done = []

    def run_effect(actor, effect, reply):
        done.append((type(effect), len(actor.store.rows)))

    async with running_actor(run_effect) as (actor, store):
        conversation = replace(actor.session.conversation, looked=True)
        actor.session = replace(actor.session, conversation=conversation)
        await put_both(actor, reading(40_000, boundary=(150_000, 30_000)), used())
        assert store.transactions[:2] == [["ContextRead"], ["ToolUsed"]]
        assert done[0] == (ef.TellParent, 1)


async def test_a_full_disk_delays_both_in_their_order():
    async with running_actor() as (actor, store):
        store.full = True
        await put_both(actor, reading(40_000), used())
        assert [type(event) for event in actor.owed] == [ev.ContextRead, ev.ToolUsed]
        store.full = False
        await written(store, "ToolUsed")
        assert [name for name, _ in store.rows[:2]] == ["ContextRead", "ToolUsed"]
