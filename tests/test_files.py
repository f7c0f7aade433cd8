import os
import socket

import pytest

from sm.files import read_regular

MAX_BYTES = 100


def test_a_regular_file_is_read_with_what_it_is(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"x" * MAX_BYTES)
    content, found = read_regular(path, MAX_BYTES)
    assert (content, found.st_uid) == (b"x" * MAX_BYTES, os.getuid())


def unfit_entries(place):
    """Every kind of entry that is no regular file of a size we take, by what is said of it."""
    (place / "directory").mkdir()
    os.mkfifo(place / "fifo")
    (place / "loop").symlink_to("loop")
    (place / "device").symlink_to("/dev/zero")
    (place / "large").write_bytes(b"x" * (MAX_BYTES + 1))
    (place / "endless").symlink_to("/proc/self/smaps")
    (place / "memory").symlink_to("/proc/self/mem")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place / "socket"))
    return listener


SAID = {
    "directory": "Is a directory",
    "fifo": "Not a regular file",
    "loop": "Too many levels of symbolic links",
    "device": "Not a regular file",
    "large": "Larger than 100 bytes",
    "endless": "Larger than 100 bytes",
    "memory": "Input/output error",
    "socket": "No such device or address",
    "absent": "No such file or directory",
    "a\0b": "No file can have that name",
    "x" * 5000: "File name too long",
}


@pytest.mark.parametrize("name", SAID, ids=lambda name: name[:10].encode().hex() if "\0" in name else name[:10])
def test_anything_else_is_an_error_at_once(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket may have 107 bytes
    with unfit_entries(tmp_path), pytest.raises(OSError) as refused:  # its text is compared
        read_regular(tmp_path / name, MAX_BYTES)
    assert refused.value.strerror == SAID[name]
