"""Which entries of the user's own settings file `sm setup` adds, and how it takes them out again.

They are the command hooks that run `hook.py` with the user's token, the plugin and the marketplace that names it, and,
where the user asked for it, the status line, which runs the user's own one with it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from sm.core.errors import SmError, error
from sm.providers.claude.user_settings import text as edit

HOOKS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "PreCompact", "PostCompact")
"""What it takes to measure a context and to tell its agent; the client's state file shows the rest."""
AFTER_TOOL = "PostToolUse"
HOOK_TIMEOUT_S = 5
PLUGIN = "sm@sm"
MARKETPLACE = "sm"
OPTIONS = ["-I", "-S"]
ARGUMENTS = 6
THEN = "--then"
STATUS_NAMES = ["sm", "statusline", "--server", "--token"]
STATUS_WORDS = 6
"""Those four and what the last two are followed by."""
Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class OwnEntries:
    python: str
    hook: str
    """Path of hook.py."""
    socket: str
    token: str
    """The file that holds the user's token."""
    plugin: str
    """The plugin's directory."""
    status_line: str | None = None
    """The command that `--statusline` installs; None leaves the status line alone."""
    after_tool: bool = True
    """A hook after each tool call, for a client that may be too old for the plugin: that counts by itself."""

    def additions(self) -> dict[str, Any]:
        arguments = [*OPTIONS, self.hook, "claude", f"unix:{self.socket}", self.token]
        hook = {"type": "command", "command": self.python, "args": arguments, "timeout": HOOK_TIMEOUT_S}
        return {
            "hooks": {name: [{"hooks": [hook]}] for name in HOOKS if self.after_tool or name != AFTER_TOOL},
            "extraKnownMarketplaces": {MARKETPLACE: {"source": {"source": "directory", "path": self.plugin}}},
            "enabledPlugins": {PLUGIN: True},
        }


def installed(settings: Mapping[str, Any]) -> bool:
    """Return whether `sm setup` wrote these: plugin and marketplace alone may be the user's own installation."""
    return bool(our_hooks(settings)) or has_status_line(settings)


def has_status_line(settings: Mapping[str, Any]) -> bool:
    return status_line_words(_status_command(settings)) is not None


def loaded(text: str) -> dict[str, Any]:
    """The settings, checked as far as we touch them; ValueError that says what is wrong and where."""
    settings = json.loads(text)
    if not isinstance(settings, dict):
        raise ValueError("the settings are not an object")  # noqa: TRY004  # as json's own errors
    for name in ("hooks", "extraKnownMarketplaces", "enabledPlugins"):
        if not isinstance(settings.get(name, {}), dict):
            raise ValueError(f"{name} is not an object")  # noqa: TRY004  # as json's own errors
    for name, groups in settings.get("hooks", {}).items():
        if not isinstance(groups, list):
            raise ValueError(f"hooks.{name} is not a list")  # noqa: TRY004  # as json's own errors
    return settings


def with_ours(text: str, ours: OwnEntries) -> str:
    """The settings with our entries; every other byte stays."""
    additions = ours.additions()
    settings = loaded(text)
    ours_there = additions["extraKnownMarketplaces"][MARKETPLACE]
    if settings.get("extraKnownMarketplaces", {}).get(MARKETPLACE, ours_there) != ours_there:
        hint = f"claude plugin marketplace remove {MARKETPLACE}"
        raise error("setup_conflict", f"A marketplace named {MARKETPLACE!r} of another source is set already", hint)
    text = _merged(text, settings, (), additions)
    return text if ours.status_line is None else _with_status_line(text, settings, ours.status_line)


def complete(text: str, ours: OwnEntries) -> bool:
    """Return whether all entries of `sm` are there, as they are now, and none of an older set-up."""
    settings, additions = loaded(text), ours.additions()
    wanted = [group[0]["hooks"][0] for group in additions["hooks"].values()]
    known = settings.get("extraKnownMarketplaces", {}).get(MARKETPLACE)
    words = status_line_words(_status_command(settings)) or []
    return (
        our_hooks(settings) == wanted
        and PLUGIN in settings.get("enabledPlugins", {})
        and known == additions["extraKnownMarketplaces"][MARKETPLACE]
        and (ours.status_line is None or words[:STATUS_WORDS] == shlex.split(ours.status_line))
    )


def our_hooks(settings: Mapping[str, Any]) -> list[Any]:
    hooks = settings.get("hooks", {})
    return [hook for groups in hooks.values() for hook in _hooks_in(groups) if is_our_hook(hook)]


def _hooks_in(groups: list[Any]) -> list[Any]:
    return [hook for group in groups if isinstance(group, dict) for hook in _listed(group.get("hooks"))]


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _status_command(settings: Mapping[str, Any]) -> object:
    known = settings.get("statusLine")
    return known.get("command") if isinstance(known, dict) else None


def _merged(text: str, known: Mapping[str, Any], path: Place, additions: Mapping[str, Any]) -> str:
    """Absent members are added, lists continued; a value that is set already stays, as a plugin switched off does."""
    for key, value in additions.items():
        if key not in known:
            text = edit.added(text, path, value, key)
        elif isinstance(value, dict):
            text = _merged(text, known[key], (*path, key), value)
        elif isinstance(value, list):
            for item in value:
                text = edit.added(text, (*path, key), item)
    return text


def _with_status_line(text: str, settings: Mapping[str, Any], command: str) -> str:
    known = settings.get("statusLine")
    if known is None:
        text = edit.removed(text, ("statusLine",)) if "statusLine" in settings else text
        return edit.added(text, (), {"type": "command", "command": command}, "statusLine")
    if not isinstance(known, dict) or not isinstance(known.get("command"), str):
        raise error("setup_conflict", "The status line is set in a form that sm does not know", "set it by hand")
    return edit.replaced(text, ("statusLine", "command"), f"{command} {THEN} {shlex.quote(known['command'])}")


def without_ours(text: str, before: Mapping[str, Any] | None = None) -> str:
    """Return the settings without our entries, and without what they leave empty, unless it was in `before`."""
    settings = loaded(text)
    places = sorted(_our_places(settings, before or {}), key=_order, reverse=True)
    for path in places:
        text = edit.removed(text, path)
    text = _without_status_line(text, settings)
    for container in EMPTIED:
        if any(path[: len(container)] == container for path in places):
            text = _without_empty(text, container, before or {})
    return text


def _order(path: Place) -> tuple[tuple[int, str], ...]:
    """Later items of a list go first, so that the numbers of the others hold."""
    return tuple((step, "") if isinstance(step, int) else (0, step) for step in path)


EMPTIED: tuple[Place, ...] = (
    *(("hooks", name) for name in HOOKS),
    ("hooks",),
    ("extraKnownMarketplaces",),
    ("enabledPlugins",),
)


def _our_places(settings: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[Place]:
    """Yield where our entries are. A plugin or marketplace in `before` is the user's: the client installs those too."""
    for name, groups in settings.get("hooks", {}).items():
        for number, group in enumerate(groups):
            yield from (("hooks", name, number, *rest) for rest in _our_hooks(group))
    if settings.get("enabledPlugins", {}).get(PLUGIN) is True and not _names(before, "enabledPlugins", PLUGIN):
        yield ("enabledPlugins", PLUGIN)
    known = MARKETPLACE in settings.get("extraKnownMarketplaces", {}) and _is_our_marketplace(settings)
    if known and not _names(before, "extraKnownMarketplaces", MARKETPLACE):
        yield ("extraKnownMarketplaces", MARKETPLACE)


def _names(settings: Mapping[str, Any], container: str, key: str) -> bool:
    found = settings.get(container)
    return isinstance(found, dict) and key in found


def _our_hooks(group: object) -> list[Place]:
    """Those of one group; the whole group, as the empty path, if it holds nothing else."""
    hooks = _listed(group.get("hooks")) if isinstance(group, dict) else []
    ours: list[Place] = [("hooks", number) for number, hook in enumerate(hooks) if is_our_hook(hook)]
    alone = len(ours) == len(hooks) and isinstance(group, dict) and set(group) == {"hooks"}
    return [()] if ours and alone else ours


def is_our_hook(hook: object) -> bool:
    """By its form: an older set-up named another interpreter and another place."""
    arguments = hook.get("args") if isinstance(hook, dict) else None
    if not isinstance(arguments, list) or len(arguments) != ARGUMENTS or arguments[:2] != OPTIONS:
        return False
    script, provider, address = map(str, arguments[2:5])
    return PurePath(script).parts[-2:] == ("sm", "hook.py") and provider == "claude" and address.startswith("unix:")


def _is_our_marketplace(settings: Mapping[str, Any]) -> bool:
    entry = settings["extraKnownMarketplaces"][MARKETPLACE]
    source = entry.get("source") if isinstance(entry, dict) else None
    return isinstance(source, dict) and source.get("source") == "directory"


def _without_status_line(text: str, settings: Mapping[str, Any]) -> str:
    words = status_line_words(_status_command(settings))
    if words is None:
        return text
    if THEN in words:
        return edit.replaced(text, ("statusLine", "command"), words[words.index(THEN) + 1])
    return edit.removed(text, ("statusLine",))


def status_line_words(command: object) -> list[str] | None:
    """Return the words of our status line, which may have `--then` and the user's own; None if it is not ours."""
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return None
    names = [PurePath(words[0]).name, *words[1:3], *words[4:5]] if words else []
    alone = len(words) == STATUS_WORDS
    with_own = len(words) == STATUS_WORDS + 2 and words[STATUS_WORDS] == THEN
    return words if names == STATUS_NAMES and (alone or with_own) else None


def _without_empty(text: str, path: Place, before: object) -> str:
    """Take out a container that we emptied."""
    here: object = json.loads(text)
    for step in path:
        here = here.get(step) if isinstance(here, dict) else None
        before = before.get(step) if isinstance(before, dict) else None
    return edit.removed(text, path) if here in ({}, []) and here is not None and before is None else text


def refused(path: str, problem: ValueError | RecursionError) -> SmError:
    """Why a settings file is left alone, with the position where it is known."""
    where = f" at line {problem.lineno}, column {problem.colno}" if isinstance(problem, json.JSONDecodeError) else ""
    what = problem.msg if isinstance(problem, json.JSONDecodeError) else str(problem)
    return error(
        "bad_settings", f"{path} cannot be changed: {what}{where}", "correct it; the client ignores it as well"
    )
