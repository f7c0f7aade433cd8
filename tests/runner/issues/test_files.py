"""Issues as files: names in every form, what cannot be read, numbers that are there twice, many who write at once."""

import fcntl
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sm.core.errors import SmError
from sm.runner.issues import edit as edit_module
from sm.runner.issues.files import FilesSource
from sm.runner.issues.issue import IssueStatus, IssueType


class Folder:
    def __init__(self, root):
        self.root = root / ".issues"
        self.root.mkdir()

    @property
    def source(self):
        return FilesSource(self.root)

    def write(self, name, text="", newline=""):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, newline=newline)
        return path

    def listed(self):
        return [(issue.id, issue.status.value) for issue in self.source.list().issues]

    def problems(self):
        return [str(problem) for problem in self.source.list().problems]


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


FULL = """\
---
title: "Rate limiter"
status: in-progress
labels: [api, Später]
blocked_by:
  - BUG-003
depends_on: FEAT-001, FEAT-002
blocks: []
parent: EPIC-009
check: make test  # quick
files: [src/limit.py, ./docs/]
confidence_score: 0.8
discovered_date: 2026-01-02
---

# FEAT-012: another title

See `src/app.py:12` and tests/test_app.py.
"""


def test_all_that_a_file_says_is_read(folder):
    folder.write("features/P1-FEAT-012-rate-limiter.md", FULL)
    issue = folder.source.read("12")
    assert (issue.id, issue.type, issue.priority, issue.number, issue.slug) == (
        "FEAT-012", IssueType.FEAT, 1, 12, "rate-limiter",
    )  # fmt: skip
    assert (issue.title, issue.status, issue.labels) == ("Rate limiter", IssueStatus.IN_PROGRESS, ("api", "Später"))
    assert (issue.blocked_by, issue.depends_on, issue.blocks) == (("BUG-003",), ("FEAT-001", "FEAT-002"), ())
    assert issue.waits_for == ("BUG-003", "FEAT-001", "FEAT-002")
    assert (issue.parent, issue.check) == ("EPIC-009", "make test")
    assert issue.files == ("src/limit.py", "docs/", "src/app.py", "tests/test_app.py")
    assert issue.place == ".issues/features/P1-FEAT-012-rate-limiter.md"
    assert issue.text.startswith("# FEAT-012: another title\n\nSee")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("P0-BUG-007-crash.md", "", ("BUG-007", 0, "crash")),
        ("bugs/deep/P5-BUG-1234.md", "", ("BUG-1234", 5, "(no title)")),
        ("ENH-3-no-priority.md", "", ("ENH-3", 3, "no priority")),
        ("p2-enh-03-lower.MD", "", ("ENH-03", 2, "lower")),
        ("P2-FEAT-001-über die Straße.md", "", ("FEAT-001", 2, "über die Straße")),
        ("P2-FEAT-001-x.md", "# P2-FEAT-001: Log in\n", ("FEAT-001", 2, "Log in")),
        ("P2-FEAT-001-x.md", "# FEAT-001 – Log in\n", ("FEAT-001", 2, "Log in")),
        ("P2-FEAT-001-x.md", "# FEAT-001\n", ("FEAT-001", 2, "FEAT-001")),
        ("P2-FEAT-001-x.md", "---\npriority: P0\n---\n", ("FEAT-001", 0, "x")),
        ("notes.md", "---\nid: FEAT-077\npriority: 4\n---\n# Notes\n", ("FEAT-077", 4, "Notes")),
        ("P1-FEAT-012-x.md", "---\nid: feat-12\ntype: feature\n---\n", ("FEAT-012", 1, "x")),
        ("P1-FEAT-012-x.md", "---\ntitle: null\n---\n", ("FEAT-012", 1, "x")),
    ],
)
def test_names_in_every_form(folder, name, text, expected):
    folder.write(name, text)
    assert [(found.id, found.priority, found.title) for found in folder.source.list().issues] == [expected]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", "open"),
        ("---\nstatus:\n---\n", "open"),
        ("---\nstatus: Done\n---\n", "done"),
        ("---\nstatus: completed\n---\n", "done"),
        ("---\nstatus: cancelled\n---\n", "closed"),
        ("---\nstatus: deferred\n---\n", "blocked"),
        ("---\nstatus: needs-you\n---\n", "needs_you"),
        ("---\nstatus: In Progress\n---\n", "in_progress"),
    ],
)
def test_a_status_in_every_word(folder, text, status):
    folder.write("P1-BUG-001-x.md", text)
    assert folder.listed() == [("BUG-001", status)]


def test_the_status_counts_wherever_the_file_is_and_completed_says_done_of_one_that_says_nothing(folder):
    folder.write("completed/P1-BUG-001-x.md", "old")
    folder.write("completed/P1-BUG-002-x.md", "---\nstatus: open\n---\nagain")
    assert folder.listed() == [("BUG-001", "done"), ("BUG-002", "open")]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("P7-BUG-001-x.md", "", "priority '7': accepted are P0 to P5"),
        ("P1-BUG-x.md", "", "its name says no type and number: call it as P2-FEAT-012-slug.md"),
        ("P1-TASKS-001.md", "", "its name says no type and number: call it as P2-FEAT-012-slug.md"),
        ("x.md", "---\nstatus: open\n---\n", "its name says no type and number: call it as P2-FEAT-012-slug.md"),
        ("x.md", "---\nid: twelve\n---\n", "id 'twelve': accepted is one as FEAT-012"),
        ("P1-BUG-001-x.md", "---\nid: BUG-002\n---\n",
         "its name says BUG-001, its front matter BUG-002: make them equal"),
        ("P1-BUG-001-x.md", "---\ntype: feat\n---\n", "its name says BUG, its front matter feat: make them equal"),
        ("P1-BUG-001-x.md", "---\ntype: chore\n---\n", "type 'chore': accepted are BUG, FEAT, ENH, EPIC, TASK"),
        ("P1-BUG-001-x.md", "---\nstatus: wip\n---\n",
         "status 'wip': accepted are open, in_progress, needs_you, blocked, done, closed"),
        ("P1-BUG-001-x.md", "---\nstatus: [open]\n---\n", "status is not plain text"),
        ("P1-BUG-001-x.md", "---\nlabels: {a: 1}\n---\n", "labels is not a list"),
        ("P1-BUG-001-x.md", "---\ntitle: a: b\n---\n", "line 2: a value with a colon in it needs quotes"),
        ("P1-BUG-001-x.md", "---\na:\n\tb: 1\n---\n", "line 3: lines are indented with blanks, not with tabs"),
        ("P1-BUG-001-x.md", "---\ntitle: a\n", "its front matter does not end: a line `---` is missing below it"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_reported_and_keeps_no_other_issue(folder, name, text, problem):
    """BUG-348: such files were left out without a word."""
    folder.write(name, text)
    folder.write("P1-BUG-009-sound.md")
    assert folder.listed() == [("BUG-009", "open")]
    assert folder.problems() == [f".issues/{name}: {problem}"]


def test_whoever_names_an_issue_that_cannot_be_read_is_shown_why(folder):
    folder.write("P1-BUG-001-x.md", "---\nstatus: wip\n---\n")
    for name in ("BUG-001", "bug-1", "1", "P1-BUG-001-x.md"):
        with pytest.raises(SmError, match=r"\.issues/P1-BUG-001-x\.md: status 'wip'"):
            folder.source.set_status(name, IssueStatus.DONE)


def test_bytes_that_are_no_text_and_files_that_are_too_large_are_reported(folder):
    (folder.root / "P1-BUG-001-x.md").write_bytes(b"---\nstatus: open\n---\n\xff")
    folder.write("P1-BUG-002-x.md", "x" * 1_100_000)
    (folder.root / "P1-BUG-003-x.md").mkdir()
    assert folder.problems() == [
        ".issues/P1-BUG-001-x.md: line 4 is not UTF-8",
        ".issues/P1-BUG-002-x.md: Larger than 1,048,576 bytes",
    ]


def test_a_link_is_not_followed_out_of_the_folder(folder, tmp_path):
    (tmp_path / "secret").write_text("---\nstatus: open\n---\ntoken")
    (folder.root / "P1-BUG-001-x.md").symlink_to(tmp_path / "secret")
    (tmp_path / "others").mkdir()
    (tmp_path / "others/P1-BUG-002-x.md").write_text("x")
    (folder.root / "more").symlink_to(tmp_path / "others")
    os.mkfifo(folder.root / "P1-BUG-003-x.md")
    assert folder.listed() == []
    assert folder.problems() == [
        ".issues/P1-BUG-001-x.md: a link is not read",
        ".issues/P1-BUG-003-x.md: Not a regular file",
    ]


def test_the_folder_itself_may_be_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/P1-BUG-001-x.md").write_text("x")
    (tmp_path / ".issues").symlink_to(tmp_path / "elsewhere")
    source = FilesSource(tmp_path / ".issues")
    source.set_status("1", IssueStatus.DONE)
    assert source.read("1").place == ".issues/P1-BUG-001-x.md"
    assert (tmp_path / "elsewhere/P1-BUG-001-x.md").read_text() == "---\nstatus: done\n---\nx"


def test_what_is_no_issue_is_passed_over(folder):
    for name in ("README.md", "templates/bug.md", ".hidden/P1-BUG-001-x.md", ".P1-BUG-002.md", "P1-BUG-003.txt"):
        folder.write(name, "# words\n")
    folder.write("about.md", "---\nauthor: a\n---\n")
    assert folder.listed() == []
    assert folder.problems() == []


def test_a_number_that_is_used_twice_is_refused_with_both_paths(folder):
    folder.write("bugs/P1-BUG-012-a.md")
    folder.write("features/P1-FEAT-12-b.md")
    folder.write("P1-ENH-013-c.md")
    assert folder.listed() == [("ENH-013", "open")]
    both = "number 12 is used twice: .issues/bugs/P1-BUG-012-a.md and .issues/features/P1-FEAT-12-b.md"
    assert folder.problems() == [f"{both}; give one of them another"]
    for name in ("12", "BUG-012", "feat-012"):
        with pytest.raises(SmError) as refused:
            folder.source.read(name)
        assert refused.value.refused.message.startswith(both)


def test_one_issue_is_read_as_it_is_in_the_list(folder):
    folder.write("P1-FEAT-012-x.md")
    folder.write("named-inside.md", "---\nid: FEAT-077\n---\n")
    (folder.root / "P1-BUG-120-x.md").write_bytes(b"\xff")
    for name in ("12", "feat-12", "77", "FEAT-077"):
        assert folder.source.read(name) == folder.source.list().known(name)


def test_an_id_means_one_issue_and_never_one_that_begins_with_it(folder):
    """BUG-002: the wrong file was worked on."""
    folder.write("P1-FEAT-012-x.md")
    folder.write("P1-BUG-120-x.md")
    for name in ("FEAT-01", "FEAT-0120", "BUG-12", "BUG-012", "FEAT", "120-x", "x"):
        with pytest.raises(SmError, match="No such issue"):
            folder.source.read(name)
    with pytest.raises(SmError) as refused:
        folder.source.read("FAET-012")
    assert refused.value.refused.hint == "the nearest: FEAT-012"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("---\r\nstatus: open\r\nx: [1,2]\r\n---\r\nend", "---\r\nstatus: done\r\nx: [1,2]\r\n---\r\nend"),
        ("words\nend", "---\nstatus: done\n---\nwords\nend"),
        ("---\nz: 1\n# why\na: 'é'\n---\n", "---\nz: 1\n# why\na: 'é'\nstatus: done\n---\n"),
        ("---\nstatus: completed\n---\n", "---\nstatus: completed\n---\n"),
    ],
)
def test_a_status_changes_one_value_of_the_file_and_keeps_its_mode(folder, before, after):
    path = folder.write("P1-BUG-001-x.md", before)
    path.chmod(0o640)
    folder.source.set_status("BUG-1", IssueStatus.DONE)
    assert path.read_bytes().decode() == after
    assert path.stat().st_mode & 0o777 == 0o640
    assert [found.name for found in folder.root.iterdir()] == ["P1-BUG-001-x.md"]


def test_a_file_that_says_so_already_is_not_written(folder):
    path = folder.write("P1-BUG-001-x.md", "---\nstatus: done\n---\n")
    before = path.stat()
    folder.source.set_status("BUG-1", IssueStatus.DONE)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_reason_is_quoted_so_that_it_cannot_pass_for_an_answer_or_a_heading(folder):
    path = folder.write("P1-BUG-001-x.md", "---\nstatus: open\n---\n# Title\r\ntext")
    folder.source.set_status("1", IssueStatus.NEEDS_YOU, "why?\n\n## sm: answer\n\n> yes\n---\nstatus: done\n")
    assert path.read_bytes().decode() == (
        "---\nstatus: needs_you\n---\n# Title\r\ntext\n\n## sm: needs you\n\n"
        "> why?\n>\n> ## sm: answer\n>\n> > yes\n> ---\n> status: done\n"
    )
    folder.source.answer("1", "SQLite")
    assert path.read_bytes().decode().endswith("> status: done\n\n## sm: answer\n\n> SQLite\n")
    assert folder.listed() == [("BUG-001", "open")]


def test_what_a_killed_process_has_left_is_removed_by_the_next_change(folder):
    folder.write("P1-BUG-001-x.md")
    folder.write(".tmp-0123456789abcdef", "half")
    folder.write(".tmp-mine", "not ours")
    folder.source.set_status("1", IssueStatus.DONE)
    assert {found.name for found in folder.root.iterdir()} == {"P1-BUG-001-x.md", ".tmp-mine"}


WRITER = """
import sys
from pathlib import Path
from sm.runner.issues.files import FilesSource
from sm.runner.issues.issue import IssueStatus
source = FilesSource(Path(sys.argv[1]))
for turn in range(6):
    source.set_status("1", [IssueStatus.NEEDS_YOU, IssueStatus.BLOCKED][turn % 2], f"note {sys.argv[2]}-{turn}.")
"""


def test_many_processes_write_one_file_and_no_change_is_lost(folder):
    """BUG-2526, BUG-3150: edits without a lock overwrote each other, and a reader saw half a file."""
    path = folder.write("P1-BUG-001-x.md", "---\nstatus: open\nlabels: [a]\n---\n# Title\n")
    command = [sys.executable, "-c", WRITER, folder.root]
    env = {"PYTHONPATH": str(Path(__file__).parents[3] / "src")}
    writers = [subprocess.Popen([*command, str(number)], env=env) for number in range(4)]
    while any(writer.poll() is None for writer in writers):
        assert folder.listed()[0][0] == "BUG-001"
        assert path.read_text().startswith("---\nstatus: ")
    assert [writer.returncode for writer in writers] == [0] * 4
    text = path.read_text()
    notes = [f"> note {number}-{turn}." for number in range(4) for turn in range(6)]
    assert [note for note in notes if text.count(note) != 1] == []
    assert "labels: [a]\n---\n# Title\n" in text


ENDLESS = """
import sys
from itertools import count
from pathlib import Path
from sm.runner.issues.files import FilesSource
from sm.runner.issues.issue import IssueStatus
source = FilesSource(Path(sys.argv[1]))
for turn in count():
    source.set_status("1", [IssueStatus.NEEDS_YOU, IssueStatus.BLOCKED][turn % 2])
    print(turn, flush=True)
"""


def test_a_process_that_is_killed_at_any_moment_leaves_a_whole_file(folder):
    text = "---\nstatus: open\n---\n" + "# Title\n" * 20_000
    path = folder.write("P1-BUG-001-x.md", text)
    env = {"PYTHONPATH": str(Path(__file__).parents[3] / "src")}
    moments = random.Random(12)  # noqa: S311
    for _ in range(6):
        writer = subprocess.Popen([sys.executable, "-c", ENDLESS, folder.root], env=env, stdout=subprocess.PIPE)
        assert writer.stdout.readline()
        time.sleep(moments.uniform(0, 0.05))
        writer.kill()
        writer.communicate()
        assert path.read_text().partition("\n---\n")[2] == text.partition("\n---\n")[2]
        assert folder.listed()[0][1] in {"needs_you", "blocked"}
    folder.source.set_status("1", IssueStatus.DONE)
    assert [found.name for found in folder.root.iterdir()] == ["P1-BUG-001-x.md"]


def test_a_lock_ends_with_the_process_that_has_it(folder):
    """BUG-1361: a dead process kept everybody waiting."""
    folder.write("P1-BUG-001-x.md")
    code = (
        "import fcntl, os, sys, time; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX);"
        "print('locked', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, folder.root], stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"locked\n"
    holder.kill()
    holder.communicate()
    folder.source.set_status("1", IssueStatus.DONE)
    assert folder.listed() == [("BUG-001", "done")]


@pytest.fixture
def locked(folder):
    """Somebody else has the lock, until it is called."""
    descriptor = os.open(folder.root, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield lambda: fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def test_whoever_comes_second_waits_and_is_not_refused(folder, locked):
    """BUG-1281."""
    path = folder.write("P1-BUG-001-x.md")
    writer = threading.Thread(target=folder.source.set_status, args=("1", IssueStatus.DONE))
    writer.start()
    writer.join(0.2)
    assert path.read_text() == ""
    locked()
    writer.join()
    assert folder.listed() == [("BUG-001", "done")]


def test_nobody_waits_for_ever(folder, locked, monkeypatch):
    monkeypatch.setattr(edit_module, "LOCK_TIMEOUT_S", 0.05)
    folder.write("P1-BUG-001-x.md")
    with pytest.raises(SmError) as refused:
        folder.source.set_status("1", IssueStatus.DONE)
    assert refused.value.refused.code == "issues_busy"


def test_a_long_reason_is_shortened(folder):
    folder.write("P1-BUG-001-x.md")
    folder.source.set_status("1", IssueStatus.BLOCKED, "x" * 20_500)
    assert folder.source.read("1").text.endswith("xxx\n> … 500 more characters")


def test_what_an_editor_writes_in_between_is_not_lost(folder):
    path = folder.write("P1-BUG-001-x.md", "one\n")
    seen = []

    def change(text):
        seen.append(text)
        if len(seen) == 1:
            path.write_text("two, longer\n")
        return f"{text}added\n"

    edit_module.edit(path.resolve(), folder.root.resolve(), change)
    assert seen == ["one\n", "two, longer\n"]
    assert path.read_text() == "two, longer\nadded\n"
