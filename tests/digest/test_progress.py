"""What of a conversation counts as work."""

import pytest

from sm.digest.progress import shows_progress
from sm.digest.transcript_events import AgentReplied, Change, CommandRan, FileChanged, UserSaid

TALK = (UserSaid("go"), AgentReplied("Done.", closing=True), CommandRan("ls -l", failed=False))


@pytest.mark.parametrize(
    "happened",
    [
        FileChanged("/p/importer.py", Change.EDITED),
        CommandRan("sed -i s/a/b/ importer.py", failed=False),
        CommandRan("echo x > notes.txt", failed=False),
        CommandRan("git commit -qam fix", failed=False, output="[main 0123abc] fix\n 1 file changed\n"),
    ],
)
def test_a_changed_file_or_a_commit_is_progress(happened):
    assert shows_progress([*TALK, happened])


@pytest.mark.parametrize(
    "happened",
    [
        FileChanged("/p/.sm/handoff-0123abcd.md", Change.CREATED),
        CommandRan("cat > .sm/handoff.md <<EOF\nx\nEOF", failed=False),
        CommandRan("sm handoff - <<EOF\necho x > y\nEOF", failed=False),
        CommandRan("sed -i s/a/b/ importer.py", failed=True),
        CommandRan("git commit -m x", failed=False, output="nothing to commit"),
    ],
)
def test_a_document_of_its_own_and_what_failed_are_none(happened):
    assert not shows_progress([*TALK, happened])
