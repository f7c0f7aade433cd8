"""Codex as a provider, through its app-server: everything the engine asks of a client, joined from this package."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path

from sm.core.model.ask import AskAnswer, AskDetails, AskRequest
from sm.core.model.client_traits import ClientTraits
from sm.core.ports.panes import Launch, Pane
from sm.core.ports.provider import (
    ClientCalls,
    ClientReports,
    ClientState,
    ConnectedSession,
    Driver,
    HookEvent,
    HookReply,
    LaunchRequest,
)
from sm.providers.codex import limits, options
from sm.providers.codex.app import asks, launch
from sm.providers.codex.app import pane as pane_program
from sm.providers.codex.app.draft import DraftKeeper
from sm.providers.codex.app.driver import AppDriver
from sm.providers.codex.shared import Codex
from sm.providers.codex.traits import APP
from sm.providers.codex.trust import trust_arguments
from sm.providers.environment import client_environment


@dataclass(frozen=True, slots=True)
class CodexApp(Codex):
    name: str = "codex"
    traits: ClientTraits = APP
    states: dict[int, ClientState] = field(default_factory=dict)
    """What each connected client is doing, by the process of its pane."""

    def launch(self, request: LaunchRequest, token: str) -> Launch:
        program, *given = self.command()
        options.check_arguments(given, "codex.arguments in the configuration")
        options.check_arguments(request.arguments)
        options.check_model(request.model)
        model = options.configured(model=request.model) if request.model else ()
        config = options.config_directory(request.env)
        trust = trust_arguments(config, Path(request.directory))
        settings = (
            *trust,
            *launch.settings_of((*given, *request.arguments)),
            *model,
            *options.tools(self.here.tools),
        )
        place = self.here.place(request.session)
        place.prepare(request.resume or "")
        own = self.here.variables(request.session, token)
        screen = (*trust, *launch.SCREEN, "-C", request.directory)
        executable = request.command or program
        return Launch(
            argv=launch.argv(self.here.python, pane_program.__file__, executable, place, settings, screen),
            program=executable,
            env=client_environment(request.env, own, self.here.bin_directory),
            conversation=request.resume or "",
            config=str(config),
            continues=request.resume or "",
            plugin=True,
            asked=limits.asked((*given, *request.arguments)),
        )

    def decode(self, payload: bytes, at: float, pid: int | None) -> HookEvent:
        del payload, at, pid
        raise ValueError("Codex's app-server sends no hooks")

    def encode(self, hook: str, reply: HookReply) -> dict[str, object]:
        del hook, reply
        return {}

    def ask_details(self, request: AskRequest) -> AskDetails:
        return asks.details(request)

    def came_back(self, transcript: str, request: AskRequest, since: float) -> bool:
        """Its server says at once what is no longer asked."""
        del transcript, request, since
        return False

    def encode_answer(self, request: AskRequest, answer: AskAnswer) -> dict[str, object]:
        del request, answer
        return {}

    def client_state(self, config: str, pid: int) -> ClientState | None:
        del config
        return self.states.get(pid)

    def driver(
        self,
        pane: Pane | None,
        calls: ClientCalls,
        client_state: Callable[[], ClientState | None],
        background: Callable[[], bool],
        restarts: Driver | None = None,
    ) -> Driver:
        del background, restarts
        return AppDriver(calls, client_state, None if pane is None else DraftKeeper(pane))

    def connection(self, session: ConnectedSession, reports: ClientReports) -> Coroutine[None, None, None]:
        from sm.providers.codex.app.connection import AppConnection  # noqa: PLC0415  # its library takes 60 ms to load

        return AppConnection(session, self.here.place(session.id), reports, self.states).run()
