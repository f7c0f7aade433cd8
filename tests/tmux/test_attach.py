"""A person at a terminal, played by a pseudo-terminal."""

import asyncio
import fcntl
import os
import pty
import shlex
import signal
import struct
import termios
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from sm.cli.attach import detach_keys
from tests.tmux.rig import ENVIRONMENT, until


@asynccontextmanager
async def terminal(argv, **environment):
    """Run a command on a terminal of 80x24; what it shows is thrown away so that it never blocks."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = ENVIRONMENT | {"TERM": "xterm-256color"} | environment
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    )
    os.close(theirs)
    shown = bytearray()
    asyncio.get_running_loop().add_reader(ours, lambda: shown.extend(read(ours)))
    try:
        yield process, ours, shown
    finally:
        asyncio.get_running_loop().remove_reader(ours)
        os.close(ours)
        if process.returncode is None:
            process.kill()
        await process.wait()


def read(descriptor):
    try:
        return os.read(descriptor, 65536)
    except OSError:
        asyncio.get_running_loop().remove_reader(descriptor)
        return b""


async def attached(rig, pane, count):
    return (await rig.panes.facts(pane.pane_id)).attached == count


async def binding(rig, keyboard, key):
    """C-b and a key. Within 1 ms of other keys tmux would take them for a paste and not for a binding."""
    await rig.client.command("set-option", "-g", "assume-paste-time", "0")
    os.write(keyboard, b"\x02" + key)


async def test_a_person_attaches_types_and_detaches(rig):
    pane, file = await rig.recorder()
    async with terminal(rig.panes.attach_command(pane.pane_id, inside_tmux=False)) as (process, keyboard, shown):
        await until(lambda: b"READY" in shown)
        os.write(keyboard, b"typed")
        await until(lambda: file.exists() and b"typed" in file.read_bytes())
        facts = await rig.panes.facts(pane.pane_id)
        assert facts.last_activity is not None
        assert [found.last_activity for found in await rig.panes.list()] == [facts.last_activity]
        await binding(rig, keyboard, b"d")
        assert await process.wait() == 0
    await until(lambda: attached(rig, pane, 0))


async def test_attaching_works_from_inside_another_tmux_even_on_the_terminal_of_a_dead_pane(rig):
    """The anchor's terminal is free again, and the first new one gets its name."""
    pane = await rig.start("cat")
    inside = f"{rig.home}/other,1,0"
    async with terminal(rig.panes.attach_command(pane.pane_id, inside_tmux=True), TMUX=inside, TMUX_PANE="%7"):
        await until(lambda: attached(rig, pane, 1))


async def test_from_one_of_our_own_panes_the_terminal_goes_over_to_the_other_session(rig):
    first = await rig.start("sh", "-c", 'while read line; do sh -c "$line"; done', session_id="00000001")
    other = await rig.start("cat", session_id="00000002")
    command = shlex.join(rig.panes.attach_command(other.pane_id, inside_tmux=True))
    async with terminal(rig.panes.attach_command(first.pane_id, inside_tmux=False)) as (_, keyboard, _shown):
        await until(lambda: attached(rig, first, 1))
        os.write(keyboard, f"{command}\r".encode())
        await until(lambda: attached(rig, other, 1))


async def test_attaching_never_starts_a_server(rig):
    pane = await rig.start("cat")
    command = rig.panes.attach_command(pane.pane_id, inside_tmux=False)
    await rig.client.kill_server()
    async with terminal(command) as (process, _, _shown):
        assert await process.wait() == 1


async def test_two_persons_attach_to_two_sessions(rig):
    pane = await rig.start("cat", session_id="00000001")
    other = await rig.start("cat", session_id="00000002")
    async with (
        terminal(rig.panes.attach_command(pane.pane_id, inside_tmux=False)),
        terminal(rig.panes.attach_command(other.pane_id, inside_tmux=False)),
    ):
        await until(lambda: attached(rig, pane, 1))
        await until(lambda: attached(rig, other, 1))


async def test_each_terminal_is_known_with_the_session_that_it_shows_and_its_last_key(rig):
    first, _ = await rig.recorder()
    second, _ = await rig.recorder(session_id="1b2c3d4e")
    argv = rig.panes.attach_command(first.pane_id, inside_tmux=False)
    async with terminal(argv) as (_, keyboard, _):
        await until(lambda: attached(rig, first, 1))
        [shown] = await rig.panes.terminals()
        assert (shown.sm_session, shown.term) == ("0a1b2c3d", "xterm-256color")
        assert Path(shown.tty).stat().st_uid == os.getuid()
        os.write(keyboard, b"x")

        async def later():
            [found] = await rig.panes.terminals()
            os.write(keyboard, b"x")
            return found.activity > shown.activity

        await until(later)
    await until(lambda: attached(rig, first, 0))
    assert await rig.panes.terminals() == ()
    assert not await attached(rig, second, 1)


async def test_the_list_a_person_chooses_from_does_not_show_the_anchor(rig):
    pane = await rig.start("sh", "-c", "echo READY; cat", name="mine")
    async with terminal(rig.panes.attach_command(pane.pane_id, inside_tmux=False)) as (_, keyboard, shown):
        await until(lambda: b"READY" in shown)
        await binding(rig, keyboard, b"s")
        await until(lambda: b"mine-0a1b2c3d" in shown)
        assert b"anchor" not in shown


async def test_a_pane_takes_the_size_of_the_person_and_keeps_it(rig):
    """Going back would make the client draw everything anew with nobody looking."""
    pane = await rig.start("cat")
    async with terminal(rig.panes.attach_command(pane.pane_id, inside_tmux=False)):
        await until(lambda: has_width(rig, pane, 80))
    await until(lambda: attached(rig, pane, 0))
    assert await has_width(rig, pane, 80)


async def has_width(rig, pane, columns):
    return (await rig.panes.facts(pane.pane_id)).width == columns


FOCUSED = r"printf 'READY\033[?1004h'; read line"
"""Asks to be told of the terminal's focus, as the client does, and ends without taking that back, as after SIGKILL."""


async def test_a_program_that_ends_gives_the_terminal_back_and_the_command_of_ours_runs_there(rig):  # C33
    await rig.client.command("set-option", "-g", "@sm_ended", "echo 'it has' ended:")
    pane = await rig.start("sh", "-c", FOCUSED)
    async with terminal(rig.panes.attach_command(pane.pane_id, inside_tmux=False)) as (process, keyboard, shown):
        await until(lambda: b"READY" in shown)
        await ends(rig, pane, keyboard)
        assert await process.wait() == 0
        await until(lambda: b"it has ended: 0a1b2c3d\r\n" in shown)
    assert (await rig.panes.facts(pane.pane_id)).dead
    assert "READY" in (await rig.panes.snapshot(pane.pane_id, history=True)).text
    async with terminal(rig.panes.attach_command(pane.pane_id, inside_tmux=False)) as (process, _, shown):
        assert await process.wait() == 0
        await until(lambda: b"it has ended: 0a1b2c3d\r\n" in shown)


@pytest.mark.parametrize("leaves", [b"\x1b[O", b"\x1b[I\x1b[O", b"\x02d"], ids=["focus out", "in and out", "detach"])
async def test_tmux_survives_a_dead_pane_whose_program_wanted_the_focus(rig, leaves):  # C33
    """Without the reset 3.3a ends with a segmentation fault, and every session with it."""
    pane = await rig.start("sh", "-c", FOCUSED)
    before = rig.client.identity
    await rig.client.command("set-option", "-g", "assume-paste-time", "0")
    async with terminal(rig.panes.attach_command(pane.pane_id, inside_tmux=False)) as (_, keyboard, shown):
        await until(lambda: b"READY" in shown)
        os.write(keyboard, b"\r")
        await until(lambda: has_ended(rig, pane))
        os.write(keyboard, leaves)
        await until(lambda: attached(rig, pane, 0 if leaves.endswith(b"d") else 1))
    await until(lambda: attached(rig, pane, 0))
    assert rig.client.identity == before


async def ends(rig, pane, keyboard):
    """Press Enter, again where tmux took it for part of the terminal's answer to its own questions."""
    while not await has_ended(rig, pane):
        with suppress(OSError):  # the terminal has closed already
            os.write(keyboard, b"\r")
        await asyncio.sleep(0.1)


async def test_who_changes_to_a_pane_that_has_ended_gets_the_terminal_back_with_how(rig):
    """As from the list of Ctrl-b s, which has dead panes too."""
    await rig.client.command("set-option", "-g", "@sm_ended", "echo 'it has' ended:")
    pane = await rig.start("cat", session_id="00000001")
    dead = await rig.start("sh", "-c", "exit 0", session_id="00000002")
    while not await has_ended(rig, dead):
        await asyncio.sleep(0.01)
    async with terminal(rig.panes.attach_command(pane.pane_id, inside_tmux=False)) as (process, _, shown):
        await until(lambda: attached(rig, pane, 1))
        clients = await rig.client.command("list-clients", "-t", pane.pane_id, "-F", "#{client_name}")
        await rig.client.command("switch-client", "-c", clients.text, "-t", dead.pane_id)
        await until(lambda: b"it has ended: 00000002\r\n" in shown)
        assert await process.wait() == 0


async def has_ended(rig, pane):
    return (await rig.panes.facts(pane.pane_id)).exit_status == 0


OUTER = [
    ((), "Ctrl-b Ctrl-b d"),
    (("set -g prefix C-a", "bind C-a send-prefix"), "Ctrl-b d"),
    (("set -g prefix None",), "Ctrl-b d"),
    (("set -g prefix C-a", "set -g prefix2 C-b", "bind B send-prefix -2"), "Ctrl-b B d"),
    (("set -g prefix C-a", "set -g prefix2 C-b", "unbind C-b"), None),
    (("unbind C-b", "bind -r M-x send-prefix"), "Ctrl-b Alt-x d"),
    (("bind '\"' send-prefix", "unbind C-b"), 'Ctrl-b " d'),
    (("unbind C-b",), None),
    (("set -g prefix C-a", "set -g status off"), "Ctrl-b d"),
]


@pytest.mark.parametrize(("commands", "keys"), OUTER)
async def test_the_keys_that_detach_are_those_that_get_through_the_tmux_around_it(rig, commands, keys):  # C33
    """Another tmux has its own prefix, and passes ours on by whatever is bound to that."""
    socket = rig.home / "outer"
    tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
    pid = (await ran(*tmux, "new-session", "-d", "-s", "work", "cat", ";", "display-message", "-p", "#{pid}")).strip()
    try:
        for command in commands:
            await ran(*tmux, *shlex.split(command))
        env = {**ENVIRONMENT, "TMUX": f"{socket},{pid},0"}
        assert await asyncio.to_thread(detach_keys, env, "/another/tmux.sock") == keys
        assert await asyncio.to_thread(detach_keys, env, str(socket)) == "Ctrl-b d", "one of our own panes"
    finally:
        os.kill(int(pid), signal.SIGKILL)


def test_the_keys_are_tmuxs_defaults_where_it_does_not_answer_and_plain_outside_one():
    assert detach_keys({**ENVIRONMENT, "TMUX": "/nowhere/default,1,0"}, "/s") == "Ctrl-b Ctrl-b d"
    assert detach_keys(ENVIRONMENT, "/s") == "Ctrl-b d"


async def ran(*argv):
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*argv, env=ENVIRONMENT, stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    assert process.returncode == 0, err
    return out.decode()
