"""`sm server` and the commands that start one: a real server process, ended by each test."""

import asyncio
import json
import os
import stat
from pathlib import Path

import pytest

from sm.client import Client
from sm.lock import held_by, running_server
from sm.paths import Home, read_token


@pytest.fixture
async def own(bare):
    """A place whose server is stopped in the end, whoever started it."""
    yield bare
    await bare.run("server", "stop")
    await end_tmux(bare)
    assert held_by(Home(bare.root / "state")) is None


async def end_tmux(desk):
    """The sessions' own server goes on when ours stops."""
    socket = str(desk.root / "state" / "tmux.sock")
    process = await asyncio.create_subprocess_exec("tmux", "-S", socket, "kill-server", stderr=asyncio.subprocess.PIPE)
    await process.communicate()


async def test_a_persons_command_starts_the_server_and_the_next_one_finds_it(own):
    first = await own.run("list", "--json")
    assert (first.code, first.data, first.err) == (0, [], "starting the sm server\n")
    second = await own.run("list", "--json")
    assert (second.data, second.err) == ([], "")


async def test_status_tells_where_it_runs_and_starts_nothing(own):
    refused = await own.run("server", "status", "--json")
    assert (refused.code, refused.error["code"]) == (2, "unavailable")
    started = (await own.run("server", "start", "--json")).data
    found = (await own.run("server", "status", "--json")).data
    assert set(found) == {"url", "pid", "home", "version", "sessions", "uptime"}
    assert (found["url"], found["home"], found["sessions"]) == (started["url"], str(own.root / "state"), 0)
    assert (await own.run("server", "status")).out.startswith(f"running at {found['url']} (pid {found['pid']}, ")


async def test_it_listens_on_loopback_only_and_its_files_are_its_owners(own):
    pid = (await own.run("server", "start", "--json")).data["pid"]
    assert [address.partition(":")[0] for address in listening_of(pid)] == ["0100007F"]
    modes = [path.lstat().st_mode for path in (own.root / "state").rglob("*")]
    assert all(stat.S_IMODE(mode) & 0o077 == 0 for mode in modes if not stat.S_ISSOCK(mode))


def listening_of(pid):
    """Addresses a process listens on, as the kernel writes them."""
    inodes = {str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()}
    rows = [line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()]
    return [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes]


async def test_restart_keeps_the_address(own):
    before = (await own.run("server", "start", "--json")).data
    after = (await own.run("server", "restart", "--json")).data
    assert (after["url"], after["pid"] != before["pid"]) == (before["url"], True)


async def test_stopping_what_does_not_run_is_refused(bare):
    ran = await bare.run("server", "stop")
    assert (ran.code, ran.err) == (1, "Error: No server runs\nhint: sm server start\n")


async def test_a_second_server_is_refused_and_names_the_first(own):
    pid = (await own.run("server", "start", "--json")).data["pid"]
    ran = await own.run("server", "run")
    assert (ran.code, f"(pid {pid}) already runs" in ran.err) == (1, True)


async def test_a_server_that_cannot_start_says_why(bare):
    (bare.root / "config.toml").write_text("nonsense = 1")
    ran = await bare.run("server", "start", "--json")
    assert (ran.code, ran.error["code"]) == (2, "start_failed")
    assert "unknown key nonsense" in ran.error["message"]


async def test_doctor_finds_a_running_server_and_hooks_that_reach_it(own):
    await own.run("server", "start")
    checks = {one["name"]: one for one in (await own.run("doctor", "--json")).data["checks"]}
    assert checks["server"]["level"] == "ok"
    assert checks["home"]["level"] == "ok"
    assert "hook.py reaches the server and answers in" in checks["hooks answer"]["message"]


async def test_following_survives_a_restart_of_the_server(own):
    (own.root / "config.toml").write_text('[claude]\ncommand = "sleep"\n')
    new = await own.run("new", "work", "--name", "a", "--detach", "--", "1000")
    assert new.code == 0, new.err
    process = await own.start("tail", "a", "-f", "--json")
    assert await kind(process) == "SessionLaunched"
    await own.run("server", "restart")
    while b"is back" not in await asyncio.wait_for(process.stderr.readline(), 15):
        pass
    await own.run("rename", "a", "b")
    while await kind(process) != "SessionRenamed":
        pass
    process.terminate()
    await process.wait()
    await own.run("kill", "b")


async def kind(process):
    return json.loads(await asyncio.wait_for(process.stdout.readline(), 10))["data"]["kind"]


async def test_the_record_of_a_dead_server_is_not_believed(own):
    pid = (await own.run("server", "start", "--json")).data["pid"]
    os.kill(pid, 9)
    while running_server(Home(own.root / "state")) is not None:
        await asyncio.sleep(0.01)
    assert (await own.run("list", "--no-start")).code == 2
    assert (await own.run("list", "--json")).data == []


async def test_what_a_message_says_is_in_no_log_also_when_it_cannot_be_delivered(own):
    secret = "sk-ant-api03-TESTTESTTESTTESTTESTTEST"
    (own.root / "config.toml").write_text('[claude]\ncommand = "sleep"\n')
    await own.run("new", "work", "--name", "a", "--detach", "--", "1000")
    place = Home(own.root / "state")
    client = Client(running_server(place).url, read_token(place))
    await asyncio.to_thread(client.call, "POST", "/sessions/a/messages", {"text": secret})
    await end_tmux(own)
    await own.run("output", "a")
    await own.run("server", "stop")
    logs = [path for path in place.root.rglob("*") if path.suffix in {".log", ".out"}]
    assert place.server_log in logs
    assert not any(secret.encode() in path.read_bytes() for path in logs)
    await own.run("server", "start")
