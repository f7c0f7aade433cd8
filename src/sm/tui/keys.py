"""The keys of the screen: which there are, what each does, and which of them a narrow line still names."""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding, BindingType


@dataclass(frozen=True, slots=True)
class ListKey:
    key: str
    """As Textual calls it."""
    shown: str
    action: str
    short: str
    words: str


KEYS = (
    ListKey("enter", "Enter", "attach", "attach", "attach to the session; detach (Ctrl-b d) comes back here"),
    ListKey("space", "Space", "peek", "peek", "see its pane live, without attaching"),
    ListKey("a", "a", "answer", "answer", "answer what it asks: allow, deny with a reason, always, questions"),
    ListKey("m", "m", "message", "message", "send it a message"),
    ListKey("h", "h", "hand_off", "handoff", "hand off: ask its agent, or with a document made without a model"),
    ListKey("i", "i", "details", "details", "its context over time, rotation, messages, cost"),
    ListKey("d", "d", "documents", "documents", "its handoff documents as a chain, and their differences"),
    ListKey("k", "k", "kill", "kill", "end it; asks before it does"),
    ListKey("r", "r", "restore", "restore", "restart an ended one with its conversation"),
    ListKey("slash", "/", "filter", "filter", "show only sessions with these words; Esc shows all"),
    ListKey("s", "s", "search", "search", "search all contexts of all sessions"),
    ListKey("u", "u", "runs", "runs", "the unattended runs of this directory, and their issues"),
    ListKey("colon", ":", "command", "command", "run any sm command and see its output"),
    ListKey("question_mark", "?", "help", "keys", "this help"),
    ListKey("q", "q", "quit", "quit", "leave; sessions and server keep running"),
)
FIRST = ("?", "Enter", "Space", "a", "m", "i", "h", "q", "/", "s", "d", "k", "r", ":", "u")
"""In the order in which a wider line names them."""
MOVES = "↑ ↓ PgUp PgDn Home End, or the mouse, choose a session."
LEGEND = (
    ("╎ ┃", "the warning and the critical threshold of a context, while they are ahead"),
    ("! !!", "past the warning; past the critical one, where its agent is to hand off"),
    ("TURNS", "about how many turns are left until then"),
    ("ROT MSG", "handoffs that were made, messages that wait for it"),
    ("EVIDENCE", "by what its state is known, and how old that is"),
)


def main_bindings() -> list[BindingType]:
    return [
        *(Binding(key.key, f"app.{key.action}", key.words, show=False) for key in KEYS),
        Binding("escape", "app.clear_filter", show=False),
    ]


def main_hint(room: int) -> str:
    """Return as many keys as a line has room for."""
    known = {key.shown: f"{key.shown} {key.short}" for key in KEYS}
    shown = ""
    for name in FIRST:
        longer = f"{shown}  {known[name]}" if shown else known[name]
        if len(longer) > room:
            break
        shown = longer
    return shown
