"""Installs the browser of `clients/browser`: npm fetches it packed, Node unpacks it. No system package is needed.

Only the standard library, like `scripts/tasks.py`, which calls it.
"""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

PLACE = Path(__file__).resolve().parent.parent / "clients" / "browser"
PACKED = PLACE / "node_modules" / "@sparticuz" / "chromium" / "bin"
UNPACKED = PLACE / "node_modules" / ".chromium"
CHROMIUM = UNPACKED / "chromium"
LIBRARIES = UNPACKED / "lib"
"""Of its own; on LD_LIBRARY_PATH."""
AXE = PLACE / "node_modules" / "axe-core" / "axe.min.js"
ARCHIVES = ("al2023.tar", "fonts.tar")
UNPACK = """
const { createBrotliDecompress } = require("zlib");
const { createReadStream, createWriteStream } = require("fs");
const { pipeline } = require("stream/promises");
const [, from, to] = process.argv;
pipeline(createReadStream(from), createBrotliDecompress(), createWriteStream(to));
"""


def unpack() -> None:
    """Unpack what npm has installed."""
    UNPACKED.mkdir(exist_ok=True)
    for name in ("chromium", *ARCHIVES):
        subprocess.run(["node", "-e", UNPACK, str(PACKED / f"{name}.br"), str(UNPACKED / name)], check=True)
    for name in ARCHIVES:
        with tarfile.open(UNPACKED / name) as archive:
            archive.extractall(UNPACKED, filter="data")
        (UNPACKED / name).unlink()
    CHROMIUM.chmod(0o755)
