"""Another client continues a session, on the real clients: there and back, with its team, and when it does not start."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import AWOKE
from tests.e2e.rig import CODEX, Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

DOCUMENT = "# Handoff\nThe goal is G.\nNext step: N.\n"
CONFIG = f"""
[codex]
command = "{CODEX}"

[team]
may_switch = true
"""


def switching(*turns, **more):
    awoke = Turn(AWOKE, steps=[Say("Going on.")])
    config = CONFIG + more.pop("config", "")
    return Rig(scenario(*turns, awoke, otherwise=Say("ok")), config=claude_command(config), client=None, **more)


def claude_command(config):
    from tests.e2e.rig import REAL_CLIENT

    return f'[claude]\ncommand = "{REAL_CLIENT}"\n{config}'


async def continues(rig, session, provider, *arguments, document=DOCUMENT):
    """A person has that client continue, once the session is idle; return its view then."""
    before = await rig.wait_status(session, "idle")
    path = rig.root / f"{provider}.md"
    path.write_text(document)
    done = rig.sm("handoff", str(path), "--to", provider, "--session", session, *arguments)
    assert done.returncode == 0, done.stderr
    return await settled(rig, session, provider, before["rotations"] + 1)


async def settled(rig, session, provider, rotations):
    return await rig.wait_view(
        session,
        lambda view: (
            (view["provider"], view["rotations"], view["status"]) == (provider, rotations, "idle")
            and view["handoff"]["phase"] == "done"
        ),
        f"continued with {provider}",
    )


async def test_a_session_goes_on_with_the_other_client_and_back():
    async with switching(Turn("hello", steps=[Say("Here.")])) as rig:
        session = await rig.new("hello")
        await rig.wait_event(session, "TurnEnded")
        first = await rig.view(session)
        second = await continues(rig, session, "codex")
        assert (second["id"], second["name"], second["model"]) == (session, first["name"], "scripted-model")
        wake = [request for request in rig.model.main_requests if AWOKE in request.user_text][-1]
        assert DOCUMENT.strip() in wake.all_text
        third = await continues(rig, session, "claude")
        assert third["past_conversations"] == [first["conversation"], second["conversation"]]
        chain = [entry for entry in await rig.ask("GET", "/handoffs") if entry["session"] == session]
        assert [(entry["state"], entry["conversation"]) for entry in chain] == [
            ("consumed", second["conversation"]),
            ("consumed", first["conversation"]),
        ]
