"""`sm auto` on the real client: an issue file becomes a merge, over a continuation and the death of who works on it."""

import asyncio
import json
import os
import signal
import subprocess

import pytest

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.cli import warm
from tests.e2e.people import AWOKE, DOCUMENT, HANDED_OFF, WROTE, person_settings
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

ISSUE = "---\npriority: P1\ncheck: grep -q in login.txt\n---\n# Log in\n\nWrite login.txt.\n"
BEGUN = r"Read the message in (?P<path>\S+) and act on it"
READ = Call("Read", file_path="{{path}}")
COMMITTED = Call("Bash", command="echo in > login.txt && git add login.txt && git commit -qm 'Write login.txt'")
DONE = Say("Done.")
WORKS = Call("Bash", command="sleep 1")
ORDERED = "Context critically high"


def git(rig, *arguments):
    names = ("-c", "user.name=Dev", "-c", "user.email=dev@example.org")
    ran = subprocess.run(["git", "-C", rig.project, *names, *arguments], capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def repository(rig):
    """The rig's project as a repository with one issue, and a client that may do what the script does."""
    person_settings(rig, permissions={"defaultMode": "acceptEdits", "allow": ["Bash", "Read"]})
    (rig.root / "home/.gitconfig").write_text("[user]\nname = Dev\nemail = dev@example.org\n")
    place = rig.project / ".issues/P1-FEAT-012-log-in.md"
    place.parent.mkdir()
    place.write_text(ISSUE)
    git(rig, "init", "-q", "-b", "trunk")
    git(rig, "add", "-A")
    git(rig, "commit", "-qm", "Begin")


def write_issues(rig, checks, titles=()):
    """A repository with one issue for each name, to be checked by that command, in the place of the first one."""
    repository(rig)
    (rig.project / ".issues/P1-FEAT-012-log-in.md").unlink()
    for name, check in checks.items():
        title = dict(titles).get(name, f"Write {name}")
        issue = f"---\ncheck: {check}\n---\n# {title}\n\nWork on {name}.\n"
        (rig.project / f".issues/P2-{name}-x.md").write_text(issue)
    git(rig, "add", "-A")
    git(rig, "commit", "-qm", "Write the issues")


def auto_request(rig, *arguments):
    env = {**rig.env, **rig.server_env(), "SM_RUNNER_MODEL": rig.model_name}
    return warm.request_for(("auto", "--client", str(rig.client), *arguments), env, rig.project)


async def auto(rig, *arguments):
    """The whole command; its data and exit code."""
    ran = await asyncio.to_thread(warm.shared().completed, auto_request(rig, "--json", *arguments), "")
    assert ran.stdout, ran.stderr
    return ran.returncode, last_line(ran.stdout)


def last_line(text):
    """What a run prints last: itself."""
    return json.loads(text.strip().rpartition("\n")[2])["data"]


def is_delivered(rig, code, data):
    (outcome,) = data["outcomes"]
    assert (outcome["result"], outcome["reason"], code) == ("delivered", "", 0), outcome
    assert outcome["checked"]["code"] == 0
    assert git(rig, "rev-parse", "HEAD^") == outcome["merge"]
    assert git(rig, "log", "--format=%s").splitlines().count("Merge sm/FEAT-012: Log in") == 1
    assert git(rig, "log", "--format=%s").splitlines().count("Write login.txt") == 1
    assert (rig.project / "login.txt").read_text() == "in\n"
    assert "status: done" in (rig.project / ".issues/P1-FEAT-012-log-in.md").read_text()
    assert (git(rig, "status", "--porcelain"), git(rig, "branch", "--format=%(refname:short)")) == ("", "trunk")
    assert not (rig.project / ".worktrees/FEAT-012").exists()
    return outcome


async def test_one_issue_is_worked_on_over_a_continuation_checked_and_merged():
    full = READ.but(context=50_000)  # less than a third of what the client works with
    script = scenario(
        Turn(BEGUN, steps=[full, *[WORKS] * 4, Say("Not full yet.")]),
        Turn(context=ORDERED, steps=[WROTE, HANDED_OFF, Say("Handed off.")], times=1),
        Turn(AWOKE, steps=[COMMITTED, DONE]),
    )
    async with Rig(script) as rig:
        repository(rig)
        code, data = await auto(rig, "--handoff-threshold", "25")
        outcome = is_delivered(rig, code, data)
        assert (outcome["attempts"], outcome["continuations"]) == (1, 1)
        first = await rig.model.wait_for(lambda request: "sm issue] end of FEAT-012" in request.all_text)
        assert "| Write login.txt." in first.all_text
        second = await rig.model.wait_for(lambda request: AWOKE in request.user_text)
        assert f"[sm run {data['run']}] Work on this one issue, FEAT-012" in second.all_text
        assert "| Write login.txt." in second.all_text
        assert DOCUMENT.strip() in second.all_text
        (session,) = await rig.ask("GET", "/sessions")
        assert (session["id"], session["status"]) == (outcome["session"], "exited")
        assert session["attempt"] == f"{data['run']}/FEAT-012/1"


@pytest.mark.soak
async def test_an_agent_that_only_says_that_it_is_done_delivers_nothing():
    async with Rig(scenario(Turn(BEGUN, steps=[READ, Say("Everything is done and committed.")]))) as rig:
        repository(rig)
        code, data = await auto(rig)
        (outcome,) = data["outcomes"]
        assert (code, outcome["result"], outcome["reason"]) == (1, "needs_you", "nothing was committed")
        text = (rig.project / ".issues/P1-FEAT-012-log-in.md").read_text()
        assert "status: needs_you" in text
        assert "> Everything is done and committed." in text


SIGNAL = r"(?P<signal>CONTEXT_HANDOFF: R-[\w-]+)"
SIGNALS = Turn(result=SIGNAL, steps=[Say("login.txt is next.\n{{signal}}")], times=1)
OLD_PROMPTS = (".ll/ll-continue-prompt.md", ".sm/handoff.md")
OLD_WORDS = "Continue with the work of another run."
TOO_LONG = Call("Bash", command="true").but(context=199_000)
"""More than a client that may not compact continues with."""
ENDS = {
    "signalled": (Turn(BEGUN, steps=[READ]), SIGNALS),
    "refused": (Turn(BEGUN, steps=[READ, TOO_LONG, Say("Not reached.")]),),
}


@pytest.mark.soak
async def test_what_an_agent_asks_is_denied_where_that_is_configured_and_it_continues():
    asks = Turn(BEGUN, steps=[READ, Call("Bash", command="touch asked"), COMMITTED, DONE])
    async with Rig(scenario(asks)) as rig:
        repository(rig)
        person_settings(rig, permissions={"allow": ["Bash", "Read"], "ask": ["Bash(touch:*)"]})
        code, data = await auto(rig, "--on-ask", "deny")
        is_delivered(rig, code, data)
        denied = await rig.model.wait_for(lambda request: "The user is away and cannot answer" in request.all_text)
        assert denied
        assert await rig.ask("GET", "/asks") == []


@pytest.mark.soak
@pytest.mark.parametrize("ends", ENDS)
async def test_a_context_that_ends_without_a_handoff_is_continued_with_the_issue_and_a_document(ends):
    async with Rig(scenario(*ENDS[ends], Turn(AWOKE, steps=[COMMITTED, DONE]))) as rig:
        repository(rig)
        for name in OLD_PROMPTS:
            (rig.project / name).parent.mkdir(exist_ok=True)
            (rig.project / name).write_text(OLD_WORDS)
        git(rig, "add", "-A", "-f")
        git(rig, "commit", "-qm", "Keep what earlier runs have left")
        rig.env |= {"DISABLE_AUTO_COMPACT": "1"}
        code, data = await auto(rig)
        outcome = is_delivered(rig, code, data)
        assert (outcome["attempts"], outcome["continuations"]) == (1, 1)
        second = await rig.model.wait_for(lambda request: AWOKE in request.user_text)
        assert "| Write login.txt." in second.all_text
        assert OLD_WORDS not in second.all_text


SLOWLY = Call("Bash", command="sleep 6")
LONG_COMMAND = Call("Bash", command="for second in $(seq 75); do sleep 1; done")
IMPATIENT = "[runner]\nidle_timeout = 60\n"


VICTIMS = ["runner", *(pytest.param(victim, marks=pytest.mark.soak) for victim in ("server", "client", "machine"))]


async def kill(rig, victim, runner, session):
    """Kill it with SIGKILL; the machine is runner, server and tmux with the client."""
    if victim in {"runner", "machine"}:
        runner.kill()
    if victim == "machine":
        os.kill(int(rig.tmux("display-message", "-p", "#{pid}")), signal.SIGKILL)
    if victim in {"server", "machine"}:
        await rig.kill_server()
        await rig.start_server()
    if victim == "client":
        await rig.kill_client(session)
    await asyncio.to_thread(runner.wait, 150)


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.soak
async def test_what_is_killed_while_an_agent_works_loses_nothing_and_begins_nothing_twice(victim):
    await delivered_though_killed(victim)


async def delivered_though_killed(victim, config=""):
    again = Turn(BEGUN, steps=[COMMITTED, DONE])  # what a client that was started again is told
    script = scenario(Turn(BEGUN, steps=[READ, SLOWLY, COMMITTED, DONE], times=1), again)
    async with Rig(script, config=config) as rig:
        repository(rig)
        with (rig.root / "auto.out").open("wb") as out, (rig.root / "auto.in").open("wb+") as nothing:
            runner = warm.shared().start(auto_request(rig, "--json"), *(s.fileno() for s in (nothing, out, out)))
            await rig.model.wait_for(lambda request: "sm issue] end of FEAT-012" in request.all_text, within=60.0)
            await asyncio.sleep(1.0)  # the answer is the call that takes six seconds
            (session,) = await rig.ask("GET", "/sessions")
            await kill(rig, victim, runner, session["id"])
        if runner.returncode < 0:
            code, data = await auto(rig)
        else:
            text = (rig.root / "auto.out").read_text()
            code, data = runner.returncode, last_line(text)
        outcome = is_delivered(rig, code, data)
        assert (len(await rig.ask("GET", "/sessions")), outcome["attempts"]) == (1, 1)


@pytest.mark.soak
async def test_its_user_writes_to_the_agent_that_works_on_an_issue():
    async with Rig(scenario(Turn(BEGUN, steps=[READ, SLOWLY, COMMITTED, DONE]))) as rig:
        repository(rig)
        with (rig.root / "auto.out").open("wb") as out, (rig.root / "auto.in").open("wb+") as nothing:
            runner = warm.shared().start(auto_request(rig, "--json"), *(s.fileno() for s in (nothing, out, out)))
            await rig.model.wait_for(lambda request: "sm issue] end of FEAT-012" in request.all_text, within=60.0)
            request = warm.request_for(
                ("runs", "message", "feat-012", "Use tabs."), rig.env | rig.server_env(), rig.project
            )
            sent = await asyncio.to_thread(warm.shared().completed, request, "")
            assert sent.returncode == 0, sent.stderr
            await rig.model.wait_for(lambda request: "Use tabs." in request.all_text, within=60.0)
            await asyncio.to_thread(runner.wait, 150)
        is_delivered(rig, runner.returncode, last_line((rig.root / "auto.out").read_text()))


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_a_client_that_gives_no_sign_of_work_is_replaced_and_one_whose_command_takes_long_is_not():
    first = Turn(BEGUN, steps=[READ, LONG_COMMAND, Say("Never heard.", delay=600)], times=1)
    async with Rig(scenario(first, Turn(BEGUN, steps=[READ, COMMITTED, DONE])), config=IMPATIENT) as rig:
        repository(rig)
        outcome = is_delivered(rig, *await auto(rig))
        assert outcome["attempts"] == 2
        after = rig.model.main_requests[2]
        assert [result.is_error for result in after.tool_results] == [False], "the command was cut off"
