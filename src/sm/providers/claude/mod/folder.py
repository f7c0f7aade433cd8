"""The folder with the plugin that drives a client from inside, as `--plugin-dir` takes it.

A copy, since the client writes into such a folder at every start (2.1.328). It holds the module, and the skills where
the user has installed the plugin: in the client it takes the place of theirs, which has the same name (2.1.328). The
hook for sessions without a server is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sm.paths import atomic_write

PLUGIN = "sm"
"""Its tools are called `mcp__sm__…`."""
MODULE = "hooks/sm.ts"
IMPORTED = ("hooks/alone.ts",)
"""What the module imports."""
SKILLS = "skills"
SOURCED = "common.sh"
"""What the scripts of the skills share."""


def write_folder(plugin: Path, folder: Path, version: str, *, skills: bool = False) -> Path:
    """Write the folder with the module of `plugin`, the plugin of this installation, and its skills; return it.

    What is there already stays untouched: clients that run load a module again as soon as its file changes.
    """
    manifest = {"name": PLUGIN, "version": version, "description": "Drives this client for sm", "license": "MIT"}
    shared = (SOURCED, *_files(plugin, SKILLS)) if skills else ()
    files = {
        ".claude-plugin/plugin.json": json.dumps(manifest).encode(),
        "hooks/hooks.json": json.dumps({"modules": [f"./{Path(MODULE).name}"]}).encode(),
        **{name: (plugin / name).read_bytes() for name in (MODULE, *IMPORTED, *shared)},
    }
    for name, content in files.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != content:
            atomic_write(path, content)
    return folder


def _files(plugin: Path, directory: str) -> list[str]:
    return [str(path.relative_to(plugin)) for path in sorted((plugin / directory).rglob("*")) if path.is_file()]


def is_installed(settings: Mapping[str, Any]) -> bool:
    """Return whether these settings of the client enable the plugin, from whatever marketplace."""
    enabled = settings.get("enabledPlugins")
    names = enabled.items() if isinstance(enabled, dict) else ()
    return any(name.partition("@")[0] == PLUGIN and value is True for name, value in names)
