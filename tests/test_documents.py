"""The copy of a handoff document: taken at scheduling, refreshed while that works, never lost and never half."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from sm.archive.documents import FileDocuments
from sm.core.errors import SmError
from sm.paths import open_home
from tests.core.playbook import idle_session


@pytest.fixture
def documents(tmp_path):
    return FileDocuments(open_home({"SM_HOME": str(tmp_path / "state")}), dict)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "handoff.md"
    path.write_text("# Goal\n")
    return path


def at(path):
    return path.stat().st_mtime


def schedule(documents, file, **session):
    return documents.schedule(replace(idle_session(), **session), file, at(file), "")


def test_the_copy_has_its_head_lines_and_the_text_comes_back_without_them(documents, file):
    kept = schedule(documents, file)
    copy = Path(kept.copy)
    assert copy.read_text().startswith(f"<!-- HANDOFF-ID: {kept.id} -->\n<!-- SESSION: c0 -->\n")
    assert documents.text(kept) == "# Goal\n"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_two_handoffs_in_one_second_are_two_documents(documents, file):
    first, second = schedule(documents, file), schedule(documents, file)
    assert first.id != second.id
    assert Path(first.copy).exists()


def test_two_snapshots_in_one_second_are_two_files(documents):
    paths = [Path(documents.snapshot("0a1b2c3d", 1770014730.2, text)) for text in ("first", "second")]
    assert [path.read_text() for path in paths] == ["first", "second"]


def test_a_changed_file_is_copied_again(documents, file):
    kept = schedule(documents, file)
    file.write_text("# Another goal\n")
    assert documents.refresh(kept)
    assert documents.text(kept) == "# Another goal\n"


@pytest.mark.parametrize("content", [None, "", "x" * 1_048_577])
def test_a_file_that_is_gone_or_unfit_by_now_leaves_the_copy_that_was_taken(documents, file, content):
    kept = schedule(documents, file)
    file.unlink()
    if content is not None:
        file.write_text(content)
    assert not documents.refresh(kept)
    assert documents.text(kept) == "# Goal\n"


def test_a_copy_that_cannot_be_refreshed_is_the_one_that_was_taken_and_the_file_is_still_there(documents, file):
    kept = schedule(documents, file)
    file.write_text("# Another goal\n")
    folder = Path(kept.copy).parent
    aside = folder.rename(folder.with_name("aside"))
    folder.write_text("no directory")
    assert documents.refresh(kept)
    assert (aside / Path(kept.copy).name).read_text().endswith("# Goal\n")


def test_where_no_copy_can_be_kept_nothing_is_scheduled(documents, file):
    documents.home.handoffs.write_text("no directory")
    with pytest.raises(SmError, match="handoffs"):
        schedule(documents, file)
    assert file.read_text() == "# Goal\n"


def test_a_file_from_before_the_conversation_is_refused(documents, file):
    os.utime(file, (1.0, 1.0))
    session = idle_session()
    later = replace(session, conversation=replace(session.conversation, started=1000.0))
    with pytest.raises(SmError, match="999 s before this conversation began"):
        documents.schedule(later, file, 1000.0, "")


def test_a_session_without_a_conversation_has_nothing_to_hand_off(documents, file):
    with pytest.raises(SmError, match="has no conversation yet"):
        schedule(documents, file, conversation=None)


def test_bytes_that_are_no_utf8_are_kept_readable(documents, file):
    file.write_bytes(b"goal \xff\n")
    assert documents.text(schedule(documents, file)) == "goal \N{REPLACEMENT CHARACTER}\n"
