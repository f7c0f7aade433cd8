"""`sm run` on the real client: from the Stop hook to the first request of the fresh client that takes over."""

from __future__ import annotations

from bench.numbers import Times, ms
from bench.table import Row
from sm.testing.scenario import Call, Say, Scenario, Turn, scenario
from tests.e2e.foreground import Terminal
from tests.e2e.rig import Rig

RELAUNCH = 1.6
AWOKE = "continue from where you left off"
DOCUMENT = "# Handoff\n\nGoal, state, next step.\n" + "What the next context must know of this work. " * 130


def script() -> Scenario:
    hand_off = [Call("Bash", command="sm handoff - <<'EOF'\n" + DOCUMENT + "\nEOF"), Say("Handed off.", delay=0.4)]
    return scenario(Turn("hand off", steps=hand_off), Turn(AWOKE, steps=[Say("Going on.")]), otherwise=Say("ok"))


async def rows(*, quick: bool) -> list[Row]:
    rounds = [await relaunch() for _ in range(2 if quick else 10)]
    times, clients = (Times(tuple(values)) for values in zip(*rounds, strict=True))
    measured = f"{ms(times.median)} (p90 {ms(times.p90)}, n={len(times)})"
    beside = f"of it the client's own end and start {ms(clients.median)}; a prototype took 1.32 s in all"
    what = "sm run: Stop → first request of the fresh client, real client"
    return [Row(what, f"≤ {RELAUNCH} s", measured, beside, times.median <= RELAUNCH)]


async def relaunch() -> tuple[float, float]:
    """Seconds in all, and from the moment on at which the client is told to end."""
    async with Rig(script(), as_installed=True) as rig:
        with Terminal(rig, ("--model", rig.model_name, "please hand off")) as terminal:
            session = await terminal.session()
            request = await rig.model.wait_for(lambda r: AWOKE in r.user_text, within=60)
            stop = await rig.wait_event(session, "TurnEnded")
            await rig.wait_phase(session, "done")
            await terminal.quit()
            taken = await rig.wait_event(session, "RestartTaken")
            return request.epoch - float(stop["at"]), request.epoch - float(taken["at"])
