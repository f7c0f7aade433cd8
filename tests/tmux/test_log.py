from contextlib import suppress

import pytest

from sm.core.ports.panes import Key
from sm.tmux import terminal_log
from sm.tmux.panes import NewPane, Program
from sm.tmux.terminal_log import paste_mode
from tests.tmux.rig import until

NAMES = [
    "plain",
    "a b",
    'it\'s "q"',
    "#(touch owned)",
    "x%dx%H",
    "a#{pid}",
    "$(touch owned)",
    "日本",
    "two\nlines",
    "a;b\\",
]


@pytest.mark.parametrize("name", NAMES)
async def test_a48_a51_the_log_begins_with_the_first_byte_whatever_its_path(rig, name):
    home = rig.home / name
    home.mkdir()
    log = home / f"{name}.log"
    await rig.panes.create(
        NewPane("00000001", "a", Program(["sh", "-c", "printf BANNER; exec cat"], rig.home, {}, log))
    )
    await until(lambda: log.read_bytes() == b"BANNER")
    assert not list(rig.home.rglob("owned"))


async def ended(rig, pane):
    return (await rig.panes.facts(pane.pane_id)).dead


async def test_a48_what_a_program_that_ends_at_once_showed_is_in_the_log(rig):
    """Now and then tmux loses the output of such a program altogether (1 in 600 on a loaded machine, 3.3a)."""
    for number in range(20):
        session = f"{number:08x}"
        pane = await rig.start("printf", "BANNER", session_id=session)
        await until(lambda pane=pane: ended(rig, pane))
        if "BANNER" in (await rig.panes.snapshot(pane.pane_id, history=True)).text:
            log = rig.home / f"{session}.log"
            await until(lambda log=log: log.read_bytes() == b"BANNER")


async def test_a48_logging_is_on_from_the_start(rig):
    pane = await rig.start("cat")
    assert (await rig.panes.facts(pane.pane_id)).logging


async def test_the_log_is_the_persons_alone(rig):
    await rig.start("cat")
    assert (rig.home / "0a1b2c3d.log").stat().st_mode & 0o777 == 0o600


async def test_a_log_that_exists_is_continued(rig):
    (rig.home / "0a1b2c3d.log").write_bytes(b"earlier\n")
    await rig.start("sh", "-c", "printf BANNER; exec cat")
    await until(lambda: (rig.home / "0a1b2c3d.log").read_bytes() == b"earlier\nBANNER")


async def test_a49_the_log_can_be_cut_while_it_is_written(rig):
    pane = await rig.start("cat")
    log = rig.home / "0a1b2c3d.log"
    await rig.panes.type_text(pane.pane_id, "before")
    await until(lambda: b"before" in log.read_bytes())
    log.write_bytes(b"")
    await rig.panes.type_text(pane.pane_id, "after")
    await until(lambda: log.read_bytes() == b"after")


async def test_a61_a_link_in_place_of_the_log_is_refused(rig):
    (rig.home / "0a1b2c3d.log").symlink_to(rig.home / "elsewhere")
    with pytest.raises(OSError, match=r"0a1b2c3d\.log"):
        await rig.start("cat")
    assert await rig.panes.list() == ()


@pytest.mark.parametrize(
    ("log", "mode"),
    [
        (b"", False),
        (b"hello", False),
        (b"\x1b[?2004h", True),
        (b"\x1b[?2004h text \x1b[?2004l", False),
        (b"\x1b[?25;2004;1004h text", True),
        (b"\x1b[?2004h \x1bc", False),
        (b"\x1b[?2004h" + b"x" * 1_000_000, True),
        (b"x" * ((1 << 18) - 4) + b"\x1b[?2004h" + b"x" * ((1 << 18) - 4), True),
        (b"\x1b[?2004h" + b"x" * (9 << 20), None),
    ],
)
def test_a37_the_log_tells_whether_bracketed_paste_is_on(tmp_path, log, mode):
    (tmp_path / "log").write_bytes(log)
    assert paste_mode(tmp_path / "log") is mode


async def test_a_log_that_cannot_be_written_is_seen_and_taken_up_again_with_a_mark(rig, monkeypatch):  # C31
    """A directory in its place stands for a full disk: the writer ends in the same way."""
    monkeypatch.setattr(terminal_log, "READS_PER_OPENING", 1)
    pane = await rig.start("sh", "-c", "echo BEGIN; exec cat")
    log = rig.home / "0a1b2c3d.log"
    await until(lambda: b"BEGIN" in log.read_bytes())
    before = log.read_bytes()
    while not log.is_dir():  # its writer may open it anew in between
        log.unlink(missing_ok=True)
        with suppress(FileExistsError):
            log.mkdir()
    for number in range(1000):
        if not (await rig.panes.facts(pane.pane_id)).logging:
            break
        await rig.panes.type_text(pane.pane_id, f"lost{number}")
        await rig.panes.press(pane.pane_id, Key.ENTER)
    assert not (await rig.panes.facts(pane.pane_id)).logging
    with pytest.raises(OSError, match="directory"):
        await rig.panes.resume_log(pane.pane_id, log)
    assert not (await rig.panes.facts(pane.pane_id)).logging
    log.rmdir()
    log.write_bytes(before)
    await rig.panes.resume_log(pane.pane_id, log)
    assert (await rig.panes.facts(pane.pane_id)).logging
    await rig.panes.type_text(pane.pane_id, "kept")
    await until(lambda: log.read_bytes().endswith(b"kept"))
    assert terminal_log.GAP in log.read_bytes()
