"""Joins the parts into a running server; the only module that imports every one of them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import re
import shlex
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import structlog
import uvicorn

from sm import __version__, hook, watchdog
from sm.api.connections import MAX_ACCEPTED, Connection
from sm.api.routes import Backend
from sm.api.security import Guard
from sm.archive.archive import FileArchive
from sm.archive.handoffs.auto_handoff import auto_handoff
from sm.archive.handoffs.documents import FileDocuments
from sm.archive.redaction.redact import OwnTokens, redacted
from sm.archive.search.filler import Filler
from sm.archive.terminal.printer import LogPrinter
from sm.archive.throttle import Throttle
from sm.clock import SystemClock
from sm.configuration import Configuration, starting_configuration
from sm.core.errors import error
from sm.core.ids import token_hash
from sm.core.model.handoff import document_limit
from sm.core.model.history import DAY_S, Retention
from sm.core.ports.panes import PaneError
from sm.core.ports.provider import Provider
from sm.engine.actor import Changed
from sm.engine.actor_factory import ActorFactory
from sm.engine.answer_arrival import AnswerArrival
from sm.engine.archive_service import Archiving
from sm.engine.asks import Asks
from sm.engine.attempts import Attempts
from sm.engine.branches import Branches
from sm.engine.budgets import BudgetMonitor
from sm.engine.client_monitor import ClientMonitor
from sm.engine.configuration_monitor import ConfigurationMonitor
from sm.engine.connected_clients import ConnectedClients
from sm.engine.context_reader import ContextReaders
from sm.engine.costs import Costs
from sm.engine.effect_runner import EffectRunner
from sm.engine.engine import Engine, Ports
from sm.engine.external_clients import ExternalClients
from sm.engine.feed import Feed
from sm.engine.foreground import ForegroundClients
from sm.engine.handoffs import Handoffs
from sm.engine.hooks import Hooks
from sm.engine.launch import SessionLauncher
from sm.engine.log_keeper import LogKeeper
from sm.engine.messages import Messages
from sm.engine.notifications import Notifications
from sm.engine.pane_lines import PaneLines
from sm.engine.recovery import Recovery
from sm.engine.reminders import Reminders
from sm.engine.sessions import Sessions
from sm.engine.switch import ClientSwitches
from sm.engine.tasks import Tasks
from sm.engine.team import Team
from sm.engine.termination import Terminations
from sm.engine.unseen_asks import UnseenAsks
from sm.engine.usage_limits import UsageLimits
from sm.lock import ServerLock, announce
from sm.log import configure
from sm.notify.configured import ConfiguredNotifier
from sm.paths import TMUX_SOCKET, SmHome, atomic_write, ensure_token, make_private, open_home
from sm.providers.claude.adapter import Claude, ClientCommand
from sm.providers.claude.launch import Installation
from sm.providers.claude.traits import CLAUDE
from sm.providers.codex.adapter import CodexApp
from sm.providers.codex.app.place import AppPlace
from sm.providers.codex.options import ToolServer
from sm.providers.codex.shared import CodexInstallation
from sm.providers.codex.traits import CODEX
from sm.providers.codex.tui.adapter import CodexTerminal
from sm.settings import CodexSettings, Settings
from sm.sockets import Sockets, open_sockets
from sm.store.database import Database
from sm.store.events import event_data
from sm.store.sessions import SqliteStore
from sm.tmux.adapter import TmuxPanes
from sm.tmux.client import TmuxClient, TmuxServerSettings
from sm.tmux.names import socket_path
from sm.tmux.panes import PaneOperations
from sm.web.access.devices import Devices
from sm.web.routes import web_application
from sm.wire import HealthAnswer

log = structlog.get_logger()
KEEP_ALIVE_S = 3600
"""The client keeps its connection and closes it after 5 s without a hook (2.1.328); uvicorn's default is the same, and
would lose a hook that is sent at that moment."""
MAX_SHEBANG_BYTES = 120
"""Kernels before 5.1 cut a `#!` line at 127 bytes, later ones at 255, and none takes a path with a blank in it."""
INHERITED_VARIABLES = ("HOME", "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR")
"""Variables of our own that the tmux server, and with it every pane, inherits; a session's come with its request."""


UTTERANCE_READERS = {
    "claude": "sm.providers.claude.utterances:utterance",
    **dict.fromkeys(("codex", "codex-tui"), "sm.providers.codex.utterances:utterance"),
}
"""By provider: the function that the process that fills the search index calls for a transcript's records."""
SWITCH_INTERVAL_S = 0.0005
"""How long another thread may keep the interpreter from the loop. While indexing, a timer was 6.4 ms late at p99 with
Python's default of 5 ms, and 3.3 ms with this."""


def serve() -> None:
    """Run the server in this process until a signal or request stops it."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    umask = os.umask(0o077)
    home = open_home(os.environ)
    configure(home, console=sys.stderr is not None and sys.stderr.isatty())
    configuration = starting_configuration(os.environ, home)
    if configuration.problem:
        log.warning("configuration not used", problem=configuration.problem)
    with ServerLock.acquire(home):
        sockets = open_sockets(home, configuration.base)
        guard = watchdog.start(watchdog.Listeners(sockets.loopback, sockets.private_path))
        try:
            asyncio.run(_serve(home, configuration, umask, sockets, guard))
        except ExceptionGroup as group:
            raise _unwrapped(group) from group
        finally:
            guard.end()
            sockets.private_path.unlink(missing_ok=True)


def _unwrapped(problem: Exception) -> Exception:
    """Unwrap the exception of task groups; a tmux error becomes one that says what to do."""
    while isinstance(problem, ExceptionGroup):
        problem = problem.exceptions[0]
    if isinstance(problem, PaneError):
        return error("tmux_unusable", f"tmux does not work: {problem}", "sm doctor looks for the cause")
    return problem


async def _serve(
    home: SmHome, configuration: Configuration, umask: int, sockets: Sockets, guard: watchdog.Watchdog
) -> None:
    token = ensure_token(home)
    make_private(home.logs)
    link_command(home)
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        database = await stack.enter_async_context(await Database.open(home.database))
        store = SqliteStore(database, clock)
        await store.forget_old_events()
        tmux = await stack.enter_async_context(TmuxClient(tmux_settings(home, configuration.base, umask)))
        feed = Feed(event_data)
        own_tokens = OwnTokens(token_hash(token), lambda: engine.sessions.tokens)
        panes = TmuxPanes(PaneOperations(tmux), clock)
        devices = await Devices.open(database, clock, str(home.root), partial(_hosts, configuration))
        ports = Ports(
            store=store,
            documents=FileDocuments(home, lambda: configuration.everywhere().channels, own_tokens),
            panes=panes,
            clock=clock,
            providers=providers(home, configuration, sockets, own_tokens),
            policies=configuration,
            notifier=ConfiguredNotifier(
                lambda: configuration.everywhere().notify, os.environ, panes.terminals, devices.channels
            ),
            redact=partial(redacted, is_own_token=own_tokens),
        )
        engine = engine_on(ports, feed.publish)
        await stack.enter_async_context(engine_running(engine))
        archiving = await stack.enter_async_context(archive_running(home, configuration, engine, store, own_tokens))
        backend = Backend(
            engine,
            store,
            feed,
            HealthAnswer(version=__version__, pid=os.getpid(), home=str(home.root)),
            clock.now(),
            archiving,
            LogPrinter(),
            own_tokens,
            problems=lambda: [*configuration.problems(), *engine.problems()],
            environment=_sendable(os.environ),
        )
        app = web_application(backend, token, devices)
        await listen(app, sockets, (feed.close, engine.sessions.release, engine.asks.release), home, guard)


def _sendable(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what a client can be started with: text in UTF-8."""
    return {name: value for name, value in environ.items() if re.search("[\ud800-\udfff]", name + value) is None}


def _hosts(configuration: Configuration) -> tuple[str, ...]:
    return configuration.everywhere().server.hosts


def engine_on(ports: Ports, publish: Changed) -> Engine:
    """Return the engine on these ports; `publish` is called with every committed event."""
    store, documents, panes, clock = ports.store, ports.documents, ports.panes, ports.clock
    providers, policies, tasks = ports.providers, ports.policies, Tasks()
    terminations = Terminations(panes, tasks.spawn)
    sessions = Sessions(store, clock, panes, terminations)
    reminders, usage_limits = Reminders(store, clock, sessions), UsageLimits(sessions, clock, providers, policies)
    notifications = Notifications(store, clock, sessions, panes, ports.notifier, ports.redact, tasks.spawn)
    messages = Messages(store, documents, clock, policies, providers, sessions, reminders, tasks.spawn)
    handoffs = Handoffs(store, documents, clock, policies, providers, sessions, tasks.spawn)
    arrival = AnswerArrival(sessions, store, clock, providers, tasks.spawn)
    unseen, readers = UnseenAsks(panes, clock), ContextReaders(clock, providers, tasks.spawn)
    asks = Asks(sessions, store, documents, clock, policies, providers, tasks.spawn, arrival, unseen)
    switches = ClientSwitches(sessions, store, panes, clock, providers, policies, tasks.spawn)
    beside = messages, terminations.begin, policies, handoffs.note, readers, switches.begin
    runner = EffectRunner(documents, clock, providers, tasks.spawn, *beside)
    costs = Costs(sessions, store, providers, policies.prices)
    budgets = BudgetMonitor(sessions, costs, clock, policies.budgets)
    hooks = Hooks(sessions, clock, providers, readers, asks)
    connected = ConnectedClients(sessions, clock, providers, hooks, asks, readers, tasks.spawn)
    following = messages, reminders, notifications, asks, usage_limits, budgets, connected
    actor_factory = ActorFactory(
        sessions, store, documents, panes, clock, providers, runner, *following, tasks.spawn, publish
    )
    switches.launcher = launcher = SessionLauncher(
        sessions, actor_factory, messages, handoffs, terminations, store, documents, panes, clock, providers, policies
    )
    external_clients = ExternalClients(
        sessions, hooks, actor_factory, handoffs, usage_limits, store, documents, clock, providers, policies
    )
    configuration_monitor = ConfigurationMonitor(sessions, clock, providers, policies, readers)
    return Engine(
        ports=ports,
        tasks=tasks,
        sessions=sessions,
        hooks=hooks,
        asks=asks,
        handoffs=handoffs,
        switches=switches,
        messages=messages,
        reminders=reminders,
        notifications=notifications,
        costs=costs,
        launcher=launcher,
        attempts=Attempts(sessions, launcher, messages),
        team=Team(
            sessions, launcher, messages, reminders, notifications, terminations, documents, clock, providers, policies
        ),
        foreground=ForegroundClients(sessions, launcher, documents, clock, providers),
        external_clients=external_clients,
        recovery=Recovery(store, panes, clock, providers, actor_factory, terminations, configuration_monitor, switches),
        client_monitor=ClientMonitor(sessions, panes, clock, providers),
        configuration_monitor=configuration_monitor,
        log_keeper=LogKeeper(panes, documents, clock, sessions),
        pane_lines=PaneLines(panes, sessions),
        usage_limits=usage_limits,
        budgets=budgets,
        connected=connected,
        branches=Branches(ports.documents, clock, tasks.spawn),
    )


@contextlib.asynccontextmanager
async def engine_running(engine: Engine) -> AsyncIterator[None]:
    """Run the engine; leaving ends its actors, and the clients continue."""
    async with engine.tasks.group:
        await engine.start()
        yield
        engine.stop()


INDEXING_DELAY_S = 10.0
"""After its start a server waits so long with the search index: it restores its sessions first."""


@contextlib.asynccontextmanager
async def archive_running(
    home: SmHome, configuration: Configuration, engine: Engine, store: SqliteStore, own_tokens: OwnTokens
) -> AsyncIterator[Archiving]:
    """Run the archive's maintenance in the background; on leaving its current work stops within a moment."""
    stopping = threading.Event()
    filler = Filler(str(home.search), UTTERANCE_READERS, time.monotonic, time.monotonic() + INDEXING_DELAY_S)

    def rules() -> Retention:
        limits = configuration.everywhere().archive
        return Retention(limits.keep_days * DAY_S, limits.max_total, limits.max_log)

    archive = FileArchive(
        home=home,
        rules=rules,
        utterance_readers={name: provider.utterance for name, provider in engine.ports.providers.items()},
        is_own_token=own_tokens,
        pause=Throttle(time.monotonic, stopping),
        filler=filler,
        token_hashes=lambda: own_tokens.hashes,
    )
    archiving = Archiving(engine.sessions, store, archive, engine.ports.clock)
    engine.tasks.spawn(archiving.run())
    try:
        yield archiving
    finally:
        stopping.set()
        filler.close()


async def listen(
    app: Guard, sockets: Sockets, ends: Sequence[Callable[[], None]], home: SmHome, guard: watchdog.Watchdog
) -> None:
    """Serve until stopped; then each of `ends` releases requests that would keep waiting."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        http=Connection,
        timeout_graceful_shutdown=3,
        backlog=MAX_ACCEPTED,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
    )
    server = _Server(config)

    def stop() -> None:
        server.should_exit = True
        for end in ends:
            end()

    app.stop = stop
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(watchdog.ListenerErrorHandler())
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    for listener in (sockets.loopback, sockets.private):
        listener.listen(watchdog.BACKLOG)
    guard.send_heartbeat(loop)
    gc.freeze()  # objects of start-up stay: collecting them again is a pause of 25 ms
    announce(home, sockets.url, __version__)
    log.info("listening", url=sockets.url)
    # serve() would handle the signals itself, without ending the feeds.
    await server._serve([sockets.loopback, sockets.private])  # noqa: SLF001
    log.info("stopped")


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen again with a backlog larger than the number of connections that uvicorn accepts at once."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(watchdog.BACKLOG)


def providers(
    home: SmHome, configuration: Configuration, sockets: Sockets, own_tokens: OwnTokens
) -> dict[str, Provider]:
    def write_settings(session: str, text: str) -> Path:
        path = home.launch_settings(session)
        atomic_write(path, text.encode())
        return path

    here = Installation(
        python=sys.executable,
        hook=hook.__file__,
        url=sockets.url,
        socket=str(sockets.private_path),
        secrets=(str(home.token), str(home.database), str(home.push_key)),
        mod=str(home.plugin_copy(__version__)),
    )

    def configured() -> ClientCommand:
        found = configuration.everywhere()
        return ClientCommand(
            (found.claude.command, *found.claude.arguments), found.hooks.transport, found.claude.driver
        )

    claude = Claude(
        place=here,
        configured=configured,
        bin_directory=str(home.bin),
        write_settings=write_settings,
        write_auto_handoff=partial(auto_handoff, limit=document_limit(CLAUDE), is_own_token=own_tokens),
    )
    codex = CodexInstallation(
        python=sys.executable,
        url=sockets.url,
        server_socket=str(sockets.private_path),
        bin_directory=str(home.bin),
        tools=ToolServer(sys.executable, ("-I", "-m", "sm.agent_tools")),
        place=partial(_codex_place, home),
        hook=hook.__file__,
    )

    def codex_command() -> tuple[str, ...]:
        return _command(configuration.everywhere().codex)

    document = partial(auto_handoff, limit=document_limit(CODEX), is_own_token=own_tokens)
    others: tuple[Provider, ...] = (
        CodexApp(codex, codex_command, document),
        CodexTerminal(codex, codex_command, document),
    )
    return {provider.name: provider for provider in (claude, *others)}


def _command(settings: CodexSettings) -> tuple[str, ...]:
    return settings.command, *settings.arguments


def _codex_place(home: SmHome, session: str) -> AppPlace:
    settings = home.launch_settings(session)
    socket = socket_path(home.root, f"codex-{session}.sock")
    return AppPlace(socket, settings.with_suffix(".thread"), settings.with_suffix(".log"))


def tmux_settings(home: SmHome, settings: Settings, umask: int) -> TmuxServerSettings:
    environment = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
    return TmuxServerSettings(
        socket=socket_path(home.root, TMUX_SOCKET),
        environment=environment,
        umask=umask,
        history_limit=settings.tmux.history_limit,
        ended_command=shlex.join(
            ["env", f"SM_HOME={home.root}", str(home.bin / "sm"), "attach", "--no-start", "--ended"]
        ),
    )


def link_command(home: SmHome) -> None:
    """Write `sm`, and nothing else of this installation, into the directory that is first on a session's PATH."""
    make_private(home.bin)
    atomic_write(home.bin / "sm", command_script(sys.executable).encode("utf-8", "surrogateescape"), 0o700)


def command_script(python: str) -> str:
    """Return a script that runs `sm` with this interpreter; `-I` ignores PYTHON* variables and the project."""
    line = f"#!{python} -I"
    if len(line) <= MAX_SHEBANG_BYTES and " " not in python and python.isprintable():
        return f"{line}\nfrom sm.cli import main\nmain()\n"
    return f"#!/bin/sh\nexec {shlex.quote(python)} -I -c 'from sm.cli import main; main()' \"$@\"\n"
