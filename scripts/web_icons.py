"""Draws the PNG icons of the page from its SVG icons, in a real browser: for devices that take no SVG.

`.venv/bin/python scripts/web_icons.py` writes them beside the SVG files.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
STATIC = ROOT / "src" / "sm" / "web" / "static"
ICONS = (
    ("icon.svg", "icon-192.png", 192),
    ("icon.svg", "icon-512.png", 512),
    ("icon-maskable.svg", "icon-maskable-512.png", 512),
    ("icon-maskable.svg", "apple-touch-icon.png", 180),
    ("badge.svg", "badge-96.png", 96),
)
"""The first four are of an app, the last one is the small one beside a notification: white, and its ground is clear."""


def main() -> None:
    browser = importlib.import_module("scripts.browser")
    with tempfile.TemporaryDirectory() as home, sync_playwright() as player:
        env: dict[str, str | float | bool] = {
            "PATH": "/usr/bin:/bin", "HOME": home, "LD_LIBRARY_PATH": str(browser.LIBRARIES)
        }  # fmt: skip
        chromium = player.chromium.launch(executable_path=browser.CHROMIUM, args=["--no-sandbox"], env=env)
        for drawn, written, size in ICONS:
            tab = chromium.new_page(viewport={"width": size, "height": size})
            tab.set_content(f"<style>body{{margin:0}}svg{{display:block}}</style>{(STATIC / drawn).read_text()}")
            tab.locator("svg").screenshot(path=STATIC / written, omit_background=True)
            tab.close()
        chromium.close()


if __name__ == "__main__":
    main()
