"""Fifty agents that send each other messages while their server is killed again and again: nothing lost, nothing twice.

What an agent received is what its model was asked with. What was sent is what the database holds: a send whose answer
died with the server may have been taken all the same.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sqlite3
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from bench.numbers import Times, ms
from bench.table import Row
from sm.client import Client, UnavailableError
from sm.core.errors import SmError
from sm.lock import running_server
from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.rig import Rig

AGENTS, RATE, SECONDS, KILLS = 50, 20.0, 60.0, 5
QUICK = (6, 4.0, 10.0, 2)
MARK = re.compile(r"soak-\d{6}")
ENDED = frozenset({"confirmed", "unconfirmed", "expired", "failed"})
MODES = ("sequential", "sequential", "sequential", "important", "urgent")
PATIENCE = 180.0


@dataclass
class Soak:
    rig: Rig
    sessions: list[str] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    answered: dict[str, str] = field(default_factory=dict)
    """Message id by mark, of the sends that were answered."""
    refused: Counter[str] = field(default_factory=Counter)
    attempts: int = 0

    async def start(self, agents: int) -> None:
        self.rig.use_scripted_agent()
        allowed = {"permissions": {"defaultMode": "default", "allow": ["Bash(sleep:*)"]}}
        (self.rig.root / "home" / ".claude" / "settings.json").write_text(json.dumps(allowed))
        for number in range(agents):
            self.sessions.append(await self.rig.new(name=f"agent-{number}"))
        for session in self.sessions:
            await self.rig.wait_event(session, "ConversationStarted")
            self.tokens[session] = await self.rig.token(session)

    async def send(self) -> None:
        sender, target = random.sample(self.sessions, 2)
        self.attempts += 1
        mark = f"soak-{self.attempts:06d}"
        text = f"{mark} run the tool" if self.attempts % 4 == 0 else mark
        body = {"text": text, "mode": random.choice(MODES)}
        record = running_server(self.rig.home)
        if record is None:
            self.refused["no server"] += 1
            return
        client = Client(record.url, self.tokens[sender])
        try:
            sent = await asyncio.to_thread(client.call, "POST", f"/sessions/{target}/messages", body)
            self.answered[mark] = str(sent["id"])
        except UnavailableError:
            self.refused["no server"] += 1
        except SmError as problem:
            self.refused[problem.refused.code] += 1

    async def offer(self, rate: float, seconds: float) -> None:
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            while (now := time.monotonic() - began) < seconds:
                while self.attempts < now * rate:
                    group.create_task(self.send())
                    await asyncio.sleep(0)
                await asyncio.sleep(0.01)

    async def kill(self, kills: int, seconds: float) -> None:
        for _ in range(kills):
            await asyncio.sleep(seconds / (kills + 1))
            await self.rig.kill_server()
            await self.rig.start_server()

    def rows(self) -> list[tuple[str, str, str, str, float, float | None]]:
        """(mark, target, mode, state, queued, confirmed) of each message, in the order they were taken."""
        connection = sqlite3.connect(f"file:{self.rig.home.database}?mode=ro", uri=True)
        try:
            query = "SELECT body, target, mode, state, queued, confirmed FROM messages ORDER BY number"
            return [(MARK.search(row[0])[0], *row[1:]) for row in connection.execute(query)]  # type: ignore[index]
        finally:
            connection.close()

    async def settle(self) -> bool:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if all(state in ENDED for _, _, _, state, _, _ in self.rows()):
                return True
            await asyncio.sleep(0.5)
        return False

    def received(self) -> dict[str, list[str]]:
        """The marks each session's model was told, in order."""
        last = {request.session: request for request in self.rig.model.main_requests}
        told: dict[str, list[str]] = defaultdict(list)
        for request in last.values():
            words = "\n".join(
                str(block.get("text", ""))
                for message in request.messages
                if message.role != "assistant"
                for block in message.blocks
            )
            for mark in MARK.findall(words):
                told[request.session].append(mark)
        return told


async def rows(*, quick: bool) -> list[Row]:
    agents, rate, seconds, kills = QUICK if quick else (AGENTS, RATE, SECONDS, KILLS)
    works = Turn("run the tool", steps=[Call("Bash", command="sleep 1"), Say("ok")])
    script = scenario(works, otherwise=Say("ok", delay=0.2))
    async with Rig(script, config="[primer]\nenabled = false\n", as_installed=True) as rig:
        soak = Soak(rig)
        await soak.start(agents)
        async with asyncio.TaskGroup() as group:
            group.create_task(soak.offer(rate, seconds))
            group.create_task(soak.kill(kills, seconds))
        settled = await soak.settle()
        return verdict(soak, f"{agents} agents, {rate:.0f}/s for {seconds:.0f} s, {kills} × SIGKILL", settled=settled)


def verdict(soak: Soak, what: str, *, settled: bool) -> list[Row]:
    kept = soak.rows()
    states = Counter(state for _, _, _, state, _, _ in kept)
    told = Counter(mark for marks in soak.received().values() for mark in marks)
    twice = sum(count - 1 for count in told.values() if count > 1)
    marks = {mark for mark, *_ in kept}
    lost = [mark for mark, _, _, state, _, _ in kept if state == "confirmed" and not told[mark]]
    vanished = [mark for mark in soak.answered if mark not in marks]
    disorder = out_of_order(soak, kept)
    dead = states["unconfirmed"] + states["failed"] + states["expired"]
    waits = Times(tuple(done - queued for _, _, _, _, queued, done in kept if done is not None) or (0.0,))
    whole = settled and not (lost or vanished or twice or disorder)
    balance = f"{len(kept)} sent = {states['confirmed']} confirmed + {dead} dead letters, {twice} twice"
    faults = f"{len(lost) + len(vanished)} lost, {disorder} out of order"
    beside = f"sends without an answer: {dict(soak.refused)}; sent → confirmed {ms(waits.median)} (p99 {ms(waits.p99)})"
    return [Row(f"messages: {what}", "all, once, in order", f"{balance}, {faults}", beside, whole)]


def out_of_order(soak: Soak, kept: list[tuple[str, str, str, str, float, float | None]]) -> int:
    """Messages told after a later one of the same target and mode."""
    lane = {mark: (number, target, mode) for number, (mark, target, mode, *_) in enumerate(kept)}
    wrong = 0
    for marks in soak.received().values():
        newest: dict[tuple[str, str], int] = {}
        for number, *key in (lane[mark] for mark in dict.fromkeys(marks) if mark in lane):
            where = (key[0], key[1])
            wrong += number < newest.get(where, -1)
            newest[where] = max(number, newest.get(where, -1))
    return wrong
