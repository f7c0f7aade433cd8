"""Messages in the table: kept with their event, fetched in order, expired, and what became of each."""

from dataclasses import replace

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.message import Channel, MessageState, Mode, StoredMessage
from sm.core.model.message_queue import Refill
from sm.core.ports.store import EventCommit
from tests.core.playbook import idle_session

TARGET = "a" * 8


async def record(store, *records):
    await store.commit(EventCommit(idle_session(), ev.ServerStarted(at=1.0), records))


async def keep(store, number, mode=Mode.SEQUENTIAL, **values):
    stored = StoredMessage(f"m{number}", TARGET, f"body {number}", frame="worker (b1)", notify_on_stop=True, wait=3.0)
    await record(store, ef.KeepMessage(replace(stored, number=number, mode=mode, **values)))


async def test_a_message_is_kept_with_the_event_that_queued_it_and_once(store):
    for _ in range(2):
        await keep(store, 7, expires=50.0, sender="b1")
    stored = StoredMessage("m7", TARGET, "body 7", "b1", "worker (b1)", 7, expires=50.0, notify_on_stop=True, wait=3.0)
    assert await store.stored_message("m7") == stored
    assert await store.last_number() == 7
    assert await store.queued_numbers() == [(TARGET, Mode.SEQUENTIAL, 7, "m7")]
    assert await store.body("m7") == "body 7"


async def test_a_window_is_filled_in_order_and_told_how_many_wait_behind_it(store):
    for number in range(1, 8):
        await keep(store, number, Mode.IMPORTANT if number == 3 else Mode.SEQUENTIAL)
    await record(store, ef.RecordMessage("m4", MessageState.EXPIRED))
    found, left = await store.next_messages(TARGET, Refill(Mode.SEQUENTIAL, after=1, known=6, count=2))
    assert ([message.id for message in found], left) == (["m2", "m5"], 1)


async def test_a_receipt_tells_channel_and_times(store):
    await keep(store, 1)
    for state, channel in ((MessageState.DELIVERED, Channel.STOP), (MessageState.CONFIRMED, None)):
        store.clock.time += 1
        await record(store, ef.RecordMessage("m1", state, channel=channel))
    view = await store.message("m1")
    assert (view["state"], view["channel"], view["size"]) == ("confirmed", "stop", 6)
    assert view["queued"] + 2 == view["delivered"] + 1 == view["confirmed"] == view["changed"]


async def test_what_is_queued_again_is_not_delivered_any_more(store):
    await keep(store, 1)
    await record(store, ef.RecordMessage("m1", MessageState.DELIVERED, channel=Channel.TOOL))
    await record(store, ef.RecordMessage("m1", MessageState.QUEUED, "the client continued without it"))
    view = await store.message("m1")
    assert (view["state"], view["delivered"], view["reason"]) == ("queued", None, "the client continued without it")


async def test_an_inbox_holds_what_waits_and_what_is_on_its_way(store):
    for number in (1, 2, 3):
        await keep(store, number)
    await record(store, ef.RecordMessage("m1", MessageState.CONFIRMED), ef.RecordMessage("m2", MessageState.DELIVERED))
    assert [(message["id"], message["state"], message["text"]) for message in await store.inbox(TARGET)] == [
        ("m2", "delivered", "body 2"),
        ("m3", "queued", "body 3"),
    ]


async def test_messages_whose_time_is_over_end_while_nobody_looks_at_them(store):
    now = store.clock.now()
    await keep(store, 1, expires=now - 1)
    await keep(store, 2, expires=now + 100)
    await store.expire_messages()
    assert [(await store.message(identity))["state"] for identity in ("m1", "m2")] == ["expired", "queued"]
    assert (await store.message("m1"))["reason"] == "expired before delivery"
