import os
import resource
import signal
import stat
import subprocess
import sys

import pytest

from sm.core.errors import SmError
from sm.paths import SmHome, atomic_write, checked_id, ensure_token, locate_home, open_home, read_token


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def names(directory):
    return [path.name for path in directory.iterdir()]


def test_sm_home_is_below_the_state_directory_unless_named(tmp_path):
    below = "Library/Application Support/sm" if sys.platform == "darwin" else ".local/state/sm"
    assert locate_home({"HOME": str(tmp_path)}).root == tmp_path / below
    assert locate_home({"HOME": "/h", "XDG_STATE_HOME": str(tmp_path)}).root == tmp_path / "sm"
    assert locate_home({"SM_HOME": str(tmp_path / "x/../y")}).root == tmp_path / "y"


@pytest.mark.parametrize("configured", ["", "relative/place", "~/sm", "/a\0b"])
def test_an_sm_home_that_names_no_place_is_refused(configured):
    with pytest.raises(SmError, match="SM_HOME"):
        locate_home({"SM_HOME": configured})


def test_sm_home_is_made_for_its_owner_alone(tmp_path):
    place = open_home({"SM_HOME": str(tmp_path / "a/b")})
    assert mode(place.root) == mode(tmp_path / "a") == 0o700


def test_an_open_sm_home_is_closed(tmp_path):
    tmp_path.chmod(0o755)
    assert mode(open_home({"SM_HOME": str(tmp_path)}).root) == 0o700


def test_an_sm_home_of_somebody_else_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(SmError, match="belongs to another user"):
        open_home({"SM_HOME": str(tmp_path)})


def test_a_file_in_place_of_sm_home_is_refused(tmp_path):
    (tmp_path / "file").touch()
    for path in ("file", "file/below"):
        with pytest.raises(SmError, match="Cannot use"):
            open_home({"SM_HOME": str(tmp_path / path)})


@pytest.mark.parametrize("text", ["a", "c74cc080", "HO-20260202-064530-c74cc080", "a.b_c-d", "x" * 64])
def test_an_id_is_taken_as_it_is(text):
    assert checked_id(text) == text


@pytest.mark.parametrize(
    "text", ["", "../../../tmp/x", "/etc/passwd", "a\0b", "x" * 65, ".hidden", "-x", "a..b", "a b", "é", "a\n"]
)
def test_no_other_text_becomes_part_of_a_path(text):
    place = SmHome(locate_home({"SM_HOME": "/nowhere"}).root)
    for path in (place.log, place.launch_settings, place.manifest, lambda it: place.handoff("c", it)):
        with pytest.raises(SmError, match="Not an id"):
            path(text)


def test_the_files_are_where_the_contract_says(tmp_path):
    place = SmHome(tmp_path)
    assert place.log("a1") == tmp_path / "logs/a1.log"
    assert place.snapshot("a1", "20260202-064530") == tmp_path / "archive/a1-20260202-064530/dump.txt"
    assert place.handoff("global-1", "HO-1") == tmp_path / "handoffs/global-1/HO-1.md"
    assert place.manifest("global-1") == tmp_path / "handoffs/global-1/manifest.json"
    assert place.launch_settings("a1") == tmp_path / "settings/a1.json"


def test_a_file_is_written_whole_and_for_its_owner_alone(tmp_path):
    path = tmp_path / "new/deep/file"
    atomic_write(path, b"one")
    atomic_write(path, b"two")
    assert path.read_bytes() == b"two"
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert names(path.parent) == ["file"]


FULL_DISK = """
import sys
from pathlib import Path
from sm.core.errors import SmError
from sm.paths import atomic_write
try:
    atomic_write(Path(sys.argv[1]), b"x" * 100_000)
except SmError as problem:
    print(problem)
"""


def limit_file_size():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path):
    """Case A60."""
    path = tmp_path / "manifest.json"
    path.write_bytes(b"old")
    command = [sys.executable, "-B", "-c", FULL_DISK, str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=limit_file_size)
    assert f"Cannot write {path}: File too large (file system /" in result.stdout
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["manifest.json"]


def test_a_target_that_cannot_be_replaced_leaves_no_temporary_file(tmp_path):
    (tmp_path / "directory").mkdir()
    with pytest.raises(SmError, match="Cannot write"):
        atomic_write(tmp_path / "directory", b"x")
    assert names(tmp_path) == ["directory"]


def test_a_file_below_a_file_is_refused_with_its_path(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SmError, match="file/below"):
        atomic_write(tmp_path / "file/below", b"x")


def test_the_token_is_made_once_and_for_its_owner_alone(tmp_path):
    place = SmHome(tmp_path)
    assert read_token(place) is None
    token = ensure_token(place)
    assert len(token) >= 43
    assert token == ensure_token(place) == read_token(place)
    assert mode(place.token) == 0o600
    assert names(tmp_path) == ["token"]


def test_a_token_others_could_read_is_not_used(tmp_path):
    place = SmHome(tmp_path)
    ensure_token(place)
    place.token.chmod(0o644)
    with pytest.raises(SmError, match="Others can read"):
        read_token(place)


@pytest.mark.parametrize("text", ["abc", "elevenchars"])
def test_a_token_that_is_too_short_is_not_used(tmp_path, text):
    """C43"""
    place = locate_home({"SM_HOME": str(tmp_path)})
    atomic_write(place.token, text.encode())
    with pytest.raises(SmError, match="holds fewer than 12 characters") as refused:
        ensure_token(place)
    assert refused.value.refused.hint == "remove it, then sm server restart creates a new one"


def test_an_empty_token_is_not_used(tmp_path):
    place = SmHome(tmp_path)
    atomic_write(place.token, b"\n")
    with pytest.raises(SmError, match="is empty"):
        ensure_token(place)
