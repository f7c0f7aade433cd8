"""What a run may use, on the real client: a budget ends the turn in which it is used."""

import pytest

from sm.testing.scenario import Call, Turn, Usage, scenario
from tests.e2e.rig import Rig
from tests.e2e.test_auto import BEGUN, COMMITTED, DONE, READ, auto, git, repository

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
