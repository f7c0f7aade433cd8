"""The page of one session: what it is, its context over time, its rotation, its messages, its cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import Static

from sm.cli.format import tokens
from sm.client import session_path
from sm.core.model.rotation import IN_ORDER, OVER
from sm.fleet import Row
from sm.tui.details.chart import chart
from sm.tui.details.history import history
from sm.tui.dialogs.box import Reach, ServerDialog
from sm.tui.look import HEAD_STYLE, PLAIN_STYLE, QUIET_STYLE
from sm.tui.main_screen import described
from sm.tui.server.requests import SeenEvent
from sm.tui.text import dollars, duration, one_line, time_of_day

MAX_MESSAGES = 12
INTERVAL_S = 1.0
View = dict[str, Any]


class DetailsBox(ServerDialog[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", show=False),
        Binding("i", "leave", show=False),
    ]
    wide = True
    hint = "↑ ↓ scroll · Esc leaves"

    def __init__(self, reach: Reach, row: Row, current: Callable[[], Row | None], now: Callable[[], float]) -> None:
        """`current` returns the row of the session as it is by now."""
        super().__init__(reach, row.name)
        self.row, self.current, self.now = row, current, now
        self._stale = True

    def body(self) -> Iterable[Static]:
        for name in ("about", "context", "rotation", "messages", "cost"):
            yield Static("", id=name, markup=False)

    def on_mount(self) -> None:
        self._refresh_row()
        self.set_interval(INTERVAL_S, self._refresh_row)

    def happened(self, event: SeenEvent) -> None:
        self._stale = self._stale or event.session == self.row.id

    def _refresh_row(self) -> None:
        """Show the row as the list has it; read the rest again if something has happened since."""
        self.row = self.current() or self.row
        self.put("about", described(self.row, self.now()))
        if self._stale and self.read_again(self._read):
            self._stale = False

    async def _read(self) -> None:
        path = session_path(self.row.id)
        found = await self.called("GET", f"{path}/context/history")
        view = await self.called("GET", path)
        messages = await self.called("GET", f"{path}/messages?all=1")
        costs = await self.called("GET", "/cost")
        if found is None or view is None or messages is None or costs is None:
            self._stale = True
            return
        if not self.is_attached:
            return
        row = self.row
        drawn = chart(history(found), self.size.width - 8, row.warning_percent, row.critical_percent)
        parts = {
            "context": drawn,
            "rotation": _text(_rotation_lines(view, self.now())),
            "messages": _text(_message_lines(messages, self.row.id)),
            "cost": _text(_cost_lines(next((cost for cost in costs if cost["id"] == self.row.id), None))),
        }
        for name, content in parts.items():
            self.put(name, _headed(name, content))


def _headed(head: str, content: Text) -> Text:
    shown = Text("\n", style=PLAIN_STYLE)
    shown.append(f"{head.upper()}\n", HEAD_STYLE)
    return shown.append_text(content)


def _text(found: Iterable[tuple[str, bool]]) -> Text:
    """Return lines, those that are quiet in grey."""
    shown = Text(style=PLAIN_STYLE)
    for number, (line, quiet) in enumerate(found):
        shown.append(("\n" if number else "") + one_line(line), QUIET_STYLE if quiet else PLAIN_STYLE)
    return shown


def _rotation_lines(view: View, now: float) -> Iterator[tuple[str, bool]]:
    found = view["handoff"]
    phase = found["phase"]
    if phase is None:
        yield "no handoff yet", True
        return
    steps = IN_ORDER if phase in IN_ORDER else (*IN_ORDER[:-1], phase)
    yield " → ".join(f"[{step}]" if step == phase else step for step in steps), False
    age = duration(now - found["since"]) if found.get("since") else ""
    since = f" {age} ago" if phase in OVER else f" for {age}"
    note = f": {found['note']}" if found.get("note") else ""
    yield f"{phase}{since if age else ''}{note}", False
    yield f"document {found['id'] or ''} {found['path'] or 'none'}", True


def _message_lines(messages: list[View], session: str) -> Iterator[tuple[str, bool]]:
    if not messages:
        yield "no messages", True
    for view in messages[:MAX_MESSAGES]:
        incoming = view["target"] == session
        who = f"from {view['from'] or 'sm'}" if incoming else f"to {view['to']}"
        channel = f" by {view['channel']}" if view["channel"] else ""
        reason = f" ({view['reason']})" if view["reason"] else ""
        yield f"{time_of_day(view['queued'])} {who}: {view['state']}{channel}{reason} · {view['mode']}", False
        yield f"         {view.get('text') or ''}", True
    if len(messages) > MAX_MESSAGES:
        yield f"{len(messages) - MAX_MESSAGES} older ones", True


def _cost_lines(cost: View | None) -> Iterator[tuple[str, bool]]:
    if cost is None:
        yield "not known", True
        return
    for words, spent in (("this session", cost["spent"]), ("with its children", cost["tree"])):
        price = dollars(spent["usd"]) or "no price known"
        yield f"{words}: {price}, {spent['requests']} requests, {tokens(spent['tokens'])} tokens", False
    for context in cost["contexts"]:
        spent = context["spent"]
        yield f"context {context['number']}: {dollars(spent['usd']) or '-'}, {tokens(spent['tokens'])} tokens", True
