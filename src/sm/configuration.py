"""The configuration of a running server: read again when a file has changed, the last good one while a file is invalid.

Each session has its own, since its project may set its thresholds. A new session is refused while its configuration is
invalid; a running one keeps the previous. The last good file is kept in SM_HOME, so that a server also starts with it:
without a server no agent can hand off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from sm.core.errors import SmError
from sm.core.model.budget import Budgets
from sm.core.model.context import Policy
from sm.core.model.cost import Price
from sm.core.model.handoff import project_instructions
from sm.core.model.usage_limit import ResumeRules
from sm.core.rules.send_limits import SendLimits
from sm.core.rules.team import TeamLimits
from sm.paths import SmHome, atomic_write
from sm.settings import NO_FILE, Settings, config_file, load, project_file, set_by_project

log = structlog.get_logger()
ROOT_DIRECTORY = "/"
Stamp = tuple[tuple[str, int, int], ...]


def starting_configuration(environ: Mapping[str, str], home: SmHome) -> Configuration:
    """Return the configuration to start with: where the user's is invalid the last good one, else the defaults."""
    try:
        return Configuration(environ, load(None, environ), home)
    except SmError as problem:
        broken = problem.refused.message
    for candidate, followed in _substitutes(environ, home):
        with suppress(SmError):
            return Configuration(followed, load(None, candidate), home, problem=broken)
    return Configuration({}, Settings(), home, problem=broken)


def _substitutes(environ: Mapping[str, str], home: SmHome) -> Iterator[tuple[Mapping[str, str], Mapping[str, str]]]:
    """Return environments to start with, the best first, each with the one whose file is read from then on."""
    plain = {name: value for name, value in environ.items() if not name.startswith("SM_") or name in PATH_VARIABLES}
    yield {**environ, "SM_CONFIG": str(home.good_configuration)}, environ
    yield plain, plain
    yield {**plain, "SM_CONFIG": str(home.good_configuration)}, plain
    yield {**environ, "SM_CONFIG": str(NO_FILE)}, environ
    yield {**plain, "SM_CONFIG": str(NO_FILE)}, plain


PATH_VARIABLES = ("SM_HOME", "SM_CONFIG")
"""Variables that are no settings."""


@dataclass(slots=True)
class LoadedSettings:
    stamp: Stamp
    settings: Settings


@dataclass(slots=True)
class Configuration:
    environ: Mapping[str, str]
    base: Settings
    """The settings at the server's start."""
    home: SmHome | None = None
    """Holds the last good file."""
    problem: str = ""
    """The problem of the user's own configuration when it was last read."""
    known: dict[str, LoadedSettings] = field(default_factory=dict)

    def policy(self, directory: str) -> Policy:
        return self.settings(directory).policy()

    def checked_policy(self, directory: str) -> Policy:
        """Return the policy for a new session there; ConfigError if a file is invalid."""
        return load(Path(directory), self.environ).policy()

    def team_limits(self, directory: str) -> TeamLimits:
        limits = self.settings(directory).limits
        return TeamLimits(limits.children, limits.depth)

    def agents_may_switch(self) -> bool:
        return self.everywhere().team.may_switch

    def parents_may_answer(self) -> bool:
        return self.everywhere().asks.parents

    def limits(self) -> SendLimits:
        found = self.everywhere().limits
        return SendLimits(found.message_bytes, found.queued, found.sends_per_minute, found.exchanges)

    def resume_rules(self) -> ResumeRules:
        found = self.everywhere().limits
        return ResumeRules(found.resume, found.patience, found.stagger)

    def prices(self) -> Mapping[str, Price]:
        return self.everywhere().cost.table()

    def budgets(self) -> Budgets:
        return self.everywhere().cost.budgets()

    def everywhere(self) -> Settings:
        """Return the settings outside of any project."""
        return self.settings(ROOT_DIRECTORY)

    def instructions(self, directory: str) -> str:
        """Return the text added to handoffs; a project's is labelled, since the user did not write it."""
        text = self.settings(directory).handoff.instructions
        of_project = text and set_by_project(Path(directory), self.environ, "handoff.instructions")
        return project_instructions(text) if of_project else text

    def settings(self, directory: str) -> Settings:
        """Return the settings of a directory now."""
        known = self.known.get(directory)
        stamp: Stamp = ()
        try:
            stamp = self._stamp(directory)
            if known is not None and known.stamp == stamp:
                return known.settings
            settings = load(Path(directory), self.environ)
            self._noted(directory, "")
        except SmError as problem:
            log.warning("configuration not used", directory=directory, code=problem.refused.code)
            settings = known.settings if known is not None else self.base
            self._noted(directory, problem.refused.message)
        self.known[directory] = LoadedSettings(stamp, settings)
        return settings

    def problems(self) -> list[str]:
        """Return the problems of the user's own configuration now, in words."""
        self.everywhere()
        return [f"{self.problem}; the server uses the last good configuration"] if self.problem else []

    def _noted(self, directory: str, problem: str) -> None:
        if directory != ROOT_DIRECTORY:
            return
        self.problem = problem
        if self.home is not None and not problem:
            with suppress(SmError, OSError):  # without it a later start uses the defaults
                self._keep(self.home.good_configuration)

    def _keep(self, path: Path) -> None:
        file = config_file(self.environ)
        content = file.read_bytes() if file.is_file() else b""
        if not path.is_file() or path.read_bytes() != content:
            atomic_write(path, content)

    def _stamp(self, directory: str) -> Stamp:
        """Return the files that apply there, each with its state."""
        files = [config_file(self.environ), project_file(Path(directory))]
        return tuple(_state(path) for path in files if path is not None)


def _state(path: Path) -> tuple[str, int, int]:
    try:
        found = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), found.st_mtime_ns, found.st_size
