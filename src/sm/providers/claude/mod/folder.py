"""The folder with the plugin that drives a client from inside, as `--plugin-dir` takes it.

A copy, since the client writes into such a folder at every start (2.1.328). It holds the module alone: what else the
plugin brings (skills, and a hook for sessions without a server) a session of `sm` does not need.
"""

from __future__ import annotations

import json
from pathlib import Path

from sm.paths import atomic_write

PLUGIN = "sm"
"""Its tools are called `mcp__sm__…`."""
MODULE = "hooks/sm.ts"
IMPORTED = ("hooks/alone.ts",)
"""What the module imports."""


def write_folder(plugin: Path, folder: Path, version: str) -> Path:
    """Write the folder with the module of `plugin`, the plugin of this installation; return it.

    What is there already stays untouched: clients that run load a module again as soon as its file changes.
    """
    manifest = {"name": PLUGIN, "version": version, "description": "Drives this client for sm", "license": "MIT"}
    files = {
        ".claude-plugin/plugin.json": json.dumps(manifest).encode(),
        "hooks/hooks.json": json.dumps({"modules": [f"./{Path(MODULE).name}"]}).encode(),
        **{name: (plugin / name).read_bytes() for name in (MODULE, *IMPORTED)},
    }
    for name, content in files.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != content:
            atomic_write(path, content)
    return folder
