"""`sm parallel` on eight issues with the real client: each ends as it should, the report says so, nothing is left."""

from pathlib import Path

import pytest

from sm.testing.scenario import Call, Say, TooLong, Turn, scenario
from tests.e2e.people import AWOKE, HANDED_OFF
from tests.e2e.rig import Rig
from tests.e2e.test_auto import BEGUN, READ, git, write_issues
from tests.e2e.test_parallel import WORKS, parallel

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(400)]

SHARED, CONFLICTS, PLAIN, LONG, FAILS, TOO_LONG, ASKS, CLAIMS = (f"FEAT-{number:03}" for number in range(20, 28))
TITLES = {
    PLAIN: "Write a file",
    SHARED: "Add a line",
    LONG: "Work over three contexts",
    FAILS: "Fail the check",
    TOO_LONG: "Fill the context at once",
    CONFLICTS: "Add another line",
    ASKS: "Ask the user",
    CLAIMS: "Say that it is done",
}
CHECKS = {SHARED: "grep -q {} shared.txt", CONFLICTS: "grep -q {} shared.txt", LONG: "grep -q three {}.txt"}
SETTINGS = "[runner]\nask_timeout = 15\nmax_failures = 8\n"
DONE = Say("Done.")
BOTH_BEGUN = f"[ -d ../{SHARED} -a -d ../{CONFLICTS} ]"
WAITS = f"git log --format=%s | grep -q Do || until {BOTH_BEGUN}; do sleep 0.1; done"
ADDS = Call("Bash", command=f"{WAITS}\n{WORKS}")
"""Whoever is second has a conflict, and resolves it in a session of its own."""
ORDERED = "Context critically high"
QUESTION = {"header": "Store", "question": "Which store?", "multiSelect": False}
OPTIONS = [{"label": "SQLite", "description": "One file."}, {"label": "Postgres", "description": "A server."}]
QUESTIONS = [{**QUESTION, "options": OPTIONS}]


def commits(name, text="in"):
    return Call(
        "Bash", command=f"echo {text} >> {name}.txt && git add {name}.txt && git commit -qm 'Do {name}: {text}'"
    )


def part(text, name=LONG):
    """What a context of the long one does before it is full."""
    return [commits(name, text).but(context=50_000), *[Call("Bash", command="sleep 1")] * 4, Say("Not full yet.")]


def hands_off(text):
    wrote = Call("Write", file_path=".sm/handoff.md", content=f"# Handoff\nPart {text} is done.\nNext step: go on.\n")
    return [wrote, HANDED_OFF, Say("Handed off.")]


def on(name, *steps, **more):
    """What the agent of an issue does once it has read it."""
    return Turn(result=rf"sm issue\] end of {name}", steps=[*steps], **more)


def awoken(name, *steps, **more):
    return Turn(AWOKE, anywhere=f"Work on this one issue, {name},", steps=[*steps], **more)


SCRIPT = scenario(
    Turn(context=ORDERED, anywhere=f"Work on this one issue, {LONG},", steps=hands_off("one"), times=1),
    Turn(context=ORDERED, anywhere=f"Work on this one issue, {LONG},", steps=hands_off("two"), times=1),
    awoken(LONG, *part("two"), times=1),
    awoken(LONG, commits(LONG, "three"), DONE),
    awoken(TOO_LONG, commits(TOO_LONG), DONE),
    Turn(BEGUN, steps=[READ]),
    on(PLAIN, commits(PLAIN), DONE),
    on(SHARED, ADDS, DONE),
    on(LONG, *part("one")),
    on(FAILS, commits("other"), Say("Done, I think.")),
    on(TOO_LONG, TooLong()),
    on(CONFLICTS, ADDS, DONE),
    on(ASKS, Call("AskUserQuestion", questions=QUESTIONS), DONE),
    on(CLAIMS, Say("Everything is done and committed.")),
)
RIGHT = {
    PLAIN: ("delivered", ""),
    SHARED: ("delivered", ""),
    LONG: ("delivered", ""),
    FAILS: ("needs_you", f"its check failed with exit code 1: test -f {FAILS}.txt"),
    TOO_LONG: ("delivered", ""),
    CONFLICTS: ("delivered", ""),
    ASKS: ("needs_you", "your answer did not come within 15 s: "),
    CLAIMS: ("needs_you", "nothing was committed"),
}


async def test_each_of_eight_issues_ends_as_it_should_and_the_report_says_so():
    async with Rig(SCRIPT, config=SETTINGS) as rig:
        checks = {name: CHECKS.get(name, "test -f {}.txt").format(name) for name in TITLES}
        write_issues(rig, checks, TITLES)
        rig.env |= {"DISABLE_AUTO_COMPACT": "1"}
        code, data = await parallel(rig, "-j", "3", "--handoff-threshold", "25")
        found = {each["issue"]: each for each in data["outcomes"]}
        ends = {name: (found[name]["result"], found[name]["reason"][: len(RIGHT[name][1]) or None]) for name in found}
        assert (ends, code) == (RIGHT, 1)
        assert (found[LONG]["attempts"], found[LONG]["continuations"]) == (1, 2)
        assert (found[TOO_LONG]["attempts"], found[TOO_LONG]["continuations"]) == (1, 1)
        assert sorted(found[name]["attempts"] for name in (SHARED, CONFLICTS)) == [1, 2]
        assert found[CLAIMS]["said"] == "Everything is done and committed."
        is_clean(rig, found)
        is_reported(Path(data["report"]).read_text())


def is_clean(rig, found):
    """What is delivered is there, whole and once; what is not is kept on its branch, and nothing else."""
    delivered = [name for name, (result, _) in RIGHT.items() if result == "delivered"]
    log = git(rig, "log", "--format=%s").splitlines()
    assert [log.count(f"Merge sm/{name}: {TITLES[name]}") for name in delivered] == [1] * len(delivered)
    assert sorted((rig.project / "shared.txt").read_text().split()) == [SHARED, CONFLICTS]
    assert (rig.project / f"{LONG}.txt").read_text() == "one\ntwo\nthree\n"
    kept = sorted(set(RIGHT) - set(delivered))
    assert git(rig, "branch", "--format=%(refname:short)").split() == [*(f"sm/{name}" for name in kept), "trunk"]
    assert sorted(path.name for path in (rig.project / ".worktrees").iterdir()) == kept
    assert git(rig, "status", "--porcelain") == ""
    for name in RIGHT:
        wanted = "done" if name in delivered else "needs_you"
        assert f"status: {wanted}" in (rig.project / f".issues/P2-{name}-x.md").read_text(), found[name]


def is_reported(text):
    delivered, _, waits = text.partition("## Needs you")
    for name, (result, reason) in RIGHT.items():
        section = delivered if result == "delivered" else waits
        assert f"### {name} {TITLES[name]}\n" in section
        assert reason in section
    assert "5 delivered, 3 needs you" in text
