"""Codex in its own terminal interface as a provider: told by its hooks, driven by keys in its pane."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
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
from sm.providers.codex import hooks, limits, options
from sm.providers.codex import rights as mapping
from sm.providers.codex.adapter import CodexInstallation
from sm.providers.codex.evidence import CodexTranscripts
from sm.providers.codex.transcript_events import transcript_events
from sm.providers.codex.tui import launch, threads
from sm.providers.codex.tui.driver import TuiDriver
from sm.providers.codex.tui.input_box import InputBox
from sm.providers.codex.tui.state import TuiStates
from sm.providers.codex.tui.traits import TUI
from sm.providers.environment import client_environment
from sm.providers.write_auto_handoff import WriteAutoHandoff


@dataclass(frozen=True, slots=True)
class CodexTerminal(CodexTranscripts):
    here: CodexInstallation
    hook: str
    """Path of hook.py."""
    command: Callable[[], tuple[str, ...]]
    """The configured executable and its arguments; asked at each launch, since it may have changed."""
    write_auto_handoff: WriteAutoHandoff
    name: str = launch.PROVIDER
    traits: ClientTraits = TUI
    config: limits.ConfigReader = field(default_factory=limits.ConfigReader)
    states: TuiStates = field(default_factory=TuiStates)

    def launch(self, request: LaunchRequest, token: str) -> Launch:
        program, *given = self.command()
        launch.check_arguments(given, "codex.arguments in the configuration")
        launch.check_arguments(request.arguments)
        options.check_model(request.model)
        config, arguments = options.config_directory(request.env), (*given, *request.arguments)
        refused = launch.refuse_disabled(config, Path(request.directory), launch.profile_of(arguments))
        if refused is not None:
            raise refused
        command = launch.HookCommand(self.here.python, self.hook)
        executable = request.command or program
        argv = launch.argv(
            (executable,),
            launch.settings(command, self.here.tools, gate=request.gate, holds=True),
            arguments,
            resume=request.resume,
            model=request.model,
            prompt=request.prompt,
        )
        return Launch(
            argv=argv,
            env=client_environment(request.env, self.here.variables(request.session, token), self.here.bin_directory),
            conversation=request.resume or "",
            config=str(config),
            continues=request.resume or "",
            asked=limits.asked(arguments),
            exit_lines=launch.exit_lines(request.resume or ""),
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
        parsed = hooks.parse(payload)
        self.states.hear(parsed, time.time())  # noqa: TID251  # compared with the times of the client's files
        return hooks.hook_event(parsed, at, pid, holds=True)

    def encode(self, hook: str, reply: HookReply) -> dict[str, object]:
        return hooks.encode(hook, reply)

    def ask_details(self, request: AskRequest) -> AskDetails:
        """A permission alone: questions are asked in its terminal, and nothing lasting is offered to a hook."""
        del request
        return AskDetails()

    def came_back(self, transcript: str, request: AskRequest, since: float) -> bool:
        """Its dialog opens only once the hook has let go."""
        del transcript, request, since
        return False

    def encode_answer(self, request: AskRequest, answer: AskAnswer) -> dict[str, object]:
        del request
        return hooks.answered(answer)

    def decode_status(self, payload: bytes) -> StatusLine:
        del payload
        raise ValueError("Codex has no status line of its own")

    def client_state(self, config: str, pid: int) -> ClientState | None:
        return self.states.client_state(config, pid)

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
        del calls
        if pane is None:
            assert restarts is not None, "only a foreground session has no pane"
            return restarts
        return TuiDriver(InputBox(pane, client_state, background))

    def connection(self, session: ConnectedSession, reports: ClientReports) -> None:
        """Its hooks reach the server."""
        del session, reports

    def auto_handoff(self, transcript: str, directory: str, leaves_out: tuple[str, ...]) -> str:
        return self.write_auto_handoff(transcript_events(Path(transcript)), directory, leaves_out=leaves_out)
