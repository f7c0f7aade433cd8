"""`GET /events` over a real connection."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import pytest

from sm.core import events as ev
from sm.store.sessions import SqliteStore
from tests.api.rig import USER


class Reader:
    def __init__(self, stream):
        self.stream = stream

    async def line(self):
        found = (await asyncio.wait_for(self.stream.readline(), 5)).decode()
        assert found, "the connection has ended"
        return found.strip()

    async def subscribed(self):
        while await self.line() != ": subscribed":
            pass

    async def end(self):
        """The stream's own end: its last chunk is an empty one."""
        while await self.line() != "0":
            pass

    async def event(self):
        fields = {}
        while "data" not in fields:
            name, _, value = (await self.line()).partition(": ")
            fields[name] = value
        return fields | {"data": json.loads(fields["data"])}

    async def events(self, count):
        return [(await self.event())["data"] for _ in range(count)]


@contextlib.asynccontextmanager
async def following(port, token=USER, last=None):
    stream, writer = await asyncio.open_connection("127.0.0.1", port)
    after = f"Last-Event-ID: {last}\r\n" if last is not None else ""
    writer.write(f"GET /events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{after}\r\n".encode())
    reader = Reader(stream)
    await reader.subscribed()
    yield reader
    writer.close()


async def rename(api, session, name):
    assert (await api.call("PATCH", f"/sessions/{session}", body={"name": name}))[0] == 200


async def test_events_come_as_they_happen_with_number_kind_and_state(api):
    session = await api.new("a")
    async with api.listening() as port, following(port) as feed:
        await rename(api, session, "b")
        event = await feed.event()
    assert event["event"] == event["data"]["kind"] == "SessionRenamed"
    assert int(event["id"]) == event["data"]["number"]
    assert event["data"]["session"] == session
    assert event["data"]["data"] == {"name": "b"}
    assert (event["data"]["status"], event["data"]["phase"]) == ("starting", None)


async def test_last_event_id_replays_what_came_after_and_goes_on_live(api):
    session = await api.new("a")
    _, found = await api.call("GET", f"/sessions/{session}/events")
    for name in "bcd":
        await rename(api, session, name)
    async with api.listening() as port, following(port, last=found["last"] + 1) as feed:
        replayed = await feed.events(2)
        await rename(api, session, "e")
        live = await feed.events(1)
    assert [event["data"]["name"] for event in replayed + live] == ["c", "d", "e"]
    assert [event["number"] for event in replayed + live] == list(range(found["last"] + 2, found["last"] + 5))


@dataclass(frozen=True)
class StoreWithNewsAtTheEnd(SqliteStore):
    """Something happens just after the last row was read for a replay."""

    news: Callable = None

    async def events_after(self, number, limit=1000):
        rows = await SqliteStore.events_after(self, number, limit)
        if not rows:
            await self.news()
        return rows


async def test_nothing_falls_between_replay_and_live(api):
    session = await api.new("a")
    state = api.app.app.state  # below the guard
    news = partial(rename, api, session, "b")
    state.backend = replace(state.backend, store=StoreWithNewsAtTheEnd(state.backend.store.database, api.clock, news))
    async with api.listening() as port, following(port, last=0) as feed:
        kinds = [event["kind"] for event in await feed.events(2)]
    assert kinds == ["SessionLaunched", "SessionRenamed"]


async def test_a_number_of_another_database_is_said_and_what_is_new_follows(api):  # C28
    session = await api.new("a")
    _, found = await api.call("GET", f"/sessions/{session}/events")
    for token in (USER, api.tokens[session]):
        async with api.listening() as port, following(port, token, last=found["last"] + 1000) as feed:
            said = await feed.event()
            newest = await api.engine.ports.store.newest_event()
            for name in "xyz":
                await rename(api, session, name)
            new = await feed.events(3)
        assert (said["event"], int(said["id"]), said["data"]["number"]) == ("EventNumbersRestarted", newest, newest)
        assert said["data"]["data"]["unknown"] == found["last"] + 1000
        assert [event["data"]["name"] for event in new] == ["x", "y", "z"]


async def test_the_newest_number_is_known_when_its_event_is_forgotten(api):  # C28
    session = await api.new("a")
    store = api.engine.ports.store
    newest = await store.newest_event()
    await store.database.run(lambda connection: connection.execute("DELETE FROM events"))
    async with api.listening() as port, following(port, last=newest) as feed:
        await rename(api, session, "b")
        assert (await feed.events(1))[0]["number"] == newest + 1


@pytest.mark.parametrize(
    "words", ['say PASSWORD=hunter22" now', "PASSWORD=hunter22\n", 'the "password is hunter22"', "PW=hunter22\\"]
)
async def test_an_event_stays_json_whatever_stands_behind_a_secret_in_it(api, words):  # C25
    session = await api.new("a")
    actor = api.engine.sessions.actors[session]
    async with api.listening() as port, following(port) as live:
        await actor.ask(ev.SessionRenamed(at=api.clock.now(), name=words))
        async with following(port, last=0) as replayed:
            found = [await live.event(), *[await replayed.event() for _ in range(2)][-1:]]
    status, listed = await api.call("GET", f"/sessions/{session}/events")
    assert status == 200
    for item in (*(event["data"] for event in found), listed["events"][-1]):
        assert "hunter22" not in str(item)
        assert "[REDACTED:" in item["data"]["name"]


async def test_a_session_follows_its_own_events_only(api):
    me, other = await api.new("me"), await api.new("other")
    async with api.listening() as port, following(port, api.tokens[me], last=0) as feed:
        await rename(api, other, "x")
        await rename(api, me, "y")
        seen = await feed.events(2)
    assert {event["session"] for event in seen} == {me}
    assert seen[-1]["data"] == {"name": "y"}


@pytest.mark.parametrize("last", ["x", "-1", "", "1" * 30, "1.5"])
async def test_a_last_event_id_that_is_no_number_is_refused(api, last):
    assert (await api.call("GET", "/events", **{"Last-Event-ID": last}))[1]["code"] == "bad_request"


async def test_a_reader_that_leaves_is_forgotten(api):
    async with api.listening() as port:
        async with following(port):
            assert len(api.feed.listeners) == 1
        session = await api.new("a")
        for _ in range(100):
            await rename(api, session, f"n{_}")
            if not api.feed.listeners:
                break
            await asyncio.sleep(0.02)
    assert not api.feed.listeners


async def test_a_closing_feed_ends_every_stream(api):
    async with api.listening() as port, following(port) as feed:
        api.feed.close()
        await feed.end()


async def test_a_stream_that_begins_after_the_end_ends_at_once(api):
    """The answer's head is out before the stream begins: a server that is told to stop in between need not wait."""
    api.feed.close()
    async with api.listening() as port, following(port) as feed:
        await feed.end()
