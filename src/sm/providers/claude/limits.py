"""What the client's environment, arguments and settings say about where it compacts (2.1.328).

A variable in the `env` of a settings file outranks the same one in the client's environment, and settings files outrank
each other in the client's own order. An auto-compact window comes from the variable first, then from `--autocompact`,
then from the settings.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from sm.core.model.capacity import ClientLimits
from sm.files import read_regular
from sm.providers.claude.windows import plain_name

FLAG = "--autocompact"
WINDOW = "CLAUDE_CODE_AUTO_COMPACT_WINDOW"
PERCENT = "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"
NO_LONG_WINDOW = "CLAUDE_CODE_DISABLE_1M_CONTEXT"
MAX_OUTPUT = "CLAUDE_CODE_MAX_OUTPUT_TOKENS"
MAX_CONTEXT = "CLAUDE_CODE_MAX_CONTEXT_TOKENS"
SWITCHED_OFF = ("DISABLE_AUTO_COMPACT", "DISABLE_COMPACT")
VARIABLES = (WINDOW, PERCENT, NO_LONG_WINDOW, MAX_OUTPUT, MAX_CONTEXT, *SWITCHED_OFF)
MEMBERS = ("autoCompactEnabled", "autoCompactWindow", "modelSettings")
TRUE = frozenset({"1", "true", "yes", "on"})
MIN_WINDOW = 100_000
"""The client takes a smaller auto-compact window for this one."""
MAX_VALUE_CHARS = 64
"""Characters of a value that can mean something."""
MAX_BYTES = 1 << 22
"""Of a settings file."""
SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([kKmM]?)")
MANAGED = (
    Path("/etc/claude-code/managed-settings.json"),
    Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
)

Asked = tuple[tuple[str, str], ...]
"""What a launch says: names of variables, or FLAG, with their values."""


@lru_cache(maxsize=1024)
def settings_files(config: Path, directory: Path) -> tuple[Path, ...]:
    """Those the client reads, the strongest first."""
    project = directory / ".claude"
    return (*MANAGED, project / "settings.local.json", project / "settings.json", config / "settings.json")


def read_settings(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_regular(path, MAX_BYTES)[0])
    except (OSError, ValueError, RecursionError):
        return {}  # absent, or broken: the client itself reports a broken one
    return found if isinstance(found, dict) else {}


def asked(env: Mapping[str, str], arguments: Sequence[str]) -> Asked:
    """What the environment and the arguments of a launch say; of a repeated argument the last one counts."""
    said = [(name, env[name][:MAX_VALUE_CHARS]) for name in VARIABLES if env.get(name)]
    parts = [part for argument in arguments for part in argument.split("=", 1)]
    flags = [value for name, value in itertools.pairwise(parts) if name == FLAG]
    return (*said, *((FLAG, value[:MAX_VALUE_CHARS]) for value in flags[-1:]))


@dataclass(slots=True)
class SettingsReader:
    """Reads the settings of living sessions again and again, and each file only once it has changed."""

    known: dict[Path, tuple[tuple[int, int, int], dict[str, Any]]] = field(default_factory=dict)

    def of(self, config: Path, directory: Path, said: Asked) -> ClientLimits:
        return combined([self._settings(path) for path in settings_files(config, directory)], dict(said))

    def _settings(self, path: Path) -> dict[str, Any]:
        try:
            found = path.stat()
        except OSError:
            self.known.pop(path, None)
            return {}
        stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
        known = self.known.get(path)
        if known is None or known[0] != stamp:
            known = self.known[path] = (stamp, relevant(read_settings(path)))
        return known[1]


def relevant(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The members that matter here: everything else may be large."""
    env = settings.get("env")
    given = env if isinstance(env, dict) else {}
    known = {name: given[name] for name in VARIABLES if isinstance(given.get(name), str | int | float)}
    said = {name: str(value)[:MAX_VALUE_CHARS] for name, value in known.items()}
    return {**{name: settings[name] for name in MEMBERS if name in settings}, "env": said}


def combined(files: Sequence[Mapping[str, Any]], said: Mapping[str, str]) -> ClientLimits:
    """What holds, of settings (the strongest first) and of what the launch says."""
    env = dict(said)
    for settings in reversed(files):
        env.update(settings.get("env", {}))
    given = _size(env.get(WINDOW, ""), bare_thousands=False) or _size(said.get(FLAG, ""), bare_thousands=True)
    everywhere, by_model = (given, {}) if given is not None else _configured(files)
    enabled = next((file["autoCompactEnabled"] for file in files if "autoCompactEnabled" in file), True)
    return ClientLimits(
        auto_compact=everywhere,
        by_model=tuple(by_model.items()),
        percent=_percent(env.get(PERCENT, "")),
        max_output=_count(env.get(MAX_OUTPUT, "")),
        max_context=_count(env.get(MAX_CONTEXT, "")),
        no_long_window=_is_true(env.get(NO_LONG_WINDOW, "")),
        never_compacts=enabled is False or any(_is_true(env.get(name, "")) for name in SWITCHED_OFF),
    )


def _configured(files: Sequence[Mapping[str, Any]]) -> tuple[int | None, dict[str, int | None]]:
    """A window for all in a stronger file makes those for single models in weaker ones void."""
    everywhere: int | None = None
    by_model: dict[str, int | None] = {}
    for settings in reversed(files):
        models = settings.get("modelSettings")
        pairs = models.items() if isinstance(models, dict) else ()
        own = {
            plain_name(name): _window(value["autoCompactWindow"])
            for name, value in pairs
            if isinstance(value, dict) and "autoCompactWindow" in value
        }
        if "autoCompactWindow" in settings:
            everywhere, by_model = _window(settings["autoCompactWindow"]), own
        else:
            by_model = {**by_model, **own}
    return everywhere, by_model


def _window(value: object) -> int | None:
    """A window as the settings have it; `auto`, and what the client would not take, is the model's own."""
    return value if type(value) is int and value >= MIN_WINDOW else None


def _size(text: str, *, bare_thousands: bool) -> int | None:
    match = SIZE.fullmatch(text.strip())
    if match is None:
        return None
    size = float(match[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[match[2].lower()]
    if bare_thousands and not match[2] and 100 <= size <= 1_000:  # noqa: PLR2004  # the client's own reading
        size *= 1_000
    return max(round(size), MIN_WINDOW) if size >= 1 else None


def _percent(text: str) -> float | None:
    try:
        percent = float(text)
    except ValueError:
        return None
    return percent if 0 < percent <= 100 else None  # noqa: PLR2004


def _count(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,12}", text.strip()) and int(text) > 0 else None


def _is_true(text: str) -> bool:
    return text.strip().lower() in TRUE
