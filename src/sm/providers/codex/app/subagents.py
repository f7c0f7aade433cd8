"""The subagents of a session's thread: which threads they are, and what they have under way (Codex 0.171.0).

The item of the call that starts one names its thread, before that asks anything. The client's screen shows nothing of
what a subagent asks until its user goes to that thread, so sm is where it is seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sm.providers.codex.app import schema
from sm.providers.codex.app.rpc import ServerMessage


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
