"""C38: a stopped client takes no key and shows nothing. It is kept from that, or it is said; nothing is lost."""

import os
import signal

import pytest

from sm.processes import RunState, run_state
from sm.testing.scenario import Say, scenario
from tests.e2e import foreground
from tests.e2e.conftest import BY_KEYS
from tests.e2e.people import Person
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SCRIPT = scenario(otherwise=Say("ok"))


async def working(rig):
    session = await rig.new("hello")
    await rig.wait_event(session, "TurnEnded")
    return await rig.wait_status(session, "idle")


async def queued(rig, session):
    return (await rig.ask("POST", f"/sessions/{session}/messages", {"text": "a note"}))["id"]


async def arrives(rig, message):
    await rig.until(lambda: rig.call("GET", f"/messages/{message}")["state"] == "confirmed", "confirmed")


@pytest.mark.soak
async def test_ctrl_z_of_an_attached_person_does_not_reach_the_client():  # C38
    async with Rig(SCRIPT) as rig:
        view = await working(rig)
        session = view["id"]
        rig.tmux("set-option", "-g", "assume-paste-time", "0")  # keys within 1 ms of others would pass for a paste
        with Person(rig, session) as person:
            person.type("still ")
            await rig.wait_screen(session, "still")
            person.type("\x1a")
            person.type("here")
            await rig.wait_screen(session, "still here")
            assert "suspended" not in rig.screen(session)
        rig.press(session, *["BSpace"] * len("still here"))
        await arrives(rig, await queued(rig, session))


@BY_KEYS
@pytest.mark.soak
async def test_a_client_that_its_own_suspend_command_stops_is_said_to_be_suspended_and_messages_wait():  # C38
    async with Rig(SCRIPT) as rig:
        view = await working(rig)
        session = view["id"]
        rig.press(session, "C-z")  # past tmux's own keys, as a script may
        await rig.wait_screen(session, "Claude Code is suspended")
        message = await queued(rig, session)

        def said():
            return "suspended" in rig.call("GET", f"/messages/{message}")["reason"]

        await rig.until(said, "why it waits")
        os.kill(view["pid"], signal.SIGCONT)
        await arrives(rig, message)


@pytest.mark.claude_only("its process is the pane's own, which tmux continues at once")
async def test_a_stopped_client_is_shown_with_what_continues_it_and_its_messages_wait():  # C38
    async with Rig(SCRIPT) as rig:
        wrapper = rig.root / "wrapped"
        wrapper.write_text(f'#!/bin/sh\n{rig.client} "$@"\n')  # tmux continues its own children at once, not theirs
        wrapper.chmod(0o700)
        rig.client = str(wrapper)
        view = await working(rig)
        session = view["id"]
        assert view["pid"] != int(rig.tmux("display-message", "-p", "-t", rig.pane(session), "#{pane_pid}"))
        os.kill(view["pid"], signal.SIGSTOP)
        shown = await rig.wait_status(session, "waiting")
        assert f"kill -CONT {view['pid']}" in shown["detail"]
        message = await queued(rig, session)
        receipt = await rig.ask("GET", f"/messages/{message}")
        assert receipt["state"] == "queued"
        assert "a is waiting: the client is stopped" in receipt["reason"]
        os.kill(view["pid"], signal.SIGCONT)
        await arrives(rig, message)
        assert (await rig.wait_status(session, "idle"))["detail"] == ""


@pytest.mark.soak
async def test_a_stop_signal_to_a_client_in_its_pane_costs_nothing():  # C38
    async with Rig(SCRIPT) as rig:
        view = await working(rig)
        for number in signal.SIGSTOP, signal.SIGTSTP:
            os.kill(view["pid"], number)
            await rig.until(lambda: run_state(view["pid"]) is RunState.RUNNING, "continued by tmux")
            await arrives(rig, await queued(rig, view["id"]))


@pytest.mark.soak
async def test_sm_run_keeps_its_job_control_and_says_that_its_client_is_stopped():  # C38
    async with Rig(SCRIPT) as rig:
        with foreground.Shell(rig, ("--model", rig.model_name, "hello there")) as terminal:
            session = await terminal.session()
            view = await foreground.answered(rig, session)
            terminal.type("\x1a")
            shown = await rig.wait_status(session, "waiting")
            assert "fg in its own terminal" in shown["detail"]
            await rig.until(lambda: "Stopped" in terminal.plain, "the shell's prompt")
            terminal.type("fg\r")
            await rig.wait_status(session, "idle")
            assert run_state(view["pid"]) is RunState.RUNNING
            await terminal.leave()
