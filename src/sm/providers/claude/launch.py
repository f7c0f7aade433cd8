"""How a Claude Code client is started: its settings file, its environment, its arguments.

The settings go into a 0600 file and are passed with `--settings`; nothing in the user's own settings is touched. They
add hooks and allow `sm`'s own commands, and never a bypass of permissions. No token is in any argument: the client
takes it from its environment.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sm.core.errors import SmError, error
from sm.core.model.agent_commands import AGENT
from sm.core.model.context_warnings import HANDOFF_FILE, handoff_file
from sm.providers.claude.asks import HELD_HOOK
from sm.providers.claude.hooks import MAKERS
from sm.providers.claude.limits import read_settings, settings_files
from sm.providers.claude.traits import FILE_TOOLS, READ_TOOL
from sm.providers.environment import client_environment

OURS = ("`sm` sets {} itself", "put it into Claude Code's own settings files; sm restore resumes a session")
ONCE = ("{} answers once and exits, so nothing can be handed off", "start that client without `sm`")
BLIND = ("{} switches off the hooks that `sm` needs", "start that client without `sm`")
ELSEWHERE = ("{} runs the client where `sm` cannot see it", "start that client without `sm`")
FLAT = ("{} shows no input box that `sm` could read", "start that client without `sm`")
RESERVED = {
    **dict.fromkeys(("--settings", "--session-id", "--resume", "-r", "--continue", "-c", "--fork-session"), OURS),
    "--from-pr": OURS,
    **dict.fromkeys(("--print", "-p"), ONCE),
    **dict.fromkeys(("--bare", "--safe-mode"), BLIND),
    **dict.fromkeys(("--bg", "--background", "--cloud", "--desktop", "--teleport", "--tmux"), ELSEWHERE),
    "--ax-screen-reader": FLAT,
}
"""Arguments of the client that a session cannot have: what is wrong with them, and what to do instead (2.1.328)."""
HEADLESS = ("--print", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
"""Without a screen; its plugin works all the same (2.1.328)."""
OPEN_INPUT = 'rm -f "$1" && mkfifo -m 600 "$1" && exec 0<>"$1" && rm "$1" && shift && exec "$@"'
"""The client ends where its input does, and refuses a terminal for it (2.1.328): this one has no end, and no writer."""
CONFIGURED = "claude.arguments in the configuration"
ALLOWED = (*(f"Bash(sm {command}:*)" for command in AGENT), f"Edit({HANDOFF_FILE})")
"""The file is the one that an agent knows whose conversation an older version has begun; its own comes with its id.
In the default modes an unlisted command opens a dialog that is never answered. A rule covers its command with whatever
arguments; another command beside it, a redirection to or from a file outside, a substitution, and a variable set in
front of it open a dialog all the same (2.1.328).
An Edit rule covers every tool that edits files; of a Write rule the client says that it matches nothing."""
GATING = frozenset({"PreToolUse"})
"""Costs every tool call about 50 ms (2.1.328), so it is there only for a gate."""
HTTP_HOOK_TIMEOUT_S = 1
COMMAND_HOOK_TIMEOUT_S = 5
ASK_TIMEOUT_S = 7 * 86_400
"""Seconds that the client waits for an answer to what it asks its user, while its dialog is open."""
AFTER_TOOL = frozenset({"PostToolUse", "PostToolUseFailure"})
WRITING = "|".join(sorted(FILE_TOOLS - {READ_TOOL}))
"""The tools that may have written the document of a handoff."""
COMMAND_ONLY = frozenset({"SessionStart"})
"""http hooks do not fire for it (2.1.328)."""


@dataclass(frozen=True, slots=True)
class Installation:
    """What a launch needs to know of this installation."""

    python: str
    hook: str
    """Path of hook.py."""
    url: str
    socket: str
    """The server's unix socket, used where http hooks are not."""
    secrets: tuple[str, ...]
    """Files no agent may read."""
    mod: str = ""
    """Directory for the plugin that drives a client from inside; written at the first start that needs it."""


def settings(
    place: Installation,
    *,
    command_hooks: bool,
    session: str = "",
    readable: tuple[str, ...] = (),
    gate: bool = False,
    every_tool: bool = True,
) -> dict[str, object]:
    """The settings file; the agent reads what is in the `readable` directories without asking anybody.

    Without `every_tool` only those that write a file run a hook: the plugin in the client reports the context.
    """
    names = [name for name in MAKERS if gate or name not in GATING]
    allowed = [
        *ALLOWED,
        *([f"Edit({handoff_file(session)})"] if session else []),
        *(f"Read(/{directory}/**)" for directory in readable),
    ]
    return {
        "permissions": {"allow": allowed, "deny": [f"Read(/{path})" for path in place.secrets]},
        "disableAgentView": True,  # Left on an empty box would fork the conversation into a daemon with our token
        "hooks": {
            name: [
                {
                    **({} if every_tool or name not in AFTER_TOOL else {"matcher": WRITING}),
                    "hooks": [_hook(name, place, command_hooks=command_hooks)],
                }
            ]
            for name in names
        },
    }


def _hook(name: str, place: Installation, *, command_hooks: bool) -> dict[str, object]:
    if command_hooks or name in COMMAND_ONLY:
        arguments = ["-I", "-S", place.hook, "claude"]
        timeout = ASK_TIMEOUT_S if name == HELD_HOOK else COMMAND_HOOK_TIMEOUT_S
        return {"type": "command", "command": place.python, "args": arguments, "timeout": timeout}
    return {
        "type": "http",
        "url": f"{place.url}/hooks/claude",
        "headers": {"Authorization": "Bearer $SM_SESSION_TOKEN"},
        "allowedEnvVars": ["SM_SESSION_TOKEN"],
        "timeout": ASK_TIMEOUT_S if name == HELD_HOOK else HTTP_HOOK_TIMEOUT_S,
    }


RESTRICTING = frozenset(
    {"--disallowedTools", "--disallowed-tools", "--tools", "--setting-sources", "--strict-mcp-config"}
)
"""Arguments that take something away from a client; a child has them of its parent."""
BYPASS = "--dangerously-skip-permissions"
"""Outranks any `--permission-mode` beside it (2.1.328)."""
BYPASSING = frozenset({BYPASS, "--allow-dangerously-skip-permissions"})
MODE = "--permission-mode"
MODE_NAME = re.compile(r"[A-Za-z]{1,32}")
DEFAULT_MODE = "default"


def headless(argv: Sequence[str], pipe: Path) -> tuple[str, ...]:
    """Return how a client is started without a screen."""
    return ("/bin/sh", "-c", OPEN_INPUT, "sh", str(pipe), *argv, *HEADLESS)


def needs_plugin(too_old: str) -> SmError:
    """Return why a client without a screen is not started; it may be too old for its plugin."""
    reason = too_old or 'claude.driver = "keys" starts it without'
    hint = 'set runner.mode = "interactive"'
    return error("no_plugin", f"A client without a screen is driven by its plugin alone: {reason}", hint)


def mode_arguments(mode: str) -> tuple[str, ...]:
    """Return what starts a client in that permission mode; nothing for an empty one."""
    return (MODE, mode) if mode else ()


READ_ONLY = (
    *("--tools", "Read,Grep,Glob"),
    *("--setting-sources", "user"),
    "--strict-mcp-config",
    *(MODE, "dontAsk"),
)
"""For an agent that only reads: no other tool of the client, no server of tools, and nothing from the settings and
hooks of a project that another agent may have written. What it may not read is denied without a dialog (2.1.328)."""


def child_arguments(arguments: Sequence[str], mode: str) -> tuple[str, ...]:
    """The parent's restrictions, each with its values, and the mode that the parent is in; one that asks
    where its mode is unknown.
    """
    kept: list[str] = []
    keeping = False
    for argument in arguments:
        if argument.startswith("-"):
            keeping = argument.split("=", 1)[0] in RESTRICTING
        if keeping:
            kept.append(argument)
    return *kept, MODE, mode if MODE_NAME.fullmatch(mode) else DEFAULT_MODE


def without_bypass(configured: Sequence[str], arguments: Sequence[str]) -> tuple[str, ...]:
    """The configured arguments without a bypass, where a start asks for a permission mode of its own."""
    if not any(argument.split("=", 1)[0] == MODE for argument in arguments):
        return tuple(configured)
    return tuple(argument for argument in configured if argument not in BYPASSING)


def environment(
    caller: Mapping[str, str], own: Mapping[str, str], bin_directory: str, *, foreground: bool = False
) -> dict[str, str]:
    screen = {} if foreground else {"CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN": "1"}
    return client_environment(caller, {**screen, **own}, bin_directory, foreground=foreground)


RESUMING = {"--resume": True, "-r": True, "--from-pr": True, "--continue": False, "-c": False, "--fork-session": False}
"""Arguments that choose a conversation to continue, and whether a value may follow (2.1.328)."""


def check_model(model: str | None) -> None:
    if model is not None and (not model or model.startswith("-")):
        raise error("bad_request", f"{model!r} is not a model name", "a name that the client accepts")


def check_arguments(arguments: Sequence[str], origin: str = "", *, foreground: bool = False) -> None:
    """SmError for one that a session cannot have; `origin` says where it is, if not on the command line."""
    for argument in arguments:
        name = _option(argument)
        if name in RESERVED and not (foreground and name in RESUMING):
            wrong, hint = RESERVED[name]
            where = f"{origin}: " if origin else ""
            raise error("reserved_argument", where + wrong.format(name), hint)


def _option(argument: str) -> str:
    """Of short options written together, or with their value, the client takes the first as one (2.1.328)."""
    return argument.split("=", 1)[0] if argument.startswith("--") else argument[:2]


def resumes(arguments: Sequence[str]) -> bool:
    return any(_option(argument) in RESUMING for argument in arguments)


def resumed(arguments: Sequence[str], config: Path, directory: str) -> str:
    """The conversation that these arguments continue; empty for none, for a copy, and where the client lets one choose.

    As in the client, `--continue` takes the newest of the directory (2.1.328).
    """
    names = [_option(argument) for argument in arguments]
    if "--fork-session" in names:
        return ""
    if {"--continue", "-c"} & {*names}:
        return _newest(config, directory)
    for number, name in enumerate(names):
        if name in {"--resume", "-r"}:
            argument, after = arguments[number], (*arguments, "")[number + 1]
            value = after if argument == name else argument.removeprefix(name).removeprefix("=")
            return value if CONVERSATION.fullmatch(value) else ""
    return ""


CONVERSATION = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _newest(config: Path, directory: str) -> str:
    """Return the id of the directory's newest transcript, or an empty one."""
    project = config / "projects" / re.sub("[^A-Za-z0-9]", "-", os.path.realpath(directory))
    try:
        newest = max(project.glob("*.jsonl"), key=lambda path: path.stat().st_mtime, default=None)
    except OSError:
        return ""  # one of them has just gone
    return newest.stem if newest is not None else ""


def without_resuming(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments for a new conversation. As in the client, a word after an option is its value."""
    kept: list[str] = []
    value_may_follow = False
    for argument in arguments:
        name = _option(argument)
        is_value = value_may_follow and not argument.startswith("-")
        value_may_follow = RESUMING.get(name, False) and argument == name
        if name not in RESUMING and not is_value:
            kept.append(argument)
    return tuple(kept)


def exit_lines(conversation: str) -> tuple[str, ...]:
    """Return what the client prints when it ends, of whatever conversation that is by then (2.1.328)."""
    return ("", "Resume this session with:", f"claude --resume {conversation or uuid.UUID(int=0)}")


def config_directory(env: Mapping[str, str]) -> Path:
    configured = env.get("CLAUDE_CONFIG_DIR")
    return Path(configured) if configured else Path(env.get("HOME", "/")) / ".claude"


def config_directory_of(transcript: Path) -> Path:
    """Transcripts are in `projects/PROJECT/` below it."""
    return transcript.parents[2] if len(transcript.parents) > 2 else transcript.parent  # noqa: PLR2004


@dataclass(frozen=True, slots=True)
class HookPolicy:
    """What the user's own settings say about hooks."""

    disabled_by: str | None = None
    """The file that switches all hooks off."""
    http_refused_by: str | None = None
    """The file that keeps http hooks, or their token, from working."""


def hook_policy(config: Path, directory: Path, url: str) -> HookPolicy:
    disabled = refused = None
    for path in settings_files(config, directory):
        found = read_settings(path)
        if found.get("disableAllHooks") is True or found.get("allowManagedHooksOnly") is True:
            disabled = disabled or str(path)
        variables = found.get("httpHookAllowedEnvVars")
        urls = found.get("allowedHttpHookUrls")
        names_us = not isinstance(variables, list) or "SM_SESSION_TOKEN" in variables
        reaches_us = not isinstance(urls, list) or any(_covers(str(pattern), url) for pattern in urls)
        if not (names_us and reaches_us):
            refused = refused or str(path)
    return HookPolicy(disabled, refused)


def _covers(pattern: str, url: str) -> bool:
    return url.startswith(pattern.rstrip("*")) if "*" in pattern else pattern.startswith(url)


def refuse_disabled(policy: HookPolicy) -> SmError | None:
    if policy.disabled_by is None:
        return None
    return error(
        "hooks_disabled",
        f"All hooks are switched off by {policy.disabled_by}: a session could not be measured or rotated",
        "take disableAllHooks out of that file",
    )
