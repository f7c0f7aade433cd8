"""`sm new --worktree BRANCH`: which checkout a session gets, on a real repository; and who works in it already."""

import subprocess

import pytest

from tests.cli.rig import PATH


@pytest.fixture
def repository(desk):
    place = desk.root / "api"
    (place / "src").mkdir(parents=True)
    (place / "src" / "a.txt").write_text("a\n")
    git(desk, "init", "-q", "-b", "main", cwd=place)
    git(desk, "add", ".", cwd=place)
    git(desk, "commit", "-q", "-m", "first", cwd=place)
    return place


def git(desk, *arguments, cwd):
    person = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    env = {"PATH": PATH, "HOME": str(desk.root / "home")}
    done = subprocess.run(["git", *person, *arguments], cwd=cwd, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


async def new(desk, *arguments, **options):
    return await desk.run("new", *arguments, "--client", "sh", "--detach", "--json", **options)


async def test_a_new_branch_gets_a_worktree_beside_the_repository(desk, repository):
    ran = await new(desk, "api", "--worktree", "fix/login")
    assert (ran.code, ran.data["dir"], ran.data["name"]) == (0, str(desk.root / "api-fix-login"), "api-fix-login")
    assert ran.err == f"made a worktree for fix/login: {desk.root / 'api-fix-login'}\n"
    assert git(desk, "branch", "--show-current", cwd=desk.root / "api-fix-login") == "fix/login"
    assert git(desk, "branch", "--show-current", cwd=repository) == "main"


async def test_a_branch_that_is_checked_out_is_not_checked_out_again(desk, repository):
    for name in ("one", "two"):
        ran = await new(desk, "api/src", "--worktree", "fix", "--name", name)
        assert (ran.code, ran.data["dir"]) == (0, str(desk.root / "api-fix" / "src"))
    ran = await new(desk, "api", "--worktree", "main", "--name", "three")
    words = f"main is checked out in the repository itself: {repository}; it starts there\n"
    assert (ran.data["dir"], ran.err) == (str(repository), words)
    assert len(git(desk, "worktree", "list", cwd=repository).splitlines()) == 2


async def test_a_branch_that_exists_is_checked_out_where_it_is(desk, repository):
    git(desk, "branch", "old", cwd=repository)
    (repository / "src" / "a.txt").write_text("b\n")
    git(desk, "commit", "-q", "-am", "second", cwd=repository)
    await new(desk, "api", "--worktree", "old")
    assert (desk.root / "api-old" / "src" / "a.txt").read_text() == "a\n"
    git(desk, "clone", "-q", str(repository), str(desk.root / "clone"), cwd=desk.root)
    await new(desk, "clone", "--worktree", "old")
    assert git(desk, "rev-parse", "--abbrev-ref", "old@{upstream}", cwd=desk.root / "clone-old") == "origin/old"


@pytest.mark.parametrize(
    ("branch", "code"),
    [("--force", "bad_branch"), ("a..b", "bad_branch"), ("", "bad_branch"), ("taken", "file_unusable")],
)
async def test_what_cannot_be_a_worktree_is_refused_and_starts_nothing(desk, repository, branch, code):
    (desk.root / "api-taken").mkdir()
    ran = await new(desk, "api", f"--worktree={branch}")
    assert (ran.code, ran.error["code"]) == (1, code)
    assert (await desk.api.call("GET", "/sessions"))[1] == []


async def test_a_directory_without_a_repository_has_no_worktree(desk):
    ran = await new(desk, "work", "--worktree", "fix")
    assert (ran.code, ran.error["code"]) == (1, "no_repository")


@pytest.mark.soak
async def test_the_second_agent_in_one_checkout_is_said_and_one_in_another_is_not(desk, repository):
    async def words(*arguments):
        return (await desk.run("new", *arguments, "--client", "sh", "--detach")).err.splitlines()

    assert await words("api", "--name", "first") == [f"started first ({await identity(desk, 'first')})"]
    shared = "first works in this checkout too: sm new --worktree NEW-BRANCH gives an agent its own"
    assert (await words("api/src", "--name", "second"))[1:] == [shared]
    assert not [line for line in await words("api", "--worktree", "own") if "checkout" in line]
    await desk.run("kill", "first")
    assert "second works in this checkout too" in (await words("api", "--name", "third"))[1]


async def identity(desk, name):
    return (await desk.api.call("GET", f"/sessions/{name}"))[1]["id"]
