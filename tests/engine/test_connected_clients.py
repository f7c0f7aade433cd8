"""Clients that the server connects to itself: when a connection is there, and what it passes on and is given."""

import asyncio
import contextlib
import dataclasses
from dataclasses import dataclass, field

import pytest

from sm.bootstrap import engine_on, engine_running
from sm.core import events as ev
from sm.core.model.ask import AskAnswer, AskKind, AskRequest, Decision
from sm.core.ports.provider import ClientOrder, ClientState, HookEvent, NoAnswerError, OrderResult
from sm.engine import asks
from sm.providers.codex.app.driver import AppDriver
from tests.api.rig import RememberingClaude, house

ENV = {"PATH": "/usr/bin:/bin"}


@dataclass(repr=False)  # it holds the whole engine
class Connection:
    place: object
    reports: object
    ended: bool = False


@dataclass(frozen=True)
class ConnectedClient(RememberingClaude):
    """A client that is connected to; the connection does nothing by itself."""

    connections: list = field(default_factory=list)
    state: dict = field(default_factory=lambda: {"activity": ev.Activity.IDLE, "conversation": ""})

    def connection(self, session, reports):
        made = Connection(session, reports)
        self.connections.append(made)
        return self._kept(made)

    @staticmethod
    async def _kept(made):
        try:
            await asyncio.Event().wait()
        finally:
            made.ended = True

    def client_state(self, config, pid):
        return ClientState(self.state["activity"], "", self.state["conversation"])

    def driver(self, pane, calls, client_state, background, restarts=None):
        return AppDriver(calls, client_state)


@pytest.fixture
async def api(tmp_path, monkeypatch):
    monkeypatch.setattr(asks, "PLUGIN_GONE_S", 0.5)
    async with house(tmp_path) as found:
        providers = found.engine.ports.providers
        known = providers["claude"]
        members = {part.name: getattr(known, part.name) for part in dataclasses.fields(known)}
        providers["claude"] = ConnectedClient(**members)
        yield found


@pytest.fixture
def client(api):
    return api.engine.ports.providers["claude"]


@pytest.fixture
async def session(api, client):
    """One whose client is connected to."""
    made = await api.new("a")
    await until(lambda: client.connections)
    reports = client.connections[0].reports
    await reports.connected()
    assert reports.conversation() == ""  # it starts
    identity = client.state["conversation"] = api.conversation(made)
    pid = client.connections[0].place.pid
    started = ev.ConversationStarted(at=api.clock.now(), conversation=identity, pid=pid)
    await reports.hook(HookEvent("SessionStart", identity, started))
    await api.engine.sessions.actor(made).ask(ev.ActivityChanged(at=api.clock.now(), activity=ev.Activity.IDLE))
    return made


@pytest.fixture
def reports(session, client):
    return client.connections[0].reports


async def until(expected):
    async with asyncio.timeout(10):
        while not expected():
            await asyncio.sleep(0.002)


def asked(api, session, text="make"):
    request = AskRequest(AskKind.PERMISSION, "exec_command", f'{{"command":"{text}"}}')
    event = ev.PermissionAsked(at=api.clock.now(), conversation=api.conversation(session), tool="exec_command")
    return HookEvent("PermissionRequest", api.conversation(session), event, ask=request)


async def open_asks(api):
    return [ask for ask in (await api.call("GET", "/asks"))[1] if ask["state"] == "open"]


async def one_ask(api):
    async with asyncio.timeout(10):
        while len(found := await open_asks(api)) != 1:
            await asyncio.sleep(0.005)
    return found[0]["id"]


async def test_a_connection_begins_with_the_client_and_ends_with_it(api, client, session):
    (made,) = client.connections
    actor = api.engine.sessions.actor(session)
    assert (made.place.id, made.place.name, made.place.pid) == (session, "a", actor.session.pid)
    assert actor.session.driver is ev.DrivenBy.MOD
    await api.engine.sessions.kill(session)
    await until(lambda: made.ended)
    assert api.engine.connected.running == {}
    await api.call("POST", f"/sessions/{session}/restore", body={"env": ENV})
    await until(lambda: len(client.connections) == 2)
    assert not client.connections[1].ended


async def test_a_client_that_lives_is_connected_to_by_the_next_server(api, client, session):
    again = engine_on(api.engine.ports, lambda *_: None)
    async with engine_running(again):
        await until(lambda: len(client.connections) == 2)
        before, after = client.connections
        assert (after.place.id, after.place.pid) == (session, before.place.pid)
        assert after.reports.conversation() == api.conversation(session)


async def test_it_is_known_which_conversations_are_the_sessions(api, session, reports):
    first = reports.conversation()
    assert first == api.conversation(session)
    started = ev.ConversationStarted(at=api.clock.now(), conversation="c-2", origin=ev.Origin.CLEAR, pid=1)
    await reports.hook(HookEvent("SessionStart", "c-2", started))
    assert (reports.conversation(), reports.past()) == ("c-2", (first,))


async def test_how_full_the_context_is_reaches_the_session(api, session, reports):
    reports.reported(api.conversation(session), 30_000, 200_000)
    reports.measure()
    await until(lambda: api.engine.sessions.actor(session).session.conversation.monitor.reading.tokens == 30_000)
    reports.reported("another", 90_000, 200_000)
    await asyncio.sleep(0.01)
    assert api.engine.sessions.actor(session).session.conversation.monitor.reading.tokens == 30_000


async def test_an_order_is_given_and_its_result_comes_back(api, session, reports):
    link = api.engine.sessions.actor(session).link
    asking = asyncio.get_running_loop().create_task(link.ask(ClientOrder("tell", "x")))
    ((number, order),) = await reports.orders()
    assert order == ClientOrder("tell", "x")
    reports.done(number, OrderResult(refused="no"))
    assert await asking == OrderResult(refused="no")


async def test_an_order_whose_connection_was_lost_fails_and_is_not_given_again(api, session, reports):
    link = api.engine.sessions.actor(session).link
    asking = asyncio.get_running_loop().create_task(link.ask(ClientOrder("rotate")))
    ((number, _),) = await reports.orders()
    await reports.connected()
    with pytest.raises(NoAnswerError):
        await asking
    reports.done(number, OrderResult())  # too late
    later = asyncio.get_running_loop().create_task(link.ask(ClientOrder("tell", "y")))
    ((_, order),) = await reports.orders()
    assert order.kind == "tell"
    later.cancel()


async def test_a_server_that_stops_gives_no_orders(api, session, reports):
    api.engine.sessions.actor(session).link.release()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await reports.orders()


async def test_an_ask_is_answered_where_the_user_is(api, session, reports):
    asking = asyncio.get_running_loop().create_task(reports.ask("item 0", asked(api, session)))
    identity = await one_ask(api)
    status, _ = await api.call("POST", f"/asks/{identity}", body={"decision": "deny", "text": "no"})
    assert status == 200
    answer = await asking
    assert (answer.decision, answer.text) == (Decision.DENY, "no")


async def test_an_ask_that_is_asked_again_is_the_same_and_another_is_another(api, session, reports):
    first = asyncio.get_running_loop().create_task(reports.ask("item 0", asked(api, session)))
    identity = await one_ask(api)
    first.cancel()  # the connection is lost
    with contextlib.suppress(asyncio.CancelledError):
        await first
    await reports.connected()
    again = asyncio.get_running_loop().create_task(reports.ask("item 0", asked(api, session)))
    await asyncio.sleep(0.05)
    assert await one_ask(api) == identity
    other = asyncio.get_running_loop().create_task(reports.ask("item 1", asked(api, session)))
    async with asyncio.timeout(10):
        while len(await open_asks(api)) != 2:
            await asyncio.sleep(0.005)
    await api.call("POST", f"/asks/{identity}", body={"decision": "allow"})
    assert await again == AskAnswer(Decision.ALLOW)
    assert not other.done()
    other.cancel()


async def test_an_ask_that_outlives_the_server_is_the_same_for_the_next(api, client, session, reports):
    first = asyncio.get_running_loop().create_task(reports.ask("item 0", asked(api, session)))
    identity = await one_ask(api)
    first.cancel()
    again = engine_on(api.engine.ports, lambda *_: None)
    async with engine_running(again):
        await until(lambda: len(client.connections) == 2)
        late = client.connections[1].reports
        await late.connected()
        asking = asyncio.get_running_loop().create_task(late.ask("item 0", asked(api, session)))
        await until(lambda: again.asks.held)
        assert list(again.asks.held) == [identity]
        asking.cancel()


async def test_a_message_waits_for_the_end_of_a_dialog(api, client, session, reports):
    client.state["activity"] = ev.Activity.WAITING
    status, _ = await api.call("POST", f"/sessions/{session}/messages", body={"text": "look at this"})
    assert status == 201
    orders = asyncio.get_running_loop().create_task(reports.orders())
    await asyncio.sleep(0.5)
    assert not orders.done()
    client.state["activity"] = ev.Activity.IDLE
    ((_, order),) = await orders
    assert order.kind == "prompt"
    assert "look at this" in order.text
