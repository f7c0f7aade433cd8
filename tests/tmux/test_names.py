import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.tmux.names import ANCHOR, MAX_SOCKET_PATH, SocketPathError, session_name, socket_path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.b", "a_b-00000001"),
        ("c:d", "c_d-00000001"),
        (".claude-x", "claude-x-00000001"),
        ("-lead", "lead-00000001"),
        ("#(touch owned)", "touch_owned-00000001"),
        ("日本", "sm-00000001"),
        ("", "sm-00000001"),
        ("x" * 300, "x" * 40 + "-00000001"),
    ],
)
def test_a32_names_are_made_safe(name, expected):
    assert session_name(name, "00000001") == expected


@given(st.text(), st.text())
def test_a32_two_sessions_never_share_a_name(one, other):
    assert session_name(one, "00000001") != session_name(other, "00000002")
    assert session_name(one, "00000001") != ANCHOR


@pytest.fixture
def short(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a50_a_short_path_stays_in_the_home(short):
    assert socket_path(short / "h", "tmux") == short / "h" / "tmux"
    assert (short / "h").stat().st_mode & 0o777 == 0o700


def test_a50_a_long_path_gives_a_short_private_directory(short):
    path = socket_path(short / ("x" * 120), "tmux")
    assert len(os.fsencode(path)) <= MAX_SOCKET_PATH
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def test_a50_two_homes_get_two_directories_and_one_home_always_the_same(short):
    one, other = short / ("x" * 120), short / ("y" * 120)
    assert socket_path(one, "tmux") == socket_path(one, "tmux") != socket_path(other, "tmux")


def test_a50_says_what_is_wrong_where_nothing_is_short_enough(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / ("t" * 90)))
    with pytest.raises(SocketPathError, match=rf"has \d+ bytes, a socket path at most {MAX_SOCKET_PATH}"):
        socket_path(tmp_path / ("x" * 120), "tmux")


def test_a61_refuses_a_link_in_place_of_its_directory(short):
    home = short / ("x" * 120)
    directory = socket_path(home, "tmux").parent
    directory.rmdir()
    (short / "theirs").mkdir()
    directory.symlink_to(short / "theirs")
    with pytest.raises(SocketPathError, match="belongs to another user"):
        socket_path(home, "tmux")


def test_a61_refuses_the_directory_of_somebody_else(short, monkeypatch):
    directory = short / "h"
    directory.mkdir()
    monkeypatch.setattr("os.getuid", lambda: directory.stat().st_uid + 1)
    with pytest.raises(SocketPathError, match="belongs to another user"):
        socket_path(directory, "tmux")


def test_a61_closes_its_directory_to_others(short):
    (short / "h").mkdir(mode=0o755)
    socket_path(short / "h", "tmux")
    assert (short / "h").stat().st_mode & 0o777 == 0o700
