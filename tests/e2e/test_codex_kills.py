"""SIGKILL of one part of a Codex in every phase of a rotation: its app-server alone, its screen alone."""

import contextlib
import os
import signal

import pytest

from tests.e2e.rig import Rig
from tests.e2e.test_codex import native_processes
from tests.e2e.test_kills import (
    AWOKE,
    NOTE,
    PHASES,
    reached,
    requests_with,
    restored_from_its_document,
    script,
    settled,
    told,
)
from tests.e2e.test_kills import started as handing_off

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]


async def killed(rig, session, part):
    """The screen is not there for a moment while it is started again for the new thread."""
    pid = (await rig.view(session))["pid"]

    def done():
        for process in native_processes(pid, part):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
                return True
        return False

    await rig.until(done, f"{part} killed")


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.often("clearing", "empty")
async def test_an_app_server_killed_in_any_phase_ends_the_session_which_continues_from_its_document(phase):
    async with Rig(script(), provider="codex") as rig:
        session = await handing_off(rig)
        await reached(rig, phase)
        await killed(rig, session, " app-server ")
        view = await rig.wait_view(session, lambda view: view["status"] in {"crashed", "exited"}, "ended")
        assert "exit code 137" in view["detail"]
        if view["handoff"]["phase"] == "done":  # it had been woken, and had answered
            await rig.ask("POST", f"/sessions/{session}/restore", {"env": rig.env})
            await rig.wait_status(session, "idle")
            assert told(rig, NOTE) == 1
        else:
            await restored_from_its_document(rig, session)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.often("clearing")
@pytest.mark.soak
async def test_a_screen_killed_in_any_phase_disturbs_no_rotation(phase):
    async with Rig(script(), provider="codex") as rig:
        session = await handing_off(rig)
        await rig.wait_screen(session, "please hand off")
        await reached(rig, phase)
        await killed(rig, session, " resume ")
        await settled(rig, session)
        assert len(requests_with(rig, AWOKE)) == 1
        assert told(rig, NOTE) == 1
        await rig.wait_screen(session, "Going on.")
