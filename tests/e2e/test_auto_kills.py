"""`sm auto` on ten issues with the real client, while runner, server and clients are killed again and again."""

import asyncio
import contextlib
import random

import pytest

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.cli import warm
from tests.e2e.rig import Rig
from tests.e2e.test_auto import BEGUN, READ, auto_request, git, last_line, write_issues

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(1_500)]

ISSUES = [f"FEAT-{number:03}" for number in range(20, 30)]
KILLS = 20
WRITES = 'n=$(basename "$PWD"); echo in > $n.txt; git add $n.txt; git diff --cached --quiet || git commit -qm "Do $n"'
COMMITTED = Call("Bash", command=WRITES)
SCRIPT = scenario(Turn(BEGUN, steps=[READ, Call("Bash", command="sleep 2"), COMMITTED, Say("Done.")]))


class Runner:
    """`sm auto`, begun again after each of its ends until it has succeeded."""

    def __init__(self, rig):
        self.rig = rig
        self.begun = 0
        self.process = None

    def begin(self):
        self.begun += 1
        out, err = (self.rig.root / f"auto.{self.begun}.{name}" for name in ("out", "err"))
        with out.open("wb") as output, err.open("wb") as errors, (self.rig.root / "auto.in").open("wb+") as nothing:
            streams = (nothing.fileno(), output.fileno(), errors.fileno())
            self.process = warm.shared().start(auto_request(self.rig, "--json"), *streams)

    @property
    def ended(self):
        return self.process.poll() is not None

    @property
    def outcomes(self):
        return last_line((self.rig.root / f"auto.{self.begun}.out").read_text())["outcomes"]

    @property
    def errors(self):
        return "\n".join(path.read_text() for path in sorted(self.rig.root.glob("auto.*.err")))


async def killed(rig, runner, victim, spared):
    """Kill it, and return what was killed: the server where no client of a session works that is not spared."""
    if victim == "client":
        sessions = [each["id"] for each in await rig.ask("GET", "/sessions") if each["status"] == "working"]
        session = next((session for session in sessions if session not in spared), None)
        with contextlib.suppress(ProcessLookupError, TypeError):  # it has ended by now
            if session is not None:
                spared.add(session)
                await rig.kill_client(session)
                return "client"
        victim = "server"
    if victim == "server":
        await rig.kill_server()
        await rig.start_server()
        return victim
    runner.process.kill()
    await asyncio.to_thread(runner.process.wait, 60)
    runner.begin()
    return victim


def done(rig):
    return sum(line.endswith(": done") for line in git(rig, "log", "--format=%s").splitlines())


@pytest.mark.parametrize("seed", [8])
async def test_runner_server_and_clients_are_killed_at_moments_of_chance_and_every_issue_is_delivered_once(seed):
    moments = random.Random(seed)  # noqa: S311  # the same ones again
    async with Rig(SCRIPT) as rig:
        write_issues(rig, {name: f"grep -q in {name}.txt" for name in ISSUES})
        runner, spared, kills = Runner(rig), set(), []
        runner.begin()
        for delivered in range(len(ISSUES)):
            await rig.until(lambda: runner.ended or done(rig) >= delivered, "an issue is delivered", 240)  # noqa: B023
            for _ in range(KILLS // len(ISSUES)):
                await asyncio.sleep(moments.uniform(0.2, 6.0))
                victim = moments.choice(["runner", "runner", "server", "client"])
                if not runner.ended:
                    kills.append(await killed(rig, runner, victim, spared))
        await asyncio.to_thread(runner.process.wait, 900)
        found = [(each["issue"], each["result"], each["reason"], each["commits"]) for each in runner.outcomes]
        assert found == [(name, "delivered", "", 1) for name in ISSUES], runner.errors
        assert (runner.process.returncode, len(kills)) == (0, KILLS)
        log = git(rig, "log", "--format=%s").splitlines()
        for name in ISSUES:
            assert log.count(f"Merge sm/{name}: Write {name}") == log.count(f"{name}: done") == 1
            assert log.count(f"Do {name}") == 1
            assert (rig.project / f"{name}.txt").read_text() == "in\n"
        assert (git(rig, "status", "--porcelain"), git(rig, "branch", "--format=%(refname:short)")) == ("", "trunk")
