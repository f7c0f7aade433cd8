"""Types into Claude Code's input box, and into nothing else.

Before each key the client's state file and the screen are looked at: no key while a dialog stands, while the client is
busy, while another view takes the keys, or while a person types. A person's draft is stashed with Ctrl-S (the client
gives it back after the next submission) and never sent. Text goes in as a bracketed paste, is compared with what the
box then shows, and only then Enter follows; otherwise our text, and only ours, is taken out again. Never Ctrl-C: two of
them end the client; never Escape: it opens menus. All of it proved on 2.1.328.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from sm.core.events import Activity
from sm.core.ports import HELD_EVERY, Held, Key, Pane, View, Witness
from sm.core.rotation import UNKNOWN_STATE
from sm.providers.claude.screen import Box, read_box

POLL = 0.005
SLOW_POLL = 0.1
QUIET = 1.5
"""Seconds an attached person's box must not have changed (typing within the 0.3 s window lost letters 14 of 24)."""
SHOWS = 1.0
"""Seconds for a key's effect to show in the box (seen: at most 0.1)."""

REPORT_AFTER = 0.5
"""A rotation usually waits 0.07 s for the client to be idle: no news for anybody."""

Leave = Callable[[], bool]


@dataclass(slots=True)
class ClaudeComposer:
    pane: Pane
    witness: Callable[[], Witness | None]
    background: Callable[[], bool]
    """True while only background tasks keep the client's state busy: it is idle at its prompt all the same."""

    async def ready(self, own: tuple[str, ...], held: Held, leave: Leave) -> bool:
        watch = _Watch(held)
        while not leave():
            reason = await self._clear_way(own, watch, leave)
            if reason is None:
                return True
            await asyncio.sleep(watch.hold(reason))
        return False

    async def _clear_way(self, own: tuple[str, ...], watch: _Watch, leave: Leave) -> str | None:
        """Look once; take one step towards an empty box if that is allowed. None once text may be typed."""
        look = await self._look()
        if isinstance(look, str):
            return look
        box, view = look
        for text in own:
            if box.ends_with(text):
                await self._remove(text, box)
                return "removes text of its own"
        if not watch.quiet(box, view):
            return "a person is typing"
        if box.empty:
            return None
        if box.stashed:  # the stash holds one entry: a second one would destroy the first
            return "a draft is in the box and another one is stashed"
        if leave():
            return "gives way"
        await self.pane.press(Key.STASH)
        return None if await self._shows(lambda now: now.empty) else "the draft could not be stashed"

    async def _look(self) -> tuple[Box, View] | str:
        """The box and the view it was read from if keys may go to it now, otherwise why not."""
        reason = self._state()
        if reason is not None:
            return reason
        view = await self.pane.look()
        if view.dead:
            return "the client has ended"
        box = read_box(view.lines, view.cursor)
        if box is None or not box.cursor_inside:
            return "another view covers the input box"
        return "the input box is in shell mode" if box.shell else (box, view)

    def _state(self) -> str | None:
        witness = self.witness()
        if witness is None:
            return UNKNOWN_STATE
        if witness.activity is Activity.WAITING:
            return f"a dialog stands: {witness.detail}" if witness.detail else "a dialog stands"
        if witness.activity is Activity.BUSY and not self.background():
            return "the client is busy"
        return None if witness.activity is not Activity.UNKNOWN else UNKNOWN_STATE

    async def submit(self, text: str, leave: Leave) -> str | None:
        look = await self._look()
        if isinstance(look, str):
            return look
        if not look[0].empty:
            return "the input box is not empty"
        if leave():
            return "gave way"
        await self.pane.paste(text)
        if not await self._shows(lambda now: now.holds(text)):
            return await self._take_back(text, "the input box did not show the text")
        if leave() or self._state() is not None:
            return await self._take_back(text, self._state() or "gave way")
        await self.pane.press(Key.ENTER)
        return None

    async def _take_back(self, text: str, reason: str) -> str:
        """Remove what we pasted. While a dialog stands not even that is pressed: the next look removes it."""
        if self._state() is None:
            view = await self.pane.look()
            box = read_box(view.lines, view.cursor)
            if box is not None and box.cursor_inside and box.ends_with(text):
                await self._remove(text, box)
        return reason

    async def _remove(self, text: str, before: Box) -> None:
        await self.pane.press(Key.BACKSPACE, len(text))
        await self._shows(lambda now: now.text != before.text)

    async def _shows(self, expected: Callable[[Box], bool]) -> bool:
        deadline = asyncio.get_running_loop().time() + SHOWS
        while asyncio.get_running_loop().time() < deadline:
            view = await self.pane.look()
            box = read_box(view.lines, view.cursor)
            if box is not None and expected(box):
                return True
            await asyncio.sleep(POLL)
        return False


class _Watch:
    """What one wait has seen: how long the box has been as it is, and what was last reported."""

    def __init__(self, held: Held) -> None:
        self.held = held
        self.started = asyncio.get_running_loop().time()
        self.text: str | None = None
        self.since = self.started
        self.reason = ""
        self.reported = 0.0

    def quiet(self, box: Box, view: View) -> bool:
        """True if no person is about to add to the box."""
        now = asyncio.get_running_loop().time()
        if view.typed_ago is None or (self.text is None and view.typed_ago >= QUIET + 1):
            return True
        if box.text != self.text:
            self.text, self.since = box.text, now
        return now - self.since >= QUIET

    def hold(self, reason: str) -> float:
        """Report why it waits, once it lasts and whenever it changes; return how long to sleep."""
        now = asyncio.get_running_loop().time()
        lasts = now - self.started >= REPORT_AFTER
        if lasts and (reason != self.reason or now - self.reported >= HELD_EVERY):
            self.reason, self.reported = reason, now
            self.held(reason)
        return SLOW_POLL if lasts else POLL
