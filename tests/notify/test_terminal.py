"""Notifications in the user's terminals: one harmless sequence, to terminals of this user only."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.core.model.notification import TEST, UserNotification
from sm.core.ports.notifier import ChannelError, OutOfReachError
from sm.core.ports.panes import PaneError, Terminal
from sm.notify.terminal import TerminalChannel, sequence

SENT = UserNotification("sm: a; b waits", 'line one\n"line; two"')


def test_each_form_is_one_sequence():
    assert sequence("osc9", SENT) == b'\x1b]9;sm: a; b waits. line one "line; two"\x07'
    assert sequence("osc777", SENT) == b'\x1b]777;notify;sm: a, b waits;line one "line, two"\x07'
    assert sequence("osc9", UserNotification("sm: x", "")) == b"\x1b]9;sm: x\x07"


def test_a_tmux_around_the_terminal_is_asked_to_pass_it_on():
    assert sequence("osc9", UserNotification("t", ""), "tmux-256color") == b"\x1bPtmux;\x1b\x1b]9;t\x07\x1b\\"


@given(st.text(max_size=600), st.text(max_size=600), st.sampled_from(["osc9", "osc777"]))
def test_no_text_ends_the_sequence_or_begins_another(title, text, form):
    found = sequence(form, UserNotification(f"sm: {title}", text)).decode()
    assert (found[:2], found[-1]) == ("\x1b]", "\x07")
    assert found[2:-1].isprintable()
    assert len(found) < 700


@pytest.fixture
def tty():
    ours, theirs = os.openpty()
    yield ours, os.ttyname(theirs)
    os.close(ours)
    os.close(theirs)


def channel(*ttys):
    async def terminals():
        return [Terminal(f"s{number}", tty, 0.0) for number, tty in enumerate(ttys)]

    return TerminalChannel("osc9", terminals)


async def test_a_terminal_gets_it_once_whatever_it_shows(tty):
    ours, name = tty
    await channel(name, name).send(TEST)
    assert os.read(ours, 65_536) == sequence("osc9", TEST)


async def test_without_a_terminal_it_says_so():
    with pytest.raises(OutOfReachError):
        await channel().send(TEST)


async def test_a_file_and_a_link_in_the_place_of_a_terminal_are_left_alone(tmp_path, tty):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("mine")
    link.symlink_to(tty[1])
    with pytest.raises(OutOfReachError):
        await channel(str(file), str(link), "/dev/null", str(tmp_path / "gone")).send(TEST)
    assert file.read_text() == "mine"


async def test_a_tmux_that_does_not_answer_is_a_failure_to_try_again():
    async def gone():
        raise PaneError("lost")

    with pytest.raises(ChannelError, match="tmux does not answer") as failed:
        await TerminalChannel("osc9", gone).send(TEST)
    assert not isinstance(failed.value, OutOfReachError)
