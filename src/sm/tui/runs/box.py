"""The unattended runs of this directory and their issues, as `sm runs` reads them, read again while it is open."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Static

from sm.tui.commands.child import finished
from sm.tui.dialogs.box import Reach, ServerDialog, plain_text
from sm.tui.text import one_line

INTERVAL_S = 10.0
"""Reading them starts a process that loads the engine of runs."""
MAX_RUNS = 10
View = dict[str, Any]


class RunsBox(ServerDialog[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", show=False),
        Binding("u", "leave", show=False),
    ]
    wide = True
    hint = "the newest run with its issues · ↑ ↓ scroll · Esc leaves"

    def __init__(self, reach: Reach) -> None:
        super().__init__(reach, "Runs of this directory")

    def body(self) -> Iterable[Static]:
        yield Static("reading…", id="runs", markup=False)

    def on_mount(self) -> None:
        self._begin()
        self.set_interval(INTERVAL_S, self._begin)

    def _begin(self) -> None:
        self.read_again(self._read)

    async def _read(self) -> None:
        runs = await self._data("list")
        newest = await self._data("show", runs[0]["run"]) if runs else None
        if runs is not None and self.is_attached:
            self.put("runs", plain_text(run_lines(runs, newest)))

    async def _data(self, *words: str) -> Any:  # noqa: ANN401  # JSON
        code, out, err = await finished(["runs", *words, "--json"])
        if not self.is_attached:
            return None
        answer = (
            json.loads(out) if out.startswith("{") else {"error": {"message": err or f"exit code {code}", "hint": ""}}
        )
        if "error" in answer:
            self.put("runs", plain_text([]))
            self.refuse(one_line(f"{answer['error']['message']} ({answer['error']['hint']})"))
            return None
        self.refuse("")
        return answer["data"]


def run_lines(runs: list[View], newest: View | None) -> Iterator[str]:
    if not runs:
        yield "no runs: sm auto begins one"
    for run in runs[:MAX_RUNS]:
        count = len(run["issues"])
        yield one_line(f"{run['run']}  {run['state']}  {count} {'issue' if count == 1 else 'issues'}")
        if newest is not None and run["run"] == newest["run"]:
            yield from (f"  {_issue_line(issue)}" for issue in newest["issues"])


def _issue_line(issue: View) -> str:
    outcome = issue["outcome"] or {}
    words = (
        issue["issue"],
        outcome.get("result") or issue["state"],
        issue["session"],
        issue["step"],
        outcome.get("reason"),
    )
    return one_line("  ".join(str(word) for word in words if word))
