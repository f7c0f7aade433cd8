"""How a Codex client is started, whichever way it is driven: its configuration, its environment, what is refused.

What `sm` adds goes into `-c` arguments, and nothing is written into the user's configuration. No token is in any
argument: the client, and the server of our tools, take it from their environment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from sm.core.errors import error
from sm.providers.codex.traits import SERVER

SESSION_VARIABLES = (
    *("CLAUDE_SESSION_MANAGER_ID", "SM_SESSION_TOKEN", "SM_URL", "SM_SOCKET", "SM_HOME"),
    "CODEX_HOME",
)
"""What the server of our tools is given of the client's environment; nothing else of it is passed on (0.171.0)."""
OURS = ("`sm` sets {} itself", "sm restore resumes a session")
ONCE = ("{} answers once and exits, so nothing can be handed off", "start that client without `sm`")
ELSEWHERE = ("{} runs the client where `sm` cannot see it", "start that client without `sm`")
RESERVED = {
    **dict.fromkeys(("resume", "fork", "-C", "--cd"), OURS),
    **dict.fromkeys(("exec", "e", "review"), ONCE),
    **dict.fromkeys(("--remote", "--listen", "app-server", "cloud", "remote-control"), ELSEWHERE),
}
"""Arguments of the client that a session cannot have: what is wrong with them, and what to do instead (0.171.0)."""
MODES = {
    "-s": "sandbox_mode",
    "--sandbox": "sandbox_mode",
    "-a": "approval_policy",
    "--ask-for-approval": "approval_policy",
}
MODEL = {"-m": "model", "--model": "model"}
CONFIG = frozenset({"-c", "--config"})
FEATURES = frozenset({"--enable", "--disable"})
BYPASS = frozenset({"--dangerously-bypass-approvals-and-sandbox", "--yolo"})
FULL_ACCESS = {"sandbox_mode": "danger-full-access", "approval_policy": "never"}
QUIET = {"check_for_update_on_startup": False, "notice.hide_rate_limit_model_nudge": True}
"""For a screen, which else asks at its start whether to install a newer version, and near a usage limit whether to
change the model: nothing would be typed while it does."""
ORDER = ("read-only", "workspace-write", "danger-full-access")
"""Sandboxes, the strictest first."""
ASKING = ("on-request", "never")
"""When the client asks, the most often first; what it does not ask for in a sandbox it does not do."""
ASKS_OFTEN = "untrusted"
"""A thread may ask before almost every command, and no configuration can say so any more (0.171.0)."""


UNTRUSTED = "projects="
"""The beginning of what keeps a project's own configuration out."""


@dataclass(frozen=True, slots=True)
class ToolServer:
    """How the server of our tools is started."""

    command: str
    arguments: tuple[str, ...]


def config_directory(env: Mapping[str, str]) -> Path:
    configured = env.get("CODEX_HOME")
    return Path(configured) if configured else Path(env.get("HOME", "/")) / ".codex"


def config_directory_of(transcript: Path) -> Path:
    """Rollouts are in `sessions/YEAR/MONTH/DAY/` below it."""
    return transcript.parents[4] if len(transcript.parents) > 4 else transcript.parent  # noqa: PLR2004


def toml(value: object) -> str:
    """Return a value as TOML writes it in one line; a JSON string is a basic string of TOML."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case Mapping():
            return "{" + ",".join(f"{toml(str(name))}={toml(part)}" for name, part in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(map(toml, value)) + "]"
    # Half a character, as JSON may escape one beyond the first 65,536, is none in TOML.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def configured(**values: object) -> tuple[str, ...]:
    """Return the arguments that set these keys of the client's configuration."""
    return tuple(part for name, value in values.items() for part in ("-c", f"{name}={toml(value)}"))


def untrusted(directory: str) -> tuple[str, ...]:
    """Return the arguments that keep out the configuration of every project that the directory is in.

    A project's server of tools would run outside of the sandbox, whatever that is (0.171.0).
    """
    places = (Path(directory), *Path(directory).parents)
    return configured(projects={str(place): {"trust_level": "untrusted"} for place in places})


def tools(server: ToolServer) -> tuple[str, ...]:
    """Return the arguments for our tools, which need no approval: they do what a session may do anyway."""
    table = {
        "command": server.command,
        "args": list(server.arguments),
        "env_vars": list(SESSION_VARIABLES),
        "default_tools_approval_mode": "approve",
        "tool_timeout_sec": 7200,
    }
    return ("-c", f"mcp_servers.{SERVER}={toml(table)}")


def check_arguments(arguments: Sequence[str], origin: str = "") -> None:
    """SmError for one that a session cannot have; `origin` says where it is, if not on the command line."""
    for argument in arguments:
        name = argument.split("=", 1)[0]
        if name in RESERVED:
            wrong, hint = RESERVED[name]
            where = f"{origin}: " if origin else ""
            raise error("reserved_argument", where + wrong.format(name), hint)


def check_model(model: str | None) -> None:
    if model is not None and (not model or model.startswith("-")):
        raise error("bad_request", f"{model!r} is not a model name", "a name that the client accepts")


def options(arguments: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each option with its value, None for one without; ValueError at what is neither."""
    rest = iter(arguments)
    for argument in rest:
        name, given, value = argument.partition("=")
        if name in BYPASS and not given:
            yield name, None
        elif name in {*MODES, *MODEL, *CONFIG, *FEATURES}:
            yield name, value if given else next(rest, "")
        else:
            raise ValueError(argument)


def disabled(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the features that they switch off."""
    for argument, after in pairwise((*arguments, "")):
        if argument == "--disable":
            yield after
        elif argument.startswith("--disable="):
            yield argument.removeprefix("--disable=")


def child_arguments(arguments: Sequence[str], mode: str) -> tuple[str, ...]:
    """Return what a child of a client with these arguments, in that mode, is started with: no right more."""
    sandbox, _, approval = mode.partition(" ")  # what the arguments allowed, this says as it is now
    kept = [part for name in disabled(arguments) for part in ("--disable", name)]
    kept += [part for value in arguments if value.startswith(UNTRUSTED) for part in ("-c", value)]
    asks = approval if approval in ASKING else "on-request"
    return (*kept, "-s", sandbox if sandbox in ORDER and approval != ASKS_OFTEN else ORDER[0], "-a", asks)
