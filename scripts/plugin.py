"""What the clients themselves say of the plugin's module: its source, its own tests, and its types.

Run by `make lint`. The client's environment is built from nothing, and it reaches no network.
"""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sm import __version__
from sm.paths import plugin_directory
from sm.providers.claude.mod.folder import write_folder
from sm.testing.offline import offline_client_env

ROOT = Path(__file__).resolve().parent.parent
CLIENTS = ROOT / "clients"
PINNED = CLIENTS / "node_modules" / ".bin" / "claude"
OTHERS = [CLIENTS / name / "node_modules" / ".bin" / "claude" for name in ("oldest", "newest")]
COMPILER = CLIENTS / "node_modules" / ".bin" / "tsc"
OWN_TESTS = ROOT / "tests" / "plugin"
TYPES = Path(".claude-plugin") / "types"
DECLARED = ("claude-code", "claude-code-tools", "claude-code-mcp")
NOWHERE = "http://127.0.0.1:9"
TIMEOUT_S = 120


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sm-plugin-") as place:
        root = Path(place)
        folder = write_folder(plugin_directory(), root / "mod", __version__)
        env = offline_client_env(root / "home", NOWHERE, root)
        for client in (PINNED, *OTHERS):
            judged(root, env, client, "plugin", "validate", folder)
        shutil.copytree(OWN_TESTS, folder / "tests")
        judged(root, env, PINNED, "plugin", "test", folder)
        declared(root, env, folder)
        shutil.copy(OWN_TESTS / "tsconfig.json", folder / "tsconfig.json")
        judged(root, env, COMPILER, "-p", folder)


def declared(root: Path, env: dict[str, str], folder: Path) -> None:
    """Have the pinned client write its declarations into the folder, as it does when it starts in a terminal."""
    master, slave = pty.openpty()
    words = [str(PINNED), "--plugin-dir", str(folder)]
    deadline = time.monotonic() + TIMEOUT_S
    with subprocess.Popen(words, env=env, cwd=root, stdin=slave, stdout=slave, stderr=slave) as client:
        os.close(slave)
        try:
            while not all((folder / TYPES / name / "index.d.ts").exists() for name in DECLARED):
                if time.monotonic() > deadline:
                    sys.exit("error: the client has written no declarations")
                if select.select([master], [], [], 0.1)[0]:  # it waits where nobody reads what it shows
                    os.read(master, 1 << 16)
        finally:
            client.kill()
    os.close(master)


def judged(root: Path, env: dict[str, str], *command: str | Path) -> None:
    words = [str(part) for part in command]
    done = subprocess.run(
        words,
        env=env,
        cwd=root,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    if done.returncode:
        sys.exit(f"error: {' '.join(words[:3])}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
