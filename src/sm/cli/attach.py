"""Shows a session's pane in this terminal: which keys leave it, and what is said once its client has ended.

The terminal is tmux's from the start on. When the client ends, tmux detaches and runs `sm attach --ended` in its place
(tmux.conf), so that the last thing on the screen is how it ended and how to bring it back.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping
from typing import Any

from sm.cli.descriptions import ENDED, plain
from sm.cli.format import coloured, say
from sm.client import Client, session_path
from sm.core.errors import SmError, error
from sm.core.ids import as_argument
from sm.paths import TMUX_SOCKET, locate_home
from sm.tmux.names import socket_path

AT_ONCE = 2.0
"""Seconds in which a client that cannot run has ended (seen: a wrong option 0.5)."""
NOTICED = 5.0
"""Seconds the server has to notice that a client has ended (seen: 0.5)."""
POLL = 0.05
LAST_LINES = 10
OWN_PREFIX = "C-b"
"""Of sm's own tmux: its configuration leaves tmux's default."""
ASKED_WITHIN = 2.0
PANE_IS_DEAD = "Pane is dead"
SHOWN_KEYS = {"C": "Ctrl", "M": "Alt", "S": "Shift"}


def attach_to(client: Client, session: str) -> None:
    """Hand this terminal over to tmux; SmError if the session has ended."""
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
    how = f"detach with {keys}" if keys else NO_KEYS.format(shlex.quote(socket), argv[-1])
    say(coloured(f"attaching to {plain(found['name'])}; {how}", "90"))
    os.execvp(argv[0], argv)  # noqa: S606  # tmux takes this terminal over


NO_KEYS = "your tmux passes no Ctrl-b on, so detach from another terminal: tmux -S {} detach-client -s {}"


def detach_keys(env: Mapping[str, str], ours: str) -> str | None:
    """The keys that detach from sm's tmux in a terminal with that environment; None if another tmux keeps them.

    That tmux takes its own prefix for itself, and passes it on by the key that it has bound to `send-prefix`.
    """
    outer = env.get("TMUX", "")
    if not outer or outer.partition(",")[0] == ours:
        return "Ctrl-b d"
    prefixes = _asked(env, "display-message", "-p", "#{prefix}\n#{prefix2}").split("\n")[:2]
    if prefixes == [""]:
        return "Ctrl-b Ctrl-b d"  # it does not answer: tmux's defaults
    if OWN_PREFIX not in prefixes:
        return "Ctrl-b d"
    wanted = ["send-prefix"] if prefixes[0] == OWN_PREFIX else ["send-prefix", "-2"]
    bound = [line.replace(" -r ", " ").split()[3:] for line in _asked(env, "list-keys", "-T", "prefix").splitlines()]
    passing = [words[0].removeprefix("\\") for words in bound if words[1:] == wanted]
    if not passing:
        return None
    return f"Ctrl-b {shown_key(OWN_PREFIX if OWN_PREFIX in passing else passing[0])} d"


def shown_key(key: str) -> str:
    """`Ctrl-b` for tmux's `C-b`."""
    *modifiers, name = key.split("-") if not key.endswith("-") else [key]
    return "-".join([*(SHOWN_KEYS.get(one, one) for one in modifiers), name])


def _asked(env: Mapping[str, str], *command: str) -> str:
    """What the tmux around this terminal answers; empty if it does not."""
    try:
        argv = [shutil.which("tmux", path=env.get("PATH")) or "tmux", *command]
        asked = subprocess.run(  # noqa: TID251  # no loop runs here
            argv, env=dict(env), capture_output=True, text=True, check=True, timeout=ASKED_WITHIN
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    return asked.stdout.removesuffix("\n")


def settled(client: Client, session: dict[str, Any]) -> dict[str, Any]:
    """The session once its client has shown that it runs, or after a moment; SmError if it has ended at once."""
    deadline = time.monotonic() + AT_ONCE
    while session["status"] == "starting" and time.monotonic() < deadline:
        time.sleep(POLL)
        session = client.call("GET", session_path(session["id"]))
    if session["status"] not in ENDED:
        return session
    name = plain(session["name"])
    _show_last_lines(client, session)
    called = as_argument(session["name"], session["id"])
    hint = f"sm output {called} shows all that it printed; sm doctor looks for the cause"
    raise error("ended", f"The client of {name} has ended at once{_how(session)}", hint)


def tell_end(client: Client, session: str) -> int:
    """Say how the client of a session has ended that this terminal has just shown; the exit code."""
    deadline = time.monotonic() + NOTICED
    found = client.call("GET", session_path(session))
    while found["status"] not in ENDED and time.monotonic() < deadline:
        time.sleep(POLL)
        found = client.call("GET", session_path(session))
    name, called = plain(found["name"]), as_argument(found["name"], found["id"])
    if found["status"] not in ENDED:
        say(f"{name} runs again: sm attach {called}")
        return 0
    _show_last_lines(client, found)
    say(f"{name} has ended{_how(found)}; sm restore {called} brings it back")
    return int(found["status"] == "crashed")


def _how(session: dict[str, Any]) -> str:
    """In brackets, unless it has last words: ` (exit code 3)`, `: unknown option`."""
    detail = plain(session["detail"]).removeprefix("the client has ended").strip()
    detail = detail.removeprefix("at once").removeprefix(":").strip()
    if not detail:
        return ""
    return f" {detail}" if detail.startswith("(") else f": {detail}"


def _show_last_lines(client: Client, session: dict[str, Any]) -> None:
    """What the pane of a client that has crashed showed last; nothing if that is said already, or gone."""
    if session["status"] != "crashed":
        return
    try:
        text = client.call("GET", session_path(session["id"], f"/output?lines={LAST_LINES}"))["text"]
    except SmError:
        return
    printed = text.replace("\N{NO-BREAK SPACE}", " ").split("\n")
    lines = [line for line in printed if line.strip() and not line.startswith(PANE_IS_DEAD)]
    if len(lines) > 1 or (lines and lines[0].strip() not in session["detail"]):
        say("\n".join(plain(line) for line in lines))
