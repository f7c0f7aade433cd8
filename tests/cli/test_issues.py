"""`sm issues`: list, show, next and answer, on files, on a checklist and on GitHub's stand-in."""

import json

import pytest

from tests.fakes import gh


@pytest.fixture
def project(bare):
    """Three issues of which one waits for another, and one that needs its user."""
    for name, text in {
        "features/P1-FEAT-002-log-in.md": "---\nblocked_by: [BUG-001]\nlabels: [ui]\n---\n# Log in\n`src/a.py`\n",
        "bugs/P3-BUG-001-crash.md": "---\nstatus: open\ncheck: make test\n---\n# Crash \x1b[31mred\n\nIn `src/a.py`.\n",
        "bugs/P0-BUG-003-ask.md": "---\nstatus: needs_you\n---\n# Ask\n",
        "bugs/P0-BUG-004-old.md": "---\nstatus: done\n---\n# Old\n",
    }.items():
        path = bare.root / ".issues" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return bare


async def test_the_open_issues_are_listed_in_the_order_of_work(project):
    ran = await project.run("issues", "list")
    assert (ran.code, ran.err) == (0, "")
    assert [line.split("  ")[0] for line in ran.out.splitlines()] == ["ID", "BUG-001", "FEAT-002", "BUG-003"]
    assert ran.out.splitlines()[1].split() == ["BUG-001", "P3", "open", "0", "Crash", "?[31mred"]
    assert ran.out.splitlines()[3].endswith("needs you: sm issues answer BUG-003 TEXT")
    assert "BUG-004" in (await project.run("issues", "list", "--all")).out


async def test_as_json_with_what_is_to_be_known_beside_it(project):
    (project.root / ".issues/P1-BUG-009-bad.md").write_text("---\nstatus: wip\n---\n")
    data = (await project.run("issues", "list", "--json")).data
    assert [(found["id"], found["wave"], found["status"]) for found in data["issues"]] == [
        ("BUG-001", 0, "open"), ("FEAT-002", 1, "open"), ("BUG-003", None, "needs_you"),
    ]  # fmt: skip
    assert data["issues"][0]["check"] == "make test"
    assert data["same_files"] == [{"issues": ["BUG-001", "FEAT-002"], "files": ["src/a.py"]}]
    assert [found["place"] for found in data["problems"]] == [".issues/P1-BUG-009-bad.md"]
    assert data["cycles"] == []


async def test_what_cannot_be_read_is_reported_beside_the_list(project):
    (project.root / ".issues/P1-BUG-009-bad.md").write_text("---\nstatus: wip\n---\n")
    ran = await project.run("issues", "list")
    assert ran.code == 0
    assert ran.err.startswith("left out: .issues/P1-BUG-009-bad.md: status 'wip': accepted are open, ")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--type", "feat,bug", "--priority", "3"], ["BUG-001"]),
        (["--label", "UI"], ["FEAT-002"]),
        (["--only", "1,FEAT-2"], ["BUG-001", "FEAT-002"]),
        (["--skip", "BUG-003", "--skip", "2"], ["BUG-001"]),
        (["--max-issues", "1", "--skip", "3"], ["BUG-001"]),
        (["--type", "epic"], []),
    ],
)
async def test_the_options_choose(project, options, expected):
    data = (await project.run("issues", "list", *options, "--json")).data
    assert [found["id"] for found in data["issues"]] == expected


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--only", "BUG-8,BUG-001,x"], "no_issue", "No such issue: BUG-8, x"),
        (["--priority", "P9"], "usage", "Invalid priority 'P9': accepted are P0 to P5"),
        (["--type", "chore"], "usage", "Invalid type 'chore': accepted are BUG, FEAT, ENH, EPIC, TASK"),
        (["--sprint", "june"], "bad_sprint", "No such sprint: .sprints/june.yaml"),
        (["--sprint", "june", "--type", "bug"], "usage", "--sprint says which issues"),
    ],
)
async def test_a_wrong_choice_is_refused(project, options, code, message):
    found = (await project.run("issues", "list", *options, "--json")).error
    assert (found["code"], found["message"]) == (code, message)


async def test_a_sprint_chooses(project):
    (project.root / ".sprints").mkdir()
    (project.root / ".sprints/june.yaml").write_text("issues: [FEAT-002, BUG-001]\n")
    data = (await project.run("issues", "list", "--sprint", "june", "--json")).data
    assert [found["id"] for found in data["issues"]] == ["BUG-001", "FEAT-002"]
    data = (await project.run("issues", "list", "--sprint", "june", "--max-issues", "1", "--json")).data
    assert [found["id"] for found in data["issues"]] == ["BUG-001"]


async def test_an_issue_is_shown_by_its_number_with_nothing_that_moves_the_cursor(project):
    ran = await project.run("issues", "show", "1")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "BUG-001  P3  BUG  open  Crash ?[31mred\n"
        "place:      .issues/bugs/P3-BUG-001-crash.md\n"
        "files:      src/a.py\n"
        "check:      make test\n"
        "\n# Crash ?[31mred\n\nIn `src/a.py`.\n"
    )
    shown = (await project.run("issues", "show", "FEAT-002", "--json")).data
    assert (shown["id"], shown["blocked_by"], shown["type"]) == ("FEAT-002", ["BUG-001"], "FEAT")
    assert (await project.run("issues", "show", "FEAT-02x", "--json")).error["code"] == "no_issue"


async def test_the_next_one_is_shown_and_none_is_an_error(project):
    ran = await project.run("issues", "next")
    assert (ran.code, ran.out) == (0, "BUG-001  P3  Crash ?[31mred  .issues/bugs/P3-BUG-001-crash.md\n")
    assert (await project.run("issues", "next", "--json")).data["id"] == "BUG-001"
    ran = await project.run("issues", "next", "--only", "BUG-003,FEAT-002")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "Error: No issue can be worked now: FEAT-002 waits for BUG-001, which is not chosen, and 1 more\n"
        "hint: sm issues list says why\n"
    )
    (project.root / ".issues/P1-BUG-009-bad.md").write_text("---\nstatus: wip\n---\n")
    found = (await project.run("issues", "next", "--type", "enh", "--json")).error
    assert (found["code"], found["message"]) == ("nothing_to_do", "No issue can be worked now: 1 cannot be read")


async def test_an_answer_opens_the_issue_that_waits_for_it(project):
    ran = await project.run("issues", "answer", "BUG-003", "Use", "SQLite")
    assert (ran.code, ran.out) == (0, "BUG-003 open\n")
    path = project.root / ".issues/bugs/P0-BUG-003-ask.md"
    assert path.read_text() == "---\nstatus: open\n---\n# Ask\n\n## sm: answer\n\n> Use SQLite\n"
    ran = await project.run("issues", "answer", "2", "-", "--json", stdin=b"two\nlines\n")
    assert ran.data["text"].endswith("## sm: answer\n\n> two\n> lines")
    assert (await project.run("issues", "answer", "4", "x", "--json")).error["code"] == "issue_over"
    assert (await project.run("issues", "answer", "3", " ", "--json")).error["code"] == "usage"


async def test_an_agent_does_not_answer_in_its_users_name(project):
    env = {"CLAUDE_SESSION_MANAGER_ID": "a1a1a1a1"}
    before = (project.root / ".issues/bugs/P0-BUG-003-ask.md").read_text()
    ran = await project.run("issues", "answer", "BUG-003", "yes", env=env)
    assert (ran.code, "A session may not answer" in ran.err) == (1, True)
    assert (project.root / ".issues/bugs/P0-BUG-003-ask.md").read_text() == before


async def test_a_checklist_is_worked_from_its_first_item_on(bare):
    (bare.root / "TODO.md").write_text("- [x] one\n- [ ] two\n- [ ] P1 three\n")
    ran = await bare.run("issues", "list")
    assert [line.split()[-1] for line in ran.out.splitlines()] == ["REASON", "three", "two"]


async def test_without_issues_it_says_where_they_would_be(bare):
    ran = await bare.run("issues", "list")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"Error: No .issues/ or TODO.md in {bare.root} or above it\nhint: write one as ")


async def test_github_is_asked_only_where_it_is_named(bare):
    env = gh.install(bare.root / "bin")
    state = bare.root / "bin/state.json"
    state.write_text(json.dumps(gh.state(gh.issue(7, "Log in", labels=["robot"]), viewer="owner")))
    assert (await bare.run("issues", "list", "--json", env=env)).error["code"] == "no_source"
    assert json.loads(state.read_text())["calls"] == []
    (bare.root / "config.toml").write_text('[runner]\nsource = "github"\nlabel = "robot"\n')
    assert (await bare.run("issues", "next", env=env)).out == "GH-7  P3  Log in  https://github.com/o/r/issues/7\n"
    assert (await bare.run("issues", "list", "--source", "files", "--json", env=env)).error["code"] == "no_source"


async def test_a_project_may_not_name_github_itself(bare):
    (bare.root / ".sm").mkdir()
    (bare.root / ".sm/config.toml").write_text('[runner]\nsource = "github"\n')
    assert (await bare.run("issues", "list", "--json")).error["code"] == "config_untrusted"
