"""Parses tmux's control mode without any I/O, and quotes arguments for its command parser.

Only a line outside `%begin` … `%end` is a notification: a reply's body may itself begin with `%` (`%0` is a pane id).
A block ends at the line that repeats its time, number and flags, so a body that shows another block stays whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_FROM_OUR_INPUT = 1
"""Bit of a block's flags: the command came over this connection's standard input (tmux: CMDQ_STATE_CONTROL)."""

_GUARD = re.compile(rb"\d+ \d+ \d+")
"""Time, number, flags."""

_SPECIAL = re.compile(rb'[\x00-\x1f\x7f\xff"\\$~]')
"""Special inside double quotes, or would end the line. `~` counts right after the opening quote, and the byte FF is the
end of the input to tmux's lexer (measured on 3.3a)."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What one command printed."""

    number: int
    ok: bool
    lines: tuple[bytes, ...]
    ours: bool = True
    """False for commands that tmux ran by itself: the command line that opened the connection, or a hook."""

    @property
    def text(self) -> str:
        return b"\n".join(self.lines).decode(errors="replace")


@dataclass(frozen=True, slots=True)
class Notification:
    """Something happened in the server; `name` without its `%`."""

    name: str
    args: str


@dataclass(frozen=True, slots=True)
class Exit:
    """tmux ends this connection."""

    reason: str


ControlMessage = Reply | Notification | Exit


@dataclass(slots=True)
class ControlParser:
    """Takes what was read, in pieces of any size."""

    _rest: bytearray = field(default_factory=bytearray)
    _guard: bytes | None = None
    """Of the open block."""
    _body: list[bytes] = field(default_factory=list)

    def receive(self, data: bytes) -> list[ControlMessage]:
        if b"\n" not in data:
            self._rest += data
            return []
        *lines, rest = (bytes(self._rest) + data).split(b"\n")
        self._rest = bytearray(rest)
        return [message for line in lines if (message := self._take(line)) is not None]

    def _take(self, line: bytes) -> ControlMessage | None:
        word, _, rest = line.partition(b" ")
        if self._guard is not None:
            return self._inside(line, word, rest)
        if word == b"%begin" and _GUARD.fullmatch(rest):
            self._guard = rest
            return None
        if word == b"%exit":
            return Exit(rest.decode(errors="replace"))
        if word.startswith(b"%"):
            return Notification(word[1:].decode(errors="replace"), rest.decode(errors="replace"))
        return None

    def _inside(self, line: bytes, word: bytes, rest: bytes) -> Reply | None:
        if rest != self._guard or word not in {b"%end", b"%error"}:
            self._body.append(line)
            return None
        _time, number, flags = (int(part) for part in rest.split())
        reply = Reply(number, word == b"%end", tuple(self._body), bool(flags & _FROM_OUR_INPUT))
        self._guard, self._body = None, []
        return reply


def quote(argument: str | bytes) -> bytes:
    """Quote an argument so that the command parser reads it back unchanged; ValueError for NUL.

    Control characters go as octal, since a raw newline ends the command; everything else, UTF-8 included, as it is.
    """
    raw = argument.encode(errors="surrogateescape") if isinstance(argument, str) else argument
    if b"\0" in raw:
        raise ValueError("NUL cannot be part of a tmux argument")
    return b'"' + _SPECIAL.sub(lambda match: _escaped(match[0]), raw) + b'"'


def _escaped(character: bytes) -> bytes:
    return b"\\" + character if character in b'"\\$~' else b"\\%03o" % character[0]


def command_line(*commands: tuple[str | bytes, ...]) -> bytes:
    """Return the line of commands that tmux runs as one sequence: after the first that fails it drops the rest."""
    return b" ; ".join(b" ".join(_words(command)) for command in commands) + b"\n"


def _words(command: tuple[str | bytes, ...]) -> list[bytes]:
    name, *arguments = command
    return [name.encode() if isinstance(name, str) else name, *(quote(argument) for argument in arguments)]
