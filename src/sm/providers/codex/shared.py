"""What is the same of Codex however it is driven: its configuration, its rights, what its rollouts show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sm.core.model.capacity import ClientLimits
from sm.core.model.rights import Rights
from sm.core.ports.provider import RunningClient, StatusLine
from sm.providers.codex import limits, options
from sm.providers.codex import rights as mapping
from sm.providers.codex.app.place import AppPlace
from sm.providers.codex.evidence import CodexTranscripts
from sm.providers.codex.transcript_events import transcript_events
from sm.providers.codex.tui import threads
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
    hook: str
    """Path of hook.py."""

    def variables(self, session: str, token: str) -> dict[str, str]:
        """By which the client's hooks and our tools reach the server as that session."""
        return {
            "CLAUDE_SESSION_MANAGER_ID": session,
            "SM_SESSION_TOKEN": token,
            "SM_URL": self.url,
            "SM_SOCKET": f"unix:{self.server_socket}",
        }


@dataclass(frozen=True, slots=True)
class Codex(CodexTranscripts):
    here: CodexInstallation
    command: Callable[[], tuple[str, ...]]
    """The configured executable and its arguments; asked at each launch, since it may have changed."""
    write_auto_handoff: WriteAutoHandoff
    config: limits.ConfigReader = field(default_factory=limits.ConfigReader)

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

    def decode_status(self, payload: bytes) -> StatusLine:
        del payload
        raise ValueError("Codex has no status line of its own")

    def running(self, config: str, conversation: str) -> RunningClient | None:
        return threads.running(Path(config), conversation)

    def asked(self, env: Mapping[str, str], arguments: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        del env
        return limits.asked(arguments)

    def limits(self, config: str, directory: str, asked: tuple[tuple[str, str], ...]) -> ClientLimits:
        del directory
        return self.config.of(Path(config), asked)

    def auto_handoff(self, transcript: str, directory: str, leaves_out: tuple[str, ...]) -> str:
        return self.write_auto_handoff(transcript_events(Path(transcript)), directory, leaves_out=leaves_out)
