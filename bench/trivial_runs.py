"""A process that works on issues whose steps take no time: `python -m bench.trivial_runs DATABASE ISSUES [worker]`.

DATABASE is the URL of a PostgreSQL or the path of a file. It prints the seconds from the begin of the run to its end.
As a worker it prints nothing, and works until it is ended.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import cast

from sm.runner import workflow
from sm.runner.database import APPLICATION, RunDatabase, local_database
from sm.runner.durable import DurableRuns
from sm.runner.outcome import Checked, Delivered, Prepared, SessionLook, Spent, Work, Workplace
from sm.runner.run import OpenRun
from sm.runner.tools import RunRules, Survey, Tools

PLACE = Workplace("/worktree", "sm/x", "trunk", "/worktree", "0" * 40)


class TrivialTools:
    """What an issue needs, done at once: what is left is the engine."""

    project = top = Path("/project")
    rules = RunRules()

    reviewers = None

    @property
    def sessions(self) -> TrivialTools:
        return self

    def survey(self, issue: str) -> Survey:
        return Survey(bool(issue), self.rules, {})

    def prepare(self, run: str, issue: str) -> Prepared:
        return Prepared(issue, issue, "true", PLACE, run, "prompt", "scope")

    def set_up(self, prepared: Prepared) -> None:
        """It is."""

    def leaks(self, *given: object) -> tuple[str, ...]:
        return () if given else ("odd",)

    def ensured(self, attempt: str, prepared: Prepared) -> str:
        return f"{prepared.id} {attempt}"

    def look(self, run: str, *given: object) -> SessionLook:
        return SessionLook(f"{run} {len(given)}", "idle", "", at_rest=True, rotations=0, last_activity=1.0)

    def end(self, session: str) -> None:
        """Nothing runs."""

    def inspect(self, place: Workplace) -> Work:
        return Work(place.branch, 1)

    def updated(self, place: Workplace, head: str) -> Work:
        return Work(head or place.branch, 1)

    def check(self, prepared: Prepared) -> Checked:
        return Checked(prepared.place.branch, 0, 0.0, "")

    def delivery_turn(self) -> nullcontext[None]:
        return nullcontext()

    def deliver(self, *given: object) -> Delivered:
        return Delivered(str(len(given)))

    def record(self, *given: object, commits: bool) -> tuple[str, ...]:
        return () if given and commits else ("odd",)

    def tidy(self, *given: object) -> tuple[str, ...]:
        return () if given else ("odd",)

    def spent(self, *given: object) -> Spent:
        return Spent(len(given), 0.0)

    def notify(self, *given: object) -> str:
        return "" if given else "odd"


def main() -> None:
    place, count, *role = sys.argv[1:]
    vars(workflow).update(SETTLE_S=0.0, FIRST_PAUSE_S=0.0)  # what a session is given to settle is not the engine's
    with tempfile.TemporaryDirectory() as reports:
        shared = place.startswith("postgresql://")
        database = RunDatabase(place, APPLICATION, Path(reports)) if shared else local_database(Path(place))
        issues = tuple(f"FEAT-{number:04}" for number in range(int(count)))
        with DurableRuns(database, cast("Tools", TrivialTools())) as runs:
            if role:
                threading.Event().wait()
            begin = time.perf_counter()
            runs.begin(OpenRun(f"R-{begin}", issues, jobs=len(issues) if shared else 1, each=1 if shared else 0))
            found = runs.outcome(f"R-{begin}")
            print(time.perf_counter() - begin)
            assert found.complete, found


if __name__ == "__main__":
    main()
