"""Types into Codex's input box, and into nothing else (Codex 0.171.0).

Before each key it looks at the client's state and the screen: no key while a dialog is open, while another view takes
the keys, while the client is busy, or while the user types. In a dialog Enter is consent, and a command that comes
while a turn runs is dropped. Text goes in as a bracketed paste between two blanks, which the client takes away again:
so nothing in it is a command, a shell command, or a name that opens a menu. It is compared with what the box then
shows, and only then Enter follows; otherwise that text, and nothing else, is taken out again. A draft of the user of
one line, wrapped or not, is cut with the client's own keys, and put back from its own memory right after Enter; one
of several lines cannot be kept there, and is waited for. Never Ctrl-C: on an empty box it ends the client; never
Escape: it interrupts, or arms a way back to an earlier prompt; never Left on an empty box: it opens another view.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from sm.core.ports.panes import Key, PaneError, View
from sm.core.ports.provider import Leave, ReadyOptions, ReportHold
from sm.providers.box_wait import POLL_INTERVAL_S, WaitHistory
from sm.providers.codex.tui.input_box import BUSY, ENDED, InputBox
from sm.providers.codex.tui.screen import TuiBox, refusals
from sm.providers.terminal_text import squeezed

COMMANDS = frozenset({"/clear", "/new", "/quit", "/exit"})
"""Typed as they are. `/new` asks in a git repository which worktree to use, `/clear` does not."""
CLEAR = "/clear"
CUT = ("C-e", "C-u")
PUT_BACK = "C-y"
"""The client's memory of what was cut last: it outlasts `/clear` and a prompt, and keeps a folded paste whole."""
NOTICE_TIMEOUT_S = 0.2
"""Seconds in which the client says that it has not taken a command."""
APPEARS_TIMEOUT_S = 5.0
"""Seconds in which a client that has read a text shows it. Typed again before that, it would be there twice."""
MAX_ATTEMPTS = 6
"""How often emptying the box is tried in one wait."""
TYPING = "the user is typing"
QUEUED = "what was queued during the turn goes first"
APPEARS = "what sm typed is about to appear"
REMOVES = "removes text of its own"
STUCK = "text that sm typed is in the box and cannot be removed"
MIXED = "text that sm typed and words of the user are in the box together: send or delete them"
DRAFT = "a draft of several lines is in the input box: send or delete it"
RETURNS = "puts the user's draft back"


@dataclass(slots=True)
class TuiDriver:
    box: InputBox
    _pasted: str = ""
    """The last text that was pasted, blanks included."""
    _left: bool = False
    """It was not submitted, and may be in the box."""
    _fresh: float = 0.0
    """When a text was pasted last."""
    _cut: bool = False
    """A draft of the user is in the client's memory, to be put back."""
    _draft: tuple[str, bool] | None = None
    """A draft that was tried, and whether it can be cut."""

    async def ready(self, options: ReadyOptions, report: ReportHold, leave: Leave) -> bool:
        watch = WaitHistory(report, options)
        while not leave():
            try:
                reason = await self._clear_way(watch, leave)
            except PaneError as problem:
                reason = str(problem)
            if reason is None:
                return True
            await asyncio.sleep(watch.hold(reason))
        return False

    async def _clear_way(self, watch: WaitHistory, leave: Leave) -> str | None:
        """Look once; take one step towards a box that text may be typed into. None once it may."""
        look = await self.box.look(busy=watch.options.busy)
        look = look if isinstance(look, str) else await self.box.settled(busy=watch.options.busy)
        if isinstance(look, str):
            return look
        box, view = look
        if box.queued and not watch.options.busy:
            return QUEUED
        held = await self._without_own(box, watch)
        if held is not None:
            return held
        if not watch.quiet(box, view):
            return TYPING
        if box.empty:
            return await self._put_back() if self._cut else None
        return "gives way" if leave() else await self._try_to_cut(box)

    async def _without_own(self, box: TuiBox, watch: WaitHistory) -> str | None:
        """Take a step towards a box without a text of `sm`; None once it has none."""
        mine = next((text for text in self._own(watch.options.own) if box.holds(text)), None)
        if mine is not None:
            return await self._remove(mine, box, watch)
        if self._left and box.ends_with(self._pasted):  # behind a draft that was shown late
            return await self._remove(self._pasted, box, watch)
        if self._left and box.begins_with(self._pasted):
            return MIXED
        if self._left and self._is_recent():
            return APPEARS
        self._left = False
        return None

    def _own(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        own = tuple(as_typed(text) for text in texts)
        return (self._pasted, *own) if self._left else own

    def _is_recent(self) -> bool:
        return asyncio.get_running_loop().time() - max(self._fresh, self.box.behind_at) < APPEARS_TIMEOUT_S

    async def _remove(self, mine: str, box: TuiBox, watch: WaitHistory) -> str:
        if watch.tries >= MAX_ATTEMPTS:
            return STUCK
        watch.tries += 1
        await self._press_back(mine, box)
        return REMOVES

    async def _press_back(self, mine: str, box: TuiBox) -> None:
        """Take out a text that is at the end of the box. What is folded goes with one key."""
        if not (box.at_end or box.clipped):
            await self.box.pane.press("End")
        folded = box.folded and not squeezed(box.text).endswith(squeezed(mine))
        await self.box.pane.press(Key.BACKSPACE, 1 if folded else len(mine))
        if await self.box.shows(lambda now: not (now.holds(mine) or now.ends_with(mine))):
            self._left = False

    # --- the user's draft -------------------------------------------------------------------------------------------

    async def _try_to_cut(self, box: TuiBox) -> str | None:
        """Return why text cannot be typed beside a draft; each draft is tried once, and is then as it was."""
        if self._draft is None or self._draft[0] != box.text:
            cut = await self._cut_draft(box)
            if cut and not await self._put_back():
                return RETURNS
            self._draft = (box.text, cut)
        return None if self._draft[1] else DRAFT

    async def _cut_draft(self, box: TuiBox) -> bool:
        """Return whether all of it is out of the box; what was cut of a longer one is put back at once."""
        await self.box.pane.chord(CUT)
        self._cut = True
        if await self.box.shows(lambda now: (now.text, now.blanks) != (box.text, box.blanks)):
            now = await self.box.shown()
            if now is not None and now.empty:
                return True
            await self.box.pane.press(PUT_BACK)
            await self.box.shows(lambda now: now.text == box.text)
        self._cut = False
        return False

    async def _put_back(self) -> str | None:
        """Put the draft back into an empty box; return that it was done, None if there is none or no key is allowed."""
        if not self._cut or self.box.state(busy=True) is not None:
            return None
        await self.box.pane.press(PUT_BACK)
        if not await self.box.shows(lambda now: not now.empty):
            return None
        self._cut = False
        return RETURNS

    # --- typing -------------------------------------------------------------------------------------------------------

    async def clear(self, leave: Leave) -> str | None:
        return await self.prompt(CLEAR, leave)

    async def prompt(self, text: str, leave: Leave, *, now: bool = False) -> str | None:
        look = await self.box.settled(busy=now)
        if isinstance(look, str):
            return look
        if leave():
            return "gave way"
        box, view = look
        if not box.empty and not await self._cut_draft(box):
            return DRAFT
        refused = await self._submit(as_typed(text), view, leave, now=now)
        if self._cut and not self._left:
            await self._put_back_into_empty()
        return refused

    async def _submit(self, text: str, view: View, leave: Leave, *, now: bool) -> str | None:
        self._pasted, self._left = text, True
        await self.box.pane.paste(text)
        self._fresh = asyncio.get_running_loop().time()
        if not await self.box.shows(lambda box: box.holds(text)):
            return await self._take_back("the input box did not show the text")
        look = await self.box.settled(busy=now)
        if leave() or isinstance(look, str):
            return await self._take_back(look if isinstance(look, str) else "gave way")
        if not look[0].holds(text):
            return await self._take_back("the text in the input box has changed")
        await self.box.pane.press(Key.ENTER)
        if not await self.box.shows(lambda box: not box.holds(text)):
            # Where another view has come in front of the box, only the client's hooks tell whether it took the text.
            seen = await self.box.shown()
            return None if seen is None else await self._take_back("the client did not take the text")
        self._left = False
        return BUSY if text in COMMANDS and await self._dropped(text, refusals(view.lines, text)) else None

    async def _dropped(self, command: str, before: int) -> bool:
        deadline = asyncio.get_running_loop().time() + NOTICE_TIMEOUT_S
        while asyncio.get_running_loop().time() < deadline:
            if refusals((await self.box.pane.look()).lines, command) > before:
                return True
            await asyncio.sleep(POLL_INTERVAL_S)
        return False

    async def _take_back(self, reason: str) -> str:
        """Remove what we pasted. While a dialog is open not even that is pressed: the next look removes it."""
        look = await self.box.settled(busy=True)
        if not isinstance(look, str) and (look[0].holds(self._pasted) or look[0].ends_with(self._pasted)):
            await self._press_back(self._pasted, look[0])
        return reason

    async def _put_back_into_empty(self) -> None:
        if await self.box.shows(lambda box: box.empty):
            await self._put_back()

    async def withdraw(self) -> str | None:
        """Text that the user has continued stays: what to do about it is said by the next wait."""
        if not self._left and not self._cut:
            return None
        look = await self.box.settled(busy=True)
        if isinstance(look, str):
            return None if look == ENDED else look
        box = look[0]
        if self._left and (box.holds(self._pasted) or box.ends_with(self._pasted)):
            await self._press_back(self._pasted, box)
            return REMOVES if self._left else await self._put_back()
        if self._left and self._is_recent() and box.empty:
            return APPEARS
        self._left = False
        if self._cut and box.empty:
            await self._put_back()
        self._cut = False
        return None


def as_typed(text: str) -> str:
    """Return what is pasted for a text: a command as it is, a prompt between blanks that the client takes away."""
    return text if text in COMMANDS else f" {text} "
