"""All operations on a pane, which is addressed by its id `%N` alone.

Text reaches an application only through `type_text`: bracketed, without control characters, and never into a dead
pane, a scrolled-back one, or one that would take its lines for several prompts. The caller decides by `PaneFacts`
whether it is a good moment to type, and looks for evidence afterwards.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import signal
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sm.tmux.client import Command, Size, TmuxClient, TmuxError
from sm.tmux.names import literal, session_name
from sm.tmux.pane_facts import (
    CLIENT_FORMAT,
    FORMAT,
    TERMINAL_FORMAT,
    AttachedTerminal,
    PaneFacts,
    facts_commands,
    latest_activity,
    parse_environment,
    parse_facts,
    parse_terminals,
)
from sm.tmux.terminal_log import create_log, log_command, mark_gap, paste_mode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sm.tmux.protocol import Reply

_SET_BY_TMUX = frozenset({"TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TMUX", "TMUX_PANE"})

_EXEC_SINGLE = ("/bin/sh", "-c", 'exec "$0"')
"""tmux passes a single argument to a shell but executes several as they are (man tmux, COMMANDS)."""

_PANE_ID = re.compile(r"%\d+")
_KEY = re.compile("Enter|Escape|BSpace|Left|Right|Up|Down|Home|End|C-[abd-z]")
"""Keys that may be pressed. tmux types any other name as text; C-c would end what runs in the pane."""

Argv = list[str]

_ATTACH_INSIDE = (
    'case "$TMUX" in "$2",*) exec "$1" -N -S "$2" switch-client -t "$3" ;; esac; '
    'unset TMUX TMUX_PANE; exec "$1" -N -S "$2" attach-session -t "$3"'
)
"""In one of our own panes the terminal switches to the other session. Otherwise TMUX is unset: tmux compares the
terminal's name with those of all its panes, dead ones too, whose name a new terminal may have (seen on 3.3a)."""

_PASTE_MARK = re.compile(r"(?:\x1b\[|\x9b)20[01]~")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class PaneGoneError(TmuxError):
    """There is no such pane."""


class PaneDeadError(TmuxError):
    """The process in the pane has ended; nothing was typed."""


class PasteRefusedError(TmuxError):
    """The application would take the lines for several prompts."""


@dataclass(frozen=True, slots=True)
class Program:
    """What runs in a pane."""

    argv: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    log: Path
    """Receives everything the terminal shows, from the first byte; appended to, 0600."""


@dataclass(frozen=True, slots=True)
class NewPane:
    session_id: str
    """Our id; stored in the pane as `@sm_session`, by which it is found again after our restart."""
    name: str
    program: Program
    size: Size = field(default_factory=Size)


@dataclass(frozen=True, slots=True)
class CreatedPane:
    pane_id: str
    pid: int
    session: str


@dataclass(frozen=True, slots=True)
class Screen:
    text: str
    facts: PaneFacts
    """Of the same moment as the text."""


def pasteable(text: str) -> str:
    """Remove from text all that a terminal would act on, and the newlines at its end."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    plain = _CONTROL.sub("", _PASTE_MARK.sub("", plain))
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", plain).rstrip("\n")


class PaneOperations:
    """Every operation raises `PaneGoneError` for a missing pane, and `TmuxError` for whatever else tmux refuses."""

    def __init__(self, client: TmuxClient) -> None:
        self._client = client
        self._buffers = itertools.count()

    async def create(self, new: NewPane) -> CreatedPane:
        """Start a program in a pane of its own. Its log and its id are set before its first byte."""
        program = new.program
        _prepare(program)
        name = session_name(new.name, new.session_id)
        target = f"={name}:"
        size = ("-x", str(new.size.columns), "-y", str(new.size.rows))
        replies = await self._client.sequence(
            ("new-session", "-d", "-s", name, *size, *_launch(program)),
            log_command(target, program.log),
            ("set-option", "-p", "-t", target, "@sm_session", new.session_id),
            ("set-option", "-p", "-t", target, "@sm_log", str(program.log)),
            ("display-message", "-p", "-t", target, FORMAT),
            ("display-message", "-p", "-t", target, "#{pane_start_path}"),
        )
        facts = parse_facts(replies[-2].text)
        if replies[-1].lines != tuple(os.fsencode(program.directory).split(b"\n")) or not facts.logging:
            await self.kill(facts.pane_id)
            raise TmuxError("new-session", f"{program.directory} was not taken literally, or the log did not start")
        return CreatedPane(facts.pane_id, facts.pid, facts.session)

    async def resume_log(self, pane_id: str, log: Path) -> None:
        """Continue a log whose writer has ended, as on a full disk; OSError while it still can't be written."""
        mark_gap(log)
        await self._write(pane_id, log_command(pane_id, log))

    async def facts(self, pane_id: str) -> PaneFacts:
        clients, reply = await self._run(pane_id, *facts_commands(pane_id))
        return self._with_activity(parse_facts(reply.text), latest_activity(clients.text))

    async def snapshot(
        self, pane_id: str, *, history: bool = False, joined: bool = True, escapes: bool = False
    ) -> Screen:
        """Return the visible screen, or with `history` all that tmux has. `joined` joins lines that tmux wrapped."""
        flags = [flag for flag, wanted in (("-J", joined), ("-e", escapes)) if wanted]
        scope = ["-S", "-"] if history else []
        capture = ("capture-pane", "-p", *flags, *scope, "-t", pane_id)
        clients, reply, text = await self._run(pane_id, *facts_commands(pane_id), capture)
        return Screen(text.text, self._with_activity(parse_facts(reply.text), latest_activity(clients.text)))

    async def list(self) -> tuple[PaneFacts, ...]:
        """Return every pane we created that tmux still has, dead ones included."""
        panes, clients = await self._client.sequence(
            ("list-panes", "-a", "-f", "#{@sm_session}", "-F", FORMAT), ("list-clients", "-F", CLIENT_FORMAT)
        )
        latest = latest_activity(clients.text)
        return tuple(self._with_activity(parse_facts(line), latest) for line in panes.text.splitlines())

    async def environment(self, pane_id: str) -> dict[str, str]:
        """Return what was given to the pane's program; tmux keeps it with the pane's session."""
        (reply,) = await self._run(pane_id, ("show-environment", "-t", pane_id))
        return parse_environment(reply.lines)

    async def terminals(self) -> tuple[AttachedTerminal, ...]:
        """Return the terminals that show panes which we created."""
        panes, clients = await self._client.sequence(
            ("list-panes", "-a", "-f", "#{@sm_session}", "-F", FORMAT), ("list-clients", "-F", TERMINAL_FORMAT)
        )
        sessions = {facts.session: facts.sm_session for facts in map(parse_facts, panes.text.splitlines())}
        return parse_terminals(clients.text, sessions)

    async def type_text(self, pane_id: str, text: str) -> None:
        """Paste text, without Enter. Returning means that tmux wrote it, not that the application has read it."""
        safe = pasteable(text)
        if not safe:
            return
        await self._require_alive(pane_id, "paste-buffer")
        if "\n" in safe:
            await self._require_bracketed_paste(pane_id)
        buffer = f"sm-{next(self._buffers)}"
        try:
            await self._write(
                pane_id,
                ("set-buffer", "-b", buffer, "--", safe),
                ("copy-mode", "-q", "-t", pane_id),
                ("paste-buffer", "-p", "-d", "-b", buffer, "-t", pane_id),
            )
        except TmuxError:
            with suppress(TmuxError):
                await self._client.command("delete-buffer", "-b", buffer)
            raise

    async def press(self, pane_id: str, *keys: str, times: int = 1) -> None:
        """Press keys by their tmux names, one after the other; ValueError for one that is never pressed."""
        if refused := [key for key in keys if not _KEY.fullmatch(key)]:
            raise ValueError(f"never pressed: {refused[0]!r}")
        await self._require_alive(pane_id, "send-keys")
        await self._write(
            pane_id,
            ("copy-mode", "-q", "-t", pane_id),
            ("send-keys", "-t", pane_id, "-N", str(times), *keys),
        )

    async def send_bytes(self, pane_id: str, data: bytes) -> None:
        keys = ("send-keys", "-H", "-t", pane_id, *(f"{byte:02x}" for byte in data))
        await self._write(pane_id, ("copy-mode", "-q", "-t", pane_id), keys)

    async def kill(self, pane_id: str) -> None:
        """End the pane; tmux sends SIGHUP to its process group."""
        await self._run(pane_id, ("kill-pane", "-t", pane_id))

    async def rename(self, pane_id: str, name: str, session_id: str) -> str:
        """Rename the tmux session of the pane; returns its new name."""
        session = session_name(name, session_id)
        await self._run(pane_id, ("rename-session", "-t", pane_id, "--", session))
        return session

    async def label(self, pane_id: str, text: str) -> None:
        """Name the pane's window, which its status line shows: of all ways this one draws that line alone again."""
        await self._run(pane_id, ("rename-window", "-t", pane_id, "--", literal(text.replace("#", ""))))

    def attach_command(self, pane_id: str, *, inside_tmux: bool) -> Argv:
        """Return what `sm attach` executes in the user's terminal, with their environment. `-N` starts no server.

        Another tmux in between takes the first C-b, so there detaching is C-b C-b d.
        """
        server = (self._client.settings.binary, str(self._client.settings.socket))
        if inside_tmux:
            return ["/bin/sh", "-c", _ATTACH_INSIDE, "sm", *server, pane_id]
        return [server[0], "-N", "-S", server[1], "attach-session", "-t", pane_id]

    def _with_activity(self, facts: PaneFacts, latest: Mapping[str, int]) -> PaneFacts:
        """Add the latest activity; signal tmux where it missed a child's end, as 1 in 30 times (measured on 3.3a)."""
        server = self._client.identity
        if facts.dead and facts.exit_status is None and facts.exit_signal is None and server is not None:
            with suppress(ProcessLookupError):
                os.kill(server.pid, signal.SIGCHLD)
        return replace(facts, last_activity=latest.get(facts.session))

    async def _write(self, pane_id: str, *commands: Command) -> None:
        """Run commands that write to the pane; PaneDeadError if it was dead at that moment, which tmux ignores."""
        alone = ("set-option", "-p", "-t", pane_id, "synchronize-panes", "off")  # a neighbour would get our keys too
        *_, reply = await self._run(pane_id, alone, *commands, ("display-message", "-p", "-t", pane_id, FORMAT))
        _require_living(parse_facts(reply.text), commands[-1][0])

    async def _require_alive(self, pane_id: str, subcommand: str) -> None:
        _require_living(await self.facts(pane_id), subcommand)

    async def _require_bracketed_paste(self, pane_id: str) -> None:
        ask = ("display-message", "-p", "-t", pane_id)
        mode, log = await self._run(pane_id, (*ask, "#{bracket_paste_flag}"), (*ask, "#{@sm_log}"))
        on: bool | None = mode.text == "1"
        if not mode.text and log.lines:  # before tmux 3.6 there is no such format
            on = await asyncio.to_thread(paste_mode, Path(os.fsdecode(b"\n".join(log.lines))))
        if on is False:
            raise PasteRefusedError("paste-buffer", "the application has not switched bracketed paste on")

    async def _run(self, pane_id: str, *commands: Command) -> tuple[Reply, ...]:
        if not _PANE_ID.fullmatch(pane_id):
            raise PaneGoneError(str(commands[0][0]), f"{pane_id!r} is not a pane id")
        try:
            return await self._client.sequence(*commands)
        except TmuxError as error:
            if error.message.startswith("can't find "):
                raise PaneGoneError(error.subcommand, f"no pane {pane_id}") from error
            raise


def _require_living(facts: PaneFacts, subcommand: str | bytes) -> None:
    if facts.dead:
        raise PaneDeadError(str(subcommand), f"the process in pane {facts.pane_id} has ended")


def _prepare(program: Program) -> None:
    """Create the log; refuse a missing directory, which tmux would silently replace by the home directory."""
    if not (program.directory.is_absolute() and program.directory.is_dir() and os.access(program.directory, os.X_OK)):
        raise TmuxError("new-session", f"{program.directory} is not a directory that can be entered")
    if not program.argv:
        raise TmuxError("new-session", "no program to start")
    create_log(program.log)


def _launch(program: Program) -> list[str]:
    """Return the arguments of new-session. The environment goes through the connection, where `ps` does not show it."""
    variables = [f"-e{name}={value}" for name, value in program.environment.items() if name not in _SET_BY_TMUX]
    argv = program.argv if len(program.argv) > 1 else (*_EXEC_SINGLE, program.argv[0])
    return [*variables, "-c", literal(os.fspath(program.directory)), "--", *argv]
