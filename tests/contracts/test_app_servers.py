"""Codex's app-server, the real one and the one that stands in for it, as the connection to it sees them."""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sm.core import events as ev
from sm.core.model.ask import AskAnswer, Decision
from sm.core.ports.provider import ConnectedSession, HookReply, OrderResult
from sm.providers.codex.app import schema
from sm.providers.codex.app.asks import COMMAND
from sm.providers.codex.app.connection import AppConnection
from sm.providers.codex.app.place import AppPlace
from sm.providers.codex.app.rpc import connected
from sm.providers.codex.app.subagents import Subagents
from sm.testing.model import ScriptedModel
from sm.testing.offline import offline_codex_env
from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.rig import CODEX
from tests.fakes.app_server import FakeAppServer, until
from tests.fakes.reports import FakeReports

TOUCH = Call("exec_command", cmd="touch asked-for", sandbox_permissions="require_escalated", justification="make it")
PID = 7
SCRIPT = {
    "hello": [Say("One line.\nDone here.")],
    "work": [Call("Bash", command="sleep 2"), Say("Worked.")],
    "ask": [TOUCH, Say("Asked.")],
    "long": [Call("Bash", command="sleep 30"), Say("Never.")],
}


class World:
    """An app-server that plays the script, with a connection to it that can be lost."""

    def __init__(self, directory):
        self.directory = directory
        self.place = AppPlace(directory / "s.sock", directory / "thread", directory / "log")
        self.reports = FakeReports()
        self.states = {}

    @asynccontextmanager
    async def connected(self):
        session = ConnectedSession("aaaaaaaa", "worker", str(self.directory), PID)
        before = self.reports.connections
        async with asyncio.TaskGroup() as group:
            task = group.create_task(AppConnection(session, self.place, self.reports, self.states).run())
            await until(lambda: self.reports.connections > before, seconds=30)
            yield self.reports
            task.cancel()

    @property
    def activity(self):
        return self.states[PID].activity if PID in self.states else None


class Fake(World):
    async def __aenter__(self):
        self.server = FakeAppServer(str(self.place.socket), plays=self.play)
        await self.server.start()
        return self

    async def __aexit__(self, *_):
        await self.server.stop()

    async def play(self, thread, text):
        for step in SCRIPT.get(text, [Say("ok")]):
            if not step.calls:
                await self.server.reply(thread, step.say)
            elif step == TOUCH:
                number = await self.server.ask(thread, COMMAND, itemId="i", command="touch asked-for")
                await self.server.answered(number)
            else:
                await self.server.ran(thread, step.calls[0].input["command"])
        await self.server.end_turn(thread)

    def told(self, words):
        return any(words in str(thread.injected) for thread in self.server.threads.values())

    @property
    def allowed(self):
        return {"decision": "accept"} in self.server.answers.values()


class Real(World):
    async def __aenter__(self):
        turns = [Turn(prompt, steps=steps) for prompt, steps in SCRIPT.items()]
        self.model = ScriptedModel(scenario(*turns, otherwise=Say("ok")))
        await self.model.__aenter__()
        self.process = subprocess.Popen(
            [CODEX, "app-server", "--listen", f"unix://{self.place.socket}"],
            env=offline_codex_env(self.directory / "home", self.model.url, self.directory),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.directory,
            process_group=0,
        )
        return self

    async def __aexit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        await self.model.__aexit__(None, None, None)

    def told(self, words):
        return any(words in request.context_text for request in self.model.main_requests)

    @property
    def allowed(self):
        return (self.directory / "asked-for").exists()


@pytest.fixture(params=[Fake, pytest.param(Real, marks=pytest.mark.e2e)], ids=["fake", "real"])
async def world(request):
    directory = Path(tempfile.mkdtemp(prefix="sm-app-"))  # short: a socket path has 107 bytes
    try:
        async with request.param(directory) as made:
            yield made
    finally:
        shutil.rmtree(directory, ignore_errors=True)


async def ended(reports, count=1):
    await until(lambda: len(reports.of(ev.TurnEnded)) >= count, seconds=40)
    return reports.of(ev.TurnEnded)[-1].text


async def test_the_first_thread_is_begun_and_taken_up_by_the_next_connection(world):
    async with world.connected() as reports:
        (began,) = reports.of(ev.ConversationStarted)
        assert began.origin is ev.Origin.STARTUP
        assert world.place.thread() == began.conversation
        assert world.activity is ev.Activity.IDLE
    assert world.activity is None
    async with world.connected() as reports:
        assert reports.of(ev.ConversationStarted) == [began]
        assert await reports.order("prompt", "hello") == OrderResult()
        assert await ended(reports) == "Done here."


async def test_a_prompt_is_a_turn(world):
    async with world.connected() as reports:
        assert await reports.order("prompt", "hello") == OrderResult()
        assert await ended(reports) == "Done here."
        (prompt,) = reports.of(ev.PromptSubmitted)
        assert (prompt.text, prompt.conversation) == ("hello", world.place.thread())
        await until(lambda: world.activity is ev.Activity.IDLE)


async def test_a_prompt_into_a_turn_joins_it(world):
    async with world.connected() as reports:
        await reports.order("prompt", "work")
        await until(lambda: world.activity is ev.Activity.BUSY)
        assert await reports.order("steer", "and this") == OrderResult()
        await ended(reports)
        assert [prompt.text for prompt in reports.of(ev.PromptSubmitted)] == ["work", "and this"]
        assert len(reports.of(ev.TurnEnded)) == 1


async def test_what_is_told_waits_for_the_next_request(world):
    async with world.connected() as reports:
        assert await reports.order("tell", "remember the milk") == OrderResult()
        await reports.order("prompt", "hello")
        await ended(reports)
        assert world.told("remember the milk")


async def test_what_a_hook_is_answered_is_told_in_the_same_turn(world):
    async with world.connected() as reports:
        reports.replies[ev.ToolUsed] = HookReply(context="the context is filling")
        await reports.order("prompt", "work")
        await ended(reports)
        assert world.told("the context is filling")
        assert reports.measured


async def test_a_permission_is_asked_again_under_the_same_identity_after_a_lost_connection(world):
    async with world.connected() as reports:
        await reports.order("prompt", "ask")
        await until(lambda: reports.asked, seconds=30)
        await until(lambda: world.activity is ev.Activity.WAITING)
    async with world.connected() as reports:
        await until(lambda: len(reports.asked) == 2, seconds=30)
        assert world.activity is ev.Activity.WAITING
        (first, _, _), (again, hook, answer) = reports.asked
        assert first == again
        assert hook.ask.tool == "exec_command"
        answer.set_result(AskAnswer(Decision.ALLOW))
        assert await ended(reports) == "Asked."
        assert world.allowed


async def test_the_threads_that_are_loaded_are_listed_and_tell_by_whom_they_were_started(world):
    async with world.connected() as reports:
        await reports.order("prompt", "hello")
        await ended(reports)
        found = Subagents()
        async with connected(str(world.place.socket)) as rpc:
            await found.take_up(rpc, world.place.thread())
            loaded = await rpc.call(schema.ThreadLoadedList())
            read = await rpc.call(schema.ThreadRead(thread_id=world.place.thread()))
        assert world.place.thread() in loaded.data
        assert (read.thread.id, read.thread.parent_thread_id) == (world.place.thread(), None)
        assert found.threads == set()


async def test_a_denied_permission_goes_with_its_reason_and_the_turn_goes_on(world):
    async with world.connected() as reports:
        await reports.order("prompt", "ask")
        await until(lambda: reports.asked, seconds=30)
        reports.asked[0][2].set_result(AskAnswer(Decision.DENY, text="not on this machine"))
        assert await ended(reports) == "Asked."
        assert world.told("not on this machine")
        assert not world.allowed


async def test_a_blocked_prompt_is_interrupted(world):
    async with world.connected() as reports:
        reports.replies[ev.PromptSubmitted] = HookReply(block="it is over")
        await reports.order("prompt", "long")
        await until(lambda: world.activity is ev.Activity.BUSY, seconds=30)
        await until(lambda: world.activity is ev.Activity.IDLE, seconds=20)
        assert reports.of(ev.TurnEnded) == []


async def test_a_rotation_begins_a_thread_and_leaves_the_last_one(world):
    async with world.connected() as reports:
        await reports.order("prompt", "hello")
        await ended(reports)
        await until(lambda: world.activity is ev.Activity.IDLE)
        old = world.place.thread()
        assert await reports.order("rotate") == OrderResult()
        first, new = reports.of(ev.ConversationStarted)
        assert (first.conversation, new.origin) == (old, ev.Origin.CLEAR)
        assert world.place.thread() == new.conversation != old
        await reports.order("prompt", "hello")
        await ended(reports, 2)
        assert reports.of(ev.PromptSubmitted)[-1].conversation == new.conversation


async def test_a_busy_client_is_not_rotated(world):
    async with world.connected() as reports:
        await reports.order("prompt", "work")
        await until(lambda: world.activity is ev.Activity.BUSY, seconds=30)
        assert (await reports.order("rotate")).refused == "the client is busy"
        await ended(reports)
