"""`sm runs`, `sm sprint` and `sm worker` where no agent is needed: what they list, and what they refuse."""

import subprocess

import pytest


@pytest.fixture
def project(bare):
    """A repository with three issues and two sprints, of which one cannot be read; no server runs."""
    files = {
        ".issues/P1-FEAT-002-log-in.md": "---\ncheck: make login\n---\n# Log in\n",
        ".issues/P0-BUG-001-crash.md": "---\ncheck: make crash\n---\n# Crash\n",
        ".issues/P2-BUG-003-later.md": "---\ncheck: 'true'\n---\n# Later\n",
        ".sprints/next.yaml": "description: what is next\nissues: [BUG-001, FEAT-002]\non_failure: stop\n",
        ".sprints/odd.yaml": "issue: [BUG-001]\n",
    }
    for name, text in files.items():
        path = bare.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (bare.root / "home").mkdir(exist_ok=True)
    (bare.root / "home/.gitconfig").write_text("[user]\nname = Dev\nemail = dev@example.org\n")
    names = ["-c", "user.name=Dev", "-c", "user.email=dev@example.org"]
    for arguments in (["init", "-q", "-b", "trunk"], ["add", ".issues"], ["commit", "-qm", "Begin"]):
        subprocess.run(["git", *names, *arguments], cwd=bare.root, check=True)
    return bare


async def test_a_project_without_runs_has_none_to_list_or_show(project):
    ran = await project.run("runs", "list")
    assert (ran.code, ran.out, ran.err) == (0, "", "no runs\n")
    assert (await project.run("runs", "list", "--json")).data == []
    for arguments in (("show",), ("stop",), ("skip", "BUG-001")):
        found = (await project.run("runs", *arguments, "--json")).error
        assert (found["code"], found["message"]) == ("no_run", "This project has had no run")


async def test_an_agent_steers_no_run_of_its_user_and_begins_none(project):
    inside = {"CLAUDE_SESSION_MANAGER_ID": "0a1b2c3d"}
    for arguments in (
        ("runs", "stop"),
        ("runs", "skip", "BUG-001"),
        ("runs", "raise", "BUG-001"),
        ("runs", "message", "BUG-001", "hi"),
        ("sprint", "run", "next"),
    ):
        ran = await project.run(*arguments, "--json", env=inside)
        assert ran.error["code"] == "inside_session"
    assert "cannot be used inside a session" in (await project.run("worker", env=inside)).err


async def test_sprints_are_listed_with_what_is_wrong_with_one(project):
    assert (await project.run("sprint", "list", "--json")).data == [
        {"name": "next", "on_failure": "stop", "description": "what is next"},
        {"name": "odd", "on_failure": "-", "description": ".sprints/odd.yaml: unknown key issue: accepted are name, "
         "description, created, issues, filter, on_failure"},
    ]  # fmt: skip
    assert "NAME" in (await project.run("sprint", "list")).out


async def test_a_sprint_works_on_its_own_issues_alone(project):
    ran = await project.run("sprint", "run", "next", "--dry-run", "--json")
    assert [planned["issue"] for planned in ran.data["issues"]] == ["BUG-001", "FEAT-002"]
    assert (await project.run("sprint", "run", "nothing", "--json")).error["code"] == "bad_sprint"


async def test_a_worker_needs_a_database_that_answers(project):
    ran = await project.run("worker")
    assert (ran.code, ran.err.splitlines()[0]) == (1, "Error: Workers share a PostgreSQL, and none is named")
    ran = await project.run("runs", "list", "--database", "postgresql://sm:secret@127.0.0.1:9/runs", "--json")
    assert ran.error["code"] == "no_run_database"
    assert "secret" not in ran.out


async def test_the_configuration_is_shown_without_the_password_of_the_database(project):
    ran = await project.run("config", "show", env={"SM_RUNNER_DATABASE": "postgresql://sm:secret@db/runs"})
    assert 'runner.database = "postgresql://…"' in ran.out
