"""Codex by its app-server and in its terminal, with Claude Code by its plugin: rotation, messages, start, memory."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path

from bench.figures import inside, rotation
from bench.figures.running import settled
from bench.numbers import Times, mib, ms
from bench.table import Row
from sm.testing.scenario import Say, Scenario, Turn, scenario
from tests.e2e.rig import Rig

PROVIDERS = ("codex", "codex-tui", "claude")
NAMES = {"codex": "Codex", "codex-tui": "Codex in its terminal"}
SIZES = (50_000, 170_000, 171_000, 172_000)
"""Of a context that holds 244,800 tokens; Claude's scenario has its own."""


def script(provider: str) -> Scenario:
    if provider == "claude":
        return inside.script()
    turns = [turn for turn in inside.script().turns if turn.when != "work"]
    return scenario(*turns, Turn("work", steps=[inside.LOOKS.but(context=size) for size in SIZES]), otherwise=Say("ok"))


def rig(provider: str) -> Rig:
    return Rig(script(provider), provider=provider, config=inside.BY_MOD, as_installed=True)


async def rows(*, quick: bool) -> list[Row]:
    rounds = 2 if quick else 10
    return [*await moves(rounds), *await warned(rounds), *await starts(rounds)]


async def moves(rounds: int) -> list[Row]:
    rotations: dict[str, list[float]] = {provider: [] for provider in PROVIDERS}
    messages: dict[str, list[float]] = {provider: [] for provider in PROVIDERS}
    whole: dict[str, int] = {}
    async with AsyncExitStack() as stack:
        places = {provider: await stack.enter_async_context(rig(provider)) for provider in PROVIDERS}
        sessions = {provider: await ready(place, provider) for provider, place in places.items()}
        for number in range(rounds):
            for provider, place in places.items():
                rotations[provider].append(await rotation.rotate(place, sessions[provider], ""))
                messages[provider].append(await rotation.message(place, sessions[provider], number))
        for provider, place in places.items():
            woken = [request for request in place.model.main_requests if inside.woken(request)]
            whole[provider] = sum(inside.DOCUMENT.strip() in request.all_text for request in woken)
    found = []
    for provider in NAMES:
        carried = f"document of {len(inside.DOCUMENT):,} characters whole in {whole[provider]} of {rounds}"
        what = "turn's end → first request of the new context"
        found.append(compared(provider, what, rotations, inside.ROTATION, carried))
        found.append(compared(provider, "message to an idle agent → its prompt", messages, inside.MESSAGE, ""))
    return found


async def ready(place: Rig, provider: str) -> str:
    if provider != "codex-tui":
        return await inside.driven(place, "a")
    session = await place.new("hello there")
    await settled(place, session)
    return session


def compared(provider: str, what: str, found: dict[str, list[float]], bar: float, more: str) -> Row:
    codex, claude = Times(tuple(found[provider])), Times(tuple(found["claude"]))
    beside = f"Claude Code: {ms(claude.median)} (p90 {ms(claude.p90)})"
    measured = f"{ms(codex.median)} (p90 {ms(codex.p90)}, n={len(codex)})"
    told = "; ".join(filter(None, (beside, more)))
    limit, holds = (f"≤ {bar} s", codex.median <= bar) if provider == "codex" else ("–", None)
    return Row(f"{NAMES[provider]}: {what}, real client", limit, measured, told, holds)


async def warned(rounds: int) -> list[Row]:
    """In which request after the one that crossed the threshold the warning is."""
    found: list[int] = []
    async with rig("codex") as place:
        for number in range(rounds):
            session = await inside.driven(place, f"agent-{number}")
            before = len(place.model.main_requests)
            await place.ask("POST", f"/sessions/{session}/messages", {"text": "work"})
            await inside.asked(place, before + 5)
            said = [inside.WARNS in request.context_text for request in place.model.main_requests[before:]]
            found.append(said.index(True) - 1 if True in said else 0)
            await settled(place, session)
            await place.ask("DELETE", f"/sessions/{session}")
    measured = f"{found.count(1)} of {rounds} in the very next"
    return [Row("Codex: a warning, real client", "in the next request", measured, "–", found.count(1) == rounds)]


async def starts(rounds: int) -> list[Row]:
    """From the command to the first request, and the memory of all that the client is once it is idle again."""
    took: dict[str, list[float]] = {provider: [] for provider in PROVIDERS}
    memory: dict[str, list[float]] = {provider: [] for provider in PROVIDERS}
    for _ in range(rounds):
        for provider in PROVIDERS:
            async with rig(provider) as place:
                began = time.monotonic()
                session = await place.new("hello there")
                request = await place.model.wait_for(lambda request: "hello there" in request.user_text, within=60)
                took[provider].append(request.at - began)
                await settled(place, session)
                await asyncio.sleep(2.0)
                memory[provider].append(float(whole_memory((await place.view(session))["pid"])))
    claude, beside = Times(tuple(took["claude"])), Times(tuple(memory["claude"])).median
    found = []
    for provider, name in NAMES.items():
        times, kept = Times(tuple(took[provider])), Times(tuple(memory[provider])).median
        measured = f"{ms(times.median)} (p90 {ms(times.p90)}, n={len(times)})"
        other = f"Claude Code with plugin: {ms(claude.median)} (p90 {ms(claude.p90)})"
        found.append(Row(f"{name}: start of a session → its first request", "–", measured, other, None))
        other = f"Claude Code with plugin: {mib(beside)}"
        found.append(Row(f"{name}: memory of an idle client (PSS)", "–", mib(kept), other, None))
    return found


def whole_memory(pid: int) -> int:
    """What a process and all below it take, in bytes."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return inside.proportional(pid) + sum(whole_memory(int(child)) for child in children)
