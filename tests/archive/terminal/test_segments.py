"""Case A49: a log that is turned over while it is written loses no byte and doubles none."""

import gzip

import pytest

from sm.archive.terminal.segments import (
    all_segments,
    compress,
    end_of,
    finished_segments,
    read_bytes,
    rotate,
    segments_of,
)
from sm.tmux.terminal_log import paste_mode
from tests.tmux.conftest import rig  # noqa: F401  # a tmux of its own
from tests.tmux.rig import until


@pytest.fixture
def log(tmp_path):
    return tmp_path / "0a1b2c3d.log"


def written(log, *parts):
    """A log whose pieces are these; the last one is still written."""
    for part in parts[:-1]:
        with log.open("ab") as file:
            file.write(part)
        rotate(log)
    with log.open("ab") as file:
        file.write(parts[-1])
    return log


def whole(log):
    return b"".join(read_bytes(log, 0, end_of(log)))


def test_without_a_log_there_is_nothing(log):
    assert segments_of(log) == []
    assert (end_of(log), whole(log)) == (0, b"")
    rotate(log)
    assert not log.exists()


def test_positions_go_on_over_the_pieces(log):
    written(log, b"abc", b"defg", b"hi")
    assert [(segment.start, segment.end, segment.current) for segment in segments_of(log)] == [
        (0, 3, False),
        (3, 7, False),
        (7, 9, True),
    ]
    assert [b"".join(read_bytes(log, start, start + 3)) for start in range(8)] == [
        b"abcdefghi"[start : start + 3] for start in range(8)
    ]


def test_compressed_pieces_read_the_same_and_are_the_persons_alone(log):
    written(log, b"abc" * 1000, b"defg" * 1000, b"hi")
    before = whole(log)
    for segment in finished_segments(segments_of(log), writer_gone=False):
        compress(segment)
    assert [segment.compressed for segment in segments_of(log)] == [True, True, False]
    assert whole(log) == before
    assert gzip.decompress(segments_of(log)[0].path.read_bytes()) == b"abc" * 1000
    assert {path.stat().st_mode & 0o777 for path in log.parent.iterdir()} == {0o600, log.stat().st_mode & 0o777}
    assert len(list(log.parent.iterdir())) == 3


def test_a_piece_is_compressed_once_its_writer_has_gone_over_to_the_new_file(log):
    written(log, b"abc", b"")
    assert finished_segments(segments_of(log), writer_gone=False) == []
    assert len(finished_segments(segments_of(log), writer_gone=True)) == 1
    written(log, b"d")
    assert len(finished_segments(segments_of(log), writer_gone=False)) == 1


def test_an_empty_log_is_not_turned_over(log):
    written(log, b"abc", b"")
    rotate(log)
    assert [segment.end for segment in segments_of(log)] == [3, 3]


def test_a_turning_that_was_interrupted_is_finished_by_the_next(log):
    written(log, b"abc")
    log.with_name(f"{log.name}.{0:015}").hardlink_to(log)
    assert whole(log) == b"abc"
    rotate(log)
    written(log, b"def")
    assert whole(log) == b"abcdef"


def test_a_packing_that_was_interrupted_doubles_nothing(log):
    written(log, b"abc", b"def")
    plain = segments_of(log)[0].path
    kept = plain.read_bytes()
    compress(segments_of(log)[0])
    plain.write_bytes(kept)
    assert whole(log) == b"abcdef"


def test_what_was_pruned_leaves_a_gap_and_nothing_moves(log):
    written(log, b"abc", b"def", b"ghi", b"jkl")
    segments_of(log)[1].path.unlink()
    assert end_of(log) == 12
    assert whole(log) == b"abcghijkl"
    assert b"".join(read_bytes(log, 4, 8)) == b"gh"


def test_a_log_that_is_turned_over_while_it_is_read_is_read_whole(log):
    content = b"".join(b"%d " % number for number in range(60_000))
    written(log, content[:300_000])
    reading = read_bytes(log, 0, 300_000)
    first = next(reading)
    rotate(log)
    compress(segments_of(log)[0])
    written(log, content[300_000:])
    assert first + b"".join(reading) == content[:300_000]


def test_one_look_finds_the_pieces_of_every_log(tmp_path):
    for name in ("a" * 8, "b" * 8):
        written(tmp_path / f"{name}.log", name.encode(), b"x")
    (tmp_path / ".tmp-c.log").touch()
    found = all_segments(tmp_path)
    assert {name: len(segments) for name, segments in found.items() if not name.startswith(".")} == {
        "aaaaaaaa.log": 2,
        "bbbbbbbb.log": 2,
    }


def test_bracketed_paste_is_unknown_where_its_mark_went_with_a_piece(log):
    written(log, b"plain")
    assert paste_mode(log) is False
    written(log, b"\x1b[?2004h")
    assert paste_mode(log) is True
    written(log, b"", b"")
    assert paste_mode(log) is None


WRITER = "i=0; while [ ! -e stop ]; do echo line $i; i=$((i+1)); done; echo END; exec cat"


async def test_a49_no_byte_is_lost_or_doubled_while_the_log_is_turned_over(rig):  # noqa: F811
    await rig.start("sh", "-c", WRITER)
    log = rig.home / "0a1b2c3d.log"
    turned = 0
    while b"".join(read_bytes(log, max(0, end_of(log) - 5), end_of(log))) != b"END\r\n":
        before = len(segments_of(log))
        if segments_of(log)[-1].size > 4_000:
            rotate(log)
        for segment in finished_segments(segments_of(log), writer_gone=False):
            compress(segment)
        turned += len(segments_of(log)) > before
        if turned == 4:
            (rig.home / "stop").touch()
        await until(lambda: True)
    *lines, end, rest = whole(log).split(b"\r\n")
    assert lines == [b"line %d" % number for number in range(len(lines))]
    assert (end, rest) == (b"END", b"")


async def test_the_new_file_is_the_persons_alone(rig):  # noqa: F811
    pane = await rig.start("sh", "-c", "printf one; read -r line; while :; do echo more; done")
    log = rig.home / "0a1b2c3d.log"
    await until(lambda: log.read_bytes() == b"one")
    rotate(log)
    await rig.client.command("send-keys", "-t", pane.pane_id, "Enter")
    await until(lambda: log.stat().st_size > 0)
    assert log.stat().st_mode & 0o777 == 0o600
