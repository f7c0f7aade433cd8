"""Codex in its own terminal interface as a provider: told by its hooks, driven by keys in its pane."""

from __future__ import annotations

import time
from collections.abc import Callable
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
from sm.providers.codex import hooks, limits, options
from sm.providers.codex.shared import Codex
from sm.providers.codex.tui import launch
from sm.providers.codex.tui.driver import TuiDriver
from sm.providers.codex.tui.input_box import InputBox
from sm.providers.codex.tui.state import TuiStates
from sm.providers.codex.tui.traits import TUI
from sm.providers.environment import client_environment


@dataclass(frozen=True, slots=True)
class CodexTerminal(Codex):
    name: str = launch.PROVIDER
    traits: ClientTraits = TUI
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
        command = launch.HookCommand(self.here.python, self.here.hook)
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

    def client_state(self, config: str, pid: int) -> ClientState | None:
        return self.states.client_state(config, pid)

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
