"""Panes without tmux: each holds this very process, and is there until it is cleared."""

import asyncio
import os
from dataclasses import dataclass, field, replace

from sm.core.ports.panes import PaneError, PaneStatus


class FakePane:
    """A pane whose screen never becomes a prompt: nothing is ever typed into it."""

    async def look(self):
        await asyncio.sleep(3600)

    async def history(self):
        return "first\nsecond\nthird\n"


@dataclass
class FakePanes:
    living: dict = field(default_factory=dict)
    full: bool = False
    """No log can be written."""
    number: int = -1
    shown: list = field(default_factory=list)
    """The user's terminals."""
    labels: dict = field(default_factory=dict)
    environments: dict = field(default_factory=dict)
    emptied: list = field(default_factory=list)
    pid: int = field(default_factory=os.getpid)
    """Of the clients in them."""

    async def create(self, session, launch, log):
        self.number += 1
        self.environments[session.id] = dict(launch.env)
        found = PaneStatus(f"%{self.number}", self.pid, session.id, dead=False)
        self.living[found.pane] = found
        return found

    async def status(self, pane):
        return self.living.get(pane)

    async def all(self):
        return {status.session: status for status in self.living.values()}

    async def resume_log(self, pane, log):
        if self.full:
            raise PaneError("No space left on device")
        self.living[pane] = replace(self.living[pane], logged=True)

    async def end(self, session, grace):
        await self.clear(session)

    async def empty(self, session, grace):
        self.emptied.append(session)
        for pane, status in self.living.items():
            if status.session == session:
                self.living[pane] = replace(status, dead=True)

    async def environment(self, session):
        there = any(status.session == session for status in self.living.values())
        return self.environments[session] if there else {}

    async def clear(self, session):
        for pane in [pane for pane, status in self.living.items() if status.session == session]:
            del self.living[pane]

    async def terminals(self):
        return self.shown

    async def label(self, pane, text):
        self.labels[pane] = text

    def pane(self, pane):
        return FakePane()

    async def attach(self, pane, *, inside_tmux):
        if pane not in self.living:
            raise PaneError("the pane is gone")
        return ["tmux", "attach", pane]
