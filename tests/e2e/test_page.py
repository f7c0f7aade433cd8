"""The page in a real browser on the real clients: their terminal, typing there, what a tool prints, a rotation."""

import asyncio
import contextlib
import re
from urllib.parse import urlsplit

import pytest

from sm.lock import running_server
from sm.testing.scenario import Call, Say, Turn, scenario
from sm.web.pages.rotations import IN_ORDER
from tests.e2e.rig import CODEX_BOX, Rig
from tests.web.page_rig import SIZES, WATCH, chromium

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

PROMPT, ANSWER = "what is the answer", "It is forty two."
BOXES = {"claude": "❯", "codex-tui": CODEX_BOX, "codex": CODEX_BOX}
ROWS = "#terminal .xterm-rows"
COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
HOSTILE = (
    r"\033]0;owned\007\033]2;owned\033\\\033]52;c;b3duZWQ=\007\033]8;;https://evil.example/\007press\033]8;;\007"
    r"\033[c\033[6n\033[?1003h\033[?1006h\033[?2004h\033P$q\"p\033\\\033_owned\033\\\033[8;9;9t"
    r"<img src=x onerror=alert(1)>"
)
TO_THE_TERMINAL = f"printf '{HOSTILE}' | tee /proc/$PPID/fd/1 > printed; cat printed"
"""As the tool's output, and past the client into its pane."""
READ = """async (path) => {
    const answer = await fetch(path), reader = answer.body.getReader(), text = new TextDecoder();
    let got = "";
    while (!/"lines"/.test(got)) got += text.decode((await reader.read()).value, { stream: true });
    await reader.cancel();
    return got;
}"""


@contextlib.asynccontextmanager
async def page_of(rig, session):
    """The session's page in a browser that was let in by `sm web`'s link."""
    link = await rig.ask("POST", "/web/links", {})
    base = f"http://{link['host']}:{urlsplit(running_server(rig.home).url).port}"
    async with chromium(rig.root) as browser:
        context = await browser.new_context(viewport=SIZES["desktop"])
        await context.add_init_script(WATCH)
        page = await context.new_page()
        page.set_default_timeout(60_000)
        complaints = []
        page.on("pageerror", lambda problem: complaints.append(str(problem)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        await page.goto(base + link["path"])
        await page.get_by_role("button", name="Log in").click()
        await page.wait_for_selector("#rows", state="attached")
        await page.goto(f"{base}/web/sessions/{session}")
        await page.locator("#terminal").scroll_into_view_if_needed()
        yield page
        assert complaints == []
        assert await page.evaluate("window.violations") == []


async def shown(page):
    lines = await page.locator(f"{ROWS} > div").all_inner_texts()
    return [line.replace("\xa0", " ").rstrip() for line in lines]


async def same(rig, session, page):
    """Wait until the page shows each line that the pane does."""
    async with asyncio.timeout(60):
        while True:
            before = [line.rstrip() for line in rig.screen(session).rstrip("\n").split("\n")]
            seen = await shown(page)
            if any(before) and seen[: len(before)] == before and not any(seen[len(before) :]):
                return before
            await asyncio.sleep(0.2)


@pytest.mark.parametrize("provider", ["claude", "codex-tui", "codex"])
@pytest.mark.often("claude")
async def test_a_client_is_seen_typed_to_once_unlocked_and_answers_there(provider):
    script = scenario(Turn(PROMPT, steps=[Say(ANSWER)]), otherwise=Say("ok"))
    async with Rig(script, provider=provider) as rig:
        session = await rig.new()
        await rig.wait_status(session, "idle")
        await rig.wait_screen(session, BOXES[provider])
        async with page_of(rig, session) as page:
            await same(rig, session, page)
            await page.locator("#terminal").click()
            await page.keyboard.type("not while it is locked", delay=5)
            await page.get_by_role("button", name="Unlock the keyboard").click()
            await page.keyboard.type(PROMPT, delay=30)
            await rig.wait_screen(session, PROMPT)
            assert "locked" not in rig.screen(session)
            await asyncio.sleep(0.5)  # Codex takes an Enter right behind typed text for a pasted line
            await page.keyboard.press("Enter")
            await page.locator(ROWS, has_text=ANSWER).wait_for()
            await rig.wait_event(session, "TurnEnded")
            assert any(ANSWER in line for line in await same(rig, session, page))
            await page.keyboard.press("Control+Shift+L")
            await page.keyboard.type("nor again", delay=5)
            await page.locator(".entry.agent", has_text=ANSWER).wait_for()
            assert "nor again" not in rig.screen(session)


@pytest.mark.parametrize(
    ("provider", "call", "rights"),
    [
        ("claude", Call("Bash", command=TO_THE_TERMINAL), ("--allowedTools", "Bash")),
        ("codex-tui", Call("exec_command", cmd=TO_THE_TERMINAL), ("-s", "danger-full-access", "-a", "never")),
    ],
)
async def test_what_a_hostile_tool_prints_reaches_a_browser_as_text_alone(provider, call, rights):
    script = scenario(Turn("go", steps=[call, Say(ANSWER)]), otherwise=Say("ok"))
    async with Rig(script, provider=provider) as rig:
        session = await rig.new(None, *rights)
        await rig.wait_status(session, "idle")
        await rig.wait_screen(session, BOXES[provider])
        async with page_of(rig, session) as page:
            before = await page.title(), page.url
            rig.type(session, "go")
            await rig.wait_screen(session, "go")
            rig.press(session, "Enter")
            await rig.wait_event(session, "TurnEnded")
            printed = (rig.project / "printed").read_bytes()
            assert b"\x1b]52;c;" in printed
            title = rig.tmux("display-message", "-p", "-t", rig.pane(session), "#{pane_title}")
            assert title == "owned\n" or provider != "claude"  # Codex writes its own over it
            await page.locator(ROWS, has_text=ANSWER).wait_for()
            got = await page.evaluate(READ, f"/web/sessions/{session}/screen")
            assert ANSWER in got
            sent = [bytes(found, "ascii").decode("unicode_escape") for found in re.findall(r"\\u00[0-9a-f]{2}", got)]
            assert set(sent) <= {"\x1b"}  # JSON writes control characters so, and no other
            text = COLOURS.sub("", got.replace("\\u001b", "\x1b"))
            assert "\x1b" not in text
            assert not set(text) & {chr(code) for code in (*range(9), 11, 12, *range(14, 32), *range(127, 160))}
            assert (await page.title(), page.url) == before
            assert await page.locator("#terminal img, #terminal a").count() == 0


async def test_a_rotation_of_the_real_client_is_shown_with_its_phases_its_length_and_both_contexts():
    hand_off = Call("Bash", command="printf '# Continue' > .sm-handoff.md && sm handoff .sm-handoff.md")
    script = scenario(Turn("go", steps=[hand_off, Say("Handed off.")]), otherwise=Say(ANSWER))
    async with Rig(script, provider="claude") as rig:
        session = await rig.new(None, "--allowedTools", "Bash")
        await rig.wait_status(session, "idle")
        async with page_of(rig, session) as page:
            rig.type(session, "go")
            await rig.wait_screen(session, "go")
            rig.press(session, "Enter")
            await rig.wait_phase(session, "done")
            await page.get_by_text(re.compile(r"done in \d+(\.\d)? s")).wait_for()
            await page.locator("summary", has_text="phases").click()
            phases = await page.locator("#rotations-title ~ ol .phases li").all_inner_texts()
            assert [phase.split()[0] for phase in phases] == [phase.value for phase in IN_ORDER]
            await page.locator(".context-mark", has_text="Context 2 began").wait_for()
            await page.locator(".entry.agent", has_text=ANSWER).wait_for()
            assert await page.locator(".entry.agent", has_text="Handed off.").count() == 1
