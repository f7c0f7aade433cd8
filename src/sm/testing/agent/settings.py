"""Reads what the agent is started with: arguments, settings files, and how a test wants it to misbehave."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from sm.testing.agent.tools import Permissions

Json: TypeAlias = dict[str, Any]
DEFAULT_MODEL = "claude-opus-5-5"
ARGUMENT_VARIABLES = {"scenario": "SM_SCENARIO", "log": "SM_AGENT_LOG", "flags": "SM_AGENT_FLAGS"}
"""Arguments that override these variables: `sm` passes no SM_ variable of its caller to an agent."""
COMPACT_RESERVE_TOKENS = 33_000
"""Tokens below its auto-compact window at which the client compacts (2.1.328)."""


class Flags(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Misbehaviour and limits, given as a JSON object in SM_AGENT_FLAGS."""

    drop_enter: float = 0.0
    """Seconds after a text burst in which Enter is lost (case A35)."""
    no_state_file: bool = False
    trust_dialog: bool = False
    """Ask for trust whatever the configuration says, as for an untrusted project in `.claude.json`."""
    ignore_sigterm: bool = False
    crash_on: str = ""
    """Die by SIGKILL just before this hook event would fire."""
    compact_at: int | None = None
    """Compact before a request once the context holds that many tokens."""
    refuse_at: int | None = None
    """Refuse to continue at that many tokens, as a client does that must not compact by itself."""
    subagent_seconds: float = 1.0
    """How long a background subagent works."""
    dialog_delay: float = 0.1
    """Seconds from a PermissionRequest until its dialog is on the screen (seen: 0.38 to 0.53)."""


@dataclass(frozen=True, slots=True)
class StartOptions:
    session: str
    resumed: bool
    model: str
    prompt: str | None
    hooks: Json
    permissions: Permissions
    config: Path
    directory: str
    flags: Flags
    persists: bool
    """False for a client that believes it runs inside another: no transcript, no state file (2.1.328)."""
    trusted: bool


def read_start(arguments: list[str]) -> StartOptions:
    given, _ = _parser().parse_known_args(arguments)
    for name, variable in ARGUMENT_VARIABLES.items():
        if value := getattr(given, name):
            os.environ[variable] = value
    home = os.environ.get("CLAUDE_CONFIG_DIR")
    config = Path(home) if home else Path.home() / ".claude"
    directory = str(Path.cwd())
    sources = [_read(config / "settings.json"), _settings(given.settings)]
    flags = msgspec.json.decode(os.environ.get("SM_AGENT_FLAGS") or "{}", type=Flags)
    if given.autocompact and flags.compact_at is None:
        flags = msgspec.structs.replace(flags, compact_at=_threshold(given.autocompact))
    return StartOptions(
        session=given.resume or given.session_id or new_id(),
        resumed=given.resume is not None,
        model=given.model,
        prompt=given.prompt,
        hooks=_hooks(sources),
        permissions=_permissions(sources, given),
        config=config,
        directory=directory,
        flags=flags,
        persists=os.environ.get("CLAUDE_CODE_CHILD_SESSION") != "1",
        trusted=not flags.trust_dialog and _trusted(config, directory),
    )


def _threshold(window: str) -> int:
    units = {"k": 1_000, "m": 1_000_000}
    unit = units.get(window[-1:].lower(), 1)
    return int(window if unit == 1 else window[:-1]) * unit - COMPACT_RESERVE_TOKENS


def new_id() -> str:
    import uuid  # noqa: PLC0415  # not needed where the id is given

    return str(uuid.uuid4())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sm.testing.agent", description=__doc__)
    parser.add_argument("--settings", help="a file, or JSON")
    parser.add_argument("--session-id")
    parser.add_argument("--plugin-dir", help="not loaded, as by a client whose settings forbid plugin code")
    parser.add_argument("--resume")
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--permission-mode")
    parser.add_argument("--autocompact", help="the auto-compact window, as 100k")
    parser.add_argument("--scenario", help="a file in the scenario language, JSON or TOML")
    parser.add_argument("--log", help="each request is appended to it as a line of JSON")
    parser.add_argument("--flags", help="misbehaviour, as JSON")
    parser.add_argument("--dangerously-skip-permissions", action="store_true")
    parser.add_argument("prompt", nargs="?")
    return parser


def _settings(given: str | None) -> Json:
    if given is None:
        return {}
    found = json.loads(given) if given.lstrip().startswith("{") else json.loads(Path(given).read_text())
    return found if isinstance(found, dict) else {}


def _read(path: Path) -> Json:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _hooks(sources: Iterable[Json]) -> Json:
    if any(source.get("disableAllHooks") for source in sources):
        return {}
    merged: Json = {}
    for source in sources:
        for event, groups in (source.get("hooks") or {}).items():
            merged.setdefault(event, []).extend(groups)
    return merged


def _permissions(sources: list[Json], given: argparse.Namespace) -> Permissions:
    found = [source.get("permissions") or {} for source in sources]
    modes = [part["defaultMode"] for part in found if "defaultMode" in part]
    mode = given.permission_mode or (modes[-1] if modes else "default")
    return Permissions(
        allow=tuple(rule for part in found for rule in part.get("allow", ())),
        deny=tuple(rule for part in found for rule in part.get("deny", ())),
        mode="bypassPermissions" if given.dangerously_skip_permissions else mode,
    )


def _trusted(config: Path, directory: str) -> bool:
    projects = _read(config / ".claude.json").get("projects") or {}
    project = projects.get(directory) or {}
    return bool(project.get("hasTrustDialogAccepted", True))
