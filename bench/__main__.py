"""`make bench`: measures the figures, prints them, and writes bench/RESULTS.md. No figure fails anything.

make bench                              # all of them
make bench ARGS="reading commands"      # some; RESULTS.md is left alone
make bench ARGS="--quick"               # fewer rounds; RESULTS.md is left alone
"""

from __future__ import annotations

import asyncio
import importlib
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench.table import Row, markdown, plain

FIGURES = (
    *("commands", "reading", "fidelity", "panes", "server", "search", "link"),
    *("calls", "inside", "codex", "rotation", "restart", "runs", "watch", "soak", "tests"),
)
RESULTS = Path(__file__).with_name("RESULTS.md")
NOTES = Path(__file__).with_name("NOTES.md")


def main() -> None:
    arguments = sys.argv[1:]
    quick = "--quick" in arguments
    wanted = [name for name in arguments if not name.startswith("-")]
    unknown = sorted(set(wanted) - set(FIGURES))
    if unknown:
        sys.exit(f"error: no such figure: {', '.join(unknown)}\nhint: one of {' '.join(FIGURES)}")
    rows = asyncio.run(measured(wanted or list(FIGURES), quick=quick))
    if not wanted and not quick:
        RESULTS.write_text(report(rows), encoding="utf-8")
        print(f"written to {RESULTS.name}")


async def measured(names: list[str], *, quick: bool) -> list[Row]:
    rows: list[Row] = []
    for name in names:
        module = importlib.import_module(f"bench.figures.{name}")
        for row in await module.rows(quick=quick):
            rows.append(row)
            print(plain(row), flush=True)
    return rows


def report(rows: list[Row]) -> str:
    missed = [row.what for row in rows if row.holds is False]
    verdict = f"Bars that did not hold in this run: {'; '.join(missed)}." if missed else "Every bar held in this run."
    return (
        f"# Results\n\nMade by `make bench` on {datetime.now(UTC):%Y-%m-%d}: {machine()}.\n"
        "Medians of interleaved rounds on a shared, noisy machine: read each beside the comparison of the same run.\n\n"
        f"{markdown(rows)}\n{verdict}\n\n{NOTES.read_text(encoding='utf-8')}"
    )


def machine() -> str:
    tmux = subprocess.run(["tmux", "-V"], capture_output=True, text=True, check=True).stdout.strip()
    load = os.getloadavg()[0]
    python = f"Python {platform.python_version()}"
    return f"{os.cpu_count()} cores, {platform.system()}, {python}, {tmux}, load {load:.1f}"


if __name__ == "__main__":
    main()
