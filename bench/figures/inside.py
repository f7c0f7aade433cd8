"""A client that its plugin drives, beside one that keys drive: rotation, messages, warnings, start and memory."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from bench.figures import rotation
from bench.figures.running import settled
from bench.numbers import Times, mib, ms
from bench.table import Row
from sm.testing.scenario import Call, Say, Scenario, Turn, scenario
from tests.e2e.rig import Rig

BY_MOD = '[claude]\ndriver = "mod"\n'
BY_KEYS = '[claude]\ndriver = "keys"\n'
ROTATION, MESSAGE = 0.25, 0.1
DOCUMENT = "# Handoff\n\n" + "A fact that the next context needs to know.\n" * 1_364
"""60,000 characters."""
WARNS = "Consider writing a handoff doc"
LOOKS = Call("Bash", command="sleep 1")
FIRST = Turn("hello there", steps=[Say("Hello.")])


def script() -> Scenario:
    hand_off = [Call("mcp__sm__handoff", document=DOCUMENT), Say("Handed off.", delay=0.4)]
    return scenario(
        FIRST,
        Turn("hand off", steps=hand_off),
        Turn("continue from where you left off", steps=[Say("Going on.")]),
        Turn("work", steps=[LOOKS.but(context=size) for size in (50_000, 110_000, 111_000, 112_000)]),
        otherwise=Say("ok"),
    )


async def rows(*, quick: bool) -> list[Row]:
    rounds = 2 if quick else 10
    return [*await moves(rounds), *await warnings(rounds), *await starts(rounds)]


async def moves(rounds: int) -> list[Row]:
    async with Rig(script(), config=BY_MOD, as_installed=True) as rig:
        session = await driven(rig, "a")
        rotations = [await rotation.rotate(rig, session, "") for _ in range(rounds)]
        carried = sum(DOCUMENT.strip() in request.all_text for request in rig.model.main_requests if woken(request))
        messages = [await rotation.message(rig, session, number) for number in range(rounds)]
    whole = f"document of {len(DOCUMENT):,} characters whole in {carried} of {rounds}"
    return [
        rotation.row("by the plugin: Stop → first request of the new context", rotations, ROTATION, whole),
        rotation.row("by the plugin: message to an idle agent → its prompt", messages, MESSAGE, "0.046 s seen by hand"),
    ]


def woken(request: object) -> bool:
    return "continue from where you left off" in getattr(request, "user_text", "")


async def driven(rig: Rig, name: str) -> str:
    session = await rig.new("hello there", name=name)
    await rig.wait_view(session, lambda view: view["driver"] == "mod", "driven by the plugin")
    await settled(rig, session)
    return session


async def warnings(rounds: int) -> list[Row]:
    """In which request after the one that crossed the threshold the warning is."""
    found: list[int] = []
    async with Rig(script(), config=BY_MOD, as_installed=True) as rig:
        for number in range(rounds):
            session = await driven(rig, f"agent-{number}")
            before = len(rig.model.main_requests)
            await rig.ask("POST", f"/sessions/{session}/messages", {"text": "work"})
            await asked(rig, before + 5)
            said = [WARNS in request.context_text for request in rig.model.main_requests[before:]]
            found.append(said.index(True) - 1 if True in said else 0)
            await settled(rig, session)
            await rig.ask("DELETE", f"/sessions/{session}")
    measured = f"{found.count(1)} of {rounds} in the very next"
    holds = found.count(1) == rounds
    return [Row("by the plugin: a warning, real client", "in the next request", measured, "–", holds)]


async def asked(rig: Rig, count: int) -> None:
    """Wait until the model has been asked so often."""
    await rig.until(lambda: len(rig.model.main_requests) >= count, f"{count} requests", 60)


async def starts(rounds: int) -> list[Row]:
    """From the command to the first request, and the client's memory once it is idle again."""
    kinds = {"plugin": BY_MOD, "keys": BY_KEYS}
    took: dict[str, list[float]] = {kind: [] for kind in kinds}
    memory: dict[str, list[int]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, config in kinds.items():
            async with Rig(script(), config=config, as_installed=True) as rig:
                began = time.monotonic()
                session = await rig.new("hello there")
                request = await rig.model.wait_for(lambda request: "hello there" in request.user_text, within=60)
                took[kind].append(request.at - began)
                await settled(rig, session)
                await asyncio.sleep(2.0)
                memory[kind].append(proportional((await rig.view(session))["pid"]))
    with_it, without = Times(tuple(took["plugin"])), Times(tuple(took["keys"]))
    kept, beside = (Times(tuple(map(float, memory[kind]))).median for kind in kinds)
    return [
        Row(
            "start of a session → its first request, with the plugin",
            "–",
            f"{ms(with_it.median)} (p90 {ms(with_it.p90)}, n={len(with_it)})",
            f"without: {ms(without.median)} (p90 {ms(without.p90)})",
            None,
        ),
        Row("memory of an idle client with the plugin (PSS)", "–", mib(kept), f"without: {mib(beside)}", None),
    ]


def proportional(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
