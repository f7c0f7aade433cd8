"""The plugin's files: what the skills' scripts say of a project, on what every system has."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from sm import __version__
from sm.archive.project import DOCUMENTS
from sm.core.advice import PROMPT_FILE

PLUGIN = Path(__file__).parents[1] / "plugin"
FIND = PLUGIN / "skills/resume/find.sh"
PLACE = PLUGIN / "skills/handoff/place.sh"
TOOLS = ("sh", "sed", "awk", "find", "date", "wc", "cat", "git", "grep", "tail", "dirname", "basename", "mkdir")
"""All that they may use (case A79): no timeout, flock, jq or gdate, no Python."""
ERROR = """\
Error: No continuation prompt found at {}
Run /handoff to generate one, or specify a custom path:
/sm:resume path/to/custom-prompt.md
"""
DAY = 86_400


@pytest.fixture
def project(tmp_path):
    place = tmp_path / "a b"
    (place / ".sm").mkdir(parents=True)
    return place


@pytest.fixture
def path(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in TOOLS:
        (tools / name).symlink_to(shutil.which(name))
    return str(tools)


def run(script, project, path, *arguments, **env):
    done = subprocess.run(
        ["/bin/sh", script, *arguments],
        env={"PATH": path, "HOME": str(project), **env},
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def written(project, name=PROMPT_FILE, text="# Prompt\n", age=0.0):
    place = project / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    if age:
        then = place.stat().st_mtime - age
        os.utime(place, (then, then))
    return place


def git(project, *arguments):
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments]
    subprocess.run(command, cwd=project, check=True, capture_output=True)


def sm_says(path, line):
    """An `sm` on the PATH whose configuration says that."""
    script = Path(path) / "sm"
    script.write_text(f'#!/bin/sh\n[ "$1 $2" = "config show" ] && echo "{line}"\n')
    script.chmod(0o700)


def test_the_manifest_has_the_version_of_the_package():
    manifest = json.loads((PLUGIN / ".claude-plugin/plugin.json").read_text())
    market = json.loads((PLUGIN / ".claude-plugin/marketplace.json").read_text())
    assert (manifest["name"], manifest["version"]) == ("sm", __version__)
    assert [one["name"] for one in market["plugins"]] == [manifest["name"]]


# --- resume --------------------------------------------------------------------------------------------------------


def test_without_a_prompt_the_error_is_word_for_word(project, path):
    assert run(FIND, project, path) == ERROR.format(PROMPT_FILE)
    assert run(FIND, project, path, "docs/x.md") == ERROR.format("docs/x.md")


@pytest.mark.parametrize("kind", ["directory", "empty", "fifo", "dangling link"])
def test_what_is_no_document_counts_as_none(project, path, kind):
    place = project / PROMPT_FILE
    if kind == "directory":
        place.mkdir()
    elif kind == "empty":
        place.touch()
    elif kind == "fifo":
        os.mkfifo(place)
    else:
        place.symlink_to("nowhere")
    assert run(FIND, project, path) == ERROR.format(PROMPT_FILE)


def test_the_prompt_is_named_dated_and_given_whole(project, path):
    text = "# Prompt\n檔 `x` $(x) \\n %s\nno line end"
    written(project, text=text)
    said = run(FIND, project, path)
    assert said.startswith(f"Continuation prompt: {PROMPT_FILE}\nWritten: 2")
    assert f"--- begin of the prompt\n{text}\n--- end of the prompt\n" in said
    assert "Warning" not in said


@pytest.mark.parametrize("name", ["notes.md", "NOTES.MD", "notes.yaml", "-n.md", "it's.md", "docs/a b/x"])
def test_any_file_can_be_named(project, path, name):  # case A63
    written(project, name, "goal: G\n")
    said = run(FIND, project, path, name)
    assert "goal: G" in said
    assert "Error" not in said


def test_the_name_of_an_earlier_tool_is_looked_for_as_well(project, path):
    written(project, ".ll/ll-continue-prompt.md", "older\n")
    assert "older" in run(FIND, project, path)
    written(project, text="newer\n")
    assert "newer" in run(FIND, project, path)


def test_below_the_projects_root_its_prompt_is_found_and_no_neighbours(project, path, tmp_path):  # case A66
    git(project, "init", "-q")
    written(project, text="of this project\n")
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    assert "of this project" in run(FIND, below, path)
    other = tmp_path / "other"
    other.mkdir()
    assert run(FIND, other, path) == ERROR.format(PROMPT_FILE)


@pytest.mark.parametrize(("age", "stale"), [(DAY - 300, False), (DAY + 300, True)])
def test_an_old_prompt_is_given_with_a_warning(project, path, age, stale):
    written(project, age=age)
    said = run(FIND, project, path)
    assert ("Warning: this prompt is stale: it is older than 24 hours" in said) is stale
    assert "# Prompt" in said


@pytest.mark.parametrize(
    ("hours", "age", "stale"),
    [("2.0", 3 * 3600, True), ("0.5", 1900, True), ("48.0", 2 * DAY - 300, False), ("0.0", 10**8, False)],
)
def test_the_configured_hours_decide(project, path, hours, age, stale):
    sm_says(path, f"continuation.prompt_expiry_hours = {hours}")
    written(project, age=age)
    assert ("stale" in run(FIND, project, path)) is stale


def test_a_prompt_that_git_tracks_is_foreign(project, path):
    git(project, "init", "-q")
    written(project)
    assert "foreign" not in run(FIND, project, path)
    git(project, "add", "-f", PROMPT_FILE)
    git(project, "commit", "-qm", "x")
    assert "Warning: this prompt is foreign: git tracks it" in run(FIND, project, path)


def test_a_long_prompt_is_to_be_read_with_a_tool(project, path):
    written(project, text="x\n" * 20_000)
    said = run(FIND, project, path)
    assert "read the whole file" in said
    assert len(said) < 1000


# --- handoff -------------------------------------------------------------------------------------------------------


def test_it_tells_whether_sm_will_go_on(project, path):
    assert "Runs under sm: no\n" in run(PLACE, project, path)
    said = run(PLACE, project, path, CLAUDE_SESSION_MANAGER_ID="12345678")
    assert "Runs under sm: yes (session 12345678)\n" in said


def test_it_tells_whether_there_is_a_file_to_be_read_first(project, path):
    assert f"{PROMPT_FILE}: does not exist yet" in run(PLACE, project, path)
    written(project)
    assert f"{PROMPT_FILE}: exists already" in run(PLACE, project, path)


def test_what_the_configuration_switches_off_is_said(project, path):
    sm_says(path, "continuation.include_todos = false")
    assert "Setting: continuation.include_todos = false" in run(PLACE, project, path)
    sm_says(path, "continuation.include_todos = true")
    assert "Setting" not in run(PLACE, project, path)


@pytest.mark.parametrize("before", ["", "*.log\n", "*.log"])
def test_the_documents_stay_out_of_git_in_the_same_lines_as_sm_writes(project, path, before):
    git(project, "init", "-q")
    exclude = project / ".git/info/exclude"
    exclude.write_text(before)
    run(PLACE, project, path)
    run(PLACE, project, path)
    assert exclude.read_text().split() == [*before.split(), *DOCUMENTS]
    written(project)
    status = subprocess.run(["git", "status", "--short"], cwd=project, capture_output=True, check=True)
    assert status.stdout == b""


def test_where_git_cannot_be_told_nothing_happens(project, path):
    run(PLACE, project, path)
    (Path(path) / "git").unlink()
    run(PLACE, project, path)


def test_the_document_has_the_sections_of_the_guide():
    text = (PLUGIN / "skills/handoff/SKILL.md").read_text()
    headings = [line.strip() for line in text.splitlines() if line.startswith(("## ", "### "))]
    wanted = (
        "## Conversation Summary",
        "### Primary Intent",
        "### What Happened",
        "### User Feedback",
        "### Errors and Resolutions",
        "### Code Changes",
        "## Resume Point",
        "### What Was Being Worked On",
        "### Direct Quote",
        "### Next Step",
        "## Important Context",
        "### Decisions Made",
        "### Gotchas Discovered",
        "### User-Specified Constraints",
        "### Patterns Being Followed",
        "## Artifact Validation",
        "### Current Git Status",
        "### Discrepancies",
        "### Todo List State",
        "### Plan Files",
    )
    assert [one for one in headings if one in wanted] == list(wanted)
