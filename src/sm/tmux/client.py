"""One control-mode connection to a tmux server of our own: any number of commands at once, no process per command.

A command finds a server or starts one, configured before any pane exists. When connection or server die, the commands
without a reply fail with `ConnectionLostError` and the next command connects again; nothing is ever sent twice.
"""

from __future__ import annotations

import asyncio
import glob
from asyncio.subprocess import Process, SubprocessStreamProtocol
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sm.tmux.names import ANCHOR
from sm.tmux.protocol import ControlMessage, ControlParser, Exit, Notification, Reply, command_line

if TYPE_CHECKING:
    from asyncio import SubprocessTransport
    from collections.abc import Callable, Mapping
    from types import TracebackType

    _Notify = Callable[[Notification], None]

Command = tuple[str | bytes, ...]

CONFIG = Path(__file__).with_name("tmux.conf")
_CHUNK_BYTES = 1 << 18
_GRACE_S = 1.0
_CONNECT_TRIES = 5
_RETRY_DELAY_S = 0.05
"""A server that was just killed still answers its socket for a moment."""
_EXITING_MESSAGE = "server exited unexpectedly"
"""A tmux server's answer to every client between the command to exit and its end."""


class TmuxError(Exception):
    """tmux refused a command."""

    def __init__(self, subcommand: str, message: str) -> None:
        super().__init__(f"tmux {subcommand}: {message}")
        self.subcommand = subcommand
        self.message = message


class ConnectionLostError(TmuxError):
    """The connection ended before the reply: the command may or may not have run."""


@dataclass(frozen=True, slots=True)
class Size:
    """Columns and rows of a pane to which no terminal is attached."""

    columns: int = 200
    rows: int = 50


@dataclass(frozen=True, slots=True)
class TmuxServerSettings:
    """How the tmux server is found and started."""

    socket: Path
    environment: Mapping[str, str]
    """All variables that the server, and with it every pane, inherits; the caller's allow-list."""
    umask: int
    """The user's; the panes inherit it, whatever our own is."""
    history_limit: int = 100_000
    size: Size = field(default_factory=Size)
    binary: str = "tmux"
    ended_command: str = ""
    """Shell command that a terminal runs, followed by the session's id, when the pane it shows has ended."""
    reply_timeout: float = 10.0
    """Seconds without a reply after which the connection is given up: tmux answers in order, so every command waits."""

    def argv(self) -> list[str]:
        """Return the command that connects or starts a server (so without `-N`); `-f` ignores the user's file."""
        return [
            *(self.binary, "-u", "-S", str(self.socket), "-f", "/dev/null", "-C"),
            *("source-file", glob.escape(str(CONFIG)), ";"),
            *("set-option", "-g", "history-limit", str(self.history_limit), ";"),
            *("set-option", "-g", "default-size", f"{self.size.columns}x{self.size.rows}", ";"),
            *("set-option", "-g", "@sm_ended", self.ended_command, ";"),
            # Its pane ends at once and stays as a dead one: an anchor without a process.
            *("new-session", "-A", "-s", ANCHOR, "-f", "no-output,ignore-size", "--", "/bin/sh", "-c", ":"),
        ]

    def inherited(self) -> dict[str, str]:
        return {name: value for name, value in self.environment.items() if name not in {"TMUX", "TMUX_PANE"}}


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """Identifies the tmux server. Another one means that every pane of the old one is gone."""

    pid: int
    started: int


@dataclass(slots=True)
class _Pending:
    commands: tuple[Command, ...]
    done: asyncio.Future[tuple[Reply, ...]]
    replies: list[Reply] = field(default_factory=list)

    def take(self, reply: Reply) -> bool:
        """Add a reply; True if it is the last: after an error tmux drops the rest of the sequence."""
        self.replies.append(reply)
        complete = not reply.ok or len(self.replies) == len(self.commands)
        if complete and not self.done.done():
            self._settle(reply)
        return complete

    def _settle(self, last: Reply) -> None:
        if last.ok:
            self.done.set_result(tuple(self.replies))
        else:
            self.done.set_exception(TmuxError(self.name(len(self.replies) - 1), last.text))

    def name(self, index: int = 0) -> str:
        name = self.commands[index][0]
        return name if isinstance(name, str) else name.decode(errors="replace")

    def lose(self, reason: str) -> None:
        if not self.done.done():
            self.done.set_exception(ConnectionLostError(self.name(len(self.replies)), reason))


class _Connection:
    """One control-mode client process."""

    def __init__(self, transport: SubprocessTransport, process: Process, notify: _Notify) -> None:
        self.lost = False
        """Nothing sent now would be answered."""
        self.ended = asyncio.Event()
        self._transport = transport
        self._process = process
        self._notify = notify
        self._parser = ControlParser()
        self._pending: deque[_Pending] = deque()
        self._reason = ""

    def send(self, *commands: Command) -> asyncio.Future[tuple[Reply, ...]]:
        pending = _Pending(commands, asyncio.get_running_loop().create_future())
        line = command_line(*commands)
        if self.lost or self._process.stdin is None:
            pending.lose(self._reason)
            return pending.done
        self._pending.append(pending)
        # Never drained: every caller waits for a reply, which is back pressure enough.
        self._process.stdin.write(line)
        return pending.done

    async def run(self) -> None:
        """Read until the end, then fail commands without a reply."""
        stdout, stderr = self._process.stdout, self._process.stderr
        if stdout is None or stderr is None:
            raise RuntimeError("the tmux client was started without pipes")
        try:
            while data := await stdout.read(_CHUNK_BYTES):
                for message in self._parser.receive(data):
                    self._take(message)
            self._reason = (await stderr.read()).decode(errors="replace").strip() or self._reason
        finally:
            self._lose()
            await self._reap()
            self.ended.set()

    async def _reap(self) -> None:
        """Wait for the client's end; a signal to one that just ended makes asyncio lose its status (Python 3.11)."""
        try:
            async with asyncio.timeout(_GRACE_S):
                await self._process.wait()
        except TimeoutError:
            self._transport.close()

    def _take(self, message: ControlMessage) -> None:
        match message:
            case Reply(ours=True):
                if self._pending and self._pending[0].take(message):
                    self._pending.popleft()
            case Reply(ok=False) | Exit():
                # The error of a failed opening command says more than the exit that follows it.
                self._reason = self._reason or (message.text if isinstance(message, Reply) else message.reason)
                self.lost = self.lost or isinstance(message, Exit)
            case Notification():
                self._notify(message)

    def _lose(self) -> None:
        self.lost = True
        self._reason = self._reason or "connection to the tmux server lost"
        while self._pending:
            self._pending.popleft().lose(self._reason)

    def give_up(self) -> None:
        """Close the connection from our side: a server that hangs keeps our pipe open after its client's end."""
        self.lost = True
        self._transport.close()

    async def close(self) -> None:
        """Detach the client by the end of its input; the server and its panes stay."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_GRACE_S):
                await self.ended.wait()
        except TimeoutError:
            self.give_up()


def _ignore(_: object) -> None:
    pass


class TmuxClient:
    """Use with `async with`: the reader runs in a TaskGroup of its own, entered and left by the same task."""

    def __init__(
        self,
        settings: TmuxServerSettings,
        *,
        on_restart: Callable[[ServerIdentity], None] = _ignore,
        on_notification: _Notify = _ignore,
    ) -> None:
        self.settings = settings
        self.identity: ServerIdentity | None = None
        """Of the server last connected to; shows after our restart whether the panes still exist."""
        self._on_restart = on_restart
        self._on_notification = on_notification
        self._tasks = asyncio.TaskGroup()
        self._opening = asyncio.Lock()
        self._connection: _Connection | None = None
        self._closed = True

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._closed = False
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        if self._connection is not None:
            await self._connection.close()
        if kind is not None and issubclass(kind, asyncio.CancelledError):
            await self._tasks.__aexit__(kind, error, trace)
        # An error of the body propagates as it is; the group would wrap it.
        await self._tasks.__aexit__(None, None, None)

    @property
    def connected(self) -> bool:
        return self._connection is not None and not self._connection.lost

    async def command(self, name: str, *arguments: str | bytes) -> Reply:
        """Run one command. `-t` and the like are arguments of their own; text needs no quoting by the caller."""
        return (await self.sequence((name, *arguments)))[0]

    async def sequence(self, *commands: Command) -> tuple[Reply, ...]:
        """Run commands with nothing in between, in one round trip; the first that fails ends it."""
        return await self._replies(await self._open_connection(), *commands)

    async def _replies(self, connection: _Connection, *commands: Command) -> tuple[Reply, ...]:
        replies = connection.send(*commands)
        try:
            async with asyncio.timeout(self.settings.reply_timeout):
                return await replies
        except TimeoutError:
            connection.give_up()
            raise ConnectionLostError(str(commands[0][0]), "no reply; connection given up") from None

    async def kill_server(self) -> None:
        """End every pane. The next command starts a fresh server."""
        connection = await self._open_connection()
        with suppress(ConnectionLostError):
            await self._replies(connection, ("kill-server",))
        await connection.ended.wait()

    async def _open_connection(self) -> _Connection:
        async with self._opening:
            if self._connection is None or self._connection.lost:
                self._connection = await self._connect()
            return self._connection

    async def _connect(self) -> _Connection:
        for _ in range(_CONNECT_TRIES):
            try:
                return await self._try_to_connect()
            except ConnectionLostError as error:
                exiting = _EXITING_MESSAGE in error.message
                await asyncio.sleep(_RETRY_DELAY_S)
        if exiting:
            # Its panes are gone, but a client that was killed in between keeps it from exiting for ever (3.3a).
            self.settings.socket.unlink(missing_ok=True)
        return await self._try_to_connect()

    async def _try_to_connect(self) -> _Connection:
        if self._closed:
            raise ConnectionLostError("new-session", "the client is closed")
        connection = await self._start()
        self._tasks.create_task(connection.run())
        try:
            (reply,) = await self._replies(connection, ("display-message", "-p", "#{pid} #{start_time}"))
        except BaseException:
            connection.give_up()  # no one else has it, and leaving would wait for its end
            raise
        pid, started = reply.text.split()
        self._check_identity(ServerIdentity(int(pid), int(started)))
        return connection

    async def _start(self) -> _Connection:
        loop = asyncio.get_running_loop()
        try:
            # As create_subprocess_exec, which keeps the transport to itself: we may have to close it.
            transport, protocol = await loop.subprocess_exec(
                lambda: SubprocessStreamProtocol(_CHUNK_BYTES, loop),
                *self.settings.argv(),
                env=self.settings.inherited(),
                umask=self.settings.umask,
                # The server keeps this directory for life, and no Ctrl-C of a terminal may reach the client.
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise TmuxError("new-session", f"cannot start {self.settings.binary}: {error}") from error
        return _Connection(transport, Process(transport, protocol, loop), self._on_notification)

    def _check_identity(self, identity: ServerIdentity) -> None:
        before, self.identity = self.identity, identity
        if before is not None and before != identity:
            self._on_restart(identity)
