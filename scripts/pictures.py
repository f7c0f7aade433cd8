"""Draws every picture in `docs/` from what really runs; with names only those: `demo`, `watch`, `web`.

    .venv/bin/python scripts/pictures.py

`demo.svg`: `sm demo` with the client's own pane below it, as an animation. `watch-*.svg`: `sm watch` in a terminal, on
a real server with sessions in all states. `web-*.png`: the page in a real browser (`scripts/web_picture.py`).
"""

from __future__ import annotations

import asyncio
import importlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import panes
import terminal_svg
from rich.text import Text
from terminal_svg import Screen

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
COLUMNS, ROWS, CLIENT_ROWS = 104, 37, 21
PROMPT = Text("$ ", "bright_black").append("sm demo --keep", "default")
ROOT_LINE = re.compile(r"Working directory: (/\S+/sm-demo-\w+) ")
FRAME_S = 0.12
MAX_WAIT_S = 1.0
"""What does not change for longer, as while the client starts, is shown as long as this."""
READ_S, HOLD_S = 2.5, 6.0
"""How long the session that continues is looked at, and the end of the demo."""
WATCHED = {"watch-wide": (136, 23, ""), "watch-narrow": (60, 23, ""), "watch-session": (100, 30, "i")}
"""Pictures of the screen: columns, rows, and the key that is pressed first."""
SEEN = {"": "$0.", "i": "rotated"}
"""What the screen shows once all is there."""


def demo() -> None:
    """Record `sm demo --keep` and its client, and end it once that has continued."""
    with tempfile.TemporaryDirectory() as scratch:
        wanted = panes.Window(Path(scratch) / "t", COLUMNS, ROWS)
        with panes.window(wanted, "sh", "-c", "sm demo --keep; sleep 600") as seen:
            frames = [(at, [PROMPT, *screen]) for at, screen in _hastened(_recorded(seen))]
    root = _demo_root(screen for _, screen in frames)
    if root is not None:
        shutil.rmtree(root)
    (DOCS / "demo.svg").write_text(terminal_svg.animation(frames, COLUMNS, ROWS + 1, HOLD_S), encoding="utf-8")


def _recorded(seen: panes.Window) -> Iterator[tuple[float, Screen]]:
    """Yield each screen that differs from the one before, with its time."""
    before: Screen = []
    attached, continued = False, None
    while not panes.shows(before, "Next: sm doctor"):
        screen = seen.screen()
        root = _demo_root([screen])
        if not attached and root is not None and _is_listed(env := _demo_env(root)):
            seen.split(CLIENT_ROWS, "sm", "attach", "--no-start", "demo", **env)
            attached = True
        if continued is None and panes.shows(screen, "Enter ends it"):
            continued = time.monotonic()
        if continued is not None and time.monotonic() > continued + READ_S:
            seen.press("Enter")
            continued = float("inf")
        if screen != before:
            yield time.monotonic(), screen
            before = screen
        time.sleep(FRAME_S)


def _hastened(frames: Iterable[tuple[float, Screen]]) -> Iterator[tuple[float, Screen]]:
    """Yield them with times from 0 on."""
    at, before = 0.0, None
    for then, screen in frames:
        at += 0.0 if before is None else min(then - before, MAX_WAIT_S)
        before = then
        yield at, screen


def _demo_root(screens: Iterable[Screen]) -> Path | None:
    found = (ROOT_LINE.match(line.plain) for screen in screens for line in screen)
    return next((Path(line[1]) for line in found if line), None)


def _demo_env(root: Path) -> dict[str, str]:
    return {"SM_HOME": f"{root}/state", "SM_CONFIG": f"{root}/none"}


def _is_listed(env: dict[str, str]) -> bool:
    """Whether the demo's session can be attached to."""
    asked = ["sm", "list", "--no-start"]
    found = subprocess.run(asked, env=panes.environment(ROOT, **env), capture_output=True, text=True, check=False)
    return "demo" in found.stdout


async def watch() -> None:
    for name, (columns, rows, key) in WATCHED.items():
        async with _fleet() as place:
            env = {"SM_HOME": f"{place}/state", "SM_CONFIG": f"{place}/config.toml", "SM_NO_START": "1"}
            with panes.window(panes.Window(place / "t", columns, rows), "sm", "watch", **env) as seen:
                screen = await asyncio.to_thread(seen.until, SEEN[""])
                if key:
                    seen.press(key)
                    screen = await asyncio.to_thread(seen.until, SEEN[key])
        (DOCS / f"{name}.svg").write_text(terminal_svg.still(screen, columns), encoding="utf-8")


@asynccontextmanager
async def _fleet() -> AsyncIterator[Path]:
    """Run a server with sessions in all states; what they are asked stays open."""
    rig = importlib.import_module("tests.cli.rig")
    states = importlib.import_module("tests.tui.fleet_in_all_states")
    with tempfile.TemporaryDirectory(prefix="sm-picture-") as scratch:
        place = Path(scratch)
        (place / "project").mkdir()
        async with rig.desk_with_server(place) as desk, states.all_states(desk.api, place / "project"):
            yield place


async def web() -> None:
    await importlib.import_module("web_picture").main([])


def main() -> None:
    sys.path.insert(0, str(ROOT))
    wanted = sys.argv[1:] or ["demo", "watch", "web"]
    if unknown := {*wanted} - {"demo", "watch", "web"}:
        sys.exit(f"no such picture: {', '.join(unknown)}; there are demo, watch and web")
    if "demo" in wanted:
        demo()
    for name, drawn in (("watch", watch), ("web", web)):
        if name in wanted:
            asyncio.run(drawn())


if __name__ == "__main__":
    main()
