"""`sm auto` without an agent: what it would do, and what it refuses before anything is begun."""

import subprocess

import pytest

ISSUES = {
    "P1-FEAT-002-log-in.md": "# Log \x1b[31min\n",
    "P0-BUG-001-crash.md": "---\ncheck: make crash\n---\n# Crash\n",
    "P0-BUG-003-ask.md": "---\nstatus: needs_you\n---\n# Ask\n",
}


def with_issues(shell):
    for name, text in ISSUES.items():
        path = shell.root / ".issues" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return shell


@pytest.fixture
def project(bare):
    """Two issues that can be worked on, in no repository; no server runs."""
    return with_issues(bare)


@pytest.fixture
def repository(desk):
    """The same in a repository, and a server runs."""
    with_issues(desk)
    for arguments in (["init", "-q", "-b", "trunk"], ["add", ".issues"], ["commit", "-qm", "Begin"]):
        names = ["-c", "user.name=Dev", "-c", "user.email=dev@example.org"]
        subprocess.run(["git", *names, *arguments], cwd=desk.root, check=True)
    (desk.root / "home/.gitconfig").write_text("[user]\nname = Dev\nemail = dev@example.org\n")
    return desk


async def test_a_dry_run_shows_what_would_be_done_and_begins_nothing(project):
    ran = await project.run("auto", "--dry-run")
    assert (ran.code, ran.out) == (
        0,
        (
            "BUG-001  Crash  checked by: make crash\n"
            "FEAT-002  Log ?[31min  would not be begun: no command says whether it is done\n"
        ),
    )
    assert ran.err == "left out: BUG-003 needs you: sm issues answer BUG-003 TEXT\n"
    ran = await project.run("auto", "--dry-run", "--json", "--only", "2", "--check", "make test")
    assert ran.data["issues"] == [
        {"issue": "FEAT-002", "title": "Log \x1b[31min", "check": "make test", "not_ready": None}
    ]
    assert not (project.root / "state/runs").exists()


async def test_outside_of_a_repository_it_is_refused(project):
    found = (await project.run("auto", "--json")).error
    assert (found["code"], found["hint"]) == ("no_repository", "git init, and a first commit")


async def test_without_an_issue_to_work_on_it_is_refused_with_the_reason(repository):
    found = (await repository.run("auto", "--only", "BUG-003", "--json")).error
    assert found["code"] == "nothing_to_do"
    assert found["message"] == "No issue can be worked now: BUG-003 needs you: sm issues answer BUG-003 TEXT"


async def test_without_a_server_and_leave_to_start_one_nothing_is_begun(project):
    subprocess.run(["git", "init", "-q", project.root], check=True)
    ran = await project.run("auto", "--json", env={"SM_NO_START": "1"})
    assert (ran.code, ran.error["code"]) == (2, "unavailable")


async def test_an_agent_may_not_start_one(project):
    agent = {"CLAUDE_SESSION_MANAGER_ID": "ab" * 4, "SM_SESSION_TOKEN": "t", "SM_URL": "http://127.0.0.1:9"}
    assert (await project.run("auto", "--dry-run", "--json", env=agent)).error["code"] == "inside_session"


async def test_an_issue_without_a_check_waits_for_its_user_and_the_exit_code_says_that_not_all_is_done(repository):
    ran = await repository.run("auto", "--only", "FEAT-002", "--json")
    assert ran.code == 1
    said, issue, run = ran.stream
    assert said["text"] == "FEAT-002: needs_you: no command says whether it is done"
    assert (issue["event"], issue["issue"], issue["result"]) == ("issue", "FEAT-002", "needs_you")
    (outcome,) = run["outcomes"]
    assert (outcome["result"], outcome["reason"]) == ("needs_you", "no command says whether it is done")
    assert run["report"] == str(repository.root / "state/runs" / f"{run['run']}.md")
    assert "## Needs you" in (repository.root / "state/runs" / f"{run['run']}.md").read_text()
    assert "status: needs_you" in (repository.root / ".issues/P1-FEAT-002-log-in.md").read_text()
    assert (await repository.run("auto", "--only", "FEAT-002", "--json")).error["code"] == "nothing_to_do"


async def test_what_is_changed_in_the_checkout_is_said_before_anything_is_spent(repository):
    note = repository.root / "note.txt"
    note.write_text("one\n")
    for arguments in (
        ["add", "note.txt"],
        ["-c", "user.name=D", "-c", "user.email=d@example.org", "commit", "-qm", "N"],
    ):
        subprocess.run(["git", *arguments], cwd=repository.root, check=True)
    note.write_text("two\n")
    (repository.root / ".issues/P1-FEAT-002-log-in.md").write_text("# Log in again\n")  # a status of sm is there too
    said = "changed here, and in the way of every merge until you commit or stash it: note.txt\n"
    assert said in (await repository.run("auto", "--only", "FEAT-002")).err
    assert said not in (await repository.run("auto", "--only", "BUG-001", "--deliver", "branch", "--client", "/no")).err


async def test_several_at_a_time_end_as_they_would_one_after_the_other(repository):
    ran = await repository.run("parallel", "-j", "2", "--client", "/nowhere/claude", "--json")
    assert ran.code == 1
    assert [(outcome["issue"], outcome["reason"]) for outcome in ran.stream[-1]["outcomes"]] == [
        ("BUG-001", "ensure_session: Client not found: /nowhere/claude"),
        ("FEAT-002", "no command says whether it is done"),
    ]


async def test_without_a_screen_and_by_keys_no_client_is_started(repository):
    ran = await repository.run("auto", "--only", "BUG-001", env={"SM_RUNNER_MODE": "headless"})
    assert ran.code == 1
    assert "headless: its clients have no screen" in ran.err
    assert 'driven by its plugin alone: claude.driver = "keys" starts it without' in ran.err


async def test_what_the_server_refuses_is_the_issues_reason(repository):
    ran = await repository.run("auto", "--only", "BUG-001", "--client", "/nowhere/claude")
    assert ran.code == 1
    assert ran.out.startswith("run R-")
    assert "BUG-001: needs_you: ensure_session: Client not found: /nowhere/claude" in ran.err
    issue = (repository.root / ".issues/P0-BUG-001-crash.md").read_text()
    assert "> Run R-" in issue
    assert "Its branch: sm/BUG-001." in issue
