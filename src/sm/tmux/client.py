"""One control-mode connection to a tmux server of our own: any number of commands at once, no process per command.

A command finds a server or starts one, configured before any pane exists. When connection or server die, what was
under way fails with `ConnectionLostError` and the next command opens anew; nothing is ever sent twice.
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
from sm.tmux.protocol import ControlParser, Exit, Message, Notification, Reply, command_line

if TYPE_CHECKING:
    from asyncio import SubprocessTransport
    from collections.abc import Callable, Mapping
    from types import TracebackType

    _Notify = Callable[[Notification], None]

Command = tuple[str | bytes, ...]

CONFIG = Path(__file__).with_name("tmux.conf")
_CHUNK = 1 << 18
_GRACE = 1.0
_TRIES = 5
_PAUSE = 0.05
_DYING = "server exited unexpectedly"
"""What a tmux server says, to everybody, between its order to exit and its end."""
"""Between tries: a server that was just killed still answers its socket for a moment."""


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
    """Columns and rows of a pane that nobody is attached to."""

    columns: int = 200
    rows: int = 50


@dataclass(frozen=True, slots=True)
class TmuxServerSettings:
    """How the tmux server is found and started."""

    socket: Path
    environment: Mapping[str, str]
    """All that the server, and with it every pane, inherits; the caller's allow-list."""
    umask: int
    """Of the person; the panes inherit it, whatever our own is."""
    history_limit: int = 100_000
    size: Size = field(default_factory=Size)
    binary: str = "tmux"
    ended: str = ""
    """A shell's command that a terminal runs, with the session's id behind it, when the pane it shows has ended."""
    reply_timeout: float = 10.0
    """Seconds without a reply after which the connection is given up: tmux answers in order, so all wait behind."""

    def argv(self) -> list[str]:
        """Connects, and starts the server if none runs. `-N` is wrong here, `-f` keeps the user's file out of it."""
        return [
            *(self.binary, "-u", "-S", str(self.socket), "-f", "/dev/null", "-C"),
            *("source-file", glob.escape(str(CONFIG)), ";"),
            *("set-option", "-g", "history-limit", str(self.history_limit), ";"),
            *("set-option", "-g", "default-size", f"{self.size.columns}x{self.size.rows}", ";"),
            *("set-option", "-g", "@sm_ended", self.ended, ";"),
            # Its pane ends at once and stays as a dead one: an anchor without a process.
            *("new-session", "-A", "-s", ANCHOR, "-f", "no-output,ignore-size", "--", "/bin/sh", "-c", ":"),
        ]

    def inherited(self) -> dict[str, str]:
        return {name: value for name, value in self.environment.items() if name not in {"TMUX", "TMUX_PANE"}}


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """Which tmux server we talk to. Another one means: every pane of the old one is gone."""

    pid: int
    started: int


@dataclass(slots=True)
class _Pending:
    commands: tuple[Command, ...]
    done: asyncio.Future[tuple[Reply, ...]]
    replies: list[Reply] = field(default_factory=list)

    def take(self, reply: Reply) -> bool:
        """True once nothing more will come; after an error tmux drops the rest of the sequence."""
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
        """Nothing sent from now on would be answered."""
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
        # Never drained: every caller waits for a reply, which is all the back pressure there need be.
        self._process.stdin.write(line)
        return pending.done

    async def run(self) -> None:
        """Read until the end, then fail what is still waiting."""
        stdout, stderr = self._process.stdout, self._process.stderr
        if stdout is None or stderr is None:
            raise RuntimeError("the tmux client was started without pipes")
        try:
            while data := await stdout.read(_CHUNK):
                for message in self._parser.receive(data):
                    self._take(message)
            self._reason = (await stderr.read()).decode(errors="replace").strip() or self._reason
        finally:
            self._lose()
            await self._reap()
            self.ended.set()

    async def _reap(self) -> None:
        """The client ends by itself; a signal to one that just did makes asyncio lose its exit status (Python 3.11)."""
        try:
            async with asyncio.timeout(_GRACE):
                await self._process.wait()
        except TimeoutError:
            self._transport.close()

    def _take(self, message: Message) -> None:
        match message:
            case Reply(ours=True):
                if self._pending and self._pending[0].take(message):
                    self._pending.popleft()
            case Reply(ok=False) | Exit():
                # A failing opening command says more than the exit that follows it.
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
        """End it from our side: a server that hangs holds our pipe too, and would keep it open after its client."""
        self.lost = True
        self._transport.close()

    async def close(self) -> None:
        """The end of its input detaches the client; the server and its panes stay."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_GRACE):
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
        """Of the server last spoken to. Keep it, to learn after a restart of ours whether the panes are still there."""
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
        # An error of the body goes on as it is; the group would wrap it.
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
        for _ in range(_TRIES):
            try:
                return await self._try_to_connect()
            except ConnectionLostError as error:
                dying = _DYING in error.message
                await asyncio.sleep(_PAUSE)
        if dying:
            # Told to exit, its panes gone, and kept from it for ever by a client that was killed meanwhile (3.3a).
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
            connection.give_up()  # nobody else knows of it, and leaving would wait for its end
            raise
        pid, started = reply.text.split()
        self._note(ServerIdentity(int(pid), int(started)))
        return connection

    async def _start(self) -> _Connection:
        loop = asyncio.get_running_loop()
        try:
            # What create_subprocess_exec does; it keeps the transport to itself, and we may have to close it.
            transport, protocol = await loop.subprocess_exec(
                lambda: SubprocessStreamProtocol(_CHUNK, loop),
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

    def _note(self, identity: ServerIdentity) -> None:
        before, self.identity = self.identity, identity
        if before is not None and before != identity:
            self._on_restart(identity)
