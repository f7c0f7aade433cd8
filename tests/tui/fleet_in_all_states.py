"""Twelve sessions in all states at once, on a real server with fake panes: for pictures, and for looking at."""

import contextlib
import json
import time
from dataclasses import dataclass, replace
from pathlib import Path

from sm.core import events as ev
from sm.core.model.context import ContextReading
from sm.core.model.cost import Price
from sm.core.model.session import Status
from sm.core.model.usage_limit import UsageLimit
from tests.api.test_asks import asking
from tests.web.page_rig import begin, question

MINUTE, HOUR = 60, 3_600
PROJECT = "/home/dev/shop"
MODELS = {"opus": "claude-opus-4-6", "sonnet": "claude-sonnet-4-5"}
PRICES = {
    MODELS["opus"]: Price(input=5, output=25, cache_write=6.25, long_cache_write=10, cache_read=0.5),
    MODELS["sonnet"]: Price(input=3, output=15, cache_write=3.75, long_cache_write=6, cache_read=0.3),
}


@dataclass(frozen=True)
class Member:
    name: str
    status: Status
    minutes: float
    """For how long it has been in that state."""
    evidence: str
    tokens: int | None = None
    said: str = ""
    detail: str = ""
    parent: str | None = None
    rotations: int = 0
    model: str = "sonnet"


MEMBERS = (
    Member("api server", Status.WORKING, 31, "its client ran a tool", 62_000, "Now the middleware.", rotations=3),
    Member("rate limiter", Status.WAITING, 4, "its client asked", 117_000, "Old build is stale.", parent="api server"),
    Member("load tests", Status.WORKING, 2, "its client ran a tool", 21_000, "Load is even.", parent="api server"),
    Member("docs", Status.WAITING, 12, "its client asked", 34_000, "Two ways to show it."),
    Member("payments", Status.BLOCKED, 7, "its client's words", 166_000, detail="at its context limit", model="opus"),
    Member("search index", Status.CRASHED, 26, "its process", 88_000, detail="the client has ended (signal 9)"),
    Member(
        "importer", Status.SILENT, 18, "nothing was heard of it", 141_000, detail="no hook has arrived", rotations=1
    ),
    Member("mail queue", Status.IDLE, 52, "the client's words", 95_000, "Retries are in.", model="opus"),
    Member("migration", Status.IDLE, 9, "its client ended a turn", 8_000, "Done: all 41 tables.", rotations=2),
    Member("design review", Status.ROTATING, 0.1, "the handoff", 136_000, "Handed off.", rotations=6, model="opus"),
    Member("checkout", Status.COMPACTING, 0.6, "its client began to compact", 160_000, "Reading the tests."),
    Member("changelog", Status.UNKNOWN, 1, "the server has just started", 45_000),
    Member("spike", Status.EXITED, 190, "it was ended", 51_000, "Not worth it.", detail="killed"),
    Member("fixtures", Status.STARTING, 0.1, "its client was started"),
)
COMMAND = {"command": "rm -r build && make"}
QUESTION = {"questions": [question("Which database should the example use?", "SQLite", "PostgreSQL")]}
CONTEXT = (12_000, 31_000, 58_000, 74_000, 99_000, 118_000, 134_000)
"""What the agent with the chart has used of its context, again and again."""


def transcript(place, member):
    """Write one in which the context grows to what the session holds."""
    path, size = Path(place) / f"{member.name}.jsonl", member.tokens or 0
    with path.open("w") as file:
        for number in range(1, 9) if size else ():
            usage = {
                "input_tokens": 2_000,
                "cache_read_input_tokens": size * number // 8 - 2_000,
                "output_tokens": 1_500,
            }
            message = {"id": f"m{number}", "model": MODELS[member.model], "role": "assistant", "content": []}
            message |= {"usage": usage}
            file.write(json.dumps({"type": "assistant", "requestId": f"r{number}", "message": message}) + "\n")
    return path


async def _read(api, session, at, tokens):
    actor = api.engine.sessions.actors[session]
    own, reading = (
        actor.session.conversation,
        ContextReading(tokens=tokens, projected=tokens, exact=True, window=200_000),
    )
    await actor.ask(ev.ContextRead(at=at, conversation=own.id, epoch=own.epoch, reading=reading, usable=167_000))


async def _past(api, session):
    """Give it contexts that fill up, with warnings and handoffs, as over some hours."""
    actor = api.engine.sessions.actors[session]
    for number in range(4):
        for tokens in CONTEXT[: 7 - 2 * (number == 2)]:
            await _read(api, session, api.clock.advance(11 * MINUTE), tokens - 700 * number)
        if number < 3:
            new = f"{number:08d}-0000-4000-8000-000000000000"
            at = api.clock.advance(5)
            await actor.ask(ev.ConversationStarted(at=at, conversation=new, origin=ev.Origin.CLEAR))


async def _member(api, place, member, ids):
    session = ids[member.name] = await api.new(member.name, parent=ids.get(member.parent), directory=place)
    await begin(api, session, transcript(place, member))
    return session


async def _state(api, session, member, now):
    at = now - member.minutes * MINUTE
    values = {"since": at, "evidence": member.evidence, "detail": member.detail, "said": member.said}
    heard = at if member.status in {Status.SILENT, Status.CRASHED, Status.EXITED, Status.IDLE} else now - 3
    await api.alter(
        session, status=member.status, rotations=member.rotations, last_activity=heard, directory=PROJECT, **values
    )
    if member.status is Status.CRASHED:
        await api.alter(session, failed_starts=(at,))
    if member.name == "mail queue":
        limit = UsageLimit("five_hour", resets_at=now + 52 * MINUTE, since=at, proven=True)
        await api.alter(session, limit=limit)


@contextlib.asynccontextmanager
async def all_states(api, place):
    """Yield their ids by name; two of them ask as long as this is open."""
    now = time.time()
    api.clock.time = now - 5 * HOUR
    api.engine.costs.prices = lambda: PRICES
    ids = {}
    for member in MEMBERS:
        await _member(api, place, member, ids)
    await _past(api, ids["api server"])
    api.clock.time = now
    for target, text in (("importer", "Skip the vendored files."), ("migration", "Then drop the old table.")):
        await api.call("POST", f"/sessions/{ids[target]}/messages", body={"text": text})
    async with (
        asking(api, ids["rate limiter"], tool_input=COMMAND),
        asking(api, ids["docs"], tool_name="AskUserQuestion", tool_input=QUESTION),
    ):
        for member in MEMBERS:
            await _state(api, ids[member.name], member, now)
        yield ids


async def refreshed(api):
    """Let the server's clock follow, and every session be heard of that can be."""
    api.clock.time = time.time()
    for actor in api.engine.sessions.actors.values():
        if actor.session.status in {Status.WORKING, Status.WAITING, Status.COMPACTING, Status.ROTATING}:
            actor.session = replace(actor.session, last_activity=api.clock.time - 2)
