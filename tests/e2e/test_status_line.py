"""The status line in the real client: ours below the person's own, and the window it reports."""

import pytest

from sm.testing.scenario import Say, Turn, scenario
from tests.e2e.people import HANDED_OFF, SLOW, WROTE, person_settings
from tests.e2e.rig import Rig
from tests.e2e.terminal import Terminal, sm

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

OWN = "python3 -c \"import json, sys; print('own line of', json.load(sys.stdin)['model']['id'])\""
SCRIPT = scenario(
    Turn("fill", steps=[Say("ok").but(context=83_500)]),
    Turn("hand off", steps=[WROTE, HANDED_OFF, SLOW.but(delay=8.0)]),
    otherwise=Say("ok"),
)


async def test_a_session_shows_both_lines_its_context_and_its_handoff():
    async with Rig(SCRIPT) as rig:
        person_settings(rig, statusLine={"type": "command", "command": OWN, "padding": 1})
        assert sm(rig, "setup", "--statusline", "--yes").returncode == 0
        session = await rig.new("fill")
        await rig.wait_event(session, "WindowTold", window=200_000)
        await rig.wait_screen(session, "own line of claude-sonnet-4-5")
        await rig.wait_screen(session, "project █████░░░░░ 50% 84k/167k")
        rig.type(session, "hand off")
        await rig.wait_screen(session, "hand off")
        rig.press(session, "Enter")
        await rig.wait_screen(session, "handoff pending")


@pytest.mark.soak
async def test_an_unknown_model_is_measured_once_the_status_line_has_told_its_window():
    async with Rig(SCRIPT, model_name="claude-tomorrow-9") as rig:
        assert sm(rig, "setup", "--statusline", "--yes").returncode == 0
        async with Terminal(rig) as person:
            await person.submit("fill")
            await rig.until(lambda: bool(rig.call("GET", "/sessions")), "adopted")
            [session] = await rig.ask("GET", "/sessions")
            told = await rig.wait_event(session["id"], "WindowTold")
            view = await rig.wait_view(session["id"], lambda v: v["context"]["percent"] is not None, "with a share")
            assert told["data"]["window"] == 1_000_000
            assert view["context"]["usable"] == 967_000


@pytest.mark.soak
async def test_without_a_server_the_clients_own_numbers_stand_there():
    async with Rig(SCRIPT) as rig:
        assert sm(rig, "setup", "--statusline", "--yes").returncode == 0
        await rig.kill_server()
        async with Terminal(rig) as person:
            await person.submit("fill")
            await person.shows("84k/167k")


@pytest.mark.soak
async def test_taken_out_the_persons_own_line_stands_alone_again():
    async with Rig(SCRIPT) as rig:
        person_settings(rig, statusLine={"type": "command", "command": OWN})
        sm(rig, "setup", "--statusline", "--yes")
        assert sm(rig, "setup", "--remove", "--yes").returncode == 0
        session = await rig.new("fill")
        await rig.wait_screen(session, "own line of claude-sonnet-4-5")
        assert "84k/167k" not in rig.screen(session)
