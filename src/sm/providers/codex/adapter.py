"""Codex as a provider, through its app-server: everything the engine asks of a client, joined from this package."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sm.core.model.ask import AskAnswer, AskDetails, AskRequest
from sm.core.model.capacity import ClientLimits
from sm.core.model.client_traits import ClientTraits
from sm.core.model.rights import Rights
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
    RunningClient,
    StatusLine,
)
from sm.providers.codex import limits, options
from sm.providers.codex import rights as mapping
from sm.providers.codex.app import asks, launch
from sm.providers.codex.app import pane as pane_program
from sm.providers.codex.app.draft import DraftKeeper
from sm.providers.codex.app.driver import AppDriver
from sm.providers.codex.app.place import AppPlace
from sm.providers.codex.evidence import CodexTranscripts
from sm.providers.codex.traits import APP
from sm.providers.codex.transcript_events import transcript_events
from sm.providers.codex.trust import trust_arguments
from sm.providers.codex.tui import threads
from sm.providers.environment import client_environment
from sm.providers.write_auto_handoff import WriteAutoHandoff


@dataclass(frozen=True, slots=True)
class CodexInstallation:
    """What a launch needs to know of this installation."""

    python: str
    url: str
    server_socket: str
    """The unix socket of `sm`'s own server."""
    bin_directory: str
    tools: options.ToolServer
    place: Callable[[str], AppPlace]
    """By session."""

    def variables(self, session: str, token: str) -> dict[str, str]:
        """By which the client's hooks and our tools reach the server as that session."""
        return {
            "CLAUDE_SESSION_MANAGER_ID": session,
            "SM_SESSION_TOKEN": token,
            "SM_URL": self.url,
            "SM_SOCKET": f"unix:{self.server_socket}",
        }


@dataclass(frozen=True, slots=True)
class CodexApp(CodexTranscripts):
    here: CodexInstallation
    command: Callable[[], tuple[str, ...]]
    """The configured executable and its arguments; asked at each launch, since it may have changed."""
    write_auto_handoff: WriteAutoHandoff
    name: str = "codex"
    traits: ClientTraits = APP
    config: limits.ConfigReader = field(default_factory=limits.ConfigReader)
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

    def configuration(self, env: Mapping[str, str]) -> str:
        return str(options.config_directory(env))

    def configuration_of(self, transcript: str) -> str:
        return str(options.config_directory_of(Path(transcript)))

    def child_arguments(self, arguments: tuple[str, ...], mode: str) -> tuple[str, ...]:
        return options.child_arguments(arguments, mode)

    def rights(self, mode: str) -> Rights:
        return mapping.of_mode(mode)

    def arguments_for(self, rights: Rights, directory: str) -> tuple[str, ...]:
        return mapping.arguments(rights, directory)

    def restrictions(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        return mapping.restrictions(arguments)

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

    def decode_status(self, payload: bytes) -> StatusLine:
        del payload
        raise ValueError("Codex has no status line of its own")

    def client_state(self, config: str, pid: int) -> ClientState | None:
        del config
        return self.states.get(pid)

    def running(self, config: str, conversation: str) -> RunningClient | None:
        return threads.running(Path(config), conversation)

    def asked(self, env: Mapping[str, str], arguments: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        del env
        return limits.asked(arguments)

    def limits(self, config: str, directory: str, asked: tuple[tuple[str, str], ...]) -> ClientLimits:
        del directory
        return self.config.of(Path(config), asked)

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

    def auto_handoff(self, transcript: str, directory: str, leaves_out: tuple[str, ...]) -> str:
        return self.write_auto_handoff(transcript_events(Path(transcript)), directory, leaves_out=leaves_out)
