"""C7: what changes a session comes from below its own client; a token that somebody inherited is not enough."""

import asyncio
import json
import os
import socket
import sys

import pytest

from sm.peers import Peer, is_below
from tests.api.rig import house

CALL = """
import json, os, sys
from sm import hook
url, token, claimed, method, path, body = sys.argv[1:]
extra = f"X-SM-Pid: {claimed.replace('self', str(os.getpid()))}\\r\\n" if claimed else ""
status, answer = hook.exchange(url, hook.request_bytes(method, path, token, body.encode(), extra), 10)
print(json.dumps([status, json.loads(answer).get("code") if answer.startswith(b"{") else None]))
"""
CHANGES = [
    ("POST", "/sessions/{0}/handoff", {"requester_session_id": "{0}", "file_path": "/nowhere"}),
    ("DELETE", "/sessions/{0}/handoff", None),
    ("POST", "/sessions/{0}/handoff/retry", None),
    ("POST", "/sessions/{0}/report", {"text": "x", "done": True}),
    ("POST", "/sessions/{0}/report", {"text": "x"}),
    ("POST", "/sessions/{0}/reminders", {"delay": 60, "text": "x"}),
    ("POST", "/sessions/{0}/children", {"dir": "/", "prompt": "x"}),
    ("POST", "/sessions/{0}/context/rearm", None),
    ("PATCH", "/sessions/{0}", {"name": "y"}),
    ("DELETE", "/sessions/{1}", None),
    ("POST", "/sessions/{1}/clear", {}),
    ("POST", "/sessions/{1}/restore", {}),
]
ALLOWED = [
    ("GET", "/sessions/{0}", None),
    ("POST", "/sessions/{1}/messages", {"text": "x"}),
    ("POST", "/messages", {"to": "kid", "text": "x"}),
]


async def call(port, token, method, path, body, claimed="self"):
    """One request of a process below this one, which plays the client of each session."""
    given = json.dumps(body) if body is not None else ""
    command = (sys.executable, "-c", CALL, f"http://127.0.0.1:{port}", token, claimed, method, path, given)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    return json.loads((await process.communicate())[0])


@pytest.fixture
async def place(tmp_path):
    async with house(tmp_path) as api, api.listening() as port:
        boss = await api.new("boss")
        kid = await api.new("kid", boss)
        yield api, port, boss, kid


async def foreign(api, *sessions):
    """Let a process be those sessions' client that has started nothing of ours."""
    process = await asyncio.create_subprocess_exec("sleep", "60")
    for session in sessions:
        await api.alter(session, pid=process.pid)
    return process


def filled(given, *ids):
    return json.loads(json.dumps(given).replace("{0}", ids[0]).replace("{1}", ids[1]))


@pytest.mark.parametrize("claimed", ["self", "", "client"])
@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
async def test_a_stranger_with_the_sessions_token_changes_nothing(place, method, path, body, claimed):
    """Also one that claims to be the client itself."""
    api, port, boss, kid = place
    client = await foreign(api, boss, kid)
    claimed = str(client.pid) if claimed == "client" else claimed
    path, body = filled([path, body], boss, kid)
    assert await call(port, api.tokens[boss], method, path, body, claimed) == [403, "outside"]
    session = api.engine.sessions.actors[boss].session
    assert (session.rotation, session.report, session.name) == (None, None, "boss")
    client.kill()
    await client.wait()


async def test_a_stranger_hands_nothing_off_by_the_sessions_name_either(place):
    api, port, boss, kid = place
    client = await foreign(api, boss, kid)
    body = {"requester_session_id": boss, "file_path": "/nowhere"}
    assert await call(port, api.tokens[boss], "POST", "/sessions/boss/handoff", body) == [403, "outside"]
    assert await call(port, api.tokens[boss], "DELETE", "/sessions/boss/handoff", None) == [403, "outside"]
    client.kill()
    await client.wait()


@pytest.mark.parametrize(("method", "path", "body"), ALLOWED)
async def test_a_stranger_may_look_and_send(place, method, path, body):
    api, port, boss, kid = place
    client = await foreign(api, boss, kid)
    path, body = filled([path, body], boss, kid)
    assert (await call(port, api.tokens[boss], method, path, body))[0] in {200, 201}
    client.kill()
    await client.wait()


@pytest.mark.parametrize("claimed", ["self", "", "1", "999999999"])
async def test_a_process_below_the_client_is_found_whatever_it_claims(place, claimed):
    api, port, boss, _ = place
    body = {"text": "at it"}
    assert await call(port, api.tokens[boss], "POST", f"/sessions/{boss}/report", body, claimed) == [200, None]
    assert api.engine.sessions.actors[boss].session.report.text == "at it"


async def test_hooks_and_the_user_need_not_be_below_it(place):
    api, port, boss, kid = place
    client = await foreign(api, boss, kid)
    stop = {"hook_event_name": "Stop", "session_id": api.conversation(boss)}
    assert await call(port, api.tokens[boss], "POST", "/hooks/claude", stop) == [200, None]
    assert await call(port, "the-user-token", "POST", f"/sessions/{boss}/report", {"text": "x"}) == [200, None]
    client.kill()
    await client.wait()


async def test_the_peer_of_a_connection_that_nobody_has_is_not_told():
    assert is_below(os.getpid(), Peer("127.0.0.1", 1, 9), None) is None
    assert is_below(os.getpid(), Peer("unix", os.getpid()), None) is True
    assert is_below(os.getpid(), Peer("unix", 1), None) is False


async def test_a_caller_that_has_closed_its_end_is_not_below_any_client():
    """It need not wait for the answer to what it asks."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        caller = socket.create_connection(server.getsockname())
        ours, address = server.accept()
        peer = Peer(*address, server.getsockname()[1])
        with ours:
            assert is_below(os.getpid(), peer, None) is True
            caller.close()
            assert is_below(os.getpid(), peer, None) is False


CONNECTED = """
import socket, sys
connection = socket.socket()
connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
connection.bind(("127.0.0.1", int(sys.argv[1])))
connection.connect(("127.0.0.1", int(sys.argv[2])))
print(connection.getsockname()[1], flush=True)
sys.stdin.read()
"""


async def test_a_caller_is_told_from_another_process_that_has_its_port_in_a_connection_elsewhere():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as elsewhere:
        ends = [at.getsockname()[1] for at in (server, elsewhere)]
        pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
        one = await asyncio.create_subprocess_exec(sys.executable, "-c", CONNECTED, "0", str(ends[0]), **pipes)
        port = int(await one.stdout.readline())
        other = await asyncio.create_subprocess_exec(sys.executable, "-c", CONNECTED, str(port), str(ends[1]), **pipes)
        assert int(await other.stdout.readline()) == port
        found = {
            (process is one, end == ends[0]): is_below(process.pid, Peer("127.0.0.1", port, end), None)
            for process in (one, other)
            for end in ends
        }
        assert found == {(True, True): True, (True, False): False, (False, True): False, (False, False): True}
        for process in (one, other):
            process.kill()
            await process.wait()
