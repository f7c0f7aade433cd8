"""Types into Claude Code's input box, and into nothing else.

Before each key it looks at the client's state file and the screen: no key while a dialog is open, while the client is
busy, while another view takes the keys, or while the user types. The user's draft is stashed with Ctrl-S (the client
gives it back after the next submission) and never sent. Text goes in as a bracketed paste, is compared with what the
box then shows, and only then Enter follows; otherwise that text, and nothing else, is taken out again. Never Ctrl-C:
two of them end the client; never Escape: it opens menus. All of it proved on 2.1.328.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from sm.core.ports.panes import Key, Pane, PaneError, View
from sm.core.ports.provider import ClientState, Leave, ReadyOptions, ReportHold
from sm.providers import box_wait
from sm.providers.box_wait import POLL_INTERVAL_S, WaitHistory
from sm.providers.claude.keys.screen import Box, CommandEcho, echoes, read_box, suspended
from sm.providers.claude.traits import CLAUDE
from sm.providers.holds import wait_reason
from sm.providers.terminal_text import squeezed

STASH = "C-s"
SEND_NOW = ("C-x", "C-s")
"""Sends what the client has queued. On an empty queue its second key would stash."""
EFFECT_TIMEOUT_S = 1.0
"""Seconds for a key's effect to show in the box (seen: at most 0.1)."""
QUEUE_SETTLE_S = 0.3
"""Seconds in which something that was queued during the turn starts at its end, as a dialog (seen: at most 0.12)."""
QUEUE_TIMEOUT_S = 0.5
"""Seconds in which a client that works shows that it has queued a prompt (seen: at most 0.1)."""
APPEARS_TIMEOUT_S = 5.0
"""Seconds in which a client that has read a text shows it, also while it starts beside many others. Typed again before
that, the text would be there twice."""
BLOCKED_RETURN_S = 2.0
"""Seconds in which a client puts a prompt back that a hook has blocked (seen: 0.2 to 0.5, on a loaded machine)."""
MAX_ATTEMPTS = 6
"""How often emptying the box is tried in one wait."""

MIN_SCREEN_LINES = 8
ENDED = "the client has ended"
BEHIND = "the client has not read yet what was typed"
APPEARS = "what sm typed is about to appear"
SUBMITTED = "the client has yet to take what was submitted"
REMOVES = "removes text of its own"
TOO_SMALL = "the terminal is too small to show the input box: enlarge it"
STUCK = "text that sm typed is in the box and cannot be removed"


@dataclass(slots=True)
class KeysDriver:
    pane: Pane
    client_state: Callable[[], ClientState | None]
    background: Callable[[], bool]
    """True while only background tasks keep the client's state busy: it is idle at its prompt all the same."""
    _pasted: str = ""
    """The last text that is not known to have left the box for good: a submission that is blocked brings it back."""
    _left: bool = False
    """It was pasted, never sent, and is still in the box: no key was allowed to take it out."""
    _appeared: bool = False
    """It has been seen in the box since it was pasted."""
    _fresh: float = 0.0
    """When a text was pasted last, or the client was last seen not to have read all that was typed."""
    _entered: float | None = None
    """When the last text was submitted: what is blocked comes back soon after, and not before the box is empty."""
    _emptied: bool = False
    """The box has been seen without it since."""
    _swallowed: str = ""
    """Words of the user that were submitted behind a command of `sm`, and so reached no agent."""
    _owed: float | None = None
    """When a prompt was submitted over a stashed draft: the client is about to put that back, into the next text."""

    async def ready(self, options: ReadyOptions, report: ReportHold, leave: Leave) -> bool:
        watch = _QueueHistory(report, options)
        while not leave():
            try:
                reason = await self._clear_way(watch, leave)
            except PaneError as problem:
                reason = str(problem)
            if reason is None:
                return True
            await asyncio.sleep(watch.hold(reason))
        return False

    async def _clear_way(self, watch: _QueueHistory, leave: Leave) -> str | None:
        """Look once; take one step towards an empty box if that is allowed. None once text may be typed."""
        look = await self._look(watch, busy=watch.options.busy)
        if isinstance(look, str):
            return look
        box, view = look
        if not (watch.options.busy or watch.settled()):
            return "what was queued during the turn goes first"
        if self._comes_back(watch.options.own, box):
            return "what was blocked is about to come back"
        mine = self._ours(watch.options.own, box)
        if mine is None:
            typing = not watch.quiet(box, view)
            return "the user is typing" if typing else await self._empty(box, watch, leave) or await self._give_back()
        if box.ends_with(mine):
            return await self._remove(mine, box, watch)
        return await self._remove_before(mine, box, watch) if watch.quiet(box, view) else "the user is typing"

    async def _empty(self, box: Box, watch: _QueueHistory, leave: Leave) -> str | None:
        if self._left:
            return APPEARS
        if box.empty:
            return "a draft is about to come back" if self._draft_is_due(box) else None
        return "gives way" if leave() else await self._stash(box, watch)

    def _ours(self, own: tuple[str, ...], box: Box) -> str | None:
        """Return a text of `sm` that is in the box.

        The user's words may be the same: only what was typed last, and is to be typed again, is taken out of them.
        """
        stands = bool(self._pasted) and (box.ends_with(self._pasted) or box.begins_with(self._pasted))
        mixed = stands and (self._left or own[:1] == (self._pasted,))
        self._appeared = self._appeared or stands
        self._left = self._left and (stands or (not self._appeared and self._is_recent(APPEARS_TIMEOUT_S)))
        return self._pasted if mixed else next((text for text in own if box.holds(text)), None)

    def _is_recent(self, seconds: float) -> bool:
        """Whether something was typed, or not read yet, so many seconds ago."""
        return asyncio.get_running_loop().time() - max(self._fresh, self._entered or 0.0) < seconds

    def _comes_back(self, own: tuple[str, ...], box: Box) -> bool:
        """Return whether to wait for a text of `sm` that is to be typed again: the client has yet to put it back."""
        if self._entered is None or own[:1] != (self._pasted,):
            return False
        here = box.begins_with(self._pasted) or box.ends_with(self._pasted)
        self._emptied = self._emptied or not here
        late = not self._is_recent(BLOCKED_RETURN_S)
        if late or (here and self._emptied):
            self._entered, self._emptied = None, False
            return False
        return True

    async def _remove(self, mine: str, box: Box, watch: _QueueHistory) -> str:
        if watch.tries >= MAX_ATTEMPTS:  # as in vim's NORMAL mode, where the key only moves the cursor
            return STUCK
        watch.tries += 1
        await self._press_back(len(mine), box)
        return REMOVES

    async def _remove_before(self, mine: str, box: Box, watch: _QueueHistory) -> str:
        """Take out the text of `sm` before the user's: they typed between the look at the box and Enter."""
        if watch.tries >= MAX_ATTEMPTS:
            return STUCK
        watch.tries += 1
        if box.stashed:  # their draft: what is here continues it, and there is one stash
            await self._press_back(len(box.text), box)
            if await self._shows(lambda now: now.empty):
                self._swallowed = box.behind(mine)
            return REMOVES
        ours, now = squeezed(mine), box
        while squeezed(now.front).startswith(ours):
            if squeezed(now.front) == ours and not now.front[-1:].isspace():
                await self._press_back(len(mine), now)
                break
            # In an empty box, which this is not, Left opens another view. Blanks are not counted: the cursor comes to
            # our text's end in a few steps, and never beyond it.
            await self.pane.press(Key.LEFT, max(1, len(squeezed(now.front)) - len(ours)))
            moved = await self._moved(now.front)
            if moved is None:
                break
            now = moved
        return REMOVES

    async def _moved(self, front: str) -> Box | None:
        return await self._box_if(lambda now: now.front != front)

    async def _give_back(self) -> str | None:
        """Put the user's words, submitted behind a command of `sm`, to their draft, which then comes back."""
        if not self._swallowed:
            return None
        words, self._swallowed = self._swallowed, ""
        look = await self._look()
        if isinstance(look, str):
            return look
        if look[0].stashed:
            await self.pane.press(STASH)
            await self._shows(lambda now: not now.empty)
        await self.pane.paste(words)
        await self._shows(lambda now: now.ends_with(words))
        return "puts the user's words back"

    def _draft_is_due(self, box: Box) -> bool:
        submitted, now = self._owed, asyncio.get_running_loop().time()
        due = box.stashed and submitted is not None and now - submitted < EFFECT_TIMEOUT_S
        if not due:
            self._owed = None
        return due

    async def _stash(self, box: Box, watch: _QueueHistory) -> str | None:
        if box.stashed and not box.blanks:  # the stash holds one entry: a second one would destroy the first
            return "a draft is in the box and another one is stashed"
        if watch.tries >= MAX_ATTEMPTS:  # the user has given the key another meaning
            return "the draft in the box could not be stashed"
        watch.tries += 1
        if box.blanks:  # Ctrl-S does nothing about them, and `  /clear` would be a prompt
            await self._press_back(box.blanks, box)
            return "blanks are in the box"
        await self.pane.press(STASH)
        return None if await self._shows(lambda now: now.empty) else "the draft in the box could not be stashed"

    async def _look(self, watch: _QueueHistory | None = None, *, busy: bool = False) -> tuple[Box, View] | str:
        """The box and the view it was read from if keys may go to it now, otherwise why not."""
        view = await self.pane.look()
        box = read_box(view.lines, view.cursor)
        reason = self._state(busy=busy)
        if watch is not None and box is not None:
            watch.note_queue(box, busy=reason is not None)
        if view.dead:
            return ENDED
        if reason is not None:
            return reason
        if suspended(view.lines):
            return "the client is suspended, as by Ctrl-Z; kill -CONT with its pid continues it"
        if view.behind:
            self._fresh = asyncio.get_running_loop().time()
            return BEHIND
        if box is None or not box.cursor_inside:
            return TOO_SMALL if len(view.lines) < MIN_SCREEN_LINES else "another view covers the input box"
        return "the input box is in shell mode" if box.shell_mode else (box, view)

    def _state(self, *, busy: bool = False) -> str | None:
        """Why no key may go out now; a client that works is such a reason unless `busy`."""
        return wait_reason(self.client_state(), busy=busy or self.background())

    async def clear(self, leave: Leave) -> str | None:
        return await self.prompt(CLAUDE.clear_command, leave)

    async def prompt(self, text: str, leave: Leave, *, now: bool = False) -> str | None:
        look = await self._look(busy=now)
        if isinstance(look, str):
            return look
        if leave() or not look[0].empty:
            return "gave way" if leave() else "the input box is not empty"
        self._pasted, self._left, self._appeared = text, True, False
        await self.pane.paste(text)
        self._fresh = asyncio.get_running_loop().time()
        if not await self._shows(lambda now: now.holds(text)):
            return await self._take_back(text, "the input box did not show the text")
        if leave() or self._state(busy=now) is not None:
            return await self._take_back(text, self._state(busy=now) or "gave way")
        self._left = False
        before = echoes(look[1].lines, text)
        await self.pane.press(Key.ENTER)
        self._entered, self._emptied = asyncio.get_running_loop().time(), False
        taken = await self._taken(text, len(before), leave) if text.startswith("/") else CommandEcho("")
        self._swallowed = taken.words
        self._owed = asyncio.get_running_loop().time() if look[0].stashed else None
        if taken.unknown:
            self._entered = None
            return "the client did not know the command, with what was typed behind it"
        if now:
            await self._send_on(drafted=look[0].stashed)
        return None

    async def withdraw(self) -> str | None:
        """Text that the user has continued stays until the next wait, which looks whether they still type."""
        if not self._left and self._entered is None:
            return None
        look = await self._look(busy=True)
        if isinstance(look, str):
            return look if look == BEHIND or (self._left and look != ENDED) else None
        text, box = self._pasted, look[0]
        if self._entered is not None and self._is_recent(BLOCKED_RETURN_S):
            return SUBMITTED
        recent = self._is_recent(APPEARS_TIMEOUT_S)
        if self._left and recent and not (box.begins_with(text) or box.ends_with(text)):
            return APPEARS
        if (self._left and box.ends_with(text)) or (recent and box.holds(text)):
            await self._press_back(len(text), box)
        self._left, self._entered = False, None
        return None

    async def _taken(self, command: str, before: int, leave: Leave) -> CommandEcho:
        """Return how a command was taken: the user may have typed behind it before its Enter."""
        deadline = asyncio.get_running_loop().time() + EFFECT_TIMEOUT_S
        while asyncio.get_running_loop().time() < deadline and not leave():
            found = echoes((await self.pane.look()).lines, command)
            if len(found) > before and not found[-1].unknown:
                return found[-1]
            if len(found) > before:
                # What was behind the first blank is shown below it, a moment later.
                await asyncio.sleep(box_wait.SLOW_POLL_INTERVAL_S)
                return echoes((await self.pane.look()).lines, command)[-1]
            await asyncio.sleep(POLL_INTERVAL_S)
        return CommandEcho("")

    async def _send_on(self, *, drafted: bool) -> None:
        """Let the client read at once what it has queued; where it took the text as a prompt nothing is queued.

        The chord sends what is in the box as well, so a draft that has come back is set aside once more.
        """
        if not await self._shows(lambda now: now.queued and now.empty is not drafted, QUEUE_TIMEOUT_S):
            return
        if drafted and not await self._toggle_stash(lambda now: now.empty):
            return
        if await self._shows(lambda now: now.queued and now.empty, POLL_INTERVAL_S) and self._state(busy=True) is None:
            await self.pane.chord(SEND_NOW)
        if drafted:
            await self._toggle_stash(lambda now: not now.empty)

    async def _toggle_stash(self, expected: Callable[[Box], bool]) -> bool:
        if self._state(busy=True) is not None:
            return False
        await self.pane.press(STASH)
        return await self._shows(expected)

    async def _take_back(self, text: str, reason: str) -> str:
        """Remove what we pasted. While a dialog is open not even that is pressed: the next look removes it."""
        if self._state(busy=True) is None:
            view = await self.pane.look()
            box = read_box(view.lines, view.cursor)
            if box is not None and box.cursor_inside and not view.behind and box.ends_with(text):
                await self._press_back(len(text), box)
                self._pasted, self._left = "", False
        return reason

    async def _press_back(self, times: int, before: Box) -> None:
        await self.pane.press(Key.BACKSPACE, times)
        await self._shows(lambda now: (now.text, now.blanks) != (before.text, before.blanks))

    async def _shows(self, expected: Callable[[Box], bool], within: float | None = None) -> bool:
        return await self._box_if(expected, within) is not None

    async def _box_if(self, expected: Callable[[Box], bool], within: float | None = None) -> Box | None:
        deadline = asyncio.get_running_loop().time() + (within or EFFECT_TIMEOUT_S)
        while asyncio.get_running_loop().time() < deadline:
            view = await self.pane.look()
            box = read_box(view.lines, view.cursor)
            if box is not None and box.cursor_inside and not box.shell_mode and expected(box):
                return box
            await asyncio.sleep(POLL_INTERVAL_S)
        return None


class _QueueHistory(WaitHistory):
    """Also when the client was last seen to have something queued."""

    def __init__(self, report: ReportHold, options: ReadyOptions) -> None:
        super().__init__(report, options)
        self.looked = False
        self.queue_seen: float | None = None

    def note_queue(self, box: Box, *, busy: bool) -> None:
        """Agents may print what a queue looks like: it is believed while the client works, and at the first look."""
        now = asyncio.get_running_loop().time()
        if box.queued and (busy or not self.looked):
            self.queue_seen = now
        self.looked = True

    def settled(self) -> bool:
        return self.queue_seen is None or asyncio.get_running_loop().time() - self.queue_seen >= QUEUE_SETTLE_S
