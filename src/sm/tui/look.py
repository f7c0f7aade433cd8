"""The look of the screen: few colours, each beside a mark or a word that says the same without it."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.theme import Theme

from sm.plain_marks import in_cells

QUIET, TEXT, ACCENT = "#8b94a3", "#d7dce4", "#7aa2d6"
GOOD, BUSY, WARN, BAD = "#8fbf8f", "#6fb3b8", "#e0b15a", "#e07a6c"
GROUND, RAISED, CURSOR = "#15181d", "#1d2128", "#2b3340"
THEME = Theme(
    name="sm",
    primary=ACCENT,
    secondary=BUSY,
    warning=WARN,
    error=BAD,
    success=GOOD,
    accent=ACCENT,
    foreground=TEXT,
    background=GROUND,
    surface=RAISED,
    panel=RAISED,
    dark=True,
)
STATE_COLOURS = {
    "waiting": WARN,
    "blocked": BAD,
    "crashed": BAD,
    "silent": WARN,
    "unknown": WARN,
    "limited": WARN,
    "idle": GOOD,
    "starting": QUIET,
    "working": BUSY,
    "compacting": ACCENT,
    "rotating": ACCENT,
    "exited": QUIET,
}
PLAIN_STYLE = Style(color=TEXT)
QUIET_STYLE = Style(color=QUIET)
HEAD_STYLE = Style(color=QUIET, bold=True)
BOLD_STYLE = Style(color=TEXT, bold=True)
LEVEL_STYLES = {"ok": Style(color=GOOD), "warning": Style(color=WARN), "critical": Style(color=BAD)}


class PlainMarks(LineFilter):
    """Draws everything in ASCII, each part as wide as before."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002  # as Textual calls it
        return [
            segment if segment.text.isascii() else Segment(_as_wide(segment.text), segment.style, segment.control)
            for segment in segments
        ]


def _as_wide(text: str) -> str:
    width = cell_len(text)
    return in_cells(text)[:width].ljust(width)  # some characters are one to Textual, and several to us


def state_style(state: str, *, strong: bool) -> Style:
    return Style(color=STATE_COLOURS.get(state, TEXT), bold=strong)


CSS = f"""
Screen {{ background: {GROUND}; color: {TEXT}; }}
#title, #chosen, #keys {{ text-wrap: nowrap; text-overflow: ellipsis; }}
#title {{ height: 1; background: {RAISED}; padding: 0 1; }}
#lost {{ height: auto; max-height: 2; background: {BAD}; color: {GROUND}; padding: 0 1; display: none; }}
#filter {{ height: 1; border: none; background: {RAISED}; padding: 0 1; display: none; }}
#chosen {{ height: 4; background: {RAISED}; padding: 0 1; }}
#said {{ height: auto; max-height: 3; background: {RAISED}; padding: 0 1; display: none; }}
#keys {{ height: 1; color: {QUIET}; padding: 0 1; }}
SessionList {{ height: 1fr; background: {GROUND}; scrollbar-size-vertical: 1; }}
ModalScreen {{ align: center middle; background: {GROUND} 60%; }}
.box {{ width: 92%; max-width: 110; height: auto; max-height: 90%; }}
.box {{ background: {RAISED}; border: round {ACCENT}; padding: 0 1; }}
.wide {{ width: 100%; max-width: 100%; height: 100%; max-height: 100%; }}
.body {{ height: auto; max-height: 55vh; }}
.wide .body {{ height: 1fr; max-height: 100%; }}
.hint {{ height: auto; color: {QUIET}; }}
.head {{ height: auto; text-style: bold; }}
.problem {{ height: auto; color: {BAD}; display: none; }}
OptionList {{ border: none; height: auto; max-height: 8; background: {CURSOR}; padding: 0; }}
#hits {{ max-height: 100%; height: 1fr; background: {RAISED}; }}
Input {{ height: 1; border: none; background: {CURSOR}; padding: 0 1; }}
TextArea {{ height: 6; border: none; background: {CURSOR}; padding: 0 1; }}
"""
