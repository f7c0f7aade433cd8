"""What the engine needs of a terminal multiplexer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sm.core.model.session import Session


@dataclass(frozen=True, slots=True)
class View:
    """One look at a pane."""

    lines: tuple[str, ...]
    """The visible screen, with its escape sequences."""
    cursor: tuple[int, int]
    dead: bool
    typed_ago: float | None
    """Seconds since the user's last key, to about one second; None while no terminal shows the pane."""
    behind: bool = False
    """The pane's process has yet to read keys that were pressed: the lines show nothing of them."""
    size: tuple[int, int] = (0, 0)
    """Columns and rows."""


class Key:
    """Keys that mean the same to every client, as tmux names them; a driver knows those of its own client."""

    ENTER = "Enter"
    BACKSPACE = "BSpace"
    LEFT = "Left"


class PaneError(Exception):
    """The pane, or tmux itself, did not do it; the message says why."""


class Pane(Protocol):
    async def look(self) -> View: ...
    async def paste(self, text: str) -> None: ...
    async def press(self, key: str, times: int = 1) -> None:
        """Press a key by its tmux name."""

    async def chord(self, keys: tuple[str, ...]) -> None:
        """Press keys that belong together, with nothing in between."""

    async def user_typed(self, data: bytes) -> None:
        """Give the pane's process what the user has typed at a terminal of their own, as it is.

        From then on the user counts as typing, as in a terminal that shows the pane.
        """

    async def history(self) -> str: ...
    async def printed(self) -> list[str]:
        """Return the lines with text that the pane's process has printed, without what the multiplexer adds."""


@dataclass(frozen=True, slots=True)
class PaneStatus:
    pane: str
    pid: int
    session: str
    dead: bool
    code: int | None = None
    signal: int | None = None
    logged: bool = True
    """Whether what it shows goes into its log."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal of the user that shows a session's pane now."""

    session: str
    tty: str
    typed_at: float
    """When its last key was pressed, or it was attached: UTC, to a second."""
    term: str = ""
    """Its TERM, as `tmux-256color` for one within another tmux."""


class Panes(Protocol):
    async def create(self, session: Session, launch: Launch, log: Path) -> PaneStatus: ...
    async def status(self, pane: str) -> PaneStatus | None: ...
    async def all(self) -> dict[str, PaneStatus]:
        """Every pane of this server by session id."""

    async def resume_log(self, pane: str, log: Path) -> None:
        """Take up the log of a pane whose writer has ended; PaneError while it cannot be written."""

    async def end(self, session: str, grace: float) -> None:
        """End the session's client and all it started, by force after `grace` seconds, then its pane.

        PaneError if tmux does not answer: what runs has been ended as far as it is found without, and the pane stays.
        """

    async def empty(self, session: str, grace: float) -> None:
        """End the same, and leave the pane; PaneError as with `end`."""

    async def environment(self, session: str) -> dict[str, str]:
        """Return the variables with which the session's last client was started; empty if its pane is gone."""

    async def clear(self, session: str) -> None:
        """Take away what is left of the session's last pane, with whatever still runs in it."""

    async def terminals(self) -> list[Terminal]: ...
    async def label(self, pane: str, text: str) -> None:
        """Let the line below the pane say this."""

    def pane(self, pane: str) -> Pane: ...
    async def attach(self, pane: str, *, inside_tmux: bool) -> list[str]:
        """The command that the user's terminal runs to show the pane."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a client."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    conversation: str
    """Empty if the user's arguments let the client choose it."""
    config: str
    """The client's configuration directory, where its state files are."""
    asked: tuple[tuple[str, str], ...] = ()
    """What the launch itself says about where the client compacts: variables and arguments with their values."""
    exit_lines: tuple[str, ...] = ()
    """The lines that the client leaves on the terminal when it ends, as how to resume its conversation."""
    continues: str = ""
    """The conversation that it opens again, where that is known before the start."""
    plugin: bool = False
    """With the plugin that drives it from inside."""
    no_plugin: str = ""
    """Why it is started without, where that is not what the user has set."""
    mode: str = ""
    """The permission mode that it starts in, where something tells."""
    program: str = ""
    """The client's executable, where another program starts it."""
