"""The link to 10, 100 and 1,000 clients that a plugin drives from inside: what it costs, and how fast it is."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass

from bench.figures.server import resident, used
from bench.fleet import Member, say
from bench.numbers import Times, mib, ms
from bench.standins import StandIn, StandIns, standins
from bench.table import Row

SIZES, QUICK_SIZES = (10, 100, 1_000), (10, 30)
WORKING = 10
PUSH_S = 0.01
IDLE_SHARE = 0.05
LOOK_INTERVAL_S = 0.5
"""Between two replies of an agent's model: each is followed by a report of its context."""
NOISE = 1.25
"""What a thousand may cost beyond ten times a hundred, as two runs of the same differ by it."""


@dataclass(frozen=True, slots=True)
class Found:
    size: int
    memory: int
    idle: float
    orders: Times
    reports: Times


async def rows(*, quick: bool) -> list[Row]:
    found = [await measured(size, quick=quick) for size in (QUICK_SIZES if quick else SIZES)]
    return [*(row for one in found for row in of(one)), *growth(found)]


async def measured(size: int, *, quick: bool) -> Found:
    seconds, count = (5.0, 20) if quick else (30.0, 200)
    arrivals: asyncio.Queue[tuple[StandIn, str, float]] = asyncio.Queue()

    def carry_out(client: StandIn, text: str) -> None:
        arrivals.put_nowait((client, text, time.perf_counter()))

    async with standins(size, carry_out) as here:
        await asyncio.sleep(2.0 if quick else 20.0)  # what the starts have left to do
        memory = resident(here.fleet.server)
        idle = await used(here.fleet.server, seconds)
        working, resting = here.clients[: min(WORKING, size // 2)], here.clients[min(WORKING, size // 2) :]
        orders, reports = await under_load(here, arrivals, working, resting, count)
        return Found(size, memory, idle, Times(tuple(orders)), Times(tuple(reports)))


async def under_load(
    here: StandIns,
    arrivals: asyncio.Queue[tuple[StandIn, str, float]],
    working: list[StandIn],
    resting: list[StandIn],
    count: int,
) -> tuple[list[float], list[float]]:
    """Give orders to those that rest, one after the other, while the others work and report."""
    reports: list[float] = []
    for client in working:
        await asyncio.to_thread(say, here.fleet.url, client.member, client.member.prompted("work"))
    async with asyncio.TaskGroup() as group:
        loads = [group.create_task(reporting(client, reports)) for client in working]
        orders = [await order(here, arrivals, random.choice(resting), number) for number in range(count)]
        for load in loads:
            load.cancel()
    return orders, reports


async def reporting(client: StandIn, took: list[float]) -> None:
    await asyncio.sleep(random.uniform(0, LOOK_INTERVAL_S))
    while True:
        took.append(await client.report())
        await asyncio.sleep(LOOK_INTERVAL_S)


async def order(
    here: StandIns, arrivals: asyncio.Queue[tuple[StandIn, str, float]], client: StandIn, number: int
) -> float:
    """Send a message to an idle session; return how long it took from the request to the order at its client."""
    text = f"note number {number}"
    began = time.perf_counter()
    await here.rig.ask("POST", f"/sessions/{client.member.id}/messages", {"text": text})
    async with asyncio.timeout(30):
        found, came, at = await arrivals.get()
    if (found, came) != (client, text):
        raise RuntimeError(f"{came!r} came to another client than {text!r}")
    await asyncio.to_thread(turn, here.fleet.url, client.member, text)
    await asyncio.sleep(0.05)
    return at - began


def turn(url: str, member: Member, text: str) -> None:
    for payload in (member.prompted(text), member.ended()):
        say(url, member, payload)


def of(found: Found) -> list[Row]:
    who = f"{found.size:,} clients on the link"
    working = f"{min(WORKING, found.size // 2)} of them working"
    bar = found.size == 100
    orders, reports = found.orders, found.reports
    return [
        Row(
            f"{who}: message sent → order at its client, p50",
            "≤ 10 ms" if bar else "–",
            f"{ms(orders.median)} (p99 {ms(orders.p99)}, n={len(orders)})",
            f"{working}; a report p50 {ms(reports.median)}, p99 {ms(reports.p99)}, n={len(reports)}",
            orders.median <= PUSH_S if bar else None,
        ),
        Row(
            f"{who}: server idle, share of one core",
            "≤ 5 %" if found.size == SIZES[-1] else "–",
            f"{found.idle:.1%}",
            f"server resident {mib(found.memory)}",
            found.idle <= IDLE_SHARE if found.size == SIZES[-1] else None,
        ),
    ]


def growth(found: list[Found]) -> list[Row]:
    """What each further client costs, among the most of them and among fewer."""
    few, some, many = found[0], found[-2], found[-1]
    if few is some:
        return []
    memory = [(b.memory - a.memory) / (b.size - a.size) for a, b in ((few, some), (some, many))]
    idle = [(b.idle - a.idle) / (b.size - a.size) for a, b in ((few, some), (some, many))]
    holds = memory[1] <= NOISE * memory[0] and idle[1] <= NOISE * idle[0]
    measured = f"{memory[1] / 1024:.0f} KiB and {idle[1]:.4%} of a core each, from {some.size:,} to {many.size:,}"
    beside = f"{memory[0] / 1024:.0f} KiB and {idle[0]:.4%} from {few.size:,} to {some.size:,}"
    return [Row("each further client on the link", "no more than linear", measured, beside, holds)]
