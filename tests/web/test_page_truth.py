"""What the page shows against what `sm list --json` says, while sessions change at random."""

import asyncio
import random

import pytest

from sm.fleet import rows, title
from tests.api.test_asks import asking
from tests.web.page_rig import begin, eventually, hooked, prompt

pytestmark = pytest.mark.timeout(120)
SHOWN = """() => [...document.querySelectorAll("#rows > .row")].map((row) =>
    [row.id.slice(4), row.querySelector(".state").textContent.trim().split(/\\s+/).at(-1)])"""


async def test_every_row_is_what_the_list_says_while_twenty_sessions_change(here):
    api = here.api
    ids = [await api.new(f"s{number}") for number in range(20)]
    for session in ids:
        await begin(api, session)
    tab = await here.tab()
    chance = random.Random(7)  # noqa: S311  # the same order each time
    for _ in range(6):
        for session in chance.choices(ids, k=15):
            if chance.random() < 0.5:
                await prompt(api, session)
            else:
                await hooked(api, session, api.hook("Stop", session_id=api.conversation(session)))
        listed = (await api.call("GET", "/sessions"))[1]
        truth = rows(listed, [])
        wanted = [[row.id, row.state] for row in truth]
        assert len({row.state for row in truth}) > 1
        shown = []
        async with asyncio.timeout(5):
            while shown != wanted:
                shown = await tab.page.evaluate(SHOWN)
                await asyncio.sleep(0.05)
        assert await tab.page.locator("#counts").inner_text() == title(truth)


async def test_what_was_typed_for_an_ask_stays_on_a_sessions_page_while_the_session_changes(here):
    session = await here.api.new("me")
    await begin(here.api, session)
    tab = await here.tab()
    await tab.page.goto(here.at(f"/web/sessions/{session}"))
    async with asking(here.api, session) as client:
        reason = tab.page.locator(f"#ask-{client.id}").get_by_label("Reason")
        await reason.fill("half a")
        await here.api.call("POST", f"/sessions/{session}/messages", body={"text": "a new message"})
        await tab.page.locator("#messages").get_by_text("a new message").wait_for()
        assert await reason.input_value() == "half a"
        await tab.page.locator(f"#ask-{client.id}").get_by_role("button", name="Deny").click()
        await client.hook
        await tab.page.locator(f"#ask-{client.id}").wait_for(state="detached")
    await eventually(lambda: not here.api.engine.sessions.actors[session].session.asks)
