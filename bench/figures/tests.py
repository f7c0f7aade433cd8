"""`make check` and `make test` as a whole, with what they cost in processor time."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import time

from bench.table import Row
from tests.e2e.rig import ROOT

BARS = {"check": 60.0, "test": 480.0}
"""Seconds on two quiet cores, set-up done."""


async def rows(*, quick: bool) -> list[Row]:
    return [await asyncio.to_thread(timed, name) for name in (["check"] if quick else BARS)]


def timed(name: str) -> Row:
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "scripts/tasks.py", name]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    summary = [line.strip("= ") for line in ran.stdout.splitlines() if " passed" in line]
    result = "; ".join(summary) or f"exit code {ran.returncode}"
    bar = BARS[name]
    return Row(f"`make {name}`", f"≤ {bar:.0f} s", f"{took:.0f} s", f"{spent:.0f} s of processor time; {result}",
               took <= bar and ran.returncode == 0)  # fmt: skip
