"""What a command's text tells of files and commits."""

import pytest

from sm.digest.shell import Commit, FileChange, commits, file_changes, is_query
from sm.digest.transcript_events import Change


@pytest.mark.parametrize(
    ("command", "changes"),
    [
        ("rm a.py b.py", [FileChange("a.py", Change.DELETED), FileChange("b.py", Change.DELETED)]),
        ("git rm -q src/a.py && make", [FileChange("src/a.py", Change.DELETED)]),
        ("git rm --cached a.py", []),
        ("git mv a.py b.py", [FileChange("b.py", Change.RENAMED, "a.py")]),
        ("mv 'a b.py' c.py", [FileChange("c.py", Change.RENAMED, "a b.py")]),
        ("cat > a.py <<'EOF'\nrm b.py\nmv x y\nEOF", [FileChange("a.py", Change.CREATED)]),
        (
            "cat <<EOF > a.py\nrm b.py\nEOF\nrm c.py",
            [FileChange("a.py", Change.CREATED), FileChange("c.py", Change.DELETED)],
        ),
        ("echo x >> notes.md", [FileChange("notes.md", Change.CREATED)]),
        ("echo x | tee -a notes.md", [FileChange("notes.md", Change.CREATED)]),
        ("sed -i 's/a/b/' a.py", [FileChange("a.py", Change.EDITED)]),
        ("rm -rf build/* $OUT", []),
        ("make > make.log 2>&1", []),
        ("echo 'rm a.py'", []),
        ("cat a.py > /dev/null", []),
        ("echo 'unbalanced", []),
    ],
)
def test_files(command, changes):
    assert list(file_changes(command)) == changes


def test_commits():
    output = "[main (root-commit) 0a1b2c3] base\n 1 file changed\n[feat/x 1234567] add y\nnot [a b] c"
    assert list(commits(output)) == [Commit("main", "0a1b2c3", "base"), Commit("feat/x", "1234567", "add y")]


@pytest.mark.parametrize(
    "command", ["which x", "test -f a", "grep -rn x src", "git show abc", "ls var", "curl -sf http://x"]
)
def test_a_command_that_asks(command):
    assert is_query(command)


@pytest.mark.parametrize("command", ["make test", "git push", "testing", "lsblk"])
def test_a_command_that_does(command):
    assert not is_query(command)
