"""Rotations and messages on the real client: Stop → first request of the new context, message → its prompt."""

from __future__ import annotations

import asyncio
import time

from bench.figures.running import settled
from bench.numbers import Times, ms
from bench.table import Row
from sm.testing.scenario import Call, Say, Scenario, Turn, scenario
from tests.e2e.rig import Rig

ROTATION, MESSAGE = 0.5, 0.15
DOCUMENT = "# Handoff\n\nGoal, state, next step.\n" + "What the next context must know of this work. " * 130
"""About 6 KB, as in the field."""


def script() -> Scenario:
    hand_off = [
        Call("Bash", command="sm handoff - <<'EOF'\n" + DOCUMENT + "\nEOF"),
        Say("Handed off.", delay=0.4),
    ]
    return scenario(
        Turn("hand off", steps=hand_off),
        Turn("continue from where you left off", steps=[Say("Going on.")]),
        otherwise=Say("ok"),
    )


async def rows(*, quick: bool) -> list[Row]:
    rounds = 2 if quick else 10
    async with Rig(script(), as_installed=True) as rig:
        session = await rig.new("hello")
        await settled(rig, session)
        plain = [await rotate(rig, session, "") for _ in range(rounds)]
        drafted = [await rotate(rig, session, "half a thought") for _ in range(rounds)]
        rig.press(session, "C-u")
        spoken = [await message(rig, session, number) for number in range(rounds)]
    beside = "design's prototype 0.29 s, 0.32 s with a draft"
    return [
        row("Stop → first request of the new context", plain, ROTATION, beside),
        row("the same with a draft kept in the box", drafted, ROTATION, beside),
        row("message to an idle agent → its prompt submitted", spoken, MESSAGE, "0.04 s seen by hand"),
    ]


def row(what: str, values: list[float], bar: float, beside: str) -> Row:
    times = Times(tuple(values))
    measured = f"{ms(times.median)} (p90 {ms(times.p90)}, n={len(times)})"
    return Row(f"{what}, real client", f"≤ {bar} s", measured, beside, times.median <= bar)


async def rotate(rig: Rig, session: str, draft: str) -> float:
    before = len(rig.model.main_requests)
    events = len(await rig.events(session, "TurnEnded"))
    await rig.ask("POST", f"/sessions/{session}/messages", {"text": "please hand off"})
    if draft:
        await rig.wait_event(session, "HandoffRequested", len(await rig.events(session, "HandoffRequested")) + 1)
        rig.type(session, draft)
    request = await rig.model.wait_for(
        lambda r: r.number > before and "continue from where you left off" in r.user_text, within=30
    )
    stop = await rig.wait_event(session, "TurnEnded", events + 1)
    await rig.wait_phase(session, "done")
    await settled(rig, session)
    if draft:  # given back by the client: leave the box as it was found
        rig.press(session, "C-u")
    return request.epoch - float(stop["at"])


async def message(rig: Rig, session: str, number: int) -> float:
    await settled(rig, session)
    await asyncio.sleep(0.3)
    count = len(await rig.events(session, "PromptSubmitted"))
    sent = time.time()
    await rig.ask("POST", f"/sessions/{session}/messages", {"text": f"note number {number}"})
    submitted = await rig.wait_event(session, "PromptSubmitted", count + 1)
    return float(submitted["at"]) - sent
