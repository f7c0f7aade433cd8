"""Shows a session's pane in this terminal: which keys detach, and what is printed once its client has ended.

tmux controls the terminal. When the client ends, tmux detaches and runs `sm attach --ended` in its place (tmux.conf),
so that the last text on the screen is how it ended and how to restore it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping
from typing import Any

from sm.cli.format import coloured, say
from sm.client import Client, session_path
from sm.core.errors import SmError, error
from sm.core.ids import as_argument
from sm.fleet import ENDED_STATUSES
from sm.paths import TMUX_SOCKET, locate_home
from sm.plain_text import plain
from sm.tmux.names import socket_path
from sm.tmux.pane_facts import is_death_notice

EARLY_EXIT_S = 2.0
"""A client that cannot run has ended by then (seen: a wrong option 0.5)."""
EXIT_NOTICE_TIMEOUT_S = 5.0
"""For the server to notice that a client has ended (seen: 0.5)."""
POLL_INTERVAL_S = 0.05
LAST_LINES = 10
OWN_PREFIX = "C-b"
"""Prefix of sm's own tmux, whose configuration keeps tmux's default."""
TMUX_TIMEOUT_S = 2.0
DETACH_OPTION = "@sm_detach"
"""What the line below the pane says about it (tmux.conf): the keys of the terminal that attached last."""
SHOWN_KEYS = {"C": "Ctrl", "M": "Alt", "S": "Shift"}


def attach_to(client: Client, session: str) -> None:
    """Replace this process by tmux; SmError if the session has ended."""
    inside = bool(os.environ.get("TMUX"))
    try:
        found = client.call("GET", session_path(session, f"/attach?inside_tmux={int(inside)}"))
    except SmError as problem:
        if problem.refused.code == "ended":
            _show_last_lines(client, client.call("GET", session_path(session)))
        raise
    argv = found["argv"]
    socket = str(socket_path(locate_home(os.environ).root, TMUX_SOCKET))
    keys = detach_keys(os.environ, ours=socket)
    how = f"detach with {keys}" if keys else NO_DETACH_KEYS.format(shlex.quote(socket), argv[-1])
    _tmux_output(
        os.environ, "-N", "-S", socket, "set-option", "-t", argv[-1], DETACH_OPTION, keys or "another terminal"
    )
    say(coloured(f"attaching to {plain(found['name'])}; {how}", "90"))
    os.execvp(argv[0], argv)  # noqa: S606  # tmux replaces this process


NO_DETACH_KEYS = "your tmux passes no Ctrl-b on, so detach from another terminal: tmux -S {} detach-client -s {}"


def detach_keys(env: Mapping[str, str], ours: str) -> str | None:
    """Return the keys that detach from sm's tmux in a terminal with that environment; None if another tmux takes them.

    That tmux takes its own prefix, and passes it on by the key that it has bound to `send-prefix`.
    """
    outer = env.get("TMUX", "")
    if not outer or outer.partition(",")[0] == ours:
        return "Ctrl-b d"
    prefixes = _tmux_output(env, "display-message", "-p", "#{prefix}\n#{prefix2}").split("\n")[:2]
    if prefixes == [""]:
        return "Ctrl-b Ctrl-b d"  # it does not answer: tmux's defaults
    if OWN_PREFIX not in prefixes:
        return "Ctrl-b d"
    wanted = ["send-prefix"] if prefixes[0] == OWN_PREFIX else ["send-prefix", "-2"]
    bound = [
        line.replace(" -r ", " ").split()[3:] for line in _tmux_output(env, "list-keys", "-T", "prefix").splitlines()
    ]
    passing = [words[0].removeprefix("\\") for words in bound if words[1:] == wanted]
    if not passing:
        return None
    return f"Ctrl-b {shown_key(OWN_PREFIX if OWN_PREFIX in passing else passing[0])} d"


def shown_key(key: str) -> str:
    """Return `Ctrl-b` for tmux's `C-b`."""
    *modifiers, name = key.split("-") if not key.endswith("-") else [key]
    return "-".join([*(SHOWN_KEYS.get(modifier, modifier) for modifier in modifiers), name])


def _tmux_output(env: Mapping[str, str], *command: str) -> str:
    """Return the answer of the tmux around this terminal; empty if it fails."""
    try:
        argv = [shutil.which("tmux", path=env.get("PATH")) or "tmux", *command]
        asked = subprocess.run(  # noqa: TID251  # no loop runs here
            argv, env=dict(env), capture_output=True, text=True, check=True, timeout=TMUX_TIMEOUT_S
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    return asked.stdout.removesuffix("\n")


def wait_for_start(client: Client, session: dict[str, Any]) -> dict[str, Any]:
    """Return the session once its client runs, or after EARLY_EXIT_S; SmError if it has ended."""
    deadline = time.monotonic() + EARLY_EXIT_S
    while session["status"] == "starting" and time.monotonic() < deadline:
        time.sleep(POLL_INTERVAL_S)
        session = client.call("GET", session_path(session["id"]))
    if session["status"] not in ENDED_STATUSES:
        return session
    name = plain(session["name"])
    _show_last_lines(client, session)
    called = as_argument(session["name"], session["id"])
    hint = f"sm output {called} shows all that it printed; sm doctor looks for the cause"
    raise error("ended", f"The client of {name} has ended at once{_cause(session)}", hint)


def report_end(client: Client, session: str) -> int:
    """Print how the client of a session has ended that this terminal has just shown; return the exit code."""
    deadline = time.monotonic() + EXIT_NOTICE_TIMEOUT_S
    found = client.call("GET", session_path(session))
    while found["status"] not in ENDED_STATUSES and time.monotonic() < deadline:
        time.sleep(POLL_INTERVAL_S)
        found = client.call("GET", session_path(session))
    name, called = plain(found["name"]), as_argument(found["name"], found["id"])
    if found["status"] not in ENDED_STATUSES:
        say(f"{name} runs again: sm attach {called}")
        return 0
    _show_last_lines(client, found)
    say(f"{name} has ended{_cause(found)}; sm restore {called} brings it back")
    return int(found["status"] == "crashed")


def _cause(session: dict[str, Any]) -> str:
    """Return the cause of an end: ` (exit code 3)`, or with its last line `: unknown option`."""
    detail = plain(session["detail"]).removeprefix("the client has ended").strip()
    detail = detail.removeprefix("at once").removeprefix(":").strip()
    if not detail:
        return ""
    return f" {detail}" if detail.startswith("(") else f": {detail}"


def _show_last_lines(client: Client, session: dict[str, Any]) -> None:
    """Print the last lines in the pane of a crashed client, unless the session's detail has them."""
    if session["status"] != "crashed":
        return
    try:
        text = client.call("GET", session_path(session["id"], f"/output?lines={LAST_LINES}"))["text"]
    except SmError:
        return
    printed = text.replace("\N{NO-BREAK SPACE}", " ").split("\n")
    lines = [line for line in printed if line.strip() and not is_death_notice(line)]
    if len(lines) > 1 or (lines and lines[0].strip() not in session["detail"]):
        say("\n".join(plain(line) for line in lines))
