"""What a Codex in its terminal asks, on the real client: its dialog opens only once `sm` has let go of its hook."""

import asyncio

import pytest

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import Person
from tests.e2e.rig import Rig
from tests.e2e.test_codex import TOUCH, asked, ended

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

DIALOG = "Would you like to run the following command?"
ASKS = ("-s", "workspace-write", "-a", "on-request")


def asking():
    return Rig(scenario(Turn("go", steps=[TOUCH, Say("done")]), otherwise=Say("ok")), provider="codex-tui")


async def test_a_permission_is_allowed_from_a_shell_and_no_dialog_opens():
    async with asking() as rig:
        session = await rig.new("go", *ASKS)
        ask = await asked(rig)
        assert (ask["kind"], ask["tool"]) == ("permission", "Bash")
        assert (await rig.wait_status(session, "waiting"))["detail"] == "asks for permission: Bash"
        assert DIALOG not in rig.screen(session)
        assert rig.sm("approve", ask["id"]).returncode == 0
        await ended(rig, session)
        assert (rig.project / "asked-for").exists()
        assert DIALOG not in rig.screen(session)


async def test_a_permission_is_denied_with_a_reason_that_the_agent_reads():
    async with asking() as rig:
        session = await rig.new("go", *ASKS)
        ask = await asked(rig)
        assert rig.sm("deny", ask["id"], "no:", "use", "make").returncode == 0
        assert "no: use make" in (await ended(rig, session)).text
        assert not (rig.project / "asked-for").exists()


async def test_the_dialog_opens_for_its_user_at_the_terminal_and_is_answered_there():
    async with asking() as rig:
        session = await rig.new("go", *ASKS)
        ask = await asked(rig)
        with Person(rig, session):
            await rig.wait_screen(session, DIALOG)
            assert (await rig.ask("GET", f"/asks/{ask['id']}"))["state"] == "expired"
            assert (await rig.view(session))["status"] == "waiting"
            rig.press(session, "Enter")
            await ended(rig, session)
        assert (rig.project / "asked-for").exists()


@pytest.mark.parametrize("mode", ["sequential", "important", "urgent", "steer"])
@pytest.mark.often("urgent")
@pytest.mark.soak
async def test_a_message_that_comes_while_it_asks_answers_nothing_and_comes_after_it(mode):
    async with asking() as rig:
        session = await rig.new("go", *ASKS)
        ask = await asked(rig)
        body = {"text": "look at the tests", "mode": mode}
        message = (await rig.ask("POST", f"/sessions/{session}/messages", body))["id"]
        await asyncio.sleep(2)
        assert not (rig.project / "asked-for").exists()
        assert rig.sm("approve", ask["id"]).returncode == 0
        await rig.until(lambda: rig.call("GET", f"/messages/{message}")["state"] == "confirmed", "confirmed", 30)
        await rig.wait_status(session, "idle")
        assert (rig.project / "asked-for").exists()
        last = {request.session: request for request in rig.model.main_requests}
        assert sum(request.all_text.count("look at the tests") for request in last.values()) == 1


@pytest.mark.soak
async def test_an_ask_of_a_server_that_was_killed_is_answered_in_the_terminal():
    async with asking() as rig:
        session = await rig.new("go", *ASKS)
        ask = await asked(rig)
        await rig.kill_server()
        await rig.start_server()
        await rig.wait_screen(session, DIALOG)
        assert (await rig.view(session))["status"] in {"unknown", "waiting"}
        assert (await rig.ask("GET", f"/asks/{ask['id']}"))["state"] == "expired"
        rig.press(session, "Enter")
        await ended(rig, session)
        assert (rig.project / "asked-for").exists()


async def test_what_needs_no_permission_asks_for_none():
    quiet = Turn("go", steps=[Call("Bash", command="touch made"), Say("done")])
    async with Rig(scenario(quiet, otherwise=Say("ok")), provider="codex-tui") as rig:
        session = await rig.new("go", *ASKS)
        await ended(rig, session)
        assert (rig.project / "made").exists()
        assert await rig.events(session, "PermissionAsked") == []
