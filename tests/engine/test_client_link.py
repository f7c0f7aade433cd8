"""Orders to a client's plugin: each stands until it is acknowledged, and none is carried out twice."""

import asyncio

import pytest

from sm.core.ports.provider import ClientOrder, NoAnswerError, OrderResult
from sm.engine.client_link import AGAIN_S, RELOADED, SILENCE_S, SILENT, ClientLink
from tests.fakes.clock import FakeClock, run_on_virtual_time


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def link(clock):
    link = ClientLink(clock)
    link.heard_from("first")
    return link


async def test_a_poll_that_is_held_gets_the_order_at_once(link):
    async with asyncio.TaskGroup() as group:
        poll = group.create_task(link.orders("first", hold=25))
        await asyncio.sleep(0)
        asked = group.create_task(link.ask(ClientOrder("tell", "save your work")))
        (order,) = await poll
        assert order.order == ClientOrder("tell", "save your work")
        link.acknowledged(order.id, OrderResult("first"))
    assert asked.result() == OrderResult("first")


async def test_a_poll_without_orders_ends_empty(link):
    assert await link.orders("first", hold=0.01) == []


async def test_an_order_whose_answer_was_lost_is_given_again_under_its_id(link, clock):
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(link.ask(ClientOrder("tell", "x")))
        await asyncio.sleep(0)
        (first,) = await link.orders("first", hold=0)
        assert await link.orders("first", hold=0) == []
        clock.advance(AGAIN_S)
        (again,) = await link.orders("first", hold=0)
        assert again.id == first.id
        link.acknowledged(first.id, OrderResult("first"))
        link.acknowledged(first.id, OrderResult("second"))
    assert asked.result() == OrderResult("first")
    assert await link.orders("first", hold=0) == []


async def test_a_plugin_that_is_loaded_again_has_lost_what_it_was_given_and_gets_what_waits(link):
    async with asyncio.TaskGroup() as group:
        lost = group.create_task(outcome(link.ask(ClientOrder("rotate", "wake"))))
        await asyncio.sleep(0)
        await link.orders("first", hold=0)
        waits = group.create_task(outcome(link.ask(ClientOrder("tell", "x"))))
        await asyncio.sleep(0)
        link.heard_from("second")
        (order,) = await link.orders("second", hold=0)
        assert order.order.kind == "tell"
        link.acknowledged(order.id, OrderResult())
    assert (lost.result(), waits.result()) == (RELOADED, OrderResult())


async def test_a_poll_of_the_plugin_before_swallows_no_order(link):
    """The client's copy of a module that it has loaded again still has its request open (2.1.328)."""
    async with asyncio.TaskGroup() as group:
        old = group.create_task(link.orders("first", hold=25))
        await asyncio.sleep(0)
        link.heard_from("second")
        new = group.create_task(link.orders("second", hold=25))
        await asyncio.sleep(0)
        group.create_task(link.ask(ClientOrder("tell", "x")))
        (order,) = await new
        assert not old.done()
        link.heard_from("first")  # as with a result that comes late
        assert link.generation == "second"
        link.acknowledged(order.id, OrderResult())
        link.release()
        assert await old == []


async def test_two_polls_of_one_plugin_get_an_order_once(link):
    async with asyncio.TaskGroup() as group:
        polls = [group.create_task(link.orders("first", hold=0.05)) for _ in range(2)]
        await asyncio.sleep(0)
        group.create_task(link.ask(ClientOrder("tell", "x")))
        given = [order for poll in polls for order in await poll]
        assert len(given) == 1
        link.acknowledged(given[0].id, OrderResult())


async def test_a_plugin_that_does_not_poll_any_more_fails_its_orders(link, clock):
    run_on_virtual_time(asyncio.get_running_loop())
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(outcome(link.ask(ClientOrder("prompt", "x"))))
        await asyncio.sleep(AGAIN_S + 1)
        assert link.alive
        clock.advance(SILENCE_S)
        await asyncio.sleep(AGAIN_S)
    assert asked.result() == SILENT
    assert not link.alive


async def test_a_late_acknowledgement_of_another_order_changes_nothing(link):
    link.acknowledged(7, OrderResult("first"))
    assert await link.orders("first", hold=0) == []


async def test_ids_go_up_over_a_restart_of_the_server(link, clock):
    async with asyncio.TaskGroup() as group:
        group.create_task(outcome(link.ask(ClientOrder("tell"))))
        await asyncio.sleep(0)
        (before,) = await link.orders("first", hold=0)
        clock.advance(0.5)
        later = ClientLink(clock)
        later.heard_from("first")
        group.create_task(outcome(later.ask(ClientOrder("tell"))))
        await asyncio.sleep(0)
        (after,) = await later.orders("first", hold=0)
        link.acknowledged(before.id, OrderResult())
        later.acknowledged(after.id, OrderResult())
    assert after.id > before.id


async def test_an_order_with_a_number_is_given_once_whoever_else_asks(link):
    link.heard_from("g1")
    async with asyncio.TaskGroup() as group:
        first, second = (group.create_task(link.ask(ClientOrder("fork", "x"), -7)) for _ in range(2))
        await asyncio.sleep(0)
        (order,) = await link.orders("g1", hold=0)
        assert (order.id, await link.orders("g1", hold=0)) == (-7, [])
        first.cancel()
        await asyncio.sleep(0)
        link.acknowledged(-7, OrderResult("", "the document"))
    assert second.result() == OrderResult("", "the document")
    assert await link.orders("g1", hold=0) == []


async def outcome(asked):
    try:
        return await asked
    except NoAnswerError as problem:
        return str(problem)
