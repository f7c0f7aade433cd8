"""`sm setup`: adds hooks and the plugin to sessions that the user starts without sm."""

from __future__ import annotations

import difflib
import os
import shlex
import sys
from pathlib import Path

import click

from sm import hook, settings
from sm.cli import settings_file
from sm.cli.format import emit_json, is_terminal, say, show
from sm.cli.options import json_option
from sm.client import inside_session
from sm.core.errors import SmError, error
from sm.paths import HOOK_SOCKET, SmHome, open_home, plugin_directory
from sm.providers.claude import installed
from sm.providers.claude.launch import config_directory
from sm.providers.claude.user_settings import entries
from sm.providers.environment import DEFAULT_PATH
from sm.tmux.names import socket_path


@click.command()
@click.option("--remove", is_flag=True, help="Remove what setup has added.")
@click.option("--statusline", is_flag=True, help="Also show project, context and handoff in the client's status line.")
@click.option("--yes", is_flag=True, help="Change without asking.")
@json_option
def setup(*, remove: bool, statusline: bool, yes: bool, as_json: bool) -> int:
    """Add sm's hooks and plugin to the client's settings, for sessions that you start without sm.

    Shows the changes and asks. Your other hooks, your status line and all other settings stay.
    The file is $CLAUDE_CONFIG_DIR/settings.json, or ~/.claude/settings.json.
    """
    if inside_session() is not None:
        raise error("forbidden", "A session may not change the client's settings", "ask the user who runs sm")
    if as_json and not yes:
        raise error("usage", "--json cannot ask", "sm setup --json --yes")
    home = open_home(os.environ)
    path = Path(os.path.realpath(config_directory(os.environ) / "settings.json"))
    change = (
        settings_file.removed_change(path, home)
        if remove
        else settings_file.installed_change(path, home, ours(home, after_tool=not has_plugin()), status_line=statusline)
    )
    if change.needed and not as_json:
        show(shown(change))
    if change.needed and not (yes or agreed(path)):
        say("nothing was changed")
        return 1
    if change.needed:
        if statusline:
            link_command(home)
        settings_file.apply(change, home)
    if as_json:
        emit_json({"path": str(path), "changed": change.needed, "diff": shown(change)})
    else:
        say(outcome(change, remove=remove))
    return 0


@click.command()
@click.option("--server", help="The address of the server, as unix:PATH; default: that of SM_HOME.")
@click.option("--token", help="The file that holds the token for it.")
@click.option("--then", help="The user's own command, which gets the same input and is shown first.")
def statusline(server: str | None, token: str | None, then: str | None) -> None:
    """Read the client's status on standard input and print one line for it; report the window to the server.

    The client runs it after `sm setup --statusline`.
    """
    del server, token, then  # handled without the parser by sm.cli.status_line
    raise error("usage", "The client's status is expected on standard input", "sm setup --statusline")


def has_plugin() -> bool:
    """Whether the client that the user starts runs the plugin, which measures without a hook after each tool call."""
    try:
        command = settings.load(None, os.environ).claude.command
    except SmError:
        return False  # nothing tells which client it is
    version = installed.version_of(command, os.environ.get("PATH", DEFAULT_PATH))
    return version is not None and version >= installed.OLDEST_WITH_PLUGIN


def ours(home: SmHome, *, after_tool: bool) -> entries.OwnEntries:
    socket, token = str(socket_path(home.root, HOOK_SOCKET)), str(home.token)
    return entries.OwnEntries(
        python=sys.executable,
        hook=hook.__file__,
        socket=socket,
        token=token,
        plugin=str(plugin_directory()),
        after_tool=after_tool,
        status_line=shlex.join((str(home.bin / "sm"), "statusline", "--server", f"unix:{socket}", "--token", token)),
    )


def link_command(home: SmHome) -> None:
    from sm import bootstrap  # noqa: PLC0415  # imports the whole server, for one file that it writes too

    bootstrap.link_command(home)


def agreed(path: Path) -> bool:
    if not is_terminal(sys.stdin):
        raise error(
            "usage",
            "Cannot ask for confirmation: standard input is not a terminal",
            "read the changes above, then run it again with --yes",
        )
    return click.confirm(f"Change {path}?", err=True)


def shown(change: settings_file.SettingsChange) -> str:
    now, then = ((side or b"").decode("utf-8", "replace").splitlines() for side in (change.now, change.then))
    path = str(change.path)
    return "\n".join(difflib.unified_diff(now, then, path, path, "before", "after", lineterm=""))


def outcome(change: settings_file.SettingsChange, *, remove: bool) -> str:
    if not change.needed:
        return f"no changes needed in {change.path}"
    if remove:
        return f"removed from {change.path}"
    return f"set up in {change.path}; sessions started from now on are measured while the sm server runs"
