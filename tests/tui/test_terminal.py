"""The screen in a real terminal: tmux, with `sm` typed in it as a user does."""

import asyncio
import contextlib
import sys

import pytest

from tests.cli.rig import desk_with_server
from tests.tui.rig import PATIENCE_S, environment

ATTACHED = '#!/bin/sh\nclear; echo "attached: $*"; read line\n'
"""In the place of the tmux of sm, which no test here has."""


class Screen:
    def __init__(self, root):
        self.root, self.socket = root, str(root / "s")

    async def tmux(self, *words):
        pipe = asyncio.subprocess.PIPE
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.root / "home"), "LANG": "C.UTF-8"}
        process = await asyncio.create_subprocess_exec(
            "tmux", "-f", "/dev/null", "-S", self.socket, *words, env=env, stdout=pipe, stderr=pipe
        )
        return (await process.communicate())[0].decode()

    async def start(self, *words, width=100, command=("-m", "sm"), **more):
        env = {
            **environment(self.root),
            "TERM": "tmux-256color",
            "PATH": f"{self.root}/bin:/usr/local/bin:/usr/bin:/bin",
        }
        named = [f"{name}={value}" for name, value in {**env, **more}.items()]
        sm = [sys.executable, "-I", *command, *words]
        await self.tmux("new-session", "-d", "-x", str(width), "-y", "30", "env", "-i", *named, *sm)
        await self.tmux("set-option", "-g", "remain-on-exit", "on")

    async def until(self, text, *, escapes=False, there=True):
        shown = ""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                shown = await self.tmux("capture-pane", "-p", *(["-e"] if escapes else []))
                while (text in shown) is not there:
                    await asyncio.sleep(0.05)
                    shown = await self.tmux("capture-pane", "-p", *(["-e"] if escapes else []))
                return shown
        raise AssertionError(f"{'not ' if there else ''}shown: {text}\n{shown}")

    async def ended(self):
        async with asyncio.timeout(PATIENCE_S):
            while (await self.tmux("display-message", "-p", "#{pane_dead}")).strip() != "1":
                await asyncio.sleep(0.05)

    async def gone(self, text):
        await self.until(text, there=False)


@pytest.fixture
async def screen(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tmux").write_text(ATTACHED)
    (tmp_path / "bin" / "tmux").chmod(0o755)
    (tmp_path / "home").mkdir(exist_ok=True)
    async with desk_with_server(tmp_path) as desk:
        await desk.api.new("alpha")
        found = Screen(tmp_path)
        try:
            yield found
        finally:
            await found.tmux("kill-server")


async def test_sm_alone_opens_the_screen_names_the_terminal_and_attaches_and_comes_back(screen, width):
    await screen.start(width=width)
    await screen.until("◌ starting")
    assert (await screen.tmux("display-message", "-p", "#{pane_title}")).strip() == "sm: 1 works"
    await screen.tmux("send-keys", "Enter")
    await screen.until("attached: ")
    await screen.tmux("send-keys", "Enter")
    await screen.until("◌ starting")
    await screen.tmux("send-keys", "?")
    await screen.until("PgUp PgDn")
    await screen.tmux("send-keys", "Escape")
    await screen.gone("PgUp PgDn")  # a key right after it would be another one with Alt
    await screen.tmux("send-keys", "q")
    await screen.ended()


async def test_with_no_color_it_has_none(screen):
    await screen.start("watch", NO_COLOR="1")
    shown = await screen.until("starting", escapes=True)
    assert "38;" not in shown
    assert "48;" not in shown


async def test_with_colours_it_has_some(screen):
    await screen.start("watch")
    assert "38;" in await screen.until("starting", escapes=True)


async def test_why_an_attach_failed_is_read_before_the_screen_comes_back(screen):
    (screen.root / "bin" / "tmux").write_text('#!/bin/sh\ntest "$1" = attach || exit 0\necho no such pane\nexit 3\n')
    await screen.start("watch")
    await screen.until("starting")
    await screen.tmux("send-keys", "Enter")
    await screen.until("exit code 3; Enter leads back to sm watch")
    await screen.tmux("send-keys", "Enter")
    await screen.until("◌ starting")


@pytest.mark.parametrize("locale", [{"LANG": "C"}, {"LC_ALL": "POSIX"}])
async def test_without_utf8_all_of_it_is_ascii_and_in_its_place(screen, width, locale):
    await screen.start("watch", width=width, **locale)
    plain = await screen.until("+ starting")
    assert plain.isascii()
    await screen.tmux("send-keys", "?")
    assert (await screen.until("PgUp PgDn")).isascii()
    await screen.tmux("send-keys", "Escape")
    await screen.gone("PgUp PgDn")
    assert (await screen.tmux("display-message", "-p", "#{pane_title}")).strip() == "sm: 1 works"
    await screen.tmux("send-keys", "q")
    await screen.ended()


async def test_a_terminal_that_moves_no_cursor_is_told_what_shows_the_same(screen):
    await screen.start("watch", TERM="dumb")
    await screen.until("hint: sm list")
    await screen.ended()


async def test_sm_alone_prints_its_help_there(screen):
    await screen.start(TERM="dumb")
    await screen.until("Show help for a command")
    await screen.ended()


WITHOUT_TEXTUAL = """
import importlib.machinery
known = importlib.machinery.PathFinder.find_spec
def find_spec(name, *rest):
    return None if name.split(".")[0] == "textual" else known(name, *rest)
importlib.machinery.PathFinder.find_spec = find_spec
from sm.cli import main
main()
"""


async def test_without_textual_it_says_what_to_install(screen):
    await screen.start(command=("-c", WITHOUT_TEXTUAL))
    await screen.until("pip install 'agent-sm[tui]'")
    await screen.ended()


async def test_an_agent_gets_the_help_and_not_the_screen(screen):
    await screen.start(CLAUDE_SESSION_MANAGER_ID="ab12cd34")
    await screen.until("Show help for a command")
