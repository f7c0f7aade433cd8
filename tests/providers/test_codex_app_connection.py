"""The connection to an app-server: which thread is the session's, what is asked, and what cannot end it."""

import asyncio
import json
import shutil
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sm.core import events as ev
from sm.core.model.ask import AskAnswer, Decision
from sm.core.ports.provider import ConnectedSession, HookReply, OrderResult
from sm.providers.codex.app import asks, connection, rpc
from sm.providers.codex.app.connection import AppConnection
from sm.providers.codex.app.place import AppPlace
from tests.fakes.app_server import FakeAppServer, until
from tests.fakes.reports import FakeReports

PID = 7


class Connected:
    def __init__(self, directory):
        self.place = AppPlace(directory / "s.sock", directory / "thread", directory / "log")
        self.server = FakeAppServer(str(self.place.socket))
        self.reports = FakeReports()
        self.states = {}

    @asynccontextmanager
    async def running(self):
        session = ConnectedSession("aaaaaaaa", "worker", "/p", PID)
        self.task = asyncio.get_running_loop().create_task(
            AppConnection(session, self.place, self.reports, self.states).run()
        )
        try:
            await self.again(0)
            yield self
        finally:
            self.task.cancel()
            await asyncio.wait({self.task})

    async def again(self, connections):
        await until(lambda: self.reports.connections > connections)

    @property
    def thread(self):
        return self.server.threads[self.place.thread()]

    async def send(self, text):
        for client in tuple(self.server.clients):
            await self.server.send(client, text)

    async def still_hears(self):
        """An order is carried out meanwhile, and what came before its result is heard."""
        assert await self.reports.order("tell", "x") == OrderResult()

    async def still_works(self):
        """What it takes in is taken in its order: this comes after whatever was sent before."""
        before, connections = len(self.reports.of(ev.PromptSubmitted)), self.reports.connections
        assert await self.reports.order("prompt", "still there?") == OrderResult()
        await until(lambda: len(self.reports.of(ev.PromptSubmitted)) > before)
        assert self.reports.connections == connections
        assert not self.task.done()


@pytest.fixture
async def connected():
    directory = Path(tempfile.mkdtemp(prefix="sm-app-"))  # short: a socket path has 107 bytes
    made = Connected(directory)
    await made.server.start()
    async with made.running():
        yield made
    await made.server.stop()
    shutil.rmtree(directory, ignore_errors=True)


OTHERS = [{"ephemeral": True}, {"parent": "t-1"}, {"role": "reviewer"}, {"originator": "sm"}]


@pytest.mark.parametrize("members", OTHERS, ids=str)
async def test_a_thread_of_the_client_itself_is_none_of_the_sessions(connected, members):
    before = connected.place.thread()
    other = connected.server.begin(**{"originator": "codex-tui", **members}, name="x")
    await connected.server.announced(other)
    await connected.still_works()
    assert connected.place.thread() == before
    assert not any(other.id in client.threads for client in connected.server.clients)


async def test_a_thread_that_the_user_has_begun_is_the_sessions_from_then_on(connected):
    old = connected.place.thread()
    new = connected.server.begin(originator="codex-tui", name="x")
    await connected.server.announced(new)
    await until(lambda: connected.place.thread() == new.id)
    assert connected.reports.of(ev.ConversationStarted)[-1].origin is ev.Origin.CLEAR
    await connected.server.announced(connected.server.threads[old])  # as when the user looks at it again
    await connected.still_works()
    assert connected.place.thread() == new.id


async def test_a_thread_without_a_file_yet_changes_nothing(connected):
    before = connected.place.thread()
    await connected.server.announced(connected.server.begin(originator="codex-tui"))
    await connected.still_works()
    assert connected.place.thread() == before


async def test_what_another_thread_tells_is_passed_over(connected):
    other = connected.server.begin(parent=connected.thread.id, name="x")
    for client in connected.server.clients:
        client.threads.add(other.id)
    other.turn = "turn-of-another"
    await connected.server.prompted(other, "look")
    await connected.server.reply(other, "Done.")
    await connected.server.ask(other, asks.COMMAND, itemId="i", command="rm")
    await connected.server.end_turn(other)
    await connected.still_works()
    assert [prompt.text for prompt in connected.reports.of(ev.PromptSubmitted)] == ["still there?"]
    assert connected.reports.asked == []
    assert connected.reports.of(ev.TurnEnded) == []


async def test_what_is_answered_in_the_screen_is_not_asked_any_more(connected):
    number = await connected.server.ask(connected.thread, asks.COMMAND, itemId="i", command="rm")
    await until(lambda: connected.reports.asked)
    await connected.server.resolved(number)
    await until(connected.reports.asked[0][2].cancelled)
    await connected.still_works()
    assert connected.server.answers == {}


async def test_an_answer_that_never_comes_replies_nothing(connected):
    await connected.server.ask(connected.thread, asks.COMMAND, itemId="i", command="rm")
    await until(lambda: connected.reports.asked)
    connected.reports.asked[0][2].set_result(None)
    await connected.still_works()
    assert connected.server.answers == {}


async def test_a_request_that_only_the_screen_answers_gets_no_reply(connected):
    await connected.server.ask(connected.thread, "item/tool/call", itemId="i", tool="x")
    await connected.still_works()
    assert (connected.reports.asked, connected.server.answers) == ([], {})


async def test_a_reason_that_the_server_does_not_take_still_denies(connected):
    connected.server.refuses["thread/inject_items"] = "no"
    number = await connected.server.ask(connected.thread, asks.COMMAND, itemId="i", command="rm")
    await until(lambda: connected.reports.asked)
    connected.reports.asked[0][2].set_result(AskAnswer(Decision.DENY, text="not here"))
    await connected.server.answered(number)
    assert connected.server.answers[number] == {"decision": "decline"}
    await connected.still_works()


class Slow(FakeReports):
    """Its reply to a prompt waits until it is let go."""

    def __init__(self):
        super().__init__(replies={ev.PromptSubmitted: HookReply(context="[sm] Read this.")})
        self.go = asyncio.Event()

    async def hook(self, hook):
        reply = await super().hook(hook)
        if isinstance(hook.event, ev.PromptSubmitted):
            await self.go.wait()
        return reply


@pytest.fixture
async def slow():
    directory = Path(tempfile.mkdtemp(prefix="sm-app-"))
    made = Connected(directory)
    made.reports = Slow()
    await made.server.start()
    async with made.running():
        yield made
    await made.server.stop()
    shutil.rmtree(directory, ignore_errors=True)


@pytest.mark.parametrize("over", [False, True])
async def test_what_is_added_after_the_turn_has_a_turn_of_its_own_without_a_prompt(slow, over):
    await slow.reports.order("prompt", "work")
    await until(lambda: slow.reports.of(ev.PromptSubmitted))
    if over:
        await slow.server.end_turn(slow.thread)
        await slow.still_hears()
    slow.reports.go.set()
    await until(lambda: "Read this." in str(slow.thread.injected))
    if over:
        await until(lambda: len(slow.server.called("turn/start")) > 1)
    await slow.still_hears()
    assert [call["input"] for call in slow.server.called("turn/start")[1:]] == [[]] * over
    assert slow.thread.prompts == ["work"]


async def test_an_order_that_is_refused_says_why(connected):
    connected.server.refuses["turn/start"] = "no quota left"
    assert await connected.reports.order("prompt", "work") == OrderResult(refused="no quota left")
    assert "no order dance" in (await connected.reports.order("dance")).refused


async def test_a_connection_that_is_lost_during_an_order_is_there_again_and_leaves_the_order_open(connected):
    connected.server.silent.add("turn/start")
    order = asyncio.get_running_loop().create_task(connected.reports.order("prompt", "work"))
    await until(lambda: connected.server.called("turn/start"))
    before, thread = connected.reports.connections, connected.place.thread()
    await connected.server.stop()
    await until(lambda: PID not in connected.states)
    connected.server.silent.clear()
    await connected.server.start()
    await connected.again(before)
    assert connected.place.thread() == thread
    assert not order.done()
    order.cancel()
    await connected.still_works()


async def test_a_server_that_does_not_answer_is_connected_to_again(connected, monkeypatch):
    monkeypatch.setattr(rpc, "ANSWER_TIMEOUT_S", 0.1)
    connected.server.silent.add("turn/start")
    order = asyncio.get_running_loop().create_task(connected.reports.order("prompt", "work"))
    before = connected.reports.connections
    await connected.again(before)
    order.cancel()


async def test_a_server_that_refuses_the_thread_is_asked_again_later(connected, monkeypatch):
    monkeypatch.setattr(connection, "SLOW_RETRY_INTERVAL_S", 0.05)
    before = connected.reports.connections
    connected.server.refuses["thread/resume"] = "config is broken"
    await connected.server.stop()
    await connected.server.start()
    await until(lambda: len(connected.server.called("thread/resume")) > 2)
    assert connected.reports.connections == before
    del connected.server.refuses["thread/resume"]
    await connected.again(before)
    await connected.still_works()


async def test_a_thread_whose_file_is_gone_is_begun_anew(connected):
    before = connected.reports.connections
    old = connected.place.thread()
    await connected.server.stop()
    del connected.server.threads[old]
    await connected.server.start()
    await connected.again(before)
    assert connected.place.thread() != old


DEEP = "[" * 100_000 + "]" * 100_000
METHODS = [
    *("thread/started", "thread/status/changed", "thread/settings/updated", "thread/tokenUsage/updated"),
    *("turn/started", "turn/completed", "item/started", "item/completed", "account/rateLimits/updated"),
    *("serverRequest/resolved", "error", "tomorrow/told", *sorted(asks.ANSWERED), "item/tool/call"),
]
MEMBERS = {
    *(
        "thread",
        "status",
        "threadSettings",
        "tokenUsage",
        "turn",
        "item",
        "rateLimits",
        "requestId",
        "threadId",
        "turnId",
    ),
    *("itemId", "command", "questions", "permissions", "availableDecisions"),
}
ODD = [None, 5, "x", [], {}, [[]], {"id": None, "type": 5}, {"type": "active", "activeFlags": [5, None]}, -1, True]


@pytest.mark.parametrize("method", METHODS)
async def test_an_odd_message_ends_no_connection(connected, method):
    thread = connected.place.thread()
    for number in (None, 900):
        start = {"method": method} if number is None else {"method": method, "id": number}
        await connected.send(json.dumps(start))
        for params in (None, [], 5, "x", {}, *(dict.fromkeys(MEMBERS, odd) for odd in ODD)):
            await connected.send(json.dumps({**start, "params": params}))
            if isinstance(params, dict):
                await connected.send(json.dumps({**start, "params": {**params, "threadId": thread}}))
        for name in ("item", "turn", "thread", "permissions", "other"):
            deep = f'{{"threadId":"{thread}","{name}":{DEEP}}}'
            await connected.send(json.dumps({**start, "params": 0}).replace('"params": 0', f'"params": {deep}'))
    await connected.still_works()
    assert connected.place.thread() == thread


@pytest.mark.parametrize(
    "text",
    [
        *("", "null", "[]", "5", '"x"', "{", "{}", DEEP, '{"id":{}}', '{"id":1}', '{"id":"x","result":5}'),
        *('{"id":1,"error":5}', '{"id":99,"error":{"message":5}}', '{"method":5}', '{"method":"x","params":NaN}'),
        *('{"method":"\\ud800"}', b"\xff\xfe", b'{"method":"\xff"}', '{"method":"item/started","params":1e999}'),
    ],
    ids=lambda text: repr(text)[:30],
)
async def test_what_is_no_message_ends_no_connection(connected, text):
    await connected.send(text)
    await connected.still_works()


@pytest.mark.parametrize("result", [None, 5, [], {}, {"thread": None}, {"thread": {"id": 5}}], ids=str)
async def test_an_odd_result_ends_no_connection(connected, result, monkeypatch):
    monkeypatch.setattr(connected.server, "_opened", lambda _: result)
    connected.states[PID] = connected.states[PID]
    assert "named no thread" in (await connected.reports.order("rotate")).refused
    await connected.still_works()
