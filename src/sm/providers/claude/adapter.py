"""Claude Code as a provider: everything the engine asks of a client, joined from this package's modules."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sm import __version__
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
from sm.paths import plugin_directory
from sm.providers.claude import (
    asks,
    hooks,
    installed,
    launch,
    limits,
    permission_mode,
    state,
    status_line,
    tool_results,
)
from sm.providers.claude import rights as mapping
from sm.providers.claude.evidence import ClaudeTranscripts
from sm.providers.claude.keys.driver import KeysDriver
from sm.providers.claude.mod.driver import NO_KEYS, NO_PANE, ModDriver, NoKeys
from sm.providers.claude.mod.folder import is_installed, write_folder
from sm.providers.claude.traits import CLAUDE
from sm.providers.claude.transcript_events import transcript_events
from sm.providers.environment import DEFAULT_PATH
from sm.providers.write_auto_handoff import WriteAutoHandoff

WriteSettings = Callable[[str, str], Path]
"""(session, JSON text) → the 0600 file it was written to."""


@dataclass(frozen=True, slots=True)
class ClientCommand:
    """How the user wants the client to be started."""

    command: tuple[str, ...]
    """The client's executable, which a request may replace, and what comes before every other argument."""
    transport: str
    """`http` or `command`: how hooks reach the server."""
    driver: str = "keys"
    """`auto` to start the client with the plugin that drives it from inside, `mod` to press no key in its place."""


@dataclass(frozen=True, slots=True)
class Claude(ClaudeTranscripts):
    place: launch.Installation
    configured: Callable[[], ClientCommand]
    """Asked at each launch: it may have changed."""
    bin_directory: str
    write_settings: WriteSettings
    write_auto_handoff: WriteAutoHandoff
    name: str = "claude"
    traits: ClientTraits = CLAUDE
    settings: limits.SettingsReader = field(default_factory=limits.SettingsReader)

    def launch(self, request: LaunchRequest, token: str) -> Launch:
        """Return how to start the client; SmError if the user's own settings keep it from working."""
        if request.again:
            request = replace(request, arguments=launch.without_resuming(request.arguments))
        configured = self.configured()
        launch.check_arguments(configured.command[1:], launch.CONFIGURED)
        launch.check_arguments(request.arguments, foreground=request.foreground)
        launch.check_model(request.model)
        config = launch.config_directory(request.env)
        policy = launch.hook_policy(config, Path(request.directory), self.place.url)
        disabled = launch.refuse_disabled(policy)
        if disabled is not None:
            raise disabled
        command_hooks = configured.transport == "command" or policy.http_refused_by is not None
        with_plugin = configured.driver != "keys"
        program = request.command or configured.command[0]
        too_old = installed.too_old(program, request.env.get("PATH", DEFAULT_PATH)) if with_plugin else ""
        plugin = self._plugin(config, request.directory) if with_plugin and not too_old else ""
        if request.headless and not plugin:
            raise launch.needs_plugin(too_old)
        content = launch.settings(
            self.place,
            command_hooks=command_hooks,
            session=request.session,
            readable=tuple(directory for directory in (request.messages, request.documents) if directory),
            gate=request.gate,
            every_tool=not plugin or request.counted,
        )
        path = self.write_settings(request.session, json.dumps(content, indent=1))
        ours = ("--settings", str(path), *(("--plugin-dir", plugin) if plugin else ()))
        conversation = "" if launch.resumes(request.arguments) else request.resume or str(uuid.uuid4())
        own = self._own(request.session, token, socket=command_hooks or bool(plugin))
        own |= {"SM_DRIVER": "mod"} if plugin else {}
        env = launch.environment(request.env, own, self.bin_directory, foreground=request.foreground)
        continues = request.resume or launch.resumed(request.arguments, config, request.directory)
        program_arguments = launch.without_bypass(configured.command[1:], request.arguments)
        given = (*program_arguments, *request.arguments)
        return Launch(
            argv=_argv((program, *program_arguments), request, ours, conversation, path.with_suffix(".stdin")),
            program=program,
            env=env,
            conversation=conversation,
            config=str(config),
            continues=continues,
            exit_lines=launch.exit_lines(conversation),
            asked=limits.asked(env, given),
            mode=permission_mode.at_start(given, self.found_transcript(str(config), continues) if continues else None),
            plugin=bool(plugin),
            no_plugin=too_old,
        )

    def _plugin(self, config: Path, directory: str) -> str:
        files = limits.settings_files(config, Path(directory))
        skills = any(is_installed(limits.read_settings(path)) for path in files)
        folder = Path(f"{self.place.mod}-skills" if skills else self.place.mod)
        return str(write_folder(plugin_directory(), folder, __version__, skills=skills))

    def _own(self, session: str, token: str, *, socket: bool) -> dict[str, str]:
        own = {"CLAUDE_SESSION_MANAGER_ID": session, "SM_SESSION_TOKEN": token, "SM_URL": self.place.url}
        return {**own, "SM_SOCKET": f"unix:{self.place.socket}"} if socket else own

    def configuration(self, env: Mapping[str, str]) -> str:
        return str(launch.config_directory(env))

    def configuration_of(self, transcript: str) -> str:
        return str(launch.config_directory_of(Path(transcript)))

    def decode(self, payload: bytes, at: float, pid: int | None) -> HookEvent:
        return hooks.decode(payload, at, pid)

    def encode(self, hook: str, reply: HookReply) -> dict[str, object]:
        return hooks.encode(hook, reply)

    def ask_details(self, request: AskRequest) -> AskDetails:
        return asks.details(request)

    def came_back(self, transcript: str, request: AskRequest, since: float) -> bool:
        return tool_results.came_back(Path(transcript), request, since)

    def encode_answer(self, request: AskRequest, answer: AskAnswer) -> dict[str, object]:
        return asks.answered(request, answer)

    def decode_status(self, payload: bytes) -> StatusLine:
        return status_line.decode(payload)

    def client_state(self, config: str, pid: int) -> ClientState | None:
        return state.client_state(config, pid)

    def running(self, config: str, conversation: str) -> RunningClient | None:
        return state.running(Path(config), conversation)

    def driver(
        self,
        pane: Pane | None,
        calls: ClientCalls,
        client_state: Callable[[], ClientState | None],
        background: Callable[[], bool],
        restarts: Driver | None = None,
    ) -> Driver:
        if pane is None:
            keys: Driver = restarts or NoKeys(NO_PANE)
        else:
            only_plugin = self.configured().driver == "mod"
            keys = NoKeys(NO_KEYS) if only_plugin else KeysDriver(pane, client_state, background)
        return ModDriver(calls, keys, client_state, background)

    def connection(self, session: ConnectedSession, reports: ClientReports) -> None:
        """Its plugin asks the server, and its hooks reach it."""
        del session, reports

    def limits(self, config: str, directory: str, asked: tuple[tuple[str, str], ...]) -> ClientLimits:
        return self.settings.of(Path(config), Path(directory), asked)

    def asked(self, env: Mapping[str, str], arguments: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        return limits.asked(env, arguments)

    def child_arguments(self, arguments: tuple[str, ...], mode: str) -> tuple[str, ...]:
        return launch.child_arguments(arguments, mode)

    def rights(self, mode: str) -> Rights:
        return mapping.of_mode(mode)

    def arguments_for(self, rights: Rights, directory: str) -> tuple[str, ...]:
        del directory
        return mapping.arguments(rights)

    def restrictions(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        return mapping.restrictions(arguments)

    def auto_handoff(self, transcript: str, directory: str, leaves_out: tuple[str, ...]) -> str:
        return self.write_auto_handoff(transcript_events(Path(transcript)), directory, leaves_out=leaves_out)


def _argv(
    command: tuple[str, ...], request: LaunchRequest, ours: tuple[str, ...], conversation: str, pipe: Path
) -> tuple[str, ...]:
    identity = ("--resume" if request.resume else "--session-id", conversation) if conversation else ()
    # Of several prompts the client takes the first; behind an option with any number of values none is seen.
    prompt = (request.prompt,) if request.prompt else ()
    model = ("--model", request.model) if request.model else ()
    argv = (*command, *ours, *identity, *prompt, *model, *request.arguments)
    return launch.headless(argv, pipe) if request.headless else argv
