"""`sm run` on the real client: from the Stop hook to the first request of the fresh client that takes over."""

from __future__ import annotations

from bench.numbers import Times, ms
from bench.table import Row
from sm.testing.scenario import Call, Say, Scenario, Turn, scenario
from tests.e2e.foreground import Terminal
from tests.e2e.rig import Rig

RELAUNCH, IN_PLACE = 1.6, 0.5
BY_MOD = '[claude]\ndriver = "mod"\n'
BY_KEYS = '[claude]\ndriver = "keys"\n'
AWOKE = "continue from where you left off"
DOCUMENT = "# Handoff\n\nGoal, state, next step.\n" + "What the next context must know of this work. " * 130


def script() -> Scenario:
    hand_off = [Call("Bash", command="sm handoff - <<'EOF'\n" + DOCUMENT + "\nEOF"), Say("Handed off.", delay=0.4)]
    return scenario(Turn("hand off", steps=hand_off), Turn(AWOKE, steps=[Say("Going on.")]), otherwise=Say("ok"))


async def rows(*, quick: bool) -> list[Row]:
    rounds = 2 if quick else 10
    times, clients = await handed_off(BY_KEYS, rounds, "RestartTaken")
    beside = f"of it the client's own end and start {ms(clients.median)}; a prototype took 1.32 s in all"
    kept, clears = await handed_off(BY_MOD, rounds, "ComposerReady")
    inside = f"from the order to clear on {ms(clears.median)}"
    return [
        row("sm run: Stop → first request of the fresh client, real client", times, RELAUNCH, beside),
        row("sm run by the plugin, in the same client", kept, IN_PLACE, inside),
    ]


def row(what: str, times: Times, bar: float, beside: str) -> Row:
    measured = f"{ms(times.median)} (p90 {ms(times.p90)}, n={len(times)})"
    return Row(what, f"≤ {bar} s", measured, beside, times.median <= bar)


async def handed_off(config: str, rounds: int, step: str) -> tuple[Times, Times]:
    """Seconds in all, and from that step on."""
    found = [await once(config, step) for _ in range(rounds)]
    whole, rest = zip(*found, strict=True)
    return Times(whole), Times(rest)


async def once(config: str, step: str) -> tuple[float, float]:
    async with Rig(script(), config=config, as_installed=True) as rig:
        with Terminal(rig, ("--model", rig.model_name, "please hand off")) as terminal:
            session = await terminal.session()
            request = await rig.model.wait_for(lambda r: AWOKE in r.user_text, within=60)
            stop = await rig.wait_event(session, "TurnEnded")
            await rig.wait_phase(session, "done")
            await terminal.quit()
            came = await rig.wait_event(session, step)
            return request.epoch - float(stop["at"]), request.epoch - float(came["at"])
