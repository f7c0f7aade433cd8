"""Sessions that change at random, and what was true of each: what a list of them is compared with.

How old a row is, is counted by what the server has recorded: when an event happened, and when a picture was made. A
machine that is busy with something else delays both alike.
"""

import asyncio
import contextlib
import random
from dataclasses import dataclass, field

from sm import __version__
from sm.core import events as ev
from sm.core.model.context import ContextReading
from sm.fleet import rows
from sm.lock import ServerLock, announce
from sm.paths import atomic_write
from tests.api.rig import USER
from tests.cli.rig import desk_without_server

SESSIONS = 20
MAX_AGE_S = 1.0
CLOCK_STEP_S = 0.05
PAUSE_S = 0.1


def told(row):
    """What a row says, but for how long ago."""
    return (
        *(row.id, row.name, row.depth, row.state, row.mark, row.why, row.need, row.level),
        *(row.percent, row.tokens, row.usable, row.turns_left, row.rotations, row.queued),
        *(row.limit, row.said, row.evidence, row.provider, row.model, row.driver, row.branch, row.attempt),
    )


async def twenty(api):
    """Three of them are children of the first."""
    ids = []
    for number in range(SESSIONS):
        ids.append(await api.new(f"agent {number}", parent=ids[0] if number in {3, 7, 11} else None))


@contextlib.asynccontextmanager
async def passing(api):
    """The server's clock keeps step with the loop that server and test run on, however slow the machine is."""

    async def pass_time():
        while True:
            await asyncio.sleep(CLOCK_STEP_S)
            api.clock.advance(CLOCK_STEP_S)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(pass_time())
        try:
            yield
        finally:
            task.cancel()


@contextlib.contextmanager
def commands(api, port):
    """A shell in which `sm` finds the server at that port."""
    desk = desk_without_server(api.home.root.parent)
    atomic_write(api.home.token, USER.encode())
    with ServerLock.acquire(api.home):
        announce(api.home, f"http://127.0.0.1:{port}", __version__)
        yield desk


def change(api, session, choose):
    """Return an event that may happen to it."""
    at, conversation = api.clock.now(), api.engine.sessions.actors[session].session.conversation
    reading = ContextReading(tokens=choose.randint(1_000, 160_000), window=200_000)
    own = {"at": at, "conversation": conversation.id}
    return choose.choice(
        [
            ev.PromptSubmitted(**own, text="go"),
            ev.ToolUsed(**own, tool="Bash"),
            ev.PermissionAsked(**own, tool="Bash"),
            ev.TurnEnded(**own),
            ev.CompactionStarted(**own),
            ev.CompactionEnded(**own),
            ev.ClientBlocked(at=at, reason="at its limit"),
            ev.ContextRead(**own, epoch=conversation.epoch, reading=reading, usable=167_000),
            ev.StatusReported(at=at, text=f"step {choose.randint(1, 99)}"),
            ev.SessionRenamed(at=at, name=f"agent {choose.randint(100, 999)} of {session}"),
        ]
    )


@dataclass
class Fact:
    """What was true of a session from a moment on."""

    at: float
    told: tuple


@dataclass
class Truth:
    api: object
    choose: random.Random = field(default_factory=lambda: random.Random(14))  # noqa: S311  # the same changes each time
    facts: dict = field(default_factory=dict)
    """By session, in order."""

    async def note(self, at):
        """Keep what is true since then."""
        _, sessions = await self.api.call("GET", "/sessions")
        for row in await self.rows(sessions):
            known = self.facts.setdefault(row.id, [])
            if not known or known[-1].told != told(row):
                known.append(Fact(at, told(row)))

    async def rows(self, sessions, costs=()):
        _, asks = await self.api.call("GET", "/asks")
        return rows(sessions, asks, costs)

    async def listed(self, desk):
        """The rows of what `sm list --json` prints, with their costs."""
        _, costs = await self.api.call("GET", "/cost")
        return await self.rows((await desk.run("list", "--json")).data, costs)

    async def change(self, times):
        """Let something happen to one session after another, and keep what was true."""
        await self.note(self.api.clock.now())
        for _ in range(times):
            session = self.choose.choice(list(self.facts))
            event = change(self.api, session, self.choose)
            await self.api.engine.sessions.actors[session].ask(event)
            await self.note(event.at)
            await asyncio.sleep(self.choose.random() * PAUSE_S)

    async def settled(self):
        """Wait until a picture has everything, by the server's clock."""
        begun = self.api.clock.now()
        while self.api.clock.now() < begun + MAX_AGE_S + 2 * CLOCK_STEP_S:
            await asyncio.sleep(CLOCK_STEP_S)

    def late(self, pictures):
        """Facts of which no picture (when it was made, what each session's row said) was made within a second.

        A picture with something newer has the fact too.
        """
        return [
            fact
            for session, known in self.facts.items()
            for number, fact in enumerate(known)
            if not any(
                at <= fact.at + MAX_AGE_S and shown.get(session) in {newer.told for newer in known[number:]}
                for at, shown in pictures
                if at >= fact.at - CLOCK_STEP_S
            )
        ]

    def untrue(self, pictures):
        """What a picture said that was not true at any moment of the second before it was made."""
        found = []
        for at, shown in pictures:
            for session, row in shown.items():
                known = self.facts[session]
                ends = [*(fact.at for fact in known[1:]), float("inf")]
                valid = {fact.told for fact, end in zip(known, ends, strict=True) if end >= at - MAX_AGE_S}
                if at >= known[0].at and row not in valid:
                    found.append((at, row))
        return found
