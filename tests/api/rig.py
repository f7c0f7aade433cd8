"""The server's whole inside on fake panes: real routes, engine, database and documents; no tmux, no client."""

import asyncio
import contextlib
import json
import os
import socket
from dataclasses import dataclass, field, replace
from functools import partial

import httpx2
import uvicorn

from sm import hook
from sm.api.connections import Connection
from sm.api.routes import Backend
from sm.archive.archive import FileArchive
from sm.archive.handoffs.auto_handoff import auto_handoff
from sm.archive.handoffs.documents import FileDocuments
from sm.archive.redaction.redact import OwnTokens
from sm.archive.terminal.printer import LogPrinter
from sm.bootstrap import engine_on, engine_running
from sm.configuration import Configuration
from sm.core.ids import token_hash
from sm.core.model.handoff import document_limit
from sm.core.model.history import Retention
from sm.engine.archive_service import Archiving
from sm.engine.engine import Engine, Ports
from sm.engine.feed import Feed
from sm.paths import SmHome, atomic_write, open_home
from sm.providers.claude.adapter import Claude, ClientCommand
from sm.providers.claude.launch import Installation
from sm.providers.claude.traits import CLAUDE
from sm.providers.codex.adapter import CodexApp
from sm.providers.codex.app.place import AppPlace
from sm.providers.codex.options import ToolServer
from sm.providers.codex.shared import CodexInstallation
from sm.settings import Settings
from sm.store.database import Database
from sm.store.events import event_data
from sm.store.sessions import SqliteStore
from sm.web.access.devices import Devices
from sm.web.routes import web_application
from sm.wire import HealthAnswer
from tests.fakes.clock import FakeClock
from tests.fakes.panes import FakePanes

USER = "the-user-token"
JSON = {"Content-Type": "application/json"}
HEALTH = {"version": "0", "pid": 1, "home": "/home"}


@dataclass
class House:
    home: SmHome
    engine: Engine
    app: object
    feed: Feed
    clock: FakeClock
    archiving: Archiving
    stopped: list
    devices: Devices
    tokens: dict = field(default_factory=dict)
    """Token by session id."""

    @contextlib.asynccontextmanager
    async def client(self, peer=("127.0.0.1", 123), **headers):
        transport = httpx2.ASGITransport(app=self.app, raise_app_exceptions=False, client=peer)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:9", headers=headers) as client:
            yield client

    async def call(self, method, path, token=USER, body=None, peer=("127.0.0.1", 123), **headers):
        """Status and decoded body of one request; a body given as bytes goes as it is."""
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        kind = JSON if content is not None else {}
        async with self.client(peer) as client:
            answer = await client.request(method, path, content=content, headers={**bearer, **kind, **headers})
        return answer.status_code, answer.json() if answer.content else None

    async def new(self, name, parent=None, directory=None, **more):
        """A session with its token, as a launch leaves it."""
        before = set(self.engine.sessions.tokens)
        body = {"dir": str(directory or self.home.root.parent), "name": name, "env": dict(os.environ), **more}
        status, view = await self.call("POST", "/sessions", body=body)
        assert status == 201, view
        self.tokens[view["id"]] = self.launched[view["id"]]
        assert set(self.engine.sessions.tokens) > before
        if parent is not None:
            await self.alter(view["id"], parent=parent)
        return view["id"]

    async def alter(self, session, **changes):
        """Change a session's state under its actor, between two of its events."""
        actor = self.engine.sessions.actors[session]
        while not actor.inbox._getters:  # it is still committing one, and would write over the change
            await asyncio.sleep(0)
        actor.session = replace(actor.session, **changes)

    @property
    def launched(self):
        providers = self.engine.ports.providers
        return {**providers["claude"].launched, **providers["codex"].launched}

    @contextlib.asynccontextmanager
    async def listening(self, port=0):
        """The same on a real socket: yields the port, a free one if none is given."""
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            config = uvicorn.Config(
                self.app, log_config=None, lifespan="off", timeout_graceful_shutdown=1, http=Connection
            )
            server = uvicorn.Server(config)
            listener.listen(16)
            task = asyncio.create_task(server._serve([listener]))
            try:
                while not server.started:
                    await asyncio.sleep(0.005)
                yield listener.getsockname()[1]
            finally:
                server.should_exit = True
                self.feed.close()
                await task
                self.feed.closed = False  # it may listen again

    def hook(self, name, **members):
        return json.dumps({"hook_event_name": name, **members}).encode()

    def conversation(self, session):
        return self.engine.sessions.actors[session].session.conversation.id


@dataclass(frozen=True)
class RememberingClaude(Claude):
    """The real adapter, which also remembers the tokens that a client would get."""

    launched: dict = field(default_factory=dict)

    def launch(self, request, token):
        self.launched[request.session] = token
        return Claude.launch(self, request, token)


@dataclass(frozen=True)
class RememberingCodex(CodexApp):
    """The same; its client never answers."""

    launched: dict = field(default_factory=dict)

    def launch(self, request, token):
        self.launched[request.session] = token
        return CodexApp.launch(self, request, token)

    def connection(self, session, reports):
        return None


def remembering_codex(home, write_auto_handoff):
    def place(session):
        settings = home.launch_settings(session)
        return AppPlace(settings.with_suffix(".sock"), settings.with_suffix(".thread"), settings.with_suffix(".log"))

    here = CodexInstallation(
        "python", "http://127.0.0.1:9", "s", str(home.bin), ToolServer("python", ()), place, "hook.py"
    )
    return RememberingCodex(here, lambda: ("sh",), write_auto_handoff)


@contextlib.asynccontextmanager
async def house(root, hosts=(), **more):
    """`hosts`: as in server.hosts, read at each request; `more`: further ports."""
    home = open_home({"SM_HOME": str(root / "state")})
    (root / "config.toml").touch()
    place = Installation(python="python", hook=hook.__file__, url="http://127.0.0.1:9", socket="s", secrets=())

    def write_settings(session, text):
        atomic_write(home.launch_settings(session), text.encode())
        return home.launch_settings(session)

    async with await Database.open(home.database) as database:
        clock = FakeClock()
        store = SqliteStore(database, clock)
        feed = Feed(event_data)
        configured = ClientCommand(("sh",), "http")
        write_auto_handoff = partial(auto_handoff, limit=document_limit(CLAUDE))
        claude = RememberingClaude(place, lambda: configured, str(home.bin), write_settings, write_auto_handoff)
        ports = Ports(
            store=store,
            documents=FileDocuments(home, dict),
            panes=FakePanes(),
            clock=clock,
            providers={"claude": claude, "codex": remembering_codex(home, write_auto_handoff)},
            policies=Configuration({"SM_CONFIG": str(root / "config.toml"), "HOME": str(root)}, Settings()),
            **more,
        )
        engine = engine_on(ports, feed.publish)
        async with engine_running(engine):
            stopped = []
            own_tokens = OwnTokens(token_hash(USER), lambda: engine.sessions.tokens)
            words, kept = {"claude": claude.utterance}, Retention(0, 0, 1 << 20)
            archive = FileArchive(home, lambda: kept, words, own_tokens, lambda: True)
            archiving = Archiving(engine.sessions, store, archive, clock)
            health = HealthAnswer(**HEALTH)
            found = Backend(engine, store, feed, health, clock.now(), archiving, LogPrinter(), own_tokens)
            devices = await Devices.open(database, clock, str(home.root), lambda: tuple(hosts))
            app = web_application(found, USER, devices)
            app.stop = lambda: stopped.append(True)
            with contextlib.closing(archive.index):
                yield House(home, engine, app, feed, clock, archiving, stopped, devices)
