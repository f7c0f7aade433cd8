"""Time added to each tool call of the real client: by `/bin/true`, a bare http server, our hook, and our plugin."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

from bench import floor
from bench.figures.inside import BY_KEYS, BY_MOD
from bench.figures.running import settled
from bench.numbers import Times, ms
from bench.table import Row
from sm.testing.scenario import Call, Say, Scenario, Turn, scenario
from tests.e2e.rig import Rig

NO_MORE_S = 0.001
TRUE = {"PostToolUse": [{"hooks": [{"type": "command", "command": "/bin/true", "args": []}]}]}


def script(calls: int) -> Scenario:
    steps = [*(Call("Bash", command="true") for _ in range(calls)), Say("Done.")]
    return scenario(Turn("many calls", steps=steps), otherwise=Say("ok"))


async def rows(*, quick: bool) -> list[Row]:
    rounds, calls = (1, 10) if quick else (12, 36)
    with floor.running() as url:
        bare = {"PostToolUse": [{"hooks": [{"type": "http", "url": url}]}]}
        kinds: dict[str, dict[str, Any] | None] = {"none": {}, "true": TRUE, "bare": bare, "sm": None}
        found: dict[str, list[float]] = {name: [] for name in (*kinds, "plugin")}
        for _ in range(rounds):
            for name, hooks in kinds.items():
                found[name].extend(await pauses(hooks, calls))
            found["plugin"].extend(await pauses_with_plugin(calls))
    none, true, answered, ours, plugin = (Times(tuple(values)) for values in found.values())
    beside = (
        f"`/bin/true` hook {signed(true.median - none.median)}; "
        f"http hook to a bare asyncio server {signed(answered.median - none.median)}; "
        f"no hook: median {ms(none.median)}, p90 {ms(none.p90)}"
    )
    return [
        row("added per tool call by our hook, real client", "≤ a `/bin/true` hook", (ours, none, true), 0.0, beside),
        row("added per tool call by the plugin, real client", "≤ 1 ms", (plugin, none, none), NO_MORE_S, beside),
    ]


def row(what: str, bar: str, times: tuple[Times, Times, Times], allowed: float, beside: str) -> Row:
    """`times`: of what is measured, without any of it, and of what it must not exceed by more than `allowed`."""
    ours, none, limit = times
    unsure = math.hypot(ours.spread, limit.spread)
    added = f"{signed(ours.median - none.median)} ± {ms(unsure)}"
    measured = f"{added} (median {ms(ours.median)}, p90 {ms(ours.p90)}, n={len(ours)})"
    return Row(what, bar, measured, beside, ours.median - limit.median <= allowed + unsure)


def signed(seconds: float) -> str:
    return f"{seconds * 1000:+.1f} ms"


async def pauses(hooks: dict[str, Any] | None, calls: int) -> list[float]:
    """Seconds between the requests of one turn; our own hooks where none are given."""
    async with Rig(script(calls), config=BY_KEYS, as_installed=True) as rig:
        session = await rig.new("hello")
        await settled(rig, session)
        await restart_with(rig, session, hooks)
        return await between(rig, session, calls)


async def pauses_with_plugin(calls: int) -> list[float]:
    """The same without any hook on the tool path, while the plugin looks at the context and reports it."""
    async with Rig(script(calls), config=BY_MOD, as_installed=True) as rig:
        session = await rig.new("hello")
        await rig.wait_view(session, lambda view: view["driver"] == "mod", "driven by the plugin")
        await settled(rig, session)
        found = await between(rig, session, calls)
        await rig.wait_event(session, "ContextReported")
        return found


async def between(rig: Rig, session: str, calls: int) -> list[float]:
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
