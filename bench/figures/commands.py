"""`sm handoff`, `sm status` and `sm send` as an agent runs them: whole processes, against the bare interpreter."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from bench.figures.running import environment, settled
from bench.numbers import by_turns, ms, process
from bench.table import Row
from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import person_settings
from tests.e2e.rig import ROOT, Rig

BAR = 4.0


async def rows(*, quick: bool) -> list[Row]:
    rounds = 5 if quick else 40
    measures = Turn("hand off", steps=[Call("Bash", command=f"{sys.executable} measure.py {rounds}"), Say("ok")])
    async with Rig(
        scenario(measures, otherwise=Say("ok")), config="[limits]\nsends_per_minute = 1000\n", as_installed=True
    ) as rig:
        rig.use_scripted_agent()
        person_settings(rig, permissions={"defaultMode": "default", "allow": ["Bash"]})
        session = await rig.new("hello")
        await settled(rig, session)
        env = await environment(rig, session)
        other = await rig.new(name="other")
        document = rig.project / "handoff.md"
        document.write_text("# Handoff\n")
        sm = str(rig.home.bin / "sm")
        python = sys.executable  # a link to the binary itself, no shim
        works = {
            "python3 -I -c pass": process([python, "-I", "-c", "pass"], env),
            "sm status": process([sm, "status"], env),
            "sm send": process([sm, "send", other, "the tests pass"], env),
        }
        times = await asyncio.to_thread(by_turns, works, rounds)
        handoffs = await _handoffs(rig, session, document)
    bare = times["python3 -I -c pass"].median
    values = {
        "sm handoff": bare * handoffs,
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


MEASURE = """
import json, os, sys
sys.path.insert(0, {root!r})
from bench.numbers import by_turns, process
env = dict(os.environ)
works = {{
    "bare": process([{python!r}, "-I", "-c", "pass"], env),
    "handoff": process([{sm!r}, "handoff", {document!r}], env),
}}
times = by_turns(works, int(sys.argv[1]))
open("measured", "w").write(str(times["handoff"].median / times["bare"].median))
"""


async def _handoffs(rig: Rig, session: str, document: Path) -> float:
    """How many times a bare interpreter `sm handoff` takes: measured by the agent, since nobody else may call it.

    While its turn runs each call replaces the one before, so that no rotation comes in between.
    """
    places = {"root": str(ROOT), "python": sys.executable, "sm": str(rig.home.bin / "sm"), "document": str(document)}
    text = MEASURE.format(**places)
    (rig.project / "measure.py").write_text(text)
    await rig.ask("POST", f"/sessions/{session}/messages", {"text": "please hand off"})
    measured = rig.project / "measured"
    await rig.until(lambda: measured.exists() and bool(measured.read_text()), "the handoffs are measured", 300.0)
    await rig.wait_phase(session, "done")
    return float(measured.read_text())
