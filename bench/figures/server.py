"""The server under hooks of a hundred sessions: time per hook, the rate it keeps up with, memory, idle time."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from bench import floor
from bench.fleet import SIZE, Fleet, fleet
from bench.load import Outcome, offer
from bench.numbers import by_turns, mib, ms, process
from bench.table import Row

RATE = 200
CATCHES_UP = 15.0
"""Seconds in which the search index has taken in most of what the load has written."""
MAX_CATCHES_UP = 120.0
FALLS = 0.002
"""Of a core, from one look to the next: while it falls by more, the server has not come to rest."""
P50, P99 = 0.001, 0.005
ENOUGH = 1_000
MEMORY = 80 << 20
STEPS = (600, 800, 1_000, 1_200, 1_500, 1_800, 2_200)


async def rows(*, quick: bool) -> list[Row]:
    seconds = 2.0 if quick else 10.0
    async with fleet(10 if quick else SIZE) as found:
        bottom = await asyncio.to_thread(lowest, found, seconds / 2)
        steady = await asyncio.to_thread(offer, found.url, found.members, RATE, seconds)
        best = await asyncio.to_thread(highest, found, seconds / 3)
        memory = resident(found.server)
        beside = await asyncio.to_thread(others, found, 5 if quick else 20)
        await asyncio.sleep(2 if quick else CATCHES_UP)
        idle = await at_rest(found.server, seconds)
    times = steady.times
    what = f"one PostToolUse hook, {len(found.members)} sessions, {RATE}/s"
    beside_floor = f"bare asyncio server {ms(bottom.times.median)} / {ms(bottom.times.p99)}; {beside}"
    return [
        Row(f"{what}: p50", "≤ 1 ms", ms(times.median), beside_floor, times.median <= P50),
        Row(f"{what}: p99", "≤ 5 ms", ms(times.p99), beside_floor, times.p99 <= P99),
        Row("highest rate of hooks it keeps up with", "≥ 1,000/s", f"{best:,.0f}/s", "same load", best >= ENOUGH),
        Row(
            f"server resident, {len(found.members)} sessions",
            "≤ 80 MiB",
            mib(memory),
            "after that load",
            memory <= MEMORY,
        ),
        Row("server idle: share of one core", "< 2 %", f"{idle:.1%}", f"{len(found.members)} sessions", idle < 0.02),
    ]


def lowest(found: Fleet, seconds: float) -> Outcome:
    """The same load on a server that does nothing."""
    with floor.running() as url:
        return offer(url, found.members, RATE, seconds)


def highest(found: Fleet, seconds: float) -> float:
    """The last rate at which as many hooks were answered as came, half of them within 20 ms."""
    best = 0.0
    for rate in STEPS:
        outcome = offer(found.url, found.members, rate, seconds)
        if outcome.achieved < 0.97 * rate or outcome.times.median > 0.02:
            return max(best, outcome.achieved if outcome.times.median <= 0.02 else 0.0)
        best = outcome.achieved
    return best


def others(found: Fleet, rounds: int) -> str:
    """What other kinds of hook cost as whole processes."""
    member = found.members[0]
    payload = found.rig.root / "payload.json"
    payload.write_bytes(member.tool_used())
    env = {"PATH": os.environ["PATH"], "SM_URL": found.url, "SM_SESSION_TOKEN": member.token}
    hook = Path(__file__).parents[2] / "src" / "sm" / "hook.py"
    head = ["-H", f"Authorization: Bearer {member.token}", "-H", "Content-Type: application/json"]
    python = str(Path(sys.executable).resolve())
    works = {
        "`/bin/true`": process(["/bin/true"], env),
        "hook.py": process([python, "-I", "-S", str(hook), "claude"], env, str(payload)),
    }
    if Path("/usr/bin/curl").exists():
        data = ["--data-binary", f"@{payload}", f"{found.url}/hooks/claude"]
        works["curl"] = process(["/usr/bin/curl", "-s", *head, *data], env)
    times = by_turns(works, rounds)
    return ", ".join(f"{name} {ms(stats.median)}" for name, stats in times.items())


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def used(pid: int, seconds: float) -> float:
    began, ticks = time.perf_counter(), spent(pid)
    await asyncio.sleep(seconds)
    return (spent(pid) - ticks) / os.sysconf("SC_CLK_TCK") / (time.perf_counter() - began)


async def at_rest(pid: int, seconds: float) -> float:
    """The share of a core that the server takes once it has come to rest: a fast machine leaves it more to index."""
    share, ends = await used(pid, seconds), time.perf_counter() + MAX_CATCHES_UP
    while time.perf_counter() < ends:
        before, share = share, await used(pid, seconds)
        if before - share < FALLS:
            break
    return share


def spent(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
