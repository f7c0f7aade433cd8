"""A server at which a person types at the worst moment: between our look at the box and our Enter.

Run in place of `sm server run`. The keys are in the file `typed` beside SM_HOME and go to the pane before the next
Enter.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from sm.bootstrap import serve
from sm.core.ports.panes import Key
from sm.tmux.adapter import TmuxPane

RENDERED = 0.2
"""Seconds: text and its Enter in one read would be a paste."""
press = TmuxPane.press


async def hasty(tmux_pane: TmuxPane, key: str, times: int = 1) -> None:
    typed = Path(os.environ["SM_HOME"]).parent / "typed"
    if key == Key.ENTER and typed.exists():
        words = typed.read_text()
        typed.unlink()
        for number, line in enumerate(words.split("\n")):
            if number:
                await tmux_pane.panes._client.command("send-keys", "-t", tmux_pane.pane_id, "C-j")
            await tmux_pane.panes._client.command("send-keys", "-t", tmux_pane.pane_id, "-l", "--", line)
        await asyncio.sleep(RENDERED)
    await press(tmux_pane, key, times)


if __name__ == "__main__":
    TmuxPane.press = hasty
    serve()
