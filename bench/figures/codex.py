"""Codex by its app-server beside Claude Code by its plugin: rotation, messages, warnings, start and memory."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from bench.figures import inside, rotation
from bench.figures.running import settled
from bench.numbers import Times, mib, ms
from bench.table import Row
from sm.testing.scenario import Say, Scenario, Turn, scenario
from tests.e2e.rig import Rig

PROVIDERS = ("codex", "claude")
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
    async with rig("codex") as codex, rig("claude") as claude:
        sessions = [(codex, await inside.driven(codex, "a")), (claude, await inside.driven(claude, "a"))]
        for number in range(rounds):
            for provider, (place, session) in zip(PROVIDERS, sessions, strict=True):
                rotations[provider].append(await rotation.rotate(place, session, ""))
                messages[provider].append(await rotation.message(place, session, number))
        woken = [request for request in codex.model.main_requests if inside.woken(request)]
        whole = sum(inside.DOCUMENT.strip() in request.all_text for request in woken)
    carried = f"document of {len(inside.DOCUMENT):,} characters whole in {whole} of {rounds}"
    return [
        compared("turn's end → first request of the new context", rotations, inside.ROTATION, carried),
        compared("message to an idle agent → its prompt", messages, inside.MESSAGE, ""),
    ]


def compared(what: str, found: dict[str, list[float]], bar: float, more: str) -> Row:
    codex, claude = (Times(tuple(found[provider])) for provider in PROVIDERS)
    beside = f"Claude Code: {ms(claude.median)} (p90 {ms(claude.p90)})"
    measured = f"{ms(codex.median)} (p90 {ms(codex.p90)}, n={len(codex)})"
    told = "; ".join(filter(None, (beside, more)))
    return Row(f"Codex: {what}, real client", f"≤ {bar} s", measured, told, codex.median <= bar)


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
    codex, claude = (Times(tuple(took[provider])) for provider in PROVIDERS)
    kept, beside = (Times(tuple(memory[provider])).median for provider in PROVIDERS)
    return [
        Row(
            "Codex: start of a session → its first request",
            "–",
            f"{ms(codex.median)} (p90 {ms(codex.p90)}, n={len(codex)})",
            f"Claude Code with the plugin: {ms(claude.median)} (p90 {ms(claude.p90)})",
            None,
        ),
        Row(
            "Codex: memory of an idle client (PSS)", "–", mib(kept), f"Claude Code with the plugin: {mib(beside)}", None
        ),
    ]


def whole_memory(pid: int) -> int:
    """What a process and all below it take, in bytes."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return inside.proportional(pid) + sum(whole_memory(int(child)) for child in children)
