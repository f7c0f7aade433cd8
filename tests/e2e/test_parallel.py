"""`sm parallel` on the real client: two agents at the same time, and nothing of either is lost."""

import asyncio

import pytest

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.cli import warm
from tests.e2e.rig import Rig
from tests.e2e.test_auto import BEGUN, READ, git, last_line, write_issues

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(300)]

ISSUES = ("FEAT-020", "FEAT-021")
WORKS = """
n=$(basename "$PWD")
if git log --format=%s | grep -q "Do $n"; then
    git merge -q trunk
    git show trunk:shared.txt > shared.txt
fi
echo $n >> shared.txt
git add shared.txt
git commit -qm "Do $n"
"""
SCRIPT = scenario(Turn(BEGUN, steps=[READ, Call("Bash", command="sleep 3"), Call("Bash", command=WORKS), Say("Done.")]))


async def parallel(rig, *arguments):
    env = {**rig.env, **rig.server_env(), "SM_RUNNER_MODEL": rig.model_name}
    request = warm.request_for(("parallel", "--client", str(rig.client), "--json", *arguments), env, rig.project)
    ran = await asyncio.to_thread(warm.shared().completed, request, "")
    assert ran.stdout, ran.stderr
    return ran.returncode, last_line(ran.stdout)


async def test_two_agents_whose_work_conflicts_are_both_delivered_and_nothing_of_either_is_lost():
    async with Rig(SCRIPT) as rig:
        write_issues(rig, {name: f"grep -q {name} shared.txt" for name in ISSUES})
        code, data = await parallel(rig, "-j", "2")
        found = [(each["issue"], each["result"], each["reason"]) for each in data["outcomes"]]
        assert (found, code) == ([(name, "delivered", "") for name in ISSUES], 0)
        assert sorted(each["attempts"] for each in data["outcomes"]) == [1, 2]
        assert sorted((rig.project / "shared.txt").read_text().split()) == list(ISSUES)
        log = git(rig, "log", "--first-parent", "--format=%s").splitlines()
        assert sorted(line for line in log if line.startswith("Merge ")) == [
            f"Merge sm/{name}: Write {name}" for name in ISSUES
        ]
        assert (git(rig, "status", "--porcelain"), git(rig, "branch", "--format=%(refname:short)")) == ("", "trunk")
        assert len(await rig.ask("GET", "/sessions")) == 3
