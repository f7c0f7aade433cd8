"""C8: two clients on one conversation would write one transcript; and a client that is restored in vain, over and over.

All on the real client, with its own state files as the witnesses.
"""

import os
import signal

import pytest

from sm.core.errors import SmError
from sm.processes import start_time
from sm.testing.scenario import Say, scenario
from tests.e2e import foreground
from tests.e2e.rig import Rig
from tests.e2e.terminal import Terminal

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SCRIPT = scenario(otherwise=Say("ok"))


async def ended_session(rig):
    session = await rig.new("remember the word quince")
    await rig.wait_event(session, "TurnEnded")
    view = await rig.wait_status(session, "idle")
    await rig.ask("DELETE", f"/sessions/{session}")
    return session, view["conversation"]


async def restored(rig, session):
    return await rig.ask("POST", f"/sessions/{session}/restore", {"env": rig.env})


async def test_a_session_is_not_restored_while_another_client_has_its_conversation_open():  # C8
    async with Rig(SCRIPT) as rig:
        session, conversation = await ended_session(rig)
        async with Terminal(rig, ("--resume", conversation)) as person:
            with pytest.raises(SmError) as caught:
                await restored(rig, session)
            refused = caught.value.refused
            assert refused.code == "running_elsewhere"
            for words in (conversation, f"pid {person.process.pid}", "/dev/pts/"):
                assert words in refused.message
            assert "/exit" in refused.hint
            assert (await rig.view(session))["status"] == "exited"
        assert (await restored(rig, session))["status"] == "starting"
        assert (await rig.wait_status(session, "idle"))["conversation"] == conversation


async def test_the_state_file_that_a_killed_client_leaves_refuses_nothing_even_where_its_pid_is_anothers():  # C8
    async with Rig(SCRIPT) as rig:
        session, conversation = await ended_session(rig)
        async with Terminal(rig, ("--resume", conversation)) as person:
            left = rig.root / "home" / ".claude" / "sessions" / f"{person.process.pid}.json"
            person.process.send_signal(signal.SIGKILL)
            person.process.wait()
        assert conversation in left.read_text()
        assert start_time(os.getpid()) not in left.read_text()
        left.rename(left.with_name(f"{os.getpid()}.json"))  # a pid that lives, as one that was given to another process
        assert (await restored(rig, session))["status"] == "starting"


@pytest.mark.parametrize("arguments", [("--resume", "ID"), ("--resume=ID",), ("--continue",)])
@pytest.mark.soak
async def test_sm_run_does_not_open_a_conversation_a_second_time(arguments):  # C8
    async with Rig(SCRIPT) as rig:
        session = await rig.new("remember the word quince", name="first")
        await rig.wait_event(session, "TurnEnded")
        view = await rig.wait_status(session, "idle")
        given = tuple(argument.replace("ID", view["conversation"]) for argument in arguments)
        with foreground.Terminal(rig, given) as terminal:
            assert await terminal.ended() == 1
            assert f"session first, pid {view['pid']}" in terminal.plain
            assert "sm attach first" in terminal.plain
        with foreground.Terminal(rig, (*given, "--fork-session", "hello there")) as terminal:
            copy = await foreground.answered(rig, await terminal.session())
            assert copy["conversation"] != view["conversation"]


@pytest.mark.soak
async def test_a_client_that_ends_at_once_is_not_restored_a_sixth_time_within_five_minutes():  # restart by a loop
    async with Rig(SCRIPT) as rig:
        session = await rig.new(None, "--no-such-option", name="loop")
        for number in range(4):
            await rig.wait_event(session, "ClientExited", number + 1)
            await restored(rig, session)
            if number == 1:
                await rig.kill_server()
                await rig.start_server()
        await rig.wait_event(session, "ClientExited", 5)
        with pytest.raises(SmError) as caught:
            await restored(rig, session)
        refused = caught.value.refused
        assert refused.code == "restart_loop"
        assert "loop stays down: its client has ended 5 times" in refused.message
        assert "sm restore loop --force" in refused.hint
        body = {"env": rig.env, "force": True}
        assert (await rig.ask("POST", f"/sessions/{session}/restore", body))["status"] == "starting"
