"""Checks whether agents outlive a logout, where systemd manages the users' processes."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator
from pathlib import Path

from sm.cli.doctor_checks.finding import OK, WARN, Finding, Surroundings
from sm.cli.service import systemd_unit

FOLDERS = ("usr/lib/systemd", "usr/local/lib/systemd", "run/systemd", "etc/systemd")
"""A file of the same name in a later one replaces that of an earlier one."""
KILLS = re.compile(r"^[ \t]*KillUserProcesses[ \t]*=[ \t]*(\w+)[ \t]*$", re.MULTILINE)
TRUE = frozenset({"yes", "true", "1", "on"})
ENABLE = "loginctl enable-linger"


def logout(where: Surroundings) -> Finding:
    service = systemd_unit(where.environ).exists()
    return outcome(Path("/"), pwd.getpwuid(os.getuid()).pw_name, service=service)


def outcome(root: Path, user: str, *, service: bool) -> Finding:
    """Return what a logout does; `service` if the server runs as a user's service, and with it tmux."""
    if not (root / "run/systemd/system").is_dir():
        return Finding(OK, "systemd does not run here, so agents outlive a logout")
    lingers = (root / "var/lib/systemd/linger" / user).exists()
    if service and not lingers:
        return Finding(WARN, "the service of sm ends at your logout, and agents started by it", ENABLE)
    if kills_processes(root) and not service and user != "root":
        words = "logind ends your processes at your logout (KillUserProcesses=yes), tmux and agents too"
        return Finding(WARN, words, f"sm server install, then {ENABLE}")
    return Finding(OK, "agents outlive a logout" + (", the service starts with the machine" if service else ""))


def kills_processes(root: Path) -> bool:
    values = [found for text in _configuration(root) for found in KILLS.findall(text)]
    return bool(values) and values[-1].lower() in TRUE


def _configuration(root: Path) -> Iterator[str]:
    """Return the texts of the configuration: the main file, then the additions in the order of their names."""
    main = [root / folder / "logind.conf" for folder in FOLDERS]
    additions = {path.name: path for folder in FOLDERS for path in (root / folder / "logind.conf.d").glob("*.conf")}
    present = [path for path in main if path.is_file()][-1:]
    for path in [*present, *(additions[name] for name in sorted(additions))]:
        try:
            yield path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
