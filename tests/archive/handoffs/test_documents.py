"""The copy of a handoff document: taken at scheduling, changed by its own agent alone, never lost and never half."""

import contextlib
import os
import resource
import stat
import time
from dataclasses import replace
from pathlib import Path

import pytest

from sm.archive.handoffs.documents import FileDocuments
from sm.core.errors import SmError
from sm.core.model.handoff import HandoffType
from sm.files import read_in_place
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
    paths = [Path(documents.place_snapshot("0a1b2c3d", 1770014730.2)) for _ in range(2)]
    for path, text in zip(paths, ("first", "second"), strict=True):
        documents.keep_snapshot(str(path), text)
    assert [path.read_text() for path in paths] == ["first", "second"]
    assert {path.stat().st_mode & 0o777 for path in paths} == {0o600}


def test_what_others_write_into_the_file_is_not_what_was_handed_off(documents, file):
    """C2: a build script, a formatter, `git checkout`, another agent."""
    kept = schedule(documents, file)
    assert documents.holds(kept)
    file.write_text("# Another goal\n")
    assert not documents.holds(kept)
    assert documents.text(kept) == "# Goal\n"


def test_what_the_agents_own_tools_have_written_is_copied_again(documents, file):
    """C2: an agent may add to its document after `sm handoff`."""
    kept = schedule(documents, file, directory=str(file.parent))
    file.write_text("# Another goal\n")
    documents.refresh(kept, str(file.with_name("other.md")), 1.0)
    assert documents.text(kept) == "# Goal\n"
    documents.refresh(kept, file.name, at(file))
    assert (documents.text(kept), documents.holds(kept)) == ("# Another goal\n", True)


@pytest.mark.parametrize("content", [None, "", "x" * 1_048_577])
def test_a_file_that_is_gone_or_unfit_by_now_leaves_the_copy_that_was_taken(documents, file, content):
    kept = schedule(documents, file, directory=str(file.parent))
    file.unlink()
    if content is not None:
        file.write_text(content)
    documents.refresh(kept, str(file), 1.0)
    assert not documents.holds(kept)
    assert documents.text(kept) == "# Goal\n"


def test_a_file_that_has_become_a_link_is_not_followed(documents, file):
    """C43: swapped between `sm handoff` and the end of the turn."""
    kept = schedule(documents, file, directory=str(file.parent))
    file.unlink()
    file.symlink_to("/etc/passwd")
    documents.refresh(kept, str(file), 1.0)
    assert not documents.holds(kept)
    assert documents.text(kept) == "# Goal\n"


def test_a_copy_that_cannot_be_refreshed_is_the_one_that_was_taken(documents, file):
    kept = schedule(documents, file, directory=str(file.parent))
    file.write_text("# Another goal\n")
    folder = Path(kept.copy).parent
    aside = folder.rename(folder.with_name("aside"))
    folder.write_text("no directory")
    documents.refresh(kept, str(file), 1.0)
    assert (aside / Path(kept.copy).name).read_text().endswith("# Goal\n")


def test_what_is_ours_to_keep_is_handed_off_by_nobody(documents, file):
    """C22: by link, by hard link, or as a copy of its text."""
    documents.home.token.write_text("t0ken")
    documents = replace(documents, is_own_token=lambda text: text == "t0ken")
    (file.parent / "link.md").symlink_to(documents.home.token)
    (file.parent / "hard.md").hardlink_to(documents.home.token)
    (file.parent / "copy.md").write_text("t0ken\n")
    documents.home.database.write_text("rows")
    (file.parent / "rows.md").hardlink_to(documents.home.database)
    for name in ("link.md", "hard.md", "copy.md", "rows.md"):
        with pytest.raises(SmError, match="it is a secret of sm"):
            schedule(documents, file.with_name(name))


def confined(documents, path, directory):
    session = replace(idle_session(), directory=str(directory))
    return documents.schedule(session, path, at(path), "", confined=True)


@pytest.fixture
def repository(tmp_path):
    """A repository with a worktree beside it, and a directory below."""
    place = tmp_path / "repository"
    for directory in (place / ".git" / "worktrees" / "w", place / ".sm", place / "below", tmp_path / "w" / ".sm"):
        directory.mkdir(parents=True)
    (place / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (place / ".git" / "worktrees" / "w" / "commondir").write_text("../..\n")
    (tmp_path / "w" / ".git").write_text(f"gitdir: {place}/.git/worktrees/w\n")
    return place


@pytest.mark.parametrize("name", ["below/a.md", "below/.sm/a.md", ".sm/a.md", "../w/.sm/a.md"])
def test_an_agent_hands_off_what_is_in_its_directory_and_documents_of_its_repository(documents, repository, name):
    """C22"""
    path = repository / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("goal")
    assert documents.text(confined(documents, path, repository / "below")) == "goal"


@pytest.mark.parametrize(
    "name", ["secret.txt", "../w/secret.txt", "../elsewhere/.sm/a.md", "below/link.md", "below/../a.md"]
)
def test_an_agent_hands_off_nothing_else(documents, repository, name):
    """C22: what the client itself would ask about before it is read."""
    path = repository / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.name == "link.md":
        path.symlink_to(repository / "secret.txt")
        path = repository / "secret.txt"
    path.write_text("PRIVATE")
    with pytest.raises(SmError, match="it is outside this session's directory"):
        confined(documents, repository / name, repository / "below")
    assert not list(documents.home.handoffs.glob("*/*.md"))


def test_of_our_own_files_an_agent_hands_off_the_documents_of_its_channel(documents, file, tmp_path):
    kept = schedule(documents, file, directory=str(tmp_path))
    again = confined(documents, Path(kept.copy), tmp_path)
    assert documents.text(again) == "# Goal\n"
    other = documents.home.handoffs / "other-0a1b2c3d" / "x.md"
    other.parent.mkdir()
    other.write_text("another project's")
    with pytest.raises(SmError, match="outside"):
        confined(documents, other, tmp_path)


def test_a_link_that_came_after_the_check_is_not_followed(tmp_path):
    """C43: what was checked is what is read."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.md").write_text("x")
    (tmp_path / "link").symlink_to("real")
    assert read_in_place(tmp_path / "real" / "a.md", 9)[0] == b"x"
    (tmp_path / "link.md").symlink_to("real/a.md")
    for name in ("link/a.md", "link.md"):
        with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
            read_in_place(tmp_path / name, 9)


# --- clocks (C4) ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ahead", [-120.0, -2.5, 2.5, 120.0])
def test_a_clock_that_is_not_the_file_systems_refuses_nothing_and_tells_of_no_work(documents, file, ahead):
    """Ours was read when the server started; the machine's was set since."""
    ours = time.time() + ahead
    session = idle_session()
    session = replace(session, conversation=replace(session.conversation, started=ours - 1.0))
    kept = documents.schedule(session, file, ours, "")
    assert ours - documents.written(kept) < 5.0


@pytest.mark.parametrize("step", [-120.0, 120.0])
def test_a_clock_that_is_set_while_the_agent_writes_refuses_nothing(documents, file, step):
    """The file was written a minute ago, ten seconds into the conversation, and the machine's clock was set since."""
    ours = time.time() - step
    os.utime(file, (ours - 60.0, ours - 60.0))
    session = idle_session()
    session = replace(session, conversation=replace(session.conversation, started=ours - 70.0))
    documents.schedule(session, file, ours, "")


def test_where_no_copy_can_be_kept_nothing_is_scheduled(documents, file):
    documents.home.handoffs.write_text("no directory")
    with pytest.raises(SmError, match="handoffs"):
        schedule(documents, file)
    assert file.read_text() == "# Goal\n"


@contextlib.contextmanager
def no_room():
    """Every write to a file fails, as on a full disk, while empty files can be made (EFBIG; Python ignores SIGXFSZ)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_no_empty_document_and_is_named(documents, file):  # C41
    schedule(documents, file)
    before = sorted(documents.home.handoffs.rglob("*"))
    attempts = (
        lambda: schedule(documents, file),
        lambda: documents.keep(idle_session(), "text", HandoffType.CRASH, at(file) + 5),
        lambda: documents.import_file(idle_session(), file, "c1", at(file) + 9),
    )
    for attempt in attempts:
        with no_room(), pytest.raises(SmError) as caught:
            attempt()
        assert caught.value.refused.code == "write_failed"
        assert "File too large" in caught.value.refused.message
        assert sorted(documents.home.handoffs.rglob("*")) == before


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
