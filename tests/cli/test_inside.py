"""C21: what an agent may run without a dialog names no program and no file outside its directory."""

import stat

import click
import pytest

from sm.cli import status_line
from sm.cli.app import COMMANDS, cli
from sm.cli.options import UserOption
from sm.core.model.agent_commands import AGENT
from tests.api.rig import USER

INSIDE = {"CLAUDE_SESSION_MANAGER_ID": "0123abcd", "SM_URL": "http://127.0.0.1:1", "SM_SESSION_TOKEN": "t"}
PROGRAMS_AND_FILES = {"client", "out", "transcript"}
HARMLESS = {
    "handoff": {"file", "auto", "reason", "action", "session", "to", "as_json"},
    "send": {"target", "text", "mode", "notify_on_stop", "wait", "expires", "command", "as_json"},
    "status": {"text", "as_json"},
    "context": {"session", "provider", "rearm", "as_json"},
    "inbox": {"session", "dead", "as_json"},
    "message": {"message", "cancel", "as_json"},
    "remind": {"delay", "text", "every", "as_json"},
    "wait": {"target", "delay", "as_json"},
    "spawn": {"prompt", "provider", "name", "model", "directory", "track", "notify", "as_json"},
    "children": {"session", "as_json"},
    "kill": {"sessions", "children", "as_json"},
    "clear": {"child", "prompt", "notify", "as_json"},
    "done": {"text", "as_json"},
    "search": {"words", "session", "limit", "as_json"},
}
"""Whoever gives an agent's command another option says here that it names no program and no file, or makes it a
PersonOption. Where `spawn` works and what `handoff` reads is the server's to check."""


def command(name):
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def test_an_agents_commands_have_no_other_options():
    assert set(AGENT) == set(HARMLESS) <= set(COMMANDS)
    for name in AGENT:
        known = {param.name for param in command(name).params if not isinstance(param, UserOption)}
        assert known - {"no_start"} <= HARMLESS[name], name


@pytest.mark.parametrize(
    "arguments",
    [
        ("handoff", "--auto", "--out", "x"),
        ("handoff", "--auto", "--out=x"),
        ("handoff", "--auto", "--transcript", "t"),
        ("handoff", "--auto", "--transcript", "t", "--out", "x"),
        ("context", "--transcript", "t"),
        ("doctor", "--client", "./evil"),
        ("demo", "--client", "./evil"),
        ("setup", "--yes"),
        ("trust", "."),
        ("server", "run"),
        ("server", "start"),
        ("server", "stop"),
    ],
    ids=" ".join,
)
async def test_what_names_a_program_or_a_file_is_refused_inside_a_session(desk, arguments):
    desk_root = desk.root
    (desk_root / "t").write_text("secret")
    evil = desk_root / "evil"
    evil.write_text("#!/bin/sh\ntouch ran\n")
    evil.chmod(evil.stat().st_mode | stat.S_IXUSR)
    before = sorted(desk_root.iterdir())
    ran = await desk.run(*arguments, env=INSIDE)
    assert (ran.code, ran.out) == (1, "")
    assert "session" in ran.err
    assert sorted(desk_root.iterdir()) == before


@pytest.mark.parametrize("name", ["handoff", "context", "doctor", "demo"])
async def test_such_an_option_is_in_no_help_inside_a_session(bare, name):
    inside, outside = [await bare.run(name, "--help", env=env) for env in (INSIDE, {})]
    hidden = {option for option in PROGRAMS_AND_FILES if f"--{option} " in outside.out}
    assert hidden
    assert not any(f"--{option} " in inside.out for option in hidden)


@pytest.mark.parametrize("option", ["--then", "--server", "--token"])
async def test_an_agents_shell_gives_the_status_line_no_command_to_run(desk, option):
    """The client itself runs the status line with the same session in its environment, and without that mark."""
    value = "touch ran" if option == "--then" else "x"
    marked = {**INSIDE, "AI_AGENT": "claude-code_2-1-328_agent"}
    ran = await desk.run("statusline", option, value, stdin=b"{}", env=marked)
    assert (ran.code, ran.out) == (1, "")
    assert f"{option} is not available inside a session" in ran.err
    assert not (desk.root / "ran").exists()
    own = {**INSIDE, "AI_AGENT": "claude-code_2-1-328_harness"}
    assert (await desk.run("statusline", option, value, stdin=b"{}", env=own)).code == 0
    assert (desk.root / "ran").exists() == (option == "--then")


SANDBOXED = {**INSIDE, "CODEX_THREAD_ID": "t", "CODEX_SANDBOX_NETWORK_DISABLED": "1"}
"""The shell of Codex in its sandbox on Linux (0.171.0); the other variable is only known from its program."""
USE_TOOL = "use the tool sm of the MCP server sm (mcp__sm)"
COMMANDS_OF_AN_AGENT = [("status",), ("handoff", "h.md"), ("handoff", "-"), ("send", "b", "hi"), ("inbox",), ("list",)]


@pytest.mark.parametrize("env", [SANDBOXED, {**INSIDE, "CODEX_SANDBOX": "seatbelt"}], ids=["linux", "other"])
@pytest.mark.parametrize("arguments", COMMANDS_OF_AN_AGENT, ids=" ".join)
async def test_in_a_sandboxed_shell_the_hint_names_the_tool(bare, arguments, env):
    (bare.root / "h.md").write_text("goal")
    ran = await bare.run(*arguments, env=env, stdin=b"goal")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Error: Session manager unavailable\nhint: ")
    assert USE_TOOL in ran.err
    assert "sm server start" not in ran.err


@pytest.mark.parametrize("env", [INSIDE, {"CODEX_SANDBOX_NETWORK_DISABLED": "1", "SM_NO_START": "1"}])
async def test_elsewhere_the_hint_is_to_start_the_server(bare, env):
    ran = await bare.run("list", env=env)
    assert (ran.code, "sm server start" in ran.err, USE_TOOL in ran.err) == (2, True, False)


WITHOUT_TOKEN = {"CLAUDE_SESSION_MANAGER_ID": "0123abcd", "CODEX_THREAD_ID": "t"}
USERS = [*COMMANDS_OF_AN_AGENT, ("rename", "a", "b"), ("kill", "a"), ("cost",), ("handoffs",), ("limits",), ("asks",)]


@pytest.mark.parametrize("url", [{}, {"SM_URL": "http://127.0.0.1:1"}], ids=["no address", "an address"])
@pytest.mark.parametrize("arguments", USERS, ids=" ".join)
async def test_without_the_sessions_token_the_users_is_not_used_instead(desk, session, arguments, url):
    (desk.root / "h.md").write_text("goal")
    ran = await desk.run(*arguments, env={**WITHOUT_TOKEN, **url}, stdin=b"goal")
    assert (ran.code, ran.out) == (2, "")
    assert USE_TOOL in ran.err
    assert desk.api.engine.sessions.actors[session].session.name == "a"


async def test_without_the_sessions_token_no_name_is_completed(desk, session):
    asked = {"_SM_COMPLETE": "bash_complete", "COMP_WORDS": "sm kill ", "COMP_CWORD": "2"}
    assert (await desk.run(env=asked)).out == "plain,a\n"
    assert (await desk.run(env={**asked, **WITHOUT_TOKEN})).out == "\n"


async def test_without_the_sessions_token_the_status_line_does_not_use_the_users(desk, monkeypatch):
    monkeypatch.setenv("SM_HOME", str(desk.api.home.root))
    for name in INSIDE:
        monkeypatch.delenv(name, raising=False)
    file = {"--server": f"http://127.0.0.1:{desk.port}", "--token": str(desk.api.home.token)}
    own = (f"http://127.0.0.1:{desk.port}", USER)
    assert [status_line.address_and_token(options) for options in ({}, file)] == [own, own]
    monkeypatch.setenv("CLAUDE_SESSION_MANAGER_ID", "0123abcd")
    assert [status_line.address_and_token(options) for options in ({}, file)] == [None, None]
