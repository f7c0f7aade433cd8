"""C33: what an attached person sees when the client ends, and what is said of one that ended at once."""

import sys

import pytest

from sm.testing.scenario import Say, scenario
from tests.e2e import foreground
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SCRIPT = scenario(otherwise=Say("ok"))


class Attached(foreground.Terminal):
    """A person's terminal with a command of `sm` in it, `options` being the command."""

    @property
    def command(self):
        return [sys.executable, "-m", "sm", *self.options]


async def working(rig, name="a"):
    session = await rig.new("hello", name=name)
    await rig.wait_event(session, "TurnEnded")
    await rig.wait_status(session, "idle")
    return session


async def shows(terminal, text):
    await terminal.rig.until(lambda: text in terminal.plain, f"{text!r} on the terminal")


async def test_exit_while_attached_gives_the_terminal_back_and_says_how_to_go_on():  # C33
    async with Rig(SCRIPT) as rig:
        session = await working(rig, "api-2")
        with Attached(rig, options=("attach", "api-2")) as terminal:
            await shows(terminal, "detach with Ctrl-b d")
            await shows(terminal, "❯ hello")
            terminal.type("/exit")
            await rig.wait_screen(session, "/exit")
            terminal.type("\r")
            assert await terminal.ended() == 0
            assert "api-2 has ended (exit code 0); sm restore api-2 brings it back" in terminal.plain
            assert terminal.modes == terminal.before
        with Attached(rig, options=("attach", "api-2")) as terminal:
            assert await terminal.ended() == 1
            assert "Session api-2 has already ended (the client has ended (exit code 0))" in terminal.plain
            assert "hint: sm restore api-2" in terminal.plain
            assert "Pane is dead" not in terminal.plain


@pytest.mark.soak
async def test_a_client_that_crashes_while_attached_leaves_its_last_lines_and_is_said_to_have_crashed():  # C33
    async with Rig(SCRIPT) as rig:
        session = await working(rig)
        with Attached(rig, options=("attach", "a")) as terminal:
            await shows(terminal, "❯ hello")
            await rig.kill_client(session)
            assert await terminal.ended() == 1
            assert "a has ended (signal 9); sm restore a brings it back" in terminal.plain
            given_back = terminal.got.rfind(b"\x1b[?1049l")
            assert given_back >= 0
            assert "manual mode on" in terminal.plain_since(given_back)  # the last line the client had shown


@pytest.mark.soak
async def test_killing_the_session_gives_the_terminal_back_too():  # C33
    async with Rig(SCRIPT) as rig:
        session = await working(rig)
        with Attached(rig, options=("attach", "a")) as terminal:
            await shows(terminal, "❯ hello")
            await rig.ask("DELETE", f"/sessions/{session}")
            await terminal.ended()
            assert terminal.modes == terminal.before


@pytest.mark.soak
async def test_a_new_client_that_ends_at_once_is_said_to_have_whether_attached_or_not():  # C33
    async with Rig(SCRIPT) as rig:
        new = ("new", str(rig.project), "--client", str(rig.client), "--name", "f2")
        for detach in (), ("--detach",):
            with Attached(rig, options=(*new, *detach, "--", "--no-such-option")) as terminal:
                assert await terminal.ended() == 1
                assert "f2 has ended" in terminal.plain
                assert "unknown option '--no-such-option'" in terminal.plain
                assert ("started" in terminal.plain) is not bool(detach)
            with Attached(rig, options=(*new[:3], "/bin/false", *new[4:], *detach)) as terminal:
                assert await terminal.ended() == 1
                assert "exit code 1" in terminal.plain


async def test_a_pane_that_died_before_the_server_noticed_is_not_shown():  # C33
    async with Rig(SCRIPT) as rig:
        session = await working(rig)
        found = await rig.ask("GET", f"/sessions/{session}/attach")
        await rig.kill_client(session)
        await rig.until(lambda: "9" in rig.tmux("list-panes", "-a", "-F", "#{pane_dead_signal}").split(), "dead")

        class Raw(Attached):
            command = ("/usr/bin/env", *found["argv"])

        with Raw(rig) as terminal:
            assert await terminal.ended() == 1
            assert "a has ended (signal 9)" in terminal.plain
