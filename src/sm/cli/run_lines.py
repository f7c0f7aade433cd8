"""What is printed while a run works, and at its end: lines for people, or with `--json` one object in each line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sm.cli.format import SCHEMA, say, show
from sm.plain_text import plain

if TYPE_CHECKING:
    from sm.runner.outcome import IssueOutcome, RunOutcome
    from sm.runner.tools import Tools
    from sm.settings import RunnerSettings


@dataclass(frozen=True, slots=True)
class RunLines:
    as_json: bool

    def said(self, words: str) -> None:
        if self.as_json:
            _emit("progress", {"text": words})
        else:
            say(plain(words))

    def issue_ended(self, outcome: IssueOutcome) -> None:
        """Print an issue's end with all that is known of it; people read it in the progress."""
        if self.as_json:
            _emit("issue", plain_values(outcome))

    def ended(self, found: RunOutcome, report: Path, left_out: Sequence[dict[str, str]]) -> None:
        if self.as_json:
            _emit("run", {**plain_values(found), "report": str(report), "left_out": list(left_out)})
            return
        from sm.runner.report import summary  # noqa: PLC0415  # loaded by then

        show(plain(summary(found)))
        show(f"report: {plain(str(report))}")


def _emit(event: str, data: dict[str, object]) -> None:
    show(json.dumps({"schema": SCHEMA, "data": {"event": event, **data}}))


def plain_values(value: object) -> dict[str, object]:
    """Return a struct of a run as JSON has it."""
    import msgspec  # noqa: PLC0415  # 30 ms, and loaded by then

    return dict(msgspec.to_builtins(value))


def say_rules(chosen: RunnerSettings, tools: Tools) -> None:
    """Say under which rules a run works, and what keeps it from merging."""
    from sm.runner.merges import foreign_changes, named  # noqa: PLC0415

    changed = foreign_changes(tools.top, tools.protected()) if chosen.deliver == "merge" else []
    if changed:
        say(plain(f"changed here, and in the way of every merge until you commit or stash it: {named(changed)}"))
    mode = chosen.permission_mode or "the client's default"
    asks = "is denied" if chosen.on_ask == "deny" else f"waits {chosen.ask_timeout:.0f} s for you: sm asks"
    if chosen.mode == "headless":
        say("headless: its clients have no screen, and take its directories for trusted")
    say(f"permission mode: {mode}; what an agent asks {asks}")
