"""Copies what the page of `sm web` takes from npm into the package: pinned versions, each file with its hash.

`.venv/bin/python scripts/web_assets.py` fetches them with npm into a directory of its own and writes
`src/sm/web/static/vendor`; with `--hashes` it prints the table for a new version. The files are committed, so that
nothing is fetched or built where `sm` is installed; `tests/web/test_page_assets.py` compares them with this table.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "src" / "sm" / "web" / "static" / "vendor"
PACKAGES = {
    "htmx.org": "2.0.11",
    "uplot": "1.6.32",
    "@xterm/xterm": "6.0.0",
}
FILES = {
    "htmx.min.js": ("htmx.org", "dist/htmx.min.js"),
    "htmx.LICENSE": ("htmx.org", "LICENSE"),
    "uPlot.iife.min.js": ("uplot", "dist/uPlot.iife.min.js"),
    "uPlot.min.css": ("uplot", "dist/uPlot.min.css"),
    "uPlot.LICENSE": ("uplot", "LICENSE"),
    "xterm.js": ("@xterm/xterm", "lib/xterm.js"),
    "xterm.css": ("@xterm/xterm", "css/xterm.css"),
    "xterm.LICENSE": ("@xterm/xterm", "LICENSE"),
}
"""By name in the package: the npm package and the path in it."""
HASHES = {
    "htmx.min.js": "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717",
    "htmx.LICENSE": "d3d2456f76414f2456104660ebd65aff1c04cd7966b942bdabd63f3cdb316a38",
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uPlot.LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
    "xterm.js": "98d0973151aff2991d335b1adbbdac2e14da26341abe329d677d4c0034402bdf",
    "xterm.css": "854a7c0fb70e8b1a083c16797ab827299fb18744f5ad34f227b48337e33293c6",
    "xterm.LICENSE": "b569f629d00f2626a8100df2a1798210535621e42164dfd426a6fe5aac7b0ccd",
}
"""SHA-256 of each file as it is committed."""
SOURCE_MAP = re.compile(rb"\n?//# sourceMappingURL=\S+\s*\Z")
"""The last line of a script, which would make a browser's tools ask for a file that is not here."""


def content(name: str, modules: Path) -> bytes:
    package, path = FILES[name]
    found = (modules / package / path).read_bytes()
    return SOURCE_MAP.sub(b"\n", found) if name.endswith(".js") else found


def fetched(place: Path) -> Path:
    """Install the pinned packages there, without their scripts; return where they are."""
    (place / "package.json").write_text(json.dumps({"private": True, "dependencies": PACKAGES}))
    quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--silent")
    subprocess.run(["npm", "install", *quiet], cwd=place, check=True)
    return place / "node_modules"


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        modules = fetched(Path(place))
        found = {name: content(name, modules) for name in FILES}
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in found.items()}
    if "--hashes" in sys.argv[1:]:
        print(json.dumps(hashes, indent=4))
        return
    if changed := [name for name in FILES if hashes[name] != HASHES.get(name)]:
        sys.exit(f"error: {', '.join(changed)} is not what the table says\nhint: compare, then put in --hashes")
    VENDOR.mkdir(parents=True, exist_ok=True)
    for name, data in found.items():
        (VENDOR / name).write_bytes(data)
    print(f"{len(found)} files in {VENDOR.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
