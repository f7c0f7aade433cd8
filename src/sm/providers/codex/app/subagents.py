"""The subagents of a session's thread: which threads they are, and what they have under way (Codex 0.171.0).

The item of the call that starts one names its thread, before that asks anything. To a server that was away, a thread
names the one that it was started by. The client's screen shows nothing of what a subagent asks until its user goes to
that thread, so sm is where it is seen.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

from sm.providers.codex.app import schema
from sm.providers.codex.app.rpc import RefusedError, Rpc, ServerMessage
from sm.providers.codex.app.threads import resumed


class StartedBy(schema.FromServer, frozen=True):
    receiver_thread_ids: tuple[str, ...] = ()
    sender_thread_id: str = ""


class Told(schema.FromServer, frozen=True):
    item: StartedBy = StartedBy()


@dataclass(slots=True)
class Subagents:
    threads: set[str] = field(default_factory=set)
    started: dict[str, schema.ThreadItem] = field(default_factory=dict)
    """Items of theirs that are under way, by id."""

    async def take_up(self, rpc: Rpc, main: str) -> None:
        """Take up those that work already: what they ask is then asked again."""
        parents: dict[str, str | None] = {}
        cursor = None
        while True:
            loaded = await rpc.call(schema.ThreadLoadedList(cursor=cursor))
            for thread in loaded.data:
                with contextlib.suppress(RefusedError):  # it has ended since
                    parents[thread] = (await rpc.call(schema.ThreadRead(thread_id=thread))).thread.parent_thread_id
            cursor = loaded.next_cursor
            if not loaded.data or not cursor:
                break
        found = {main}
        while below := {thread for thread, parent in parents.items() if parent in found} - found:
            found |= below
        self.threads |= found - {main}
        for thread in sorted(self.threads):
            await resumed(rpc, thread)

    def note(self, message: ServerMessage, main: str) -> None:
        """Take what the server says, of any thread."""
        if message.method == "item/completed":
            call = message.read(Told).item
            if call.sender_thread_id in {main, *self.threads}:
                self.threads.update(call.receiver_thread_ids)
            self.started.pop(message.read(schema.ItemCompletedNotification).item.id, None)
        elif message.method == "item/started" and message.thread in self.threads:
            item = message.read(schema.ItemStartedNotification).item
            self.started[item.id] = item
