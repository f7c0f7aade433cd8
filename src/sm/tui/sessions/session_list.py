"""The list of sessions on the screen: it draws only lines that have changed, and its cursor follows a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from sm.fleet import Row
from sm.tui.look import CURSOR, GROUND, HEAD_STYLE, QUIET_STYLE
from sm.tui.sessions.cells import Layout, layout
from sm.tui.text import about

Said = tuple[Row, str, str]
"""What a line says: a session, and the words of its times in place of the times."""

CURSOR_STYLE = Style(bgcolor=CURSOR)
CURSOR_STYLE_WITHOUT_COLOUR = Style(reverse=True)
GROUND_STYLE = Style(bgcolor=GROUND)
OLD_STYLE = Style(dim=True)
HEAD_LINES = 1


class SessionList(ScrollView, can_focus=True):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "move(-1000000)", show=False),
        Binding("end", "move(1000000)", show=False),
    ]

    EMPTY = "no session yet: sm new starts one"

    class Chosen(Message):
        """The cursor is on another session, or that has changed."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: tuple[Row, ...] = ()
        self.cursor = 0
        self.empty = self.EMPTY
        self._layout = Layout(())
        self.old = False
        """What it shows may not be true any more."""
        self.now = 0.0
        """The moment that is shown, in UTC seconds."""
        self._length = 0
        self._drawn: dict[int, Strip] = {}
        """The lines that were drawn of these rows."""
        self._lines: dict[str, tuple[Said, Strip]] = {}
        """The last line of each session, with what it says."""

    @property
    def chosen(self) -> Row | None:
        """The session under the cursor."""
        return self.shown[self.cursor] if self.cursor < len(self.shown) else None

    def show(self, shown: Sequence[Row]) -> None:
        """Show these sessions. The cursor stays on its session, wherever that is now; in the first line it stays there.

        So the top of a list stays in view until the cursor is moved: who needs the user most.
        """
        before = self.chosen
        self.shown = tuple(shown)
        ids = [row.id for row in self.shown]
        if self.cursor and before is not None and before.id in ids:
            self.cursor = ids.index(before.id)
        self.cursor = max(0, min(self.cursor, len(ids) - 1))
        self._draw(
            moved=before is not None and self.cursor > 0 and (self.chosen is None or before.id != self.chosen.id)
        )

    def count_on(self, now: float) -> None:
        """Show for how long all in view has been so by now."""
        self.now = now
        self._refresh_changed()
        self.post_message(self.Chosen())

    def mark_old(self, *, old: bool) -> None:
        if old != self.old:
            self.old = old
            self.refresh()

    def choose(self, session: str) -> bool:
        """Put the cursor on a session; False if it is not shown."""
        for number, row in enumerate(self.shown):
            if row.id == session:
                self.action_move(number - self.cursor)
                return True
        return False

    def action_move(self, by: int) -> None:
        before, self.cursor = self.cursor, max(0, min(self.cursor + by, len(self.shown) - 1))
        self.refresh_line(before + HEAD_LINES)
        self.refresh_line(self.cursor + HEAD_LINES)
        self._follow_cursor()
        self.post_message(self.Chosen())

    def action_page(self, by: int) -> None:
        self.action_move(by * max(1, self.size.height - HEAD_LINES - 1))

    def on_click(self, event: events.Click) -> None:
        line = event.y + round(self.scroll_y) - HEAD_LINES
        if 0 <= line < len(self.shown):
            self.action_move(line - self.cursor)

    def on_resize(self) -> None:
        self._draw(moved=True)

    def _draw(self, *, moved: bool) -> None:
        """Work out the lines in view again, and have only those drawn that differ."""
        if self.size.width <= 0:
            return
        before, self._layout = self._layout, layout(self.shown, self.size.width - 2)
        self.virtual_size = Size(self.size.width, len(self.shown) + HEAD_LINES)
        if before != self._layout:
            self._lines.clear()
        if moved:
            self._follow_cursor()
        if moved or before != self._layout or self._length != len(self.shown):
            self._length = len(self.shown)
            self._drawn = {}
            self.refresh()
        else:
            self._refresh_changed()
        self.post_message(self.Chosen())

    def _refresh_changed(self) -> None:
        """Have those of the drawn lines drawn again that say something else now."""
        old, self._drawn = self._drawn, {}
        for number in old:
            if number < len(self.shown) and old[number] is not self._line(number):
                self.refresh_line(number + HEAD_LINES)

    def _line(self, number: int) -> Strip:
        """Return the line of a session; the one from before if it says the same."""
        line = self._drawn.get(number)
        if line is None:
            row = self.shown[number]
            said = (replace(row, since=None, seen=None), about(row.since, self.now), about(row.seen, self.now))
            before = self._lines.get(row.id)
            if before is not None and before[0] == said:
                line = before[1]
            else:
                line = _strip(self._layout.line(row, self.now), self.size.width)
                self._lines[row.id] = (said, line)
            self._drawn[number] = line
        return line

    def _follow_cursor(self) -> None:
        """Scroll as little as needed; the first session also shows the heads."""
        top, height = round(self.scroll_y), max(1, self.size.height)
        line = self.cursor + HEAD_LINES
        if self.cursor == 0:
            self.scroll_to(y=0, animate=False)
        elif line < top:
            self.scroll_to(y=line, animate=False)
        elif line >= top + height:
            self.scroll_to(y=line - height + 1, animate=False)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the lines as they are kept: this widget has no border and no padding that would have to be added."""
        filters, ground = self.get_line_filters(), self.background_colors[1]
        drawn = [self.render_line(y) for y in crop.line_range]
        for each in filters:
            drawn = [strip.apply_filter(each, ground) for strip in drawn]
        return drawn if crop.column_span == (0, self.size.width) else [strip.crop(*crop.column_span) for strip in drawn]

    def render_line(self, y: int) -> Strip:
        line = y + round(self.scroll_y) - HEAD_LINES
        width = self.size.width
        if line < 0:
            return _strip([Segment(self._layout.head(), HEAD_STYLE)], width).apply_style(GROUND_STYLE)
        if not self.shown and line == 0:
            return _strip([Segment(self.empty, QUIET_STYLE)], width).apply_style(GROUND_STYLE)
        if line >= len(self.shown):
            return Strip.blank(width, GROUND_STYLE)
        style = GROUND_STYLE
        if line == self.cursor:
            style = CURSOR_STYLE_WITHOUT_COLOUR if self.app.no_color else CURSOR_STYLE
        return self._line(line).apply_style(style + OLD_STYLE if self.old else style)


def _strip(segments: list[Segment], width: int) -> Strip:
    return Strip([Segment(" ", QUIET_STYLE), *segments]).adjust_cell_length(width, QUIET_STYLE).simplify()
