"""C21: what an agent may run without a dialog names no program and no file outside its directory."""

import stat

import click
import pytest

from sm.cli.app import COMMANDS, cli
from sm.cli.options import UserOption
from sm.core.model.agent_commands import AGENT

INSIDE = {"CLAUDE_SESSION_MANAGER_ID": "0123abcd", "SM_URL": "http://127.0.0.1:1", "SM_SESSION_TOKEN": "t"}
PROGRAMS_AND_FILES = {"client", "out", "transcript"}
HARMLESS = {
    "handoff": {"file", "auto", "reason", "action", "session", "as_json"},
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
