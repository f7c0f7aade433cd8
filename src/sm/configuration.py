"""The configuration of a running server: read again when a file has changed, the last good one while a file is broken.

Each session has its own, since its project may set its thresholds. A new session is refused while its configuration is
broken; one that runs goes on with what it had.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from sm.core.context import Policy
from sm.core.errors import SmError
from sm.core.post import Limits
from sm.core.team import TeamLimits
from sm.settings import Settings, config_file, load, project_file

log = structlog.get_logger()
Stamp = tuple[tuple[str, int, int], ...]


@dataclass(slots=True)
class Known:
    stamp: Stamp
    settings: Settings


@dataclass(slots=True)
class Configuration:
    environ: Mapping[str, str]
    base: Settings
    """What the server started with."""
    known: dict[str, Known] = field(default_factory=dict)

    def policy(self, directory: str) -> Policy:
        return self.settings(directory).policy()

    def checked_policy(self, directory: str) -> Policy:
        """The policy for a new session there; ConfigError if a file is broken."""
        return load(Path(directory), self.environ).policy()

    def team_limits(self, directory: str) -> TeamLimits:
        limits = self.settings(directory).limits
        return TeamLimits(limits.children, limits.depth)

    def limits(self) -> Limits:
        found = self.everywhere().limits
        return Limits(found.message_bytes, found.queued, found.sends_per_minute, found.exchanges)

    def everywhere(self) -> Settings:
        """What holds for what belongs to no project."""
        return self.settings("/")

    def instructions(self, directory: str) -> str:
        return self.settings(directory).handoff.instructions

    def settings(self, directory: str) -> Settings:
        """What holds in a directory now."""
        stamp = self._stamp(directory)
        known = self.known.get(directory)
        if known is not None and known.stamp == stamp:
            return known.settings
        try:
            settings = load(Path(directory), self.environ)
        except SmError as problem:
            log.warning("configuration not used", directory=directory, code=problem.refused.code)
            settings = known.settings if known is not None else self.base
        self.known[directory] = Known(stamp, settings)
        return settings

    def _stamp(self, directory: str) -> Stamp:
        """Which files hold there, and which state of them."""
        files = [config_file(self.environ), project_file(Path(directory))]
        return tuple(_state(path) for path in files if path is not None)


def _state(path: Path) -> tuple[str, int, int]:
    try:
        found = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), found.st_mtime_ns, found.st_size
