"""`sm statusline` as the client runs it: one line, the person's own command before it, quick, and never an error."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from sm.cli import status_line
from tests.engine.test_external_clients import hook

STATUS = {
    "session_id": "c0000000-0000-4000-8000-000000000000",
    "cwd": "/w/app/sub",
    "workspace": {"current_dir": "/w/app/sub", "project_dir": "/w/app"},
    "context_window": {"total_input_tokens": 83_500, "context_window_size": 200_000, "used_percentage": 42},
}
PLAIN = "app █████░░░░░ 50% 84k/167k"


def run(desk, *arguments, payload=STATUS, **env):
    own = {**desk.env, "LANG": "C.UTF-8", **env}
    content = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    command = [sys.executable, "-I", "-m", "sm", "statusline", *arguments]
    return subprocess.run(command, env=own, input=content, capture_output=True, check=False)


def shown(done):
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().rstrip("\n")


def test_without_a_server_the_clients_own_numbers_are_shown(bare):
    assert shown(run(bare)) == PLAIN


@pytest.mark.parametrize(
    ("payload", "line"),
    [
        ({**STATUS, "context_window": {"total_input_tokens": 0, "context_window_size": 200_000}}, "unknown"),
        ({**STATUS, "context_window": {"total_input_tokens": None, "context_window_size": None}}, "unknown"),
        ({**STATUS, "context_window": {"total_input_tokens": 83_500}}, "84k"),
        ({"session_id": "c"}, "sm ·········· context unknown"),
        (b"", "context unknown"),
        (b"no json", "context unknown"),
        (b"[1]", "context unknown"),
        (b"[" * 100_000, "context unknown"),
        (f'{{"context_window": {{"total_input_tokens": 1{"0" * 400}}}}}'.encode(), "context unknown"),
        (f'{{"context_window": {{"total_input_tokens": 9, "context_window_size": 1{"0" * 400}}}}}'.encode(), " 9"),
        ({"context_window": {"total_input_tokens": -5, "context_window_size": 200_000}}, "context unknown"),
    ],
)
def test_what_is_not_known_is_not_made_up(bare, payload, line):
    assert line in shown(run(bare, payload=payload))


def test_the_persons_own_command_gets_the_input_and_is_shown_first(bare):
    own = "python3 -c 'import json, sys; print(json.load(sys.stdin)[\"cwd\"])'; printf '\\033[31mtwo\\033[0m'"
    assert shown(run(bare, "--then", own)).split("\n") == ["/w/app/sub", "\x1b[31mtwo\x1b[0m", PLAIN]


@pytest.mark.parametrize("own", ["exit 3", "true", "no-such-command", "kill -9 $$", "exec cat > /dev/null"])
def test_a_command_of_the_person_that_says_nothing_leaves_ours(bare, own):
    assert shown(run(bare, "--then", own)) == PLAIN


def test_an_input_that_their_command_does_not_read_does_no_harm(bare):
    assert shown(run(bare, "--then", "echo x", payload={**STATUS, "more": "x" * 500_000})) == f"x\n{PLAIN}"


def test_a_command_that_leaves_a_process_behind_is_not_waited_for(bare):
    """What it leaves keeps the pipe open; the line comes when the command itself has ended."""
    left = bare.root / "left"
    own = f"sleep 600 & echo $! >{left}; echo first; exit 0"
    assert shown(run(bare, "--then", own)) == f"first\n{PLAIN}"
    pid = int(left.read_text())
    os.kill(pid, 0)  # it is still there
    os.kill(pid, signal.SIGKILL)


def test_a_terminal_without_utf8_gets_ascii(bare):
    line = shown(run(bare, LANG="C", LC_ALL="C"))
    assert line.isascii()
    assert "50%" in line


def test_a_directory_name_cannot_move_the_cursor(bare):
    line = shown(run(bare, payload={**STATUS, "workspace": {"project_dir": "/w/a\x1b[2J\u202eb"}}))
    assert line.startswith("a?[2J?b ")


def test_help_needs_no_input(bare):
    assert b"Usage: sm statusline" in run(bare, "--help").stdout


def test_a_level_has_its_colour_unless_the_person_wants_none(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert status_line.coloured("x", "31") == "\x1b[31mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert status_line.coloured("x", "31") == "x"


async def until(holds):
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.01)


async def test_with_a_server_its_reading_and_the_handoff_are_shown(desk):
    session = await desk.api.new("a")
    conversation = desk.api.conversation(session)
    env = desk.agent_env(session)
    done = await asyncio.to_thread(run, desk, payload={**STATUS, "session_id": conversation}, **env)
    assert shown(done) == PLAIN, "nothing is read yet: the client's own numbers"
    actor = desk.api.engine.sessions.actor(session)
    await until(lambda: actor.session.window == 200_000)  # the line does not wait for it
    document = desk.root / "h.md"
    document.write_text("goal")
    desk.api.clock.time = document.stat().st_mtime
    await desk.api.engine.handoffs.request(session, str(document))
    done = await asyncio.to_thread(run, desk, payload={**STATUS, "session_id": conversation}, **env)
    assert shown(done) == f"{PLAIN} handoff pending"


async def test_outside_a_session_the_users_token_finds_the_adopted_one(desk):
    await hook(desk.api, "SessionStart", STATUS["session_id"], source="startup")
    done = await asyncio.to_thread(run, desk)
    assert shown(done) == PLAIN
    [session] = [actor.session for actor in desk.api.engine.sessions.actors.values()]
    assert session.window == 200_000


def test_a_server_that_does_not_answer_costs_a_moment(bare):
    import socket

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        line = shown(run(bare, SM_URL=url, SM_SESSION_TOKEN="t"))
    assert line == PLAIN
    assert time.monotonic() - began < 10


def test_it_loads_neither_the_command_parser_nor_the_server():
    script = "import sys; from sm.cli import status_line; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True).stdout
    assert not {"click", "msgspec", "asyncio", "starlette", "http.client"} & set(loaded.split())
