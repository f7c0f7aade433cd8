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
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path

import structlog
import uvicorn

from sm import __version__, hook, watchdog
from sm.api.app import application
from sm.api.connections import ACCEPTED_AT_ONCE, Connection
from sm.api.routes import Backend
from sm.api.security import Guard
from sm.archive.archive import FileArchive
from sm.archive.handoffs.auto_handoff import auto_handoff
from sm.archive.handoffs.documents import FileDocuments
from sm.archive.redaction.redact import OwnTokens
from sm.archive.search.filler import Filler
from sm.archive.terminal.printer import LogPrinter
from sm.archive.throttle import Throttle
from sm.clock import SystemClock
from sm.configuration import Configuration, started
from sm.core.errors import error
from sm.core.ids import token_hash
from sm.core.model.handoff import document_limit
from sm.core.model.history import DAY_S, Retention
from sm.core.ports.panes import PaneError
from sm.core.ports.provider import Provider
from sm.engine.archive_service import Archiving
from sm.engine.feed import Feed
from sm.engine.supervisor import Supervisor
from sm.lock import ServerLock, announce
from sm.log import configure
from sm.paths import TMUX_SOCKET, Home, atomic_write, ensure_token, make_private, open_home
from sm.providers.claude.adapter import Claude, Configured
from sm.providers.claude.launch import Installation
from sm.providers.claude.traits import CLAUDE
from sm.settings import Settings
from sm.sockets import Sockets, open_sockets
from sm.store.database import Database
from sm.store.sessions import SqliteStore, event_data
from sm.tmux.adapter import TmuxPanes
from sm.tmux.client import TmuxClient, TmuxServerSettings
from sm.tmux.names import socket_path
from sm.tmux.panes import Panes
from sm.wire import HealthAnswer

log = structlog.get_logger()
KEEP_ALIVE = 3600
"""Seconds. The client keeps its connection and closes it after 5 s without a hook (2.1.328); so does uvicorn, unless it
is told otherwise, and a hook that is on its way just then would be lost."""
LONGEST_FIRST_LINE = 120
"""Bytes: kernels before 5.1 cut a `#!` line at 127, later ones at 255, and none takes a path with a blank in it."""
INHERITED = ("HOME", "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR")
"""What the tmux server, and with it every pane, gets of our own environment; a session's own comes with its request."""


UTTERANCES = {"claude": "sm.providers.claude.utterances:utterance"}
"""What the process that fills the search index calls for the records of a provider's transcripts."""
SWITCH = 0.0005
"""Seconds a thread that indexes may keep the interpreter from the loop. Beside the indexer a pause came 6.4 ms late at
p99 with Python's own 5 ms, and 3.3 ms with this."""


def serve() -> None:
    """Run the server in this process until it is told to stop."""
    sys.setswitchinterval(SWITCH)
    umask = os.umask(0o077)
    place = open_home(os.environ)
    configure(place, console=sys.stderr is not None and sys.stderr.isatty())
    configuration = started(os.environ, place)
    if configuration.problem:
        log.warning("configuration not used", problem=configuration.problem)
    with ServerLock.acquire(place):
        sockets = open_sockets(place, configuration.base)
        guard = watchdog.start(watchdog.Doors(sockets.loopback, sockets.private_path))
        try:
            asyncio.run(_serve(place, configuration, umask, sockets, guard))
        except ExceptionGroup as group:
            raise _reason(group) from group
        finally:
            guard.end()
            sockets.private_path.unlink(missing_ok=True)


def _reason(problem: Exception) -> Exception:
    """What task groups have wrapped, as a person can do something about it."""
    while isinstance(problem, ExceptionGroup):
        problem = problem.exceptions[0]
    if isinstance(problem, PaneError):
        return error("tmux_unusable", f"tmux does not work: {problem}", "sm doctor looks for the cause")
    return problem


async def _serve(
    place: Home, configuration: Configuration, umask: int, sockets: Sockets, guard: watchdog.Watchdog
) -> None:
    token = ensure_token(place)
    make_private(place.logs)
    link_command(place)
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        database = await stack.enter_async_context(await Database.open(place.database))
        store = SqliteStore(database, clock)
        await store.forget_old_events()
        tmux = await stack.enter_async_context(TmuxClient(tmux_settings(place, configuration.base, umask)))
        feed = Feed(event_data)
        own_tokens = OwnTokens(token_hash(token), lambda: supervisor.tokens)
        supervisor = Supervisor(
            store=store,
            documents=FileDocuments(place, lambda: configuration.everywhere().channels, own_tokens),
            panes=TmuxPanes(Panes(tmux), clock),
            clock=clock,
            providers=providers(place, configuration, sockets, own_tokens),
            policies=configuration,
            changed=feed.publish,
        )
        await stack.enter_async_context(running(supervisor))
        archiving = await stack.enter_async_context(tended(place, configuration, supervisor, store, own_tokens))
        backend = Backend(
            supervisor,
            store,
            feed,
            HealthAnswer(version=__version__, pid=os.getpid(), home=str(place.root)),
            clock.now(),
            archiving,
            LogPrinter(),
            own_tokens,
            problems=lambda: [*configuration.problems(), *supervisor.problems()],
        )
        app = application(backend, token)
        await listen(app, sockets, (feed.close, supervisor.release), place, guard)


@contextlib.asynccontextmanager
async def running(supervisor: Supervisor) -> AsyncIterator[None]:
    """The supervisor with its actors at work; leaving ends them, and the clients go on."""
    async with supervisor.group:
        await supervisor.start()
        yield
        supervisor.stop()


FILLING_BEGINS = 10.0
"""Seconds after its start until a server has the search index filled: until then it takes up the sessions of before."""


@contextlib.asynccontextmanager
async def tended(
    place: Home, configuration: Configuration, supervisor: Supervisor, store: SqliteStore, own_tokens: OwnTokens
) -> AsyncIterator[Archiving]:
    """The archive, tended behind everything else until we leave; what it is at then ends within a moment."""
    stopping = threading.Event()
    filler = Filler(str(place.search), UTTERANCES, time.monotonic, time.monotonic() + FILLING_BEGINS)

    def rules() -> Retention:
        limits = configuration.everywhere().archive
        return Retention(limits.keep_days * DAY_S, limits.max_total, limits.max_log)

    archive = FileArchive(
        home=place,
        rules=rules,
        utterance_readers={name: provider.utterance for name, provider in supervisor.providers.items()},
        is_own_token=own_tokens,
        pause=Throttle(time.monotonic, stopping),
        filler=filler,
        token_hashes=lambda: own_tokens.hashes,
    )
    archiving = Archiving(supervisor, store, archive, supervisor.clock)
    supervisor.spawn(archiving.run())
    try:
        yield archiving
    finally:
        stopping.set()
        filler.close()


async def listen(
    app: Guard, sockets: Sockets, ends: Sequence[Callable[[], None]], place: Home, guard: watchdog.Watchdog
) -> None:
    """Serve until told to stop; then `ends` let go those who would wait on."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        http=Connection,
        timeout_graceful_shutdown=3,
        backlog=ACCEPTED_AT_ONCE,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
    )
    server = _Server(config)

    def stop() -> None:
        server.should_exit = True
        for end in ends:
            end()

    app.stop = stop
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(watchdog.ListenerTrouble())
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


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """How many may wait to be taken is the system's matter, and more than are taken at once."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(watchdog.BACKLOG)


def providers(
    place: Home, configuration: Configuration, sockets: Sockets, own_tokens: OwnTokens
) -> dict[str, Provider]:
    def write_settings(session: str, text: str) -> Path:
        path = place.launch_settings(session)
        atomic_write(path, text.encode())
        return path

    here = Installation(
        python=sys.executable,
        hook=hook.__file__,
        url=sockets.url,
        socket=str(sockets.private_path),
        secrets=(str(place.token), str(place.database)),
    )

    def configured() -> Configured:
        found = configuration.everywhere()
        return Configured((found.claude.command, *found.claude.arguments), found.hooks.transport)

    claude = Claude(
        place=here,
        configured=configured,
        bin_directory=str(place.bin),
        write_settings=write_settings,
        write_account=partial(auto_handoff, limit=document_limit(CLAUDE), is_own_token=own_tokens),
    )
    return {"claude": claude}


def tmux_settings(place: Home, settings: Settings, umask: int) -> TmuxServerSettings:
    environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return TmuxServerSettings(
        socket=socket_path(place.root, TMUX_SOCKET),
        environment=environment,
        umask=umask,
        history_limit=settings.tmux.history_limit,
        ended_command=shlex.join(
            ["env", f"SM_HOME={place.root}", str(place.bin / "sm"), "attach", "--no-start", "--ended"]
        ),
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
