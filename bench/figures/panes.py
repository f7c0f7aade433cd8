"""A hundred panes watched over one control-mode connection, against one tmux process per command."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from pathlib import Path

from bench.numbers import Times, ms
from bench.table import Row
from sm.tmux.client import TmuxClient, TmuxServerSettings
from sm.tmux.panes import NewPane, PaneOperations, Program

COUNT = 100


async def rows(*, quick: bool) -> list[Row]:
    rounds = 3 if quick else 20
    with tempfile.TemporaryDirectory(prefix="sm-b-") as folder:
        socket = Path(folder) / "s"
        environment = {"PATH": os.environ["PATH"], "HOME": folder}
        async with TmuxClient(TmuxServerSettings(socket=socket, environment=environment, umask=0o077)) as client:
            panes = PaneOperations(client)
            made = [await panes.create(pane(Path(folder), number)) for number in range(10 if quick else COUNT)]
            processes = children()
            ours = [await one_round(panes, [pane.pane_id for pane in made]) for _ in range(rounds)]
            started = children() - processes
            theirs = [await by_process(socket, made[0].pane_id) for _ in range(rounds)]
            await client.kill_server()
    per_pane = Times(tuple(ours)).median / len(made)
    process = Times(tuple(theirs)).median
    what = f"one look at each of {len(made)} panes: per pane"
    measured = f"{ms(per_pane)}, 1 connection, {max(0, started)} processes started"
    return [Row(what, "no process per poll", measured, f"one tmux process: {ms(process)}", started <= 0)]


def pane(folder: Path, number: int) -> NewPane:
    program = Program(("sleep", "600"), folder, {}, folder / f"{number}.log")
    return NewPane(f"{number:08x}", f"p{number}", program)


async def one_round(panes: PaneOperations, identities: list[str]) -> float:
    began = time.perf_counter()
    for identity in identities:
        await panes.snapshot(identity)
    return time.perf_counter() - began


async def by_process(socket: Path, identity: str) -> float:
    began = time.perf_counter()
    command = ("tmux", "-S", str(socket), "capture-pane", "-p", "-t", identity)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
    await process.wait()
    return time.perf_counter() - began


def children() -> int:
    """How many processes this one has started and not collected."""
    return len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())
