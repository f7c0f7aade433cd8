"""What the rows say is what the server says, compared while 20 sessions change at random: no row is a second old."""

import asyncio
import contextlib
import random

from sm.core import events as ev
from sm.core.model.context import ContextReading
from sm.fleet import rows
from tests.tui.rig import watching

SESSIONS, CHANGES = 20, 100
MAX_AGE_S = 1.0
CLOCK_STEP_S = 0.05


async def twenty(api):
    for number in range(SESSIONS):
        await api.new(f"agent {number}")


def change(api, session, choose):
    at, conversation = api.clock.now(), api.engine.sessions.actors[session].session.conversation
    reading = ContextReading(tokens=choose.randint(1_000, 160_000), window=200_000)
    return choose.choice(
        [
            ev.PromptSubmitted(at=at, conversation=conversation.id, text="go"),
            ev.ToolUsed(at=at, conversation=conversation.id, tool="Bash"),
            ev.PermissionAsked(at=at, conversation=conversation.id, tool="Bash"),
            ev.TurnEnded(at=at, conversation=conversation.id),
            ev.CompactionStarted(at=at, conversation=conversation.id),
            ev.CompactionEnded(at=at, conversation=conversation.id),
            ev.ClientBlocked(at=at, reason="at its limit"),
            ev.ContextRead(
                at=at, conversation=conversation.id, epoch=conversation.epoch, reading=reading, usable=167_000
            ),
            ev.StatusReported(at=at, text=f"step {choose.randint(1, 99)}"),
        ]
    )


async def truth(seen):
    """What the server says now, in rows as of the picture that is shown."""
    _, sessions = await seen.api.call("GET", "/sessions")
    _, asks = await seen.api.call("GET", "/asks")
    return tuple(rows(sessions, asks, seen.app.follower.picture.costs))


@contextlib.asynccontextmanager
async def passing(api):
    """The clock of server and screen keeps step with the loop that both run on, however slow the machine is."""

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


class Witness:
    """Remembers what was true of each session, and until when."""

    def __init__(self, seen):
        self.seen, self.true = seen, {}

    async def look(self):
        """Note what is true; every row has to show what was true at some moment of the last second."""
        shown = {row.id: told(row) for row in self.seen.app.main.rows}
        now = self.seen.api.clock.now()
        for row in await truth(self.seen):
            known = self.true.setdefault(row.id, [])
            if known and known[-1][1] == told(row):
                known[-1] = (now, told(row))
            else:
                known[-1:] = [(now, known[-1][1])] if known else []
                known.append((now, told(row)))
            valid = [words for until, words in known if until >= now - MAX_AGE_S]
            assert shown[row.id] in valid, (row.name, shown[row.id], valid)


async def test_every_row_shows_what_the_server_said_within_the_last_second(tmp_path):
    choose = random.Random(14)  # noqa: S311  # the same changes each time
    async with watching(tmp_path, 200, 40, before=twenty) as seen, passing(seen.api):
        sessions, witness = [row.id for row in seen.app.main.rows], Witness(seen)
        for _ in range(CHANGES):
            await witness.look()
            session = choose.choice(sessions)
            await seen.api.engine.sessions.actors[session].ask(change(seen.api, session, choose))
            await asyncio.sleep(choose.random() * 0.1)
        states = {row.state for row in seen.app.main.rows}
        begun = seen.api.clock.now()
        while seen.api.clock.now() < begun + MAX_AGE_S:
            await asyncio.sleep(CLOCK_STEP_S)
        assert [told(row) for row in seen.app.main.rows] == [told(row) for row in await truth(seen)]
        assert states >= {"waiting", "blocked", "working", "idle"}


def told(row):
    """What a row says, but for how long ago."""
    return (row.state, row.mark, row.why, row.need, row.percent, row.tokens, row.queued, row.said, row.evidence)
