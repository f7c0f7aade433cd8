"""Which version of Claude Code an executable is, by the files around it: it is never run for that.

A user's wrapper may do anything when it is run, and a run costs 0.1 s of a start. Where nothing tells, the version is
unknown, and the plugin's own answer shows what the client can do.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

OLDEST_WITH_PLUGIN = (2, 1, 290)
"""The first version that the plugin drives: 2.1.287 refuses its requests where nonessential traffic is off."""
PACKAGE = "@anthropic-ai/claude-code"
PARENTS = 3
"""How far above the executable its package.json may be."""
NUMBERED = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")

Version = tuple[int, int, int]


def version_of(executable: str, search_path: str) -> Version | None:
    """Return the version of the client that this name or path starts; None if its place does not tell."""
    found = shutil.which(executable, path=search_path)
    if found is None:
        return None
    real = Path(os.path.realpath(found))
    for directory in tuple(real.parents)[:PARENTS]:  # as npm installs it
        version = _of_package(directory / "package.json")
        if version is not None:
            return version
    return _numbers(real.name) or _numbers(real.parent.name)  # as its own installer, or Homebrew, does


def _of_package(file: Path) -> Version | None:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    is_client = isinstance(content, dict) and content.get("name") == PACKAGE
    return _numbers(str(content.get("version"))) if is_client else None


def _numbers(text: str) -> Version | None:
    match = NUMBERED.fullmatch(text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def too_old(executable: str, search_path: str) -> str:
    """Return why the plugin cannot drive this client; empty if it can, or nothing tells."""
    version = version_of(executable, search_path)
    if version is None or version >= OLDEST_WITH_PLUGIN:
        return ""
    return f"Claude Code {_shown(version)} is too old for the plugin in it, which needs {_shown(OLDEST_WITH_PLUGIN)}"


def _shown(version: Version) -> str:
    return ".".join(map(str, version))
