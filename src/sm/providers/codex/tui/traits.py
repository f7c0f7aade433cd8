"""What the rules need to know of Codex where keys drive it in its terminal. Each fact was seen on 0.171.0."""

from __future__ import annotations

from dataclasses import replace

from sm.providers.codex.hooks import REPLY_BYTES
from sm.providers.codex.traits import CODEX
from sm.providers.codex.tui.driver import CLEAR

TUI = replace(
    CODEX,
    clear_command=CLEAR,
    special_prefixes=("/",),  # only a command of the user is typed as one
    typed_characters=50_000,  # a long paste is shown folded, and submitted whole
    typed_lines=5_000,
    reply_characters=REPLY_BYTES,
    continued_turns=50,  # 200 in a row did not end a turn
)
