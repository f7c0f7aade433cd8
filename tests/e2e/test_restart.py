"""A server that stops, starts again, or finds somebody in its place, with real clients running meanwhile."""

import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sm.lock import running_server
from sm.paths import read_token
from sm.processes import alive, descendants
from tests.e2e.people import hands_off, wake_request
from tests.e2e.rig import PATIENCE, Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

LISTEN = """
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
sys.stdin.read()
"""


def follower(rig):
    """A reader of the event feed that stays connected."""
    port = int(running_server(rig.home).url.rpartition(":")[2])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", "/events", headers={"Authorization": f"Bearer {read_token(rig.home)}"})
    return connection, connection.getresponse()


async def stopped(rig, number=signal.SIGTERM):
    rig.server.send_signal(number)
    return await asyncio.to_thread(rig.server.wait, PATIENCE)


def run_server(rig):
    command = [sys.executable, "-m", "sm", "server", "run"]
    return subprocess.run(
        command, env=rig.server_env(), capture_output=True, text=True, cwd="/", check=False, timeout=PATIENCE
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.soak
async def test_a_server_with_a_session_and_a_follower_stops_when_told_to_and_says_nothing_odd(number):
    async with Rig(hands_off()) as rig:
        session = await rig.new("hello")
        await rig.wait_event(session, "TurnEnded")
        connection, feed = await asyncio.to_thread(follower, rig)
        assert await stopped(rig, number) == 0
        assert feed.read()
        connection.close()
        assert (rig.root / "server.err").read_text() == ""
        assert "unknown child" not in rig.home.server_log.read_text().lower()


async def test_after_a_restart_the_address_is_the_same_and_the_client_is_heard():
    async with Rig(hands_off()) as rig:
        session = await rig.new("hello")
        before = await rig.wait_event(session, "TurnEnded")
        url = running_server(rig.home).url
        await stopped(rig)
        await rig.start_server()
        assert running_server(rig.home).url == url
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "please hand off"})
        await wake_request(rig)
        assert (await rig.events(session, "TurnEnded"))[0]["number"] == before["number"]


@pytest.mark.soak
async def test_a_foreign_process_on_our_port_is_named_and_left_alone():
    async with Rig(hands_off()) as rig:
        session = await rig.new("hello")
        await rig.wait_event(session, "TurnEnded")
        port = running_server(rig.home).url.rpartition(":")[2]
        await stopped(rig)
        command = [sys.executable, "-c", LISTEN, port]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as foreign:
            assert foreign.stdout.readline() == b"ready\n"
            ran = await asyncio.to_thread(run_server, rig)
            name = Path(f"/proc/{foreign.pid}/comm").read_text().strip()
            assert ran.returncode != 0
            assert f"Port {port} is taken by process {foreign.pid} ({name})" in ran.stderr
            assert "hint: end that process (living sessions send their hooks there)" in ran.stderr
            assert foreign.poll() is None
            foreign.stdin.close()
        await rig.start_server()
        assert running_server(rig.home).url.endswith(f":{port}")


async def test_the_record_of_another_life_with_a_pid_that_now_is_anothers_is_no_server():
    async with Rig(hands_off()) as rig:
        await rig.kill_server()
        record = json.loads(rig.home.server_record.read_text())
        with subprocess.Popen(["sleep", "1000"]) as other:
            for path in (rig.home.server_record, rig.home.server_lock):
                path.write_text(json.dumps({**record, "pid": other.pid}))
            assert running_server(rig.home) is None
            await rig.start_server()
            assert running_server(rig.home).pid == rig.server.pid
            assert other.poll() is None
            other.kill()


@pytest.mark.soak
async def test_a_second_server_is_refused_and_the_first_goes_on():
    async with Rig(hands_off()) as rig:
        ran = await asyncio.to_thread(run_server, rig)
        assert ran.returncode != 0
        assert f"A server (pid {rig.server.pid}) already runs in {rig.home.root}" in ran.stderr
        assert rig._answers()


@pytest.mark.soak
async def test_a_control_connection_that_is_killed_during_a_rotation_is_made_again():
    async with Rig(hands_off()) as rig:
        session = await rig.new("please hand off")
        await rig.wait_event(session, "HandoffRequested")
        end_control_connection(rig)
        await wake_request(rig)
        view = await rig.wait_phase(session, "done")
        assert view["rotations"] == 1


def end_control_connection(rig):
    (control,) = (pid for pid in descendants(rig.server.pid) if b"tmux" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(control, signal.SIGKILL)


@pytest.mark.soak
async def test_a_killed_session_leaves_nothing_running_also_when_the_server_is_killed_right_after():
    async with Rig(hands_off()) as rig:
        session = await rig.new("hello")
        pid = (await rig.wait_status(session, "idle"))["pid"]
        os.kill(pid, signal.SIGSTOP)  # it cannot end by itself: the server has to come back to it
        deletion = asyncio.create_task(rig.ask("DELETE", f"/sessions/{session}"))
        await rig.recorded("kind = 'SessionKilled'")
        await rig.kill_server()
        with pytest.raises(Exception):  # noqa: B017  # the connection ends in one way or another
            await deletion
        assert alive(pid)
        await rig.start_server()
        await rig.until(lambda: not alive(pid), "the client was ended")
        assert (await rig.view(session))["status"] == "exited"
