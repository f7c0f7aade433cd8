"""Whether the user has trusted a folder for Codex, and how a session starts in one that they have not.

The client asks its user on its screen; started with rights of its own, its app-server marks the folder as trusted in
the user's configuration without asking (0.171.0). A session therefore starts with an answer for itself alone: where the
user has trusted neither the folder nor its repository, it is not trusted, and nothing is written.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from sm.files import read_regular
from sm.providers.codex.options import configured

TRUSTED = "trusted"
MAX_BYTES = 4 << 20
GITDIR = "gitdir:"


def trust_arguments(config: Path, directory: Path) -> tuple[str, ...]:
    """Return the arguments of a start in the directory; none where the user has trusted it."""
    if is_trusted(config, directory):
        return ()
    places = {str(directory): {"trust_level": "untrusted"}, str(_repository(directory)): {"trust_level": "untrusted"}}
    return configured(projects=places)


def is_trusted(config: Path, directory: Path) -> bool:
    projects = _projects(config)
    return any(_level(projects, place) == TRUSTED for place in {directory, _repository(directory)})


def _level(projects: dict[str, object], place: Path) -> object:
    found = projects.get(str(place))
    return found.get("trust_level") if isinstance(found, dict) else None


def _projects(config: Path) -> dict[str, object]:
    try:
        found = tomllib.loads(read_regular(config / "config.toml", MAX_BYTES)[0].decode())
    except (OSError, ValueError):
        return {}  # the client itself says what is wrong with it
    projects = found.get("projects")
    return projects if isinstance(projects, dict) else {}


def _repository(directory: Path) -> Path:
    """The root of the repository, of the main checkout for a linked worktree; the directory itself outside of one."""
    for place in (directory, *directory.parents):
        mark = place / ".git"
        if mark.is_dir():
            return place
        if mark.is_file():
            return _main_checkout(mark) or place
    return directory


def _main_checkout(mark: Path) -> Path | None:
    """A worktree's `.git` names a folder `worktrees/NAME` in that of the main checkout."""
    try:
        text = read_regular(mark, MAX_BYTES)[0].decode().strip()
    except (OSError, ValueError):
        return None
    folder = Path(text.removeprefix(GITDIR).strip())
    linked = text.startswith(GITDIR) and folder.is_absolute() and folder.parent.name == "worktrees"
    return folder.parents[2] if linked and folder.parents[1].name == ".git" else None
