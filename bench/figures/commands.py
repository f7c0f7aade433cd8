"""`sm handoff`, `sm status` and `sm send` as an agent runs them: whole processes, against the bare interpreter."""

from __future__ import annotations

import asyncio
import sys

from bench.figures.running import environment, settled
from bench.numbers import by_turns, ms, process
from bench.table import Row
from sm.providers.scripted.scenario import Say, scenario
from tests.e2e.rig import Rig

BAR = 4.0


async def rows(*, quick: bool) -> list[Row]:
    async with Rig(scenario(otherwise=Say("ok")), config="[limits]\nsends_per_minute = 1000\n") as rig:
        rig.use_scripted_agent()
        session = await rig.new("hello")
        await settled(rig, session)
        env = await environment(rig, session)
        other = await rig.new(name="other")
        document = rig.project / "handoff.md"
        document.write_text("# Handoff\n")
        sm = str(rig.home.bin / "sm")
        python = sys.executable  # a link to the binary itself, no shim
        # A handoff of an idle session rotates at once and is refused while that lasts: --status takes the same path.
        works = {
            "python3 -I -c pass": process([python, "-I", "-c", "pass"], env),
            "sm handoff --status": process([sm, "handoff", "--status"], env),
            "sm status": process([sm, "status"], env),
            "sm send": process([sm, "send", other, "the tests pass"], env),
            "sm handoff": process([sm, "handoff", str(document)], env),
        }
        handoff = works.pop("sm handoff")
        times = await asyncio.to_thread(by_turns, works, 5 if quick else 40)
        singles = []
        for _ in range(3 if quick else 15):
            singles.append((await asyncio.to_thread(by_turns, {"sm handoff": handoff}, 1))["sm handoff"].median)
            await rig.wait_phase(session, "done")
            await settled(rig, session)
            document.write_text("# Handoff\n")
    bare = times["python3 -I -c pass"].median
    values = {
        "sm handoff": sorted(singles)[len(singles) // 2],
        **{name: times[name].median for name in ("sm status", "sm send")},
    }
    beside = f"bare interpreter {ms(bare)}"
    return [
        Row(
            f"`{name}` as a whole process",
            f"≤ {BAR:.0f} ×",
            f"{value / bare:.2f} × ({ms(value)})",
            beside,
            value <= BAR * bare,
        )
        for name, value in values.items()
    ]
