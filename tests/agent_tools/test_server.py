"""The protocol, as a client speaks it: one object a line."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sm
from sm import __version__
from sm.processes import alive, descendants
from tests.agent_tools.rig import COMMAND, shown, tools

PATH = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture
async def server(tmp_path):
    async with tools({"PATH": PATH}, tmp_path) as found:
        yield found


@pytest.fixture
async def hung(tmp_path):
    """Tools whose `sm` waits for a server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        session = {"CLAUDE_SESSION_MANAGER_ID": "0123abcd", "SM_URL": url, "SM_SESSION_TOKEN": "t"}
        async with tools({"PATH": PATH, **session}, tmp_path) as found:
            yield found


async def started(server, count):
    """Wait until so many commands run; return their pids."""
    deadline = time.monotonic() + 20
    while len(found := list(descendants(server.process.pid))) != count:
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.02)
    return found


@pytest.mark.parametrize(
    ("asked", "given"),
    [("2025-06-18", "2025-06-18"), ("2024-11-05", "2024-11-05"), ("2099-01-01", "2025-06-18"), (None, "2025-06-18")],
)
async def test_a_version_of_the_protocol_that_is_known_is_taken(server, asked, given):
    answer = await server.answer(server.ask("initialize", {"protocolVersion": asked, "capabilities": {}}))
    assert answer["result"] == {
        "protocolVersion": given,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "sm", "version": __version__},
    }


async def test_the_two_tools_are_listed_with_what_they_take(server):
    answer = await server.answer(server.ask("tools/list"))
    handoff, command = answer["result"]["tools"]
    assert (handoff["name"], handoff["inputSchema"]["required"]) == ("handoff", ["document"])
    assert (command["name"], command["inputSchema"]["required"]) == ("sm", ["arguments"])
    assert "\n- wait TARGET DELAY: Get a message when another session is idle\n" in command["description"]
    assert "\n- inbox: List" in command["description"]


async def test_a_ping_is_answered_and_a_notification_is_not(server):
    server.tell("notifications/initialized")
    server.tell("notifications/cancelled", requestId=99)
    server.write(b'{"jsonrpc": "2.0", "id": 7, "result": {}}')
    assert (await server.answer(server.ask("ping")))["result"] == {}
    assert server.answers == {}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"", -32700),
        (b"no json", -32700),
        (b'{"id": 1', -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b'{"id": 1, "method": "ping", "x": "' + b"x" * (8 << 20) + b'"}', -32700),
        (b"[]", -32600),
        (b"1", -32600),
        (b'{"id": 1, "method": 5}', -32600),
    ],
    ids=["empty", "words", "torn", "no UTF-8", "deep", "long", "a list", "a number", "no method"],
)
async def test_a_malformed_line_is_an_error_and_the_next_one_is_answered(server, line, code):
    server.write(line)
    assert (await server.answer(None))["error"]["code"] == code
    assert (await server.answer(server.ask("ping")))["result"] == {}


async def test_an_unknown_method_and_an_unknown_tool_are_errors(server):
    assert (await server.answer(server.ask("resources/list")))["error"]["code"] == -32601
    assert (await server.answer(server.ask("tools/call", {"name": "shell"})))["error"]["code"] == -32602
    assert (await server.answer(server.ask("tools/call")))["error"]["code"] == -32602
    assert (await server.answer(server.ask("tools/call", ["sm"])))["error"]["code"] == -32602


async def test_without_a_session_a_call_says_so(server):
    text, is_error = await server.sm("status")
    assert (text.splitlines()[0], is_error) == (
        "Error: Not in a session of sm: CLAUDE_SESSION_MANAGER_ID is not set",
        True,
    )


async def test_a_slow_call_holds_back_no_other(hung):
    slow = hung.begin("sm", arguments=["inbox"])
    await started(hung, 1)
    assert (await hung.answer(hung.ask("ping")))["result"] == {}
    text, is_error = await hung.sm("send", "--help")
    assert (text.splitlines()[0], is_error) == ("Usage: sm send [OPTIONS] TARGET TEXT...", False)
    assert slow not in hung.answers


async def test_a_cancelled_call_ends_its_process_and_has_no_answer(hung):
    slow, other = (hung.begin("sm", arguments=["inbox"]) for _ in range(2))
    await started(hung, 2)
    hung.tell("notifications/cancelled", requestId=slow)
    await started(hung, 1)
    hung.tell("notifications/cancelled", requestId=str(other))
    assert (await hung.answer(hung.ask("ping")))["result"] == {}
    assert hung.answers == {}
    await started(hung, 1)


async def test_too_many_calls_at_once_are_refused(hung):
    running = [hung.begin("sm", arguments=["inbox"]) for _ in range(16)]
    answer = await hung.answer(hung.begin("sm", arguments=["inbox"]))
    assert "16 calls are running" in answer["error"]["message"]
    for request in running:
        hung.tell("notifications/cancelled", requestId=request)
    await started(hung, 0)
    assert not shown(await hung.answer(hung.begin("sm", arguments=["done", "--help"])))[1]


async def test_an_id_that_is_in_use_is_refused(hung):
    slow = hung.begin("sm", arguments=["inbox"])
    hung.last -= 1
    again = await hung.answer(hung.begin("sm", arguments=["inbox"]))
    assert (again["id"], "is in use" in again["error"]["message"]) == (slow, True)


@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGINT"])
async def test_the_end_of_the_client_ends_it_and_what_it_has_started(hung, how):
    hung.begin("sm", arguments=["inbox"])
    [pid] = await started(hung, 1)
    if how == "end of input":
        hung.process.stdin.close()
    else:
        hung.process.send_signal(getattr(signal, how))
    assert await asyncio.wait_for(hung.process.wait(), 10) == 0
    deadline = time.monotonic() + 10
    while alive(pid):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def test_nothing_that_is_slow_is_imported_before_the_first_call():
    loaded = "before = set(sys.modules); import sm.agent_tools.server; print(*set(sys.modules) - before)"
    alone = f"import sys; sys.path.append({str(Path(sm.__file__).parent.parent)!r}); {loaded}"
    command = [sys.executable, "-I", "-S", "-c", alone]  # what site packages bring along, as to measure, is left out
    names = set(subprocess.run(command, capture_output=True, check=True, text=True).stdout.split())
    assert "json" in names
    assert not names & {"asyncio", "click", "dataclasses", "inspect", "msgspec", "pathlib", "socket", "subprocess"}
    assert not {name for name in names if name.startswith("sm.")} - {
        *("sm.agent_tools", "sm.agent_tools.server", "sm.agent_tools.command", "sm.agent_tools.tools"),
        *("sm.core", "sm.core.model", "sm.core.model.agent_arguments"),
    }


def test_each_answer_is_one_line_of_ascii():
    line = json.dumps({"id": "é\n", "method": "ping"}).encode() + b"\n"
    done = subprocess.run(COMMAND, input=line, capture_output=True, check=True, env={"PATH": PATH})
    assert (done.stdout.count(b"\n"), done.stdout.isascii(), json.loads(done.stdout)["id"]) == (1, True, "é\n")


def test_it_does_not_start_where_modules_of_the_agent_could_be_imported():
    command = [part for part in COMMAND if part != "-I"]
    done = subprocess.run(command, input=b"", capture_output=True, check=False, env={"PATH": PATH})
    assert (done.returncode, b"python -I -m sm.agent_tools" in done.stderr) == (1, True)
