"""What tmux knows about a pane, queried in one line and parsed into one value."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

_CLEAN = "#{{s/[\n\t]/?/:{}}}"
"""A process may put a newline into its name, which would add a line to our list."""


@dataclass(frozen=True, slots=True)
class PaneFacts:
    pane_id: str
    sm_session: str
    """The id given at creation; empty for a pane that the user opened next to it."""
    session: str
    """tmux's name of the session."""
    tty: str
    """The terminal that the pane is to its processes; by now another pane's, where it is dead."""
    pid: int
    """Of the process started in the pane; keeps its value when that is dead."""
    dead: bool
    exit_status: int | None
    """Both are None while it lives, and still for a moment after the pane is seen to be dead: ask again."""
    exit_signal: int | None
    in_mode: bool
    """Copy mode or the like: keys go to tmux, not to the application."""
    alternate_on: bool
    """Full-screen application: there is no scrollback, a capture holds one screen."""
    logging: bool
    cursor_x: int
    cursor_y: int
    width: int
    height: int
    history_limit: int
    history_size: int
    attached: int
    """Terminals of the user that show this session."""
    command: str
    """Name of the process in the foreground."""
    last_activity: int | None = None
    """Epoch second of the last key or mouse event in an attached terminal."""


def _flag(value: str) -> bool:
    return value == "1"


def _maybe_int(value: str) -> int | None:
    return int(value) if value else None


_FIELDS: tuple[tuple[str, str, Callable[[str], object]], ...] = (
    ("pane_id", "#{pane_id}", str),
    ("sm_session", _CLEAN.format("@sm_session"), str),
    ("session", "#{session_name}", str),
    ("tty", "#{pane_tty}", str),
    ("pid", "#{pane_pid}", int),
    ("dead", "#{pane_dead}", _flag),
    ("exit_status", "#{pane_dead_status}", _maybe_int),
    ("exit_signal", "#{pane_dead_signal}", _maybe_int),
    ("in_mode", "#{?pane_in_mode,1,}", _flag),
    ("alternate_on", "#{alternate_on}", _flag),
    ("logging", "#{pane_pipe}", _flag),
    ("cursor_x", "#{cursor_x}", int),
    ("cursor_y", "#{cursor_y}", int),
    ("width", "#{pane_width}", int),
    ("height", "#{pane_height}", int),
    ("history_limit", "#{history_limit}", int),
    ("history_size", "#{history_size}", int),
    ("attached", "#{session_attached}", int),
    ("command", _CLEAN.format("pane_current_command"), str),
)

FORMAT = "\t".join(template for _, template, _ in _FIELDS)

_DEATH_NOTICE = "Pane is dead"

CLIENT_FORMAT = "#{client_session}\t#{client_activity}"


def parse_facts(line: str) -> PaneFacts:
    values = line.split("\t")
    named = {name: convert(value) for (name, _, convert), value in zip(_FIELDS, values, strict=True)}
    return PaneFacts(**named)  # type: ignore[arg-type]  # the table is checked by its tests


def is_death_notice(line: str) -> bool:
    """Return whether tmux itself wrote the line, below the last output of a process that has ended."""
    return line.startswith(_DEATH_NOTICE)


@dataclass(frozen=True, slots=True)
class AttachedTerminal:
    sm_session: str
    tty: str
    activity: int
    """Epoch second of its last key or mouse event, or of its start."""
    term: str


TERMINAL_FORMAT = "#{client_session}\t#{client_tty}\t#{client_activity}\t#{client_termname}"


def parse_terminals(clients: str, sessions: Mapping[str, str]) -> tuple[AttachedTerminal, ...]:
    """Return those of lines of TERMINAL_FORMAT that show one of our sessions, which are given by tmux's names.

    A connection in control mode, as our own, has no terminal.
    """
    rows = (line.split("\t") for line in clients.splitlines())
    return tuple(
        AttachedTerminal(sessions[session], tty, int(activity or 0), term)
        for session, tty, activity, term in rows
        if tty and session in sessions
    )


def latest_activity(clients: str) -> dict[str, int]:
    """Return the newest activity of each tmux session, from lines of CLIENT_FORMAT."""
    latest: dict[str, int] = {}
    for line in clients.splitlines():
        session, _, activity = line.partition("\t")
        latest[session] = max(latest.get(session, 0), int(activity or 0))
    return latest


def facts_commands(pane_id: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the commands that query a pane; `list-clients` first: `display-message` does not fail on a missing one."""
    return (
        ("list-clients", "-t", pane_id, "-F", CLIENT_FORMAT),
        ("display-message", "-p", "-t", pane_id, FORMAT),
    )


VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")


def parse_environment(lines: Iterable[bytes]) -> dict[str, str]:
    """Return what tmux lists as NAME=VALUE; a line without a name continues the value before."""
    found: dict[str, str] = {}
    name = ""
    for line in map(os.fsdecode, lines):
        begins = VARIABLE.match(line)
        if begins is not None:
            name = begins[1]
            found[name] = line[begins.end() :]
        elif name:
            found[name] += f"\n{line}"
    return found
