"""Joins the parts into a running server; the only module that knows every one of them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import shlex
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog
import uvicorn

from sm import __version__, hook, watchdog
from sm.api.app import application
from sm.api.routes import Backend
from sm.api.security import Guard
from sm.archive.documents import FileDocuments
from sm.clock import SystemClock
from sm.configuration import Configuration
from sm.core.errors import error
from sm.core.ports import Provider
from sm.engine.feed import Feed
from sm.engine.supervisor import Supervisor
from sm.lock import ServerLock, announce, last_server
from sm.log import configure
from sm.paths import HOOK_SOCKET, TMUX_SOCKET, Home, atomic_write, ensure_token, make_private, open_home
from sm.providers.claude.adapter import Claude
from sm.providers.claude.launch import Place
from sm.settings import Settings, load
from sm.store.database import Database
from sm.store.sessions import SqliteStore, event_data
from sm.tmux.client import ServerSettings, TmuxClient
from sm.tmux.names import socket_path
from sm.tmux.panes import Panes
from sm.tmux.seats import TmuxSeats

log = structlog.get_logger()
PERSONS_UMASK = 0o022
KEEP_ALIVE = 3600
"""Seconds. The client keeps its connection and closes it after 5 s without a hook (2.1.328); so does uvicorn, unless it
is told otherwise, and a hook that is on its way just then would be lost."""
LONGEST_FIRST_LINE = 120
"""Bytes: kernels before 5.1 cut a `#!` line at 127, later ones at 255, and none takes a path with a blank in it."""
INHERITED = ("HOME", "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR")
"""What the tmux server, and with it every pane, gets of our own environment; a session's own comes with its request."""


@dataclass(frozen=True, slots=True)
class Sockets:
    loopback: socket.socket
    private: socket.socket
    """A unix socket in SM_HOME, for hooks that must not depend on a port."""
    private_path: Path

    @property
    def url(self) -> str:
        host, port = self.loopback.getsockname()[:2]
        return f"http://{host}:{port}"


def serve() -> None:
    """Run the server in this process until it is told to stop."""
    umask = os.umask(0o077)
    place = open_home(os.environ)
    settings = load(None, os.environ)
    configure(place, console=sys.stderr.isatty())
    with ServerLock.acquire(place):
        sockets = open_sockets(place, settings)
        guard = watchdog.start(watchdog.Doors(sockets.loopback, sockets.private_path))
        try:
            asyncio.run(_serve(place, settings, umask, sockets, guard))
        finally:
            guard.end()
            sockets.private_path.unlink(missing_ok=True)


async def _serve(place: Home, settings: Settings, umask: int, sockets: Sockets, guard: watchdog.Watchdog) -> None:
    token = ensure_token(place)
    make_private(place.logs)
    link_command(place)
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        database = await stack.enter_async_context(await Database.open(place.database))
        store = SqliteStore(database, clock)
        await store.forget_old_events()
        tmux = await stack.enter_async_context(TmuxClient(tmux_settings(place, settings, umask)))
        feed = Feed(event_data)
        supervisor = Supervisor(
            store=store,
            documents=FileDocuments(place, settings.channels),
            panes=TmuxSeats(Panes(tmux), clock),
            clock=clock,
            providers=providers(place, settings, sockets),
            policies=Configuration(os.environ, settings),
            changed=feed.publish,
        )
        await stack.enter_async_context(running(supervisor))
        health: dict[str, object] = {"version": __version__, "pid": os.getpid(), "home": str(place.root)}
        app = application(Backend(supervisor, store, feed, health, clock.now()), token)
        await listen(app, sockets, (feed.close, supervisor.release), place, guard)


@contextlib.asynccontextmanager
async def running(supervisor: Supervisor) -> AsyncIterator[None]:
    """The supervisor with its actors at work; leaving ends them, and the clients go on."""
    async with supervisor.group:
        await supervisor.start()
        yield
        supervisor.stop()


async def listen(
    app: Guard, sockets: Sockets, ends: Sequence[Callable[[], None]], place: Home, guard: watchdog.Watchdog
) -> None:
    """Serve until told to stop; then `ends` let go those who would wait on."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        http="httptools",
        timeout_graceful_shutdown=3,
        backlog=512,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
    )
    server = uvicorn.Server(config)

    def stop() -> None:
        server.should_exit = True
        for end in ends:
            end()

    app.stop = stop
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(watchdog.ignore_closed_listener)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    for listener in (sockets.loopback, sockets.private):
        listener.listen(watchdog.BACKLOG)
    guard.beat(loop)
    gc.freeze()  # what start-up made stays: looking through it again is a pause of 25 ms
    announce(place, sockets.url, __version__)
    log.info("listening", url=sockets.url)
    # serve() would take the signals for itself, and with them the end of the feeds.
    await server._serve([sockets.loopback, sockets.private])  # noqa: SLF001
    log.info("stopped")


def providers(place: Home, settings: Settings, sockets: Sockets) -> dict[str, Provider]:
    def write_settings(session: str, text: str) -> Path:
        path = place.launch_settings(session)
        atomic_write(path, text.encode())
        return path

    here = Place(
        python=sys.executable,
        hook=hook.__file__,
        url=sockets.url,
        socket=str(sockets.private_path),
        secrets=(str(place.token), str(place.database)),
        messages=str(place.messages),
    )
    claude = Claude(
        place=here,
        command=(settings.claude.command, *settings.claude.arguments),
        transport=settings.hooks.transport,
        bin_directory=str(place.bin),
        write_settings=write_settings,
        assumed_window=settings.context_monitor.context_limit_estimate,
    )
    return {"claude": claude}


def tmux_settings(place: Home, settings: Settings, umask: int) -> ServerSettings:
    environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return ServerSettings(
        socket=socket_path(place.root, TMUX_SOCKET),
        environment=environment,
        umask=umask,
        history_limit=settings.tmux.history_limit,
    )


def link_command(place: Home) -> None:
    """Put `sm`, and nothing else of this installation, into the directory that is first on a session's PATH."""
    make_private(place.bin)
    atomic_write(place.bin / "sm", command_script(sys.executable).encode("utf-8", "surrogateescape"), 0o700)


def command_script(python: str) -> str:
    """`sm` run by this very interpreter. `-I` keeps the agent's PYTHON* variables and its project out of it."""
    line = f"#!{python} -I"
    if len(line) <= LONGEST_FIRST_LINE and " " not in python and python.isprintable():
        return f"{line}\nfrom sm.cli import main\nmain()\n"
    return f"#!/bin/sh\nexec {shlex.quote(python)} -I -c 'from sm.cli import main; main()' \"$@\"\n"


def open_sockets(place: Home, settings: Settings) -> Sockets:
    """Listen where this SM_HOME listened before: running clients know the address from their launch."""
    before = last_server(place)
    port = settings.server.port or (_port_of(before.url) if before else 0)
    loopback = _loopback(port, configured=bool(settings.server.port), known=before is not None)
    private_path = socket_path(place.root, HOOK_SOCKET)
    private_path.unlink(missing_ok=True)
    private = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    private.bind(str(private_path))
    return Sockets(loopback, private, private_path)


def _loopback(port: int, *, configured: bool, known: bool) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port or _free_port()))
    except OSError as problem:
        listener.close()
        why = "or set another server.port" if configured else "running sessions send their hooks there"
        hint = f"end that process ({why})" if known or configured else "start again"
        raise error("port_taken", f"Port {port} is taken by {holder_of(port)}: {problem.strerror}", hint) from problem
    return listener


def _free_port() -> int:
    """A port that nobody has. Bound by its number it stays ours while closed, unlike one the system chose."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def holder_of(port: int) -> str:
    """Who listens on a loopback port, as far as /proc tells: its pid and name."""
    inode = _listening_inode(port)
    if inode is None:
        return "another process"
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and _holds(process, inode):
            return f"process {process.name} ({(process / 'comm').read_text().strip()})"
    return "a process of another user"


def _listening_inode(port: int) -> str | None:
    try:
        lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return None
    wanted = f":{port:04X}"
    return next((row[9] for row in map(str.split, lines) if row[1].endswith(wanted) and row[3] == "0A"), None)


def _holds(process: Path, inode: str) -> bool:
    try:
        return any(str(entry.readlink()) == f"socket:[{inode}]" for entry in (process / "fd").iterdir())
    except OSError:
        return False


def _port_of(url: str) -> int:
    tail = url.rpartition(":")[2]
    return int(tail) if tail.isdigit() else 0
