"""Draws every picture in `docs/` from what really runs; with names only those: `demo`, `watch`, `web`.

    .venv/bin/python scripts/pictures.py

`demo.svg`: `sm demo` with the client's own pane below it, as an animation. `watch-*.svg`: `sm watch` in a terminal, on
a real server with sessions in all states. `web-*.png`: the page in a real browser (`scripts/web_picture.py`).
"""

from __future__ import annotations

import asyncio
import importlib
import re
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
FRAME_S = 0.12
MAX_WAIT_S = 1.0
"""What does not change for longer, as while the client starts, is shown as long as this."""
READ_S, HOLD_S = 2.5, 6.0
"""How long the session that continues is looked at, and the end of the demo."""
WATCH_SIZES = {"watch-wide": (136, 23), "watch-narrow": (60, 23)}


def demo() -> None:
    """Record `sm demo --keep` and its client, and end it once that has continued."""
    with tempfile.TemporaryDirectory(prefix="s", dir="/tmp") as scratch:
        home = Path(scratch)
        path = re.compile(re.escape(scratch) + r"/sm-demo-\w+")
        wanted = panes.Window(home / "t", COLUMNS, ROWS, lambda text: path.sub("/tmp/sm-demo", text))
        with panes.window(wanted, "sh", "-c", "sm demo --keep; sleep 600", TMPDIR=scratch) as seen:
            frames = [(at, [PROMPT, *screen]) for at, screen in _hastened(_recorded(seen, home))]
    (DOCS / "demo.svg").write_text(terminal_svg.animation(frames, COLUMNS, ROWS + 1, HOLD_S), encoding="utf-8")


def _recorded(seen: panes.Window, home: Path) -> Iterator[tuple[float, Screen]]:
    """Yield each screen that differs from the one before, with its time."""
    before: Screen = []
    attached, continued = False, None
    while not panes.shows(before, "Next: sm doctor"):
        screen = seen.screen()
        if not attached and (state := _demo_home(home)) is not None:
            seen.split(CLIENT_ROWS, "sm", "attach", "--no-start", "demo", SM_HOME=str(state), SM_CONFIG=f"{state}/none")
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


def _demo_home(home: Path) -> Path | None:
    """Return the demo's SM_HOME once its session is there to be attached to."""
    for state in home.glob("sm-demo-*/state"):
        env = panes.environment(home, SM_HOME=str(state), SM_CONFIG=f"{state}/none")
        found = subprocess.run(["sm", "list", "--no-start"], env=env, capture_output=True, text=True, check=False)
        if "demo" in found.stdout:
            return state
    return None


async def watch() -> None:
    for name, (columns, rows) in WATCH_SIZES.items():
        async with _fleet() as place:
            env = {"SM_HOME": f"{place}/state", "SM_CONFIG": f"{place}/config.toml", "SM_NO_START": "1"}
            with panes.window(panes.Window(place / "t", columns, rows), "sm", "watch", **env) as seen:
                screen = await asyncio.to_thread(seen.until, "$0.")
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
