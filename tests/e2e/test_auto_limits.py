"""What a run may use, on the real client: a budget ends the turn in which it is used, a usage limit holds it."""

import asyncio
import time

import pytest

from sm.testing.scenario import Call, Turn, Usage, scenario
from tests.e2e.rig import Rig
from tests.e2e.test_auto import BEGUN, COMMITTED, DONE, READ, auto, git, repository, write_issues
from tests.e2e.test_parallel import parallel
from tests.e2e.test_usage_limit import AGAIN, SOON, met, subscriber

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

PRICED = '[cost]\nprices = ["claude-sonnet-4-5 100 100"]\n[runner]\nissue_budget = "$1"\n'
USED = Usage(input=2_000, output=2_000)
"""Of each request: $0.40."""
SLOW = Call("Bash", command="sleep 3").but(usage=USED)
LONG = 12
"""Requests of a turn that is never ended by the agent within a budget."""


@pytest.mark.soak
async def test_a_budget_ends_the_turn_in_which_it_is_used_and_what_was_done_is_kept():
    turn = Turn(BEGUN, steps=[READ.but(usage=USED), COMMITTED.but(usage=USED), *[SLOW] * LONG, DONE])
    async with Rig(scenario(turn), config=PRICED) as rig:
        repository(rig)
        code, data = await auto(rig)
        (outcome,) = data["outcomes"]
        assert (code, outcome["result"]) == (1, "unfinished"), outcome
        assert outcome["reason"].startswith("its budget is used: $1.")
        assert len(rig.model.main_requests) < LONG
        assert outcome["spent"]["usd"] >= 1
        (session,) = await rig.ask("GET", "/sessions")
        assert session["status"] == "exited"
        assert git(rig, "log", "-1", "--format=%s", "sm/FEAT-012") == "Write login.txt"
        assert not (rig.project / "login.txt").exists()
        assert "status: open" in (rig.project / ".issues/P1-FEAT-012-log-in.md").read_text()
        assert git(rig, "status", "--porcelain") == ""


WAITED = Call("Bash", command="until [ -e ../../go ]; do sleep 0.1; done; echo went")
COMMITS = Call("Bash", command='n=$(basename "$PWD"); echo in > $n.txt; git add $n.txt; git commit -qm "Do $n"')
BOTH = ("FEAT-020", "FEAT-021")
SECONDS = 25
"""From when both are refused until their limit resets."""


@pytest.mark.soak
async def test_a_usage_limit_in_the_middle_holds_all_of_a_run_and_is_no_work_of_theirs():
    again = Turn(AGAIN, steps=[COMMITS, DONE])  # first: it repeats how the task began
    script = scenario(again, Turn(BEGUN, steps=[READ, WAITED]), otherwise=DONE)
    async with Rig(script, config=f"{SOON}[runner]\ntimeout = 20\n") as rig:
        write_issues(rig, {name: f"test -f {name}.txt" for name in BOTH})
        subscriber(rig)
        running = asyncio.ensure_future(parallel(rig, "-j", "2"))
        for name in BOTH:
            await rig.model.wait_for(lambda request: f"sm issue] end of {name}" in request.all_text, within=60)  # noqa: B023
        resets_at = time.time() + SECONDS
        known = len(rig.model.main_requests)
        rig.model.play(Turn(result="went", steps=[met(resets_at)], times=len(BOTH)))
        (rig.project / "go").touch()
        for session in await rig.ask("GET", "/sessions"):
            await rig.wait_status(session["id"], "limited")
        code, data = await running
        found = [(each["issue"], each["result"], each["reason"], each["attempts"]) for each in data["outcomes"]]
        assert (found, code) == ([(name, "delivered", "", 1) for name in BOTH], 0)
        asked = [request for request in rig.model.main_requests[known:] if request.epoch < resets_at]
        assert len(asked) == len(BOTH), "no more than what was refused"
        assert len([request for request in rig.model.main_requests if AGAIN in request.user_text]) == len(BOTH)
        (rig.project / "go").unlink()
        assert git(rig, "status", "--porcelain") == ""
