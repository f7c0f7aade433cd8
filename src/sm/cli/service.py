"""The server as a service of the user: with systemd on Linux, with launchd on macOS.

Agents run in tmux, which the server starts: in the service's group of processes, where neither a restart of the server
nor a command of theirs that runs out of memory may end them.
"""

from __future__ import annotations

import os
import plistlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sm.core.errors import error
from sm.paths import absolute, user_directory

NAME = "sm.service"
LABEL = "sm.server"
PASSED = ("PATH", "SM_HOME", "SM_CONFIG", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "LANG", "LC_ALL", "TMPDIR", "SHELL")
"""Variables of the shell that installs it: a service has none of them, and tmux must be on its PATH."""
TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Service:
    path: Path
    text: bytes
    enable: tuple[tuple[str, ...], ...]
    halt: tuple[tuple[str, ...], ...]
    """Commands that stop one that runs; agents keep running."""
    start: tuple[tuple[str, ...], ...]
    stop: tuple[tuple[str, ...], ...]
    """Commands that stop and disable it."""
    forget: tuple[tuple[str, ...], ...] = ()
    """Commands after its file was deleted."""


def service(environ: Mapping[str, str], platform: str = sys.platform, user: int | None = None) -> Service:
    passed = {name: environ[name] for name in PASSED if environ.get(name)}
    if platform == "darwin":
        path = user_directory(environ) / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        domain = f"gui/{os.getuid() if user is None else user}"
        load, unload = ("launchctl", "bootstrap", domain, str(path)), ("launchctl", "bootout", f"{domain}/{LABEL}")
        return Service(path, launchd_text(passed), enable=(), halt=(unload,), start=(load,), stop=(unload,))
    reload = ("systemctl", "--user", "daemon-reload")
    return Service(
        systemd_unit(environ),
        systemd_text(passed),
        enable=(reload, ("systemctl", "--user", "enable", NAME)),
        halt=(("systemctl", "--user", "stop", NAME),),
        start=(("systemctl", "--user", "start", NAME),),
        stop=(("systemctl", "--user", "disable", "--now", NAME),),
        forget=(reload,),
    )


def systemd_unit(environ: Mapping[str, str]) -> Path:
    given = environ.get("XDG_CONFIG_HOME", "")
    base = absolute(given, "XDG_CONFIG_HOME") if given.startswith("/") else user_directory(environ) / ".config"
    return base / "systemd" / "user" / NAME


def systemd_text(passed: Mapping[str, str]) -> bytes:
    lines = [
        "# Written by `sm server install`; `sm server uninstall` removes it.",
        "[Unit]",
        "Description=sm, the server that keeps coding agents working",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={' '.join(map(_word, COMMAND))}",
        *(f"Environment={_quoted(f'{name}={value}')}" for name, value in passed.items()),
        "# Agents and their tmux are in this service's group: only the server itself is ended.",
        "KillMode=process",
        "OOMPolicy=continue",
        "TasksMax=infinity",
        "Restart=on-failure",
        "RestartSec=2",
        "",
        "[Install]",
        "WantedBy=default.target",
        "",
    ]
    return "\n".join(lines).encode("utf-8", "surrogateescape")


COMMAND = (sys.executable, "-I", "-m", "sm", "server", "run")


def _word(text: str) -> str:
    return _quoted(text.replace("$", "$$"))


def _quoted(text: str) -> str:
    """Quote a word of a unit file, in which a backslash, a percent sign and a quotation mark mean something."""
    if not text.isprintable():
        raise error("bad_path", f"A service cannot have this in its file: {text!r}", "change or unset that variable")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def launchd_text(passed: Mapping[str, str]) -> bytes:
    return plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": list(COMMAND),
            "EnvironmentVariables": dict(passed),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "AbandonProcessGroup": True,
            "ProcessType": "Interactive",
        }
    )


def run_all(commands: Sequence[Sequence[str]], environ: Mapping[str, str]) -> None:
    """Run the commands in order; SmError with the words of the first that fails."""
    for command in commands:
        try:
            done = subprocess.run(  # noqa: TID251  # no loop runs here
                command,
                env=dict(environ),
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=TIMEOUT_S,
            )
        except FileNotFoundError:
            raise error("no_service", f"{command[0]} is not on PATH", "start the server with sm server start") from None
        except subprocess.TimeoutExpired:
            raise error("no_service", f"{' '.join(command)} does not come back", "run it yourself") from None
        if done.returncode:
            words = (done.stderr or done.stdout).strip().splitlines()
            why = words[-1] if words else f"exit code {done.returncode}"
            raise error(
                "no_service",
                f"{' '.join(command)} fails: {why}",
                "run it yourself; sm server start works without a service",
            )
