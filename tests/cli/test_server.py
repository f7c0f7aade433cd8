"""`sm server` and the commands that start one: a real server process, ended by each test."""

import asyncio
import contextlib
import json
import os
import shlex
import signal
import socket
import sqlite3
import stat
import sys
from pathlib import Path

import pytest

from sm.cli.connection import ANSWER_TIMEOUT_S
from sm.client import Client
from sm.lock import ServerLock, held_by, running_server
from sm.paths import SmHome, open_home, read_token
from tests.cli.rig import SM

UNFORKED = {"LANG": "C.UTF-8"}
"""The environment of any command; given, command and server are programs of their own, as `warm.serves` has it."""


@pytest.fixture
async def own(bare):
    """A place whose server is stopped in the end, whoever started it."""
    yield bare
    await bare.run("server", "stop")
    await end_tmux(bare)
    assert held_by(SmHome(bare.root / "state")) is None


def lasting_client(root):
    """A program that takes any arguments and does not end by itself."""
    client = root / "client.sh"
    client.write_text("#!/bin/sh\nexec sleep 1000\n")
    client.chmod(0o700)
    return client


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


def slow_start(root, seconds):
    """An environment in which a server's interpreter takes so long, as on a cold disk, until it runs our code."""
    place = root / "slow"
    place.mkdir()
    slow = f'import sys, time\nif "server" in sys.orig_argv and "run" in sys.orig_argv:\n    time.sleep({seconds})\n'
    (place / "sitecustomize.py").write_text(slow)
    return {"PYTHONPATH": str(place)}


@pytest.mark.soak
async def test_a_start_that_takes_longer_than_an_answer_may_is_waited_for(own):  # C26
    ran = await own.run("list", "--json", env=slow_start(own.root, ANSWER_TIMEOUT_S + 1))
    assert (ran.code, ran.data, ran.err) == (0, [], "starting the sm server\n")


async def test_a_server_that_has_not_announced_itself_is_still_starting(bare):  # C26
    with ServerLock.acquire(open_home(bare.env)):
        ran = await bare.run("server", "status", "--json")
    assert (ran.code, ran.error["code"]) == (2, "not_answering")
    assert ran.error["message"] == f"The server (pid {os.getpid()}) is still starting"
    assert "restart" not in ran.error["hint"]


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


@pytest.mark.parametrize("env", [{}, UNFORKED], ids=["forked", "as a person starts it"])
async def test_restart_keeps_the_address(own, env):
    before = (await own.run("server", "start", "--json", env=env)).data
    after = (await own.run("server", "restart", "--json", env=env)).data
    assert (after["url"], after["pid"] != before["pid"]) == (before["url"], True)
    assert (await own.run("server", "stop", "--json", env=env)).data == {"stopped": True}


async def test_a_running_server_goes_by_what_is_configured_now(own):
    """The hint of the first refusal is to set `claude.command`: that must help."""
    configuration = own.root / "config.toml"
    configuration.write_text('claude.command = "/nowhere/one"\n')
    assert (await own.run("new", "--detach", "--json")).error["message"] == "Client not found: /nowhere/one"
    configuration.write_text(f'claude.command = "{lasting_client(own.root)}"\n[channels]\n"{own.root}" = "mine"\n')
    (own.root / "document.md").write_text("# Goal\n")
    assert (await own.run("resume", "document.md", "--detach", "--json")).code == 0
    assert [view["channel"] for view in (await own.run("handoffs", "--json")).data] == ["mine"]


async def test_stopping_what_does_not_run_is_refused(bare):
    ran = await bare.run("server", "stop")
    assert (ran.code, ran.err) == (1, "Error: No server runs\nhint: sm server start\n")


async def test_a_second_server_is_refused_and_names_the_first(own):
    pid = (await own.run("server", "start", "--json")).data["pid"]
    ran = await own.run("server", "run")
    assert (ran.code, f"(pid {pid}) already runs" in ran.err) == (1, True)


async def test_a_broken_configuration_keeps_no_server_from_starting_and_is_said_everywhere(own):  # C40
    file = own.root / "config.toml"
    file.write_text("[limits]\nchildren = 3\n")
    assert "problem:" not in (await own.run("server", "start")).err
    file.write_text("nonsense = 1")
    restarted = await own.run("server", "restart")
    assert restarted.code == 0, restarted.err
    said = f"problem: {file}: unknown key nonsense; the server uses the last good configuration"
    assert said in restarted.err
    assert said in (await own.run("list")).err
    assert said in (await own.run("server", "status")).out
    assert (await own.run("server", "status", "--json")).data["problems"] == [said.removeprefix("problem: ")]
    checks = {check["name"]: check for check in (await own.run("doctor", "--json")).data["checks"]}
    assert (checks["configuration"]["level"], checks["server"]["level"]) == ("fail", "warn")
    for command in (("new", "work", "--detach", "--json"), ("config", "show", "--json")):
        refused = await own.run(*command)
        assert (refused.code, refused.error["code"]) == (1, "unknown_key"), command
    log = (own.root / "state" / "server.log").read_text()
    assert "unknown key nonsense" in log
    file.write_text("")
    assert (await own.run("list")).err == "no sessions\nhint: sm new starts one\n"
    assert "problems" not in (await own.run("server", "status", "--json")).data


@pytest.mark.parametrize(
    ("name", "said"),
    [("sm.db", "Is a directory"), ("server.json", "Is a directory"), ("tmux.sock", "tmux does not work")],
)
@pytest.mark.often("sm.db-Is a directory", "server.json-Is a directory")
async def test_a_server_that_finds_a_directory_in_the_place_of_a_file_says_so(bare, name, said):
    path = bare.root / "state" / name
    path.mkdir(parents=True)
    ran = await bare.run("server", "start", "--json")
    assert (ran.code, ran.error["code"]) == (2, "start_failed")
    assert said in ran.error["message"]
    assert str(path) in ran.error["message"]
    await end_tmux(bare)


async def test_a_damaged_database_is_the_reason_given(own):
    await own.run("server", "start")
    await own.run("server", "stop")
    with contextlib.closing(sqlite3.connect(own.root / "state" / "sm.db")) as database:
        ((page,),) = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'sessions'")
        ((size,),) = database.execute("PRAGMA page_size")
    with (own.root / "state" / "sm.db").open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"x" * size)
    ran = await own.run("server", "start", "--json")
    assert "sm.db: database disk image is malformed" in ran.error["message"]
    assert f"mv {own.root}/state/sm.db {own.root}/state/sm.db.damaged" in ran.error["hint"]


async def test_a_schema_that_cannot_even_be_quoted_is_a_damaged_database(own):  # C39
    await own.run("server", "start")
    await own.run("server", "stop")
    path = own.root / "state" / "sm.db"
    backup = path.with_name("sm.db.v1.bak")
    backup.write_bytes(path.read_bytes())
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE sessions", b"CR\xff\xfeTE TABLE sessions"))
    with pytest.raises(UnicodeDecodeError), contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("SELECT * FROM sessions")
    for command in (("server", "start", "--json"), ("list", "--json")):
        ran = await own.run(*command)
        assert (ran.code, ran.error["code"]) == (2, "start_failed")
        assert "is damaged" in ran.error["message"] or "malformed" in ran.error["message"]
        assert f"cp -p {backup} {path}" in ran.error["hint"]
    checks = {check["name"]: check for check in (await own.run("doctor", "--json")).data["checks"]}
    assert checks["database"]["level"] == "fail"
    assert f"cp -p {backup} {path}" in checks["database"]["hint"]


async def test_doctor_finds_a_running_server_and_hooks_that_reach_it(own):
    await own.run("server", "start")
    checks = {check["name"]: check for check in (await own.run("doctor", "--json")).data["checks"]}
    assert checks["server"]["level"] == "ok"
    assert checks["home"]["level"] == "ok"
    assert "hook.py reaches the server and answers in" in checks["hooks answer"]["message"]


async def test_following_survives_a_restart_of_the_server(own):
    (own.root / "config.toml").write_text(f'[claude]\ncommand = "{lasting_client(own.root)}"\n')
    new = await own.run("new", "work", "--name", "a", "--detach", "--", "1000")
    assert new.code == 0, new.err
    process = await own.start("tail", "a", "-f", "--json")
    assert await kind(process) == "SessionLaunched"
    await own.run("server", "restart")
    while b"is back" not in await asyncio.wait_for(process.stderr.readline(), 15):
        pass
    await sees_a_rename(own, process)


@pytest.mark.soak
async def test_following_goes_through_a_database_that_was_put_back(own):  # C28
    (own.root / "config.toml").write_text(f'[claude]\ncommand = "{lasting_client(own.root)}"\n')
    assert (await own.run("new", "work", "--name", "a", "--detach", "--", "1000")).code == 0
    await own.run("server", "stop")
    database = own.root / "state" / "sm.db"
    kept = database.read_bytes()
    await own.run("server", "start")
    for name in ("a1", "a2", "a3", "a4", "a5", "a6", "a"):
        await own.run("rename", (await own.run("list", "--json")).data[0]["id"], name)
    process = await own.start("tail", "a", "-f", "--json")
    await kind(process)
    await own.run("server", "stop")
    for path in database.parent.glob("sm.db*"):
        path.unlink()
    database.write_bytes(kept)
    await own.run("server", "start")
    while b"event numbers restarted" not in await asyncio.wait_for(process.stderr.readline(), 15):
        pass
    await sees_a_rename(own, process)


async def sees_a_rename(own, process):
    """The follower tells of what happens from here on; both are ended then."""
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
    while running_server(SmHome(own.root / "state")) is not None:
        await asyncio.sleep(0.01)
    assert (await own.run("list", "--no-start")).code == 2
    assert (await own.run("list", "--json")).data == []


async def test_what_a_message_says_is_in_no_log_also_when_it_cannot_be_delivered(own):
    secret = "sk-ant-api03-TESTTESTTESTTESTTESTTEST"
    (own.root / "config.toml").write_text(f'[claude]\ncommand = "{lasting_client(own.root)}"\n')
    await own.run("new", "work", "--name", "a", "--detach", "--", "1000")
    place = SmHome(own.root / "state")
    client = Client(running_server(place).url, read_token(place))
    await asyncio.to_thread(client.call, "POST", "/sessions/a/messages", {"text": secret})
    await end_tmux(own)
    await own.run("output", "a")
    await own.run("server", "stop")
    logs = [path for path in place.root.rglob("*") if path.suffix in {".log", ".out"}]
    assert place.server_log in logs
    assert not any(secret.encode() in path.read_bytes() for path in logs)
    await own.run("server", "start")


# --- a server that hangs, and a token that is not the server's -----------------------------------------------------


@pytest.mark.soak
async def test_a_stopped_server_is_named_by_every_command_and_a_restart_gets_over_it(own):
    before = (await own.run("server", "start", "--json")).data
    os.kill(before["pid"], signal.SIGSTOP)
    for command in (("list",), ("list", "--no-start"), ("server", "status"), ("server", "start")):
        ran = await own.run(*command, "--json")
        assert (ran.code, ran.error["code"]) == (2, "not_answering"), command
        assert f"(pid {before['pid']})" in ran.error["message"]
        assert "sm server restart" in ran.error["hint"]
    after = await own.run("server", "restart", "--json")
    assert (after.data["url"], after.data["pid"] != before["pid"]) == (before["url"], True)
    assert f"the server does not answer: ending its process {before['pid']}" in after.err


HOLDER = """
import signal, sys, time
from sm.lock import ServerLock
from sm.paths import SmHome
from pathlib import Path
signal.signal(signal.SIGTERM, signal.SIG_IGN)
lock = ServerLock.acquire(SmHome(Path(sys.argv[1])))
print("held", flush=True)
time.sleep(600)
"""


@pytest.mark.soak
async def test_a_server_that_does_not_end_when_asked_is_killed_and_that_is_said(bare):
    (bare.root / "state").mkdir(mode=0o700)
    command = (sys.executable, "-c", HOLDER, str(bare.root / "state"))
    server = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert await server.stdout.readline() == b"held\n"
    ran = await bare.run("server", "stop", "--json")
    assert (ran.code, ran.data) == (0, {"stopped": True})
    assert f"the server does not stop: killing its process {server.pid}" in ran.err
    assert await server.wait() == -signal.SIGKILL


def removed(path):
    path.unlink()


def fifo(path):
    path.unlink()
    os.mkfifo(path)


def damaged(path):
    path.write_bytes(b"\xff")


def torn(path):
    path.write_text("the-first-half\nthe-second")


def anothers(path):
    path.write_text("another-installations")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (removed, "is missing"),
        (fifo, "Cannot read"),
        (damaged, "Cannot read"),
        (torn, "holds a line break"),
        (anothers, "does not accept"),
    ],
)
async def test_a_token_that_was_spoilt_under_a_running_server_is_named_and_a_restart_gets_over_it(own, spoil, said):
    await own.run("server", "start")
    token = own.root / "state" / "token"
    spoil(token)
    ran = await own.run("list", "--json")
    assert (ran.code, ran.error["code"]) == (1, "bad_token")
    assert said in ran.error["message"]
    assert "sm server restart" in ran.error["hint"]
    if "remove it" in ran.error["hint"]:
        token.unlink()
    assert (await own.run("server", "restart")).code == 0
    assert (await own.run("list", "--json")).data == []


async def test_commands_that_start_it_at_once_share_one_server(own):
    found = await asyncio.gather(*(own.run("list", "--json") for _ in range(3)))
    assert [(result.code, result.data) for result in found] == [(0, [])] * 3


@pytest.mark.soak
async def test_a_taken_port_is_given_up_only_if_no_session_lives(own):
    client = own.root / "client"
    client.write_text("#!/bin/sh\nexec sleep 600\n")
    client.chmod(0o700)
    before = (await own.run("server", "start", "--json")).data
    await own.run("server", "stop")
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", int(before["url"].rpartition(":")[2])))
        other.listen()
        after = (await own.run("server", "start", "--json")).data
        assert after["url"] != before["url"]
    assert (await own.run("new", "work", "--name", "a", "--detach", "--client", str(client))).code == 0
    await own.run("server", "stop")
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", int(after["url"].rpartition(":")[2])))
        other.listen()
        ran = await own.run("server", "start", "--json")
        assert (ran.code, f"Port {other.getsockname()[1]} is taken" in ran.error["message"]) == (2, True)
    assert (await own.run("kill", "a")).code == 0


async def test_strangers_who_hold_their_connections_take_neither_descriptors_nor_time_nor_log(bare):
    place = SmHome(bare.root / "state")
    limited = ("/bin/sh", "-c", f'ulimit -n 64; exec {shlex.join(SM)} "$@"', "sm")
    server = await bare.start("server", "run", command=limited)
    while running_server(place) is None:
        await asyncio.sleep(0.01)
    port = int(running_server(place).url.rpartition(":")[2])
    with contextlib.ExitStack() as strangers:
        for _ in range(100):
            strangers.enter_context(socket.create_connection(("127.0.0.1", port)))
        for _ in range(5):
            assert (await bare.run("list", "--json", "--no-start")).data == []
        assert len(list(Path(f"/proc/{server.pid}/fd").iterdir())) < 64
    assert b"out of system resource" not in place.server_log.read_bytes()
    await bare.run("server", "stop")
    await server.communicate()
    await end_tmux(bare)
