"""Draws `docs/web-*.png`: the page of `sm web` at desktop and phone width, dark and light, in a real browser.

`.venv/bin/python scripts/web_picture.py` runs a server on the fakes of the tests with a small fleet in it. With a
directory as its argument it draws every page at every width, for looking at.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


async def main(arguments: list[str]) -> None:
    drawing = importlib.import_module("tests.web.page_pictures")
    out = Path(arguments[0]) if arguments else ROOT / "docs"
    with tempfile.TemporaryDirectory() as place:
        drawn = await drawing.pictures(Path(place), out, drawing.EVERY if arguments else drawing.PICTURES)
    print(json.dumps(drawn))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
