"""Draws the terminal pictures of the README: runs a command in a pane of its own and writes what it shows as SVG.

    .venv/bin/python scripts/picture.py docs/demo.svg -- .venv/bin/sm demo

What is drawn is what the pane showed; temporary paths are shortened, nothing else is touched.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from html import escape
from pathlib import Path

from sm.tmux.pane_facts import is_death_notice

COLUMNS, ROWS = 104, 40
CELL, LINE, MARGIN = 8.4, 19, 16
COLOURS = {"31": "#f7768e", "32": "#9ece6a", "33": "#e0af68", "35": "#bb9af7", "36": "#7dcfff", "90": "#7a83a8"}
PLAIN, GROUND = "#c8d3f5", "#1b1e2e"
SGR = re.compile(r"\x1b\[([0-9;]*)m")


def shown(command: list[str]) -> list[str]:
    """What the pane shows once the command has ended."""
    with tempfile.TemporaryDirectory() as scratch:
        tmux = ["tmux", "-S", f"{scratch}/s", "-f", "/dev/null"]
        size = ["-x", str(COLUMNS), "-y", str(ROWS)]
        subprocess.run([*tmux, "new-session", "-d", *size, "--", "sleep", "600"], check=True)
        subprocess.run([*tmux, "set-option", "-g", "remain-on-exit", "on"], check=True)
        subprocess.run([*tmux, "respawn-pane", "-k", "--", *command], check=True)
        try:
            while dead(tmux) == "0":
                time.sleep(0.2)
            look = [*tmux, "capture-pane", "-p", "-e", "-S", "-"]  # the words on its death move it by a line
            capture = subprocess.run(look, check=True, capture_output=True, text=True)
        finally:
            subprocess.run([*tmux, "kill-server"], check=False)
    lines = [line for line in capture.stdout.split("\n") if not is_death_notice(line)]
    while lines and not lines[-1].strip():
        lines.pop()
    return [re.sub(r"/tmp/sm-demo-\w+", "/tmp/sm-demo", line) for line in lines]


def dead(tmux: list[str]) -> str:
    ask = [*tmux, "display-message", "-p", "#{pane_dead}"]
    return subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()


def spans(line: str) -> str:
    """One line as SVG text pieces, coloured as the terminal had them."""
    pieces, colour, at = [], PLAIN, 0
    for match in [*SGR.finditer(line), None]:
        text = line[at : match.start() if match else None]
        if text:
            pieces.append(f'<tspan fill="{colour}">{escape(text)}</tspan>')
        if match:
            at = match.end()
            codes = match.group(1).split(";")
            colour = next((COLOURS[code] for code in codes if code in COLOURS), PLAIN)
    return "".join(pieces)


def drawing(prompt: str, lines: list[str]) -> str:
    rows = [f"\x1b[90m$ {prompt}\x1b[0m", *lines]
    width, height = round(COLUMNS * CELL + 2 * MARGIN), len(rows) * LINE + 2 * MARGIN
    texts = "".join(
        f'<text x="{MARGIN}" y="{MARGIN + (number + 1) * LINE - 5}" xml:space="preserve">{spans(row)}</text>\n'
        for number, row in enumerate(rows)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'font-family="ui-monospace, DejaVu Sans Mono, Menlo, monospace" font-size="14">\n'
        f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>\n{texts}</svg>\n'
    )


def main() -> None:
    target, separator, *command = sys.argv[1:] or [""]
    if separator != "--" or not command:
        sys.exit("usage: python scripts/picture.py FILE.svg -- COMMAND")
    prompt = " ".join([Path(command[0]).name, *command[1:]])
    Path(target).parent.mkdir(exist_ok=True)
    Path(target).write_text(drawing(prompt, shown(command)), encoding="utf-8")


if __name__ == "__main__":
    main()
