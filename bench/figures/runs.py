"""Unattended runs: what the durable engine costs an issue, and how many trivial ones several workers do."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.numbers import Times, ms
from bench.table import Row
from tests.runner import postgres

BAR_S = 0.15
WORKERS = (1, 2, 4)


async def rows(*, quick: bool) -> list[Row]:
    return await asyncio.to_thread(measured, quick=quick)


def measured(*, quick: bool) -> list[Row]:
    issues, rounds = (5, 1) if quick else (40, 5)
    times = Times(tuple(alone(issues) / issues for _ in range(rounds)))
    per_issue = f"{ms(times.median)} (n={rounds} runs of {issues} issues)"
    rates = ", ".join(f"{count}: {rate(count, issues):.1f}/s" for count in WORKERS)
    beside = "steps that take no time: what is left is the engine, with its look for what has ended"
    return [
        Row("unattended run: engine per issue, SQLite", f"≤ {ms(BAR_S)}", per_issue, beside, times.median <= BAR_S),
        Row(
            "unattended run: trivial issues by so many workers, PostgreSQL",
            "–",
            rates,
            "each worker takes one issue at a time, and looks for it four times a second",
            None,
        ),
    ]


def alone(issues: int) -> float:
    """Return the seconds of a run on a file of its own."""
    with tempfile.TemporaryDirectory() as place:
        return seconds(f"{place}/runs.sqlite", issues)


def rate(workers: int, issues: int) -> float:
    """Return the issues per second of so many processes on a PostgreSQL of their own; one of them begins the run."""
    with postgres.running() as url, ExitStack() as stack:
        seconds(url, 1)  # makes the tables
        for _ in range(workers - 1):
            stack.enter_context(worker(url))
        return issues / seconds(url, issues)


def seconds(database: str, issues: int) -> float:
    ran = subprocess.run(command(database, issues), cwd=ROOT, capture_output=True, text=True, check=True)
    return float(ran.stdout)


@contextmanager
def worker(url: str) -> Iterator[None]:
    process = subprocess.Popen([*command(url, 0), "worker"], cwd=ROOT)
    try:
        yield
    finally:
        process.kill()
        process.wait()


ROOT = Path(__file__).parents[2]


def command(database: str, issues: int) -> list[str]:
    return [sys.executable, "-m", "bench.trivial_runs", database, str(issues)]
