"""A screen and a page that watch 200 sessions with 20 events a second: what each takes, and how late the page is."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from bench.figures.server import resident, used
from bench.fleet import Fleet, Member, fleet, say
from bench.numbers import Times, mib, ms
from bench.table import Row
from sm import hook

SIZE, QUICK_SIZE = 200, 20
RATE = 20
SCREEN_SHARE = 0.02
PAGE_S = 0.1
COLUMNS, LINES = 200, 50
SETTLES_S = 10.0
LATEST_S = 2.0


async def rows(*, quick: bool) -> list[Row]:
    seconds = 4.0 if quick else 30.0
    async with fleet(QUICK_SIZE if quick else SIZE) as found:
        await asyncio.sleep(2.0 if quick else SETTLES_S)
        alone = await loaded(found, seconds)
        with screen(found) as shown:
            await asyncio.sleep(3.0)
            resting = await used(shown, seconds)
            with_screen, taken = await asyncio.gather(loaded(found, seconds), used(shown, seconds))
            memory = resident(shown)
        async with page(found) as arrivals:
            with_page = await loaded(found, seconds, arrivals)
    what = f"{len(found.members)} sessions, {RATE} events/s"
    beside = (
        f"with nothing to report {resting:.1%}; resident {mib(memory)}; the server {with_screen.share:.1%},"
        f" alone {alone.share:.1%}"
    )
    late = with_page.late
    told = f"p90 {ms(late.p90)}, n={len(late)} of {with_page.sent}"
    return [
        Row(f"sm watch, {what}: share of one core", "≤ 2 %", f"{taken:.1%}", beside, taken <= SCREEN_SHARE),
        Row(
            f"page, {what}: hook sent → its row on the stream",
            "≤ 0.1 s",
            f"{ms(late.median)} ({told})",
            f"the server {with_page.share:.1%} of one core, with no page {alone.share:.1%}",
            late.median <= PAGE_S,
        ),
    ]


class Loaded:
    """What a load has cost the server, and how late each change was on the page."""

    def __init__(self) -> None:
        self.share = 0.0
        self.sent = 0
        self.delays: list[float] = []

    @property
    def late(self) -> Times:
        return Times(tuple(self.delays))


Arrivals = dict[str, list[float]]
"""By session: when its row came."""


async def loaded(found: Fleet, seconds: float, arrivals: Arrivals | None = None) -> Loaded:
    """Have turns begin and end, `RATE` times a second, in one session after the other."""
    result = Loaded()
    result.share, begun = await asyncio.gather(used(found.server, seconds), turns(found, seconds))
    result.sent = len(begun)
    if arrivals is not None:
        await asyncio.sleep(LATEST_S)
        for member, sent in begun:
            came = next((at for at in arrivals.get(member.id, ()) if at >= sent), None)
            if came is not None and came - sent < LATEST_S:
                result.delays.append(came - sent)
    return result


async def turns(found: Fleet, seconds: float) -> list[tuple[Member, float]]:
    """Return whose turn began or ended, and when that was sent."""
    begun: list[tuple[Member, float]] = []
    ends = time.perf_counter() + seconds
    number = 0
    while time.perf_counter() < ends:
        member = found.members[number % len(found.members)]
        round_number = number // len(found.members)
        payload = member.prompted("work") if round_number % 2 == 0 else member.ended()
        sent = time.perf_counter()
        await asyncio.to_thread(say, found.url, member, payload)
        begun.append((member, sent))
        number += 1
        await asyncio.sleep(max(0.0, sent + 1 / RATE - time.perf_counter()))
    return begun


@contextmanager
def screen(found: Fleet) -> Iterator[int]:
    """Run `sm watch` in a terminal of its own whose output is read; yield its process."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    env = {**found.rig.server_env(), "TERM": "xterm-256color"}
    with subprocess.Popen(
        [sys.executable, "-m", "sm", "watch"],
        env=env,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd="/",
        start_new_session=True,
    ) as process:
        os.close(slave)

        def read() -> None:
            with contextlib.suppress(OSError):
                while os.read(master, 1 << 16):
                    pass

        threading.Thread(target=read, daemon=True).start()
        try:
            yield process.pid
        finally:
            if process.poll() is not None:
                raise RuntimeError(f"sm watch has ended with {process.returncode}")
            process.terminate()
    os.close(master)


@asynccontextmanager
async def page(found: Fleet) -> AsyncIterator[Arrivals]:
    """Open the stream of the page; yield when each session's row came."""
    arrivals: Arrivals = {}
    host, _, port = found.url.partition("://")[2].rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    token = found.rig.home.token.read_text().strip()
    writer.write(hook.request_bytes("GET", "/web/live", token, b"", "Accept: text/event-stream\r\n"))
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"the page's stream was answered with {head[:60]!r}")

    async def follow() -> None:
        while data := await reader.read(1 << 20):
            now = time.perf_counter()
            for member in found.members:
                if f'"row-{member.id}"'.encode() in data:
                    arrivals.setdefault(member.id, []).append(now)

    async with asyncio.TaskGroup() as group:
        following = group.create_task(follow())
        await asyncio.sleep(SETTLES_S)
        yield arrivals
        following.cancel()
    writer.close()
