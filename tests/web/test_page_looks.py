"""Every page, full and empty, at desktop and phone width, dark and light: what axe finds, and what overflows."""

import contextlib
import json

import pytest

from sm.runner.attempt import attempt_name
from tests.api.test_archive import shows, tended
from tests.api.test_asks import asking
from tests.web.browser import login_path
from tests.web.page_rig import ShownPane, begin, conversation, question, to_cleared, to_done
from tests.web.test_page_parts import readings
from tests.web.test_page_runs import ENDED, WORKS, at_home
from tests.web.written_runs import written

pytestmark = pytest.mark.timeout(150)
TALK = ("Do it", "# Done\n\n| a | b |\n|---|---|\n| 1 | `2` |\n\n```\ncode\n```\n\n" + "long" * 60)
LONG = "a-name-without-any-place-to-break-it-" * 3


LOOKS = [("desktop", "light"), ("desktop", "dark"), ("phone", "light"), ("phone", "dark"), ("small phone", "light")]
every_look = pytest.mark.parametrize(("size", "scheme"), LOOKS)


async def sound(tab, here, *paths, opened=True):
    """Open each page, unfold all of it, and look."""
    for path in paths:
        await tab.page.goto(here.at(path))
        await tab.page.wait_for_timeout(300)
        if opened:
            await tab.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert await tab.findings() == [], path
        assert await tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        assert (tab.complaints, await tab.violations()) == ([], []), path


async def working(here, tmp_path):
    """A session in its second context that rotates again, with something of everything."""
    session = await here.api.new("me")
    talk = conversation(tmp_path / "t.jsonl", TALK)
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}
    with talk.open("a") as file:
        file.write(json.dumps({"type": "assistant", "message": {"role": "assistant", "content": [call]}}) + "\n")
    await begin(here.api, session, talk)
    await readings(here.api, session, 10_000, 170_000)
    await to_cleared(here.api, session, "# One\n\nsame\n")
    await to_done(here.api, session, conversation(tmp_path / "t2.jsonl", TALK))
    await to_cleared(here.api, session, "# Two\n\nsame\n")
    shows(here.api, session, "an okapi here\r\n" + "line\r\n\r\n" * 200)
    await tended(here.api)
    here.api.engine.ports.panes.pane = lambda _: ShownPane("box")
    return session


@every_look
@pytest.mark.often("desktop-light", "phone-dark")
async def test_axe_finds_nothing_and_nothing_overflows_on_pages_with_something_on_them(here, tmp_path, size, scheme):
    session = await working(here, tmp_path)
    older, newer = (each.id for each in (await here.api.engine.ports.store.documents())[session])
    await here.api.alter(await here.api.new("other"), name=LONG, said=LONG, attempt=f"{LONG}/7/1")
    tab = await here.tab(size, scheme)
    asked = {"questions": [question("Which?", "red", "blue")]}
    own = f"/web/sessions/{session}"
    async with contextlib.AsyncExitStack() as stack:
        for call in (
            {"tool_name": "Bash", "tool_input": {"command": "rm -r build"}},
            {"tool_name": "AskUserQuestion", "tool_input": asked},
            {"tool_name": "ExitPlanMode", "tool_input": {"plan": TALK[1]}},
        ):
            await stack.enter_async_context(asking(here.api, session, **call))
        await sound(tab, here, "/", own, f"{own}?context=1", f"{own}/documents/{newer}?against={older}")
        await sound(tab, here, "/web/search?q=okapi", "/web/devices")


@every_look
@pytest.mark.often("desktop-light", "phone-dark")
async def test_axe_finds_nothing_on_empty_pages_and_those_of_whoever_is_not_let_in(here, size, scheme):
    tab = await here.tab(size, scheme)
    await sound(tab, here, "/", "/web/search", "/web/search?q=okapi", "/web/search?q=%22", "/web/sessions/none")
    session = await here.api.new("new")
    await sound(tab, here, f"/web/sessions/{session}")
    await here.api.call("DELETE", f"/sessions/{session}")
    await sound(tab, here, f"/web/sessions/{session}")
    out = await here.empty_tab(size, scheme)
    await sound(out, here, "/", await login_path(here.api), "/login")
    await sound(await here.tab(size, scheme, read_only=True), here, "/", f"/web/sessions/{session}", "/web/devices")


@every_look
@pytest.mark.often("desktop-light", "phone-dark")
async def test_axe_finds_nothing_and_nothing_overflows_on_pages_of_runs(here, size, scheme):
    at_home(here.api)
    session = await here.api.new("parser")
    await here.api.alter(session, attempt=attempt_name(WORKS["run"], "FEAT-003", 1))
    tab = await here.tab(size, scheme)
    async with written(here.api.home, [ENDED], WORKS):
        await sound(tab, here, "/", f"/web/runs/{ENDED.run}", f"/web/runs/{WORKS['run']}")
