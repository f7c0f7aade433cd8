"""How a Codex in a terminal is started: its hooks, what is switched off in it, its arguments (Codex 0.171.0).

All of it goes into `-c` arguments, and nothing is written into the user's configuration. The hooks come with the hash
by which the client trusts them, so that no dialog asks about them; a hash that does not match would bring that dialog
up, and run none. No folder is trusted for the user: the client asks, and the session waits for them. Without a server
of its own (`--no-daemon`) a client would share one with all others, whose hooks have the environment of the first.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import tomllib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sm.core.errors import SmError, error
from sm.providers.codex import options
from sm.providers.codex.hooks import HELD_HOOK, MAKERS

PROVIDER = "codex-tui"
GATING = frozenset({"PreToolUse"})
"""Costs every tool call a process, so it is there only for a gate."""
UNNEEDED = frozenset({"SessionEnd"})
"""A process for each thread of the client at its end, or a minute after a thread was left."""
HOOK_TIMEOUT_S = 5
ASK_TIMEOUT_S = 600
"""Seconds for which a permission may be asked about through `sm`, where it is: its dialog opens only after that."""
INLINE = ("--no-daemon", "--no-alt-screen")
"""On the alternate screen there is no history for a snapshot; `/clear` empties what there is of it here."""
SESSION_FLAGS = "/<session-flags>/config.toml"
"""How the client names the source of hooks that come as an argument."""
REQUIREMENTS = Path("/etc/codex/requirements.toml")
BLIND = ("{} switches off the hooks that `sm` needs", "start that client without `sm`")
ELSEWHERE = options.ELSEWHERE
COMMAND = ("{} is another command of the client", "run it without `sm`")
RESERVED = {
    **dict.fromkeys(("--remote", "--remote-auth-token-env", "--worktree"), ELSEWHERE),
    **dict.fromkeys(("-C", "--cd"), options.OURS),
    **dict.fromkeys(("-h", "--help", "-V", "--version"), options.ONCE),
}
"""Options that a session cannot have: what is wrong with them, and what to do instead."""
SUBCOMMANDS = {
    **dict.fromkeys(("resume", "fork"), options.OURS),
    **dict.fromkeys(("exec", "e", "review"), options.ONCE),
    **dict.fromkeys(("agents", "app-server", "exec-server", "remote-control", "cloud"), ELSEWHERE),
    **dict.fromkeys(
        ("login", "logout", "mcp", "plugin", "completion", "update", "doctor", "sandbox", "debug"), COMMAND
    ),
    **dict.fromkeys(("apply", "a", "queue", "archive", "unarchive", "delete", "features", "help"), COMMAND),
    **dict.fromkeys(("migrate-rollouts", "migrate-nfs-db"), COMMAND),
}
"""The same for what is one only as the first word that is no option."""
CONFIG = frozenset({"-c", "--config"})
PROFILE = frozenset({"-p", "--profile"})
VALUED = frozenset(
    {
        *CONFIG,
        *PROFILE,
        *("--enable", "--disable", "--remote", "--remote-auth-token-env", "--local-provider", "-m", "--model"),
        *("-s", "--sandbox", "-a", "--ask-for-approval", "-C", "--cd", "--add-dir"),
    }
)
"""Options with one value."""
LISTS = frozenset({"-i", "--image"})
"""Options with any number of values."""
HOOK_KEYS = re.compile(r"hooks(?:\.|=)|features(?:\.hooks)?=(?!true$)")


@dataclass(frozen=True, slots=True)
class HookCommand:
    """What runs hook.py."""

    python: str
    hook: str

    def __str__(self) -> str:
        return shlex.join((self.python, "-I", "-S", self.hook, PROVIDER))


def hook_names(*, gate: bool) -> list[str]:
    return [name for name in MAKERS if name not in UNNEEDED and (gate or name not in GATING)]


def hooks(command: str, *, gate: bool = False, holds: bool = False) -> tuple[str, ...]:
    """Return the argument for our hooks, with what the client trusts them by; `holds` as in `hooks.decode`."""
    names = hook_names(gate=gate)
    state = {
        f"{SESSION_FLAGS}:{snake(name)}:0:0": {"trusted_hash": trusted(name, command, holds=holds)} for name in names
    }
    groups = {name: [{"hooks": [_handler(name, command, holds=holds)]}] for name in names}
    return options.configured(hooks={**groups, "state": state})


def _handler(name: str, command: str, *, holds: bool) -> dict[str, object]:
    timeout = ASK_TIMEOUT_S if holds and name == HELD_HOOK else HOOK_TIMEOUT_S
    return {"type": "command", "command": command, "timeout": timeout}


def trusted(name: str, command: str, *, holds: bool = False) -> str:
    """Return the hash of a hook, as the client makes it of what it has read."""
    normal = {"event_name": snake(name), "hooks": [{"async": False, **_handler(name, command, holds=holds)}]}
    text = json.dumps(normal, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def argv(
    program: Sequence[str],
    settings: Sequence[str],
    arguments: Sequence[str],
    *,
    resume: str | None = None,
    model: str | None = None,
    prompt: str | None = None,
) -> tuple[str, ...]:
    """Return the command of the pane. Of a key that comes twice the client takes the last: `settings` are ours."""
    identity = ("resume",) if resume else ()
    chosen = ("--model", model) if model else ()
    given = without_prompt(arguments) if prompt else tuple(arguments)
    options_, words = given[: _first_word(given)], given[_first_word(given) :]
    thread = (resume,) if resume else ()
    # One that begins with `!` would be a command for a shell; all else is taken as it is.
    said = (
        (f" {prompt}" if prompt.startswith("!") else prompt,)
        if prompt
        else tuple(word for word in words if word != "--")
    )
    head, *configured_ = program
    return (head, *identity, *configured_, *options_, *chosen, *INLINE, *settings, "--", *thread, *said)


def settings(
    command: HookCommand, tools: options.ToolServer, *, gate: bool = False, holds: bool = False
) -> tuple[str, ...]:
    """Return what is set for a session; SmError where a path cannot be written as TOML."""
    for path in (command.python, command.hook, tools.command, *tools.arguments):
        try:
            path.encode()
        except UnicodeEncodeError:
            wrong = f"{path.encode(errors='replace').decode()} has bytes that are not text, which Codex does not take"
            raise error("bad_request", wrong, "install sm in a directory whose name is text") from None
    return (
        *hooks(str(command), gate=gate, holds=holds),
        *options.configured(disable_paste_burst=True),
        *options.configured(**options.QUIET),
        *options.tools(tools),
    )


def exit_lines(conversation: str) -> tuple[str, ...]:
    """Return what the client prints when it ends, of whatever thread that is by then."""
    return ("To continue this session, run:", f"  codex resume {conversation or uuid.UUID(int=0)}")


# --- the user's own arguments and settings ---------------------------------------------------------------------------


def check_arguments(arguments: Sequence[str], origin: str = "") -> None:
    """SmError for one that a session cannot have; `origin` says where it is, if not on the command line."""
    where = f"{origin}: " if origin else ""
    for name, value in _parsed(arguments):
        blind = _switches_hooks(name, value or "")
        wrong, hint = BLIND if blind else RESERVED.get(name, ("", ""))
        if wrong:
            raise error("reserved_argument", where + wrong.format(f"{name} {value}" if blind else name), hint)
    first = next(iter(arguments[_first_word(arguments) :]), "")
    if first in SUBCOMMANDS:
        wrong, hint = SUBCOMMANDS[first]
        raise error("reserved_argument", where + wrong.format(first), hint)


def _switches_hooks(name: str, value: str) -> bool:
    if name in CONFIG:
        return HOOK_KEYS.match(value.replace(" ", "")) is not None
    return name == "--disable" and value == "hooks"


def without_prompt(arguments: Sequence[str]) -> tuple[str, ...]:
    return tuple(arguments[: _first_word(arguments)])


def _parsed(arguments: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each option with its value, None for one without."""
    end = _first_word(arguments)
    skip = False
    for number, argument in enumerate(arguments[:end]):
        if skip or not argument.startswith("-"):
            skip = False
            continue
        name, value, skip = _option(argument)
        yield name, arguments[number + 1] if skip and number + 1 < end else value


def _first_word(arguments: Sequence[str]) -> int:
    """Return where the client's own words begin: a subcommand, a prompt, or the end of the options."""
    takes, many = False, False
    for number, argument in enumerate(arguments):
        if takes:
            takes = False
        elif argument == "--":
            return number
        elif argument.startswith("-") and argument != "-":
            name, value, takes = _option(argument)
            many = name in LISTS and value is None
        elif not many:
            return number
    return len(arguments)


def _option(argument: str) -> tuple[str, str | None, bool]:
    """Return an option's name, its value if that is in the same word, and whether the next word is it."""
    if argument.startswith("--"):
        name, equals, value = argument.partition("=")
        return name, value if equals else None, name in VALUED and not equals
    name, value = argument[:2], argument[2:].removeprefix("=")
    return name, value or None, name in VALUED and not value


def profile_of(arguments: Sequence[str]) -> str | None:
    return next((value for name, value in _parsed(arguments) if name in PROFILE), None)


def refuse_disabled(config: Path, directory: Path, profile: str | None) -> SmError | None:
    """Return why a session cannot be started where the user's settings switch hooks off."""
    places = [REQUIREMENTS, config / "requirements.toml", config / "config.toml", directory / ".codex/config.toml"]
    for path in [*places, *([config / f"{profile}.config.toml"] if profile else [])]:
        found = _read(path)
        features = found.get("features")
        off = isinstance(features, dict) and features.get("hooks") is False
        if off or found.get("allow_managed_hooks_only") is True:
            setting = "features.hooks = false" if off else "allow_managed_hooks_only"
            return error(
                "hooks_disabled",
                f"Hooks are switched off by {path}: a session could not be measured or rotated",
                f"take {setting} out of that file",
            )
    return None


def _read(path: Path) -> Mapping[str, object]:
    """What a file sets; nothing for one that is missing, or that the client itself will refuse."""
    try:
        return tomllib.loads(path.read_text())
    except (OSError, ValueError):
        return {}
