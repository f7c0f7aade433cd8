"""Time hooks add to each tool call of the real client: none, a `/bin/true` command, a bare http server, and ours."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

from bench import floor
from bench.figures.running import settled
from bench.numbers import Times, ms
from bench.table import Row
from sm.testing.scenario import Call, Say, Scenario, Turn, scenario
from tests.e2e.rig import Rig

TRUE = {"PostToolUse": [{"hooks": [{"type": "command", "command": "/bin/true", "args": []}]}]}


def script(calls: int) -> Scenario:
    steps = [*(Call("Bash", command="true") for _ in range(calls)), Say("Done.")]
    return scenario(Turn("many calls", steps=steps), otherwise=Say("ok"))


async def rows(*, quick: bool) -> list[Row]:
    rounds, calls = (1, 10) if quick else (6, 35)
    with floor.running() as url:
        bare = {"PostToolUse": [{"hooks": [{"type": "http", "url": url}]}]}
        kinds: dict[str, dict[str, Any] | None] = {"none": {}, "true": TRUE, "bare": bare, "sm": None}
        found: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(rounds):
            for name, hooks in kinds.items():
                found[name].extend(await pauses(hooks, calls))
    none, true, answered, ours = (Times(tuple(values)) for values in found.values())
    added = ours.median - none.median
    unsure = math.hypot(ours.spread, true.spread)
    measured = f"{signed(added)} ± {ms(unsure)} (median {ms(ours.median)}, p90 {ms(ours.p90)}, n={len(ours)})"
    beside = (
        f"`/bin/true` hook {signed(true.median - none.median)}; "
        f"http hook to a bare asyncio server {signed(answered.median - none.median)}; "
        f"no hook: median {ms(none.median)}, p90 {ms(none.p90)}"
    )
    holds = ours.median - true.median <= unsure
    return [Row("added per tool call, real client", "≤ a `/bin/true` hook", measured, beside, holds)]


def signed(seconds: float) -> str:
    return f"{seconds * 1000:+.1f} ms"


async def pauses(hooks: dict[str, Any] | None, calls: int) -> list[float]:
    """Seconds between the requests of one turn; our own hooks where none are given."""
    async with Rig(script(calls), as_installed=True) as rig:
        session = await rig.new("hello")
        await settled(rig, session)
        await restart_with(rig, session, hooks)
        before = len(rig.model.main_requests)
        rig.type(session, "many calls")
        await rig.wait_screen(session, "many calls")
        rig.press(session, "Enter")
        await rig.model.wait_for(lambda _: len(rig.model.main_requests) >= before + calls + 1, within=60)
        times = [request.at for request in rig.model.main_requests[before:]]
    return [later - earlier for earlier, later in itertools.pairwise(times)][2:]


async def restart_with(rig: Rig, session: str, hooks: dict[str, Any] | None) -> None:
    """The same client in the same pane with other hooks: only what is compared differs."""
    settings: Path = rig.home.launch_settings(session)
    content = json.loads(settings.read_text())
    if hooks is not None:
        settings.write_text(json.dumps({**content, "hooks": hooks}))
    view = await rig.view(session)
    conversation = view["conversation"]
    argv = [rig.client, "--settings", str(settings), "--resume", conversation, "--model", rig.model_name]
    rig.tmux("respawn-pane", "-k", "-t", rig.pane(session), "--", *argv)
    await rig.wait_screen(session, "for shortcuts")
