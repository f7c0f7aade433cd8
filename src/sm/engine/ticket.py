"""Who waits for what an event means, and the answer while it is made."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from sm.core.ports.provider import HookReply


@dataclass(slots=True)
class Ticket:
    """A hook, or a command, that waits for its answer."""

    reply: asyncio.Future[HookReply]
    strict: bool = False
    """True for a command: its failure is raised to the caller. A hook gets an empty answer instead."""
    given_up: bool = False
    """The hook has continued without it."""

    def fail(self, problem: Exception) -> None:
        if self.reply.done():
            return
        if self.strict:
            self.reply.set_exception(problem)
        else:
            self.reply.set_result(HookReply())


@dataclass(slots=True)
class ReplyDraft:
    """The hook answer under construction while one event's effects run."""

    context: list[str] = field(default_factory=list)
    block: str | None = None
    shown: str = ""
    notices: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    document: str = ""
    """The handoff whose document is in it."""
    whole: str = ""
    """That document, where the context holds a part of it."""

    def value(self) -> HookReply:
        return HookReply("\n".join(self.context), self.block, self.shown, self.whole)
