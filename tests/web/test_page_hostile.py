"""Texts that an agent can write, each as a piece of HTML with a script: on no page does any of it become markup."""

import json

import pytest

from tests.api.test_asks import asking
from tests.web.page_rig import ShownPane, begin, conversation, question

pytestmark = pytest.mark.timeout(90)
EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'></pre></details>{{7*7}}"
MARKDOWN = (
    f"{EVIL}\n\n[link](javascript:alert(3)) [rel](/stop) ![i](https://evil.example/x.png) <svg onload=alert(4)>\n\n"
    f"```html\n{EVIL}\n```\n\n| a |\n|:-:|\n| {EVIL} |\n\n[data](data:text/html;base64,PHN2Zz4=) <https://ok.example/>"
)


async def unharmed(tab):
    """No script ran, nothing of it is an element, and the browser has refused nothing."""
    assert tab.complaints == []
    assert await tab.violations() == []
    made = "img[src=x], main script, main svg[onload], [onerror], [onload], a[href^='javascript'], a[href^='data']"
    assert await tab.page.locator(made).count() == 0
    loaded = "performance.getEntriesByType('resource').filter((one) => !one.name.startsWith(location.origin)).length"
    assert await tab.page.evaluate(loaded) == 0


async def test_names_reports_and_what_was_said_are_text_on_the_fleets_page(here):
    session = await here.api.new("me")
    await here.api.alter(session, name=EVIL, said=EVIL, model=EVIL, attempt=f"{EVIL}/1/1")
    await here.api.call("POST", f"/sessions/{session}/report", body={"text": EVIL})
    tab = await here.tab()
    await tab.page.get_by_text("<img src=x onerror=alert(1)>").first.wait_for()
    assert "49" not in await tab.page.title()
    await unharmed(tab)


async def test_what_a_tool_is_given_and_what_is_asked_is_text(here):
    session = await here.api.new("me")
    tab = await here.tab()
    given = {"command": EVIL, "more": {EVIL: [EVIL]}}
    async with asking(here.api, session, tool_name="Bash", tool_input=given) as client:
        await tab.page.locator(f"#ask-{client.id}").get_by_text("<script>alert(2)").first.wait_for()
        await unharmed(tab)
    asked = {"questions": [{**question(EVIL, EVIL, "other"), "header": EVIL}]}
    async with asking(here.api, session, tool_name="AskUserQuestion", tool_input=asked) as client:
        await tab.page.locator(f"#ask-{client.id}").get_by_text("<script>alert(2)").first.wait_for()
        await unharmed(tab)
    async with asking(here.api, session, tool_name="ExitPlanMode", tool_input={"plan": MARKDOWN}) as client:
        await tab.page.locator(f"#ask-{client.id} pre code").get_by_text("<script>alert(2)").first.wait_for()
        await unharmed(tab)


async def test_a_transcript_and_messages_are_text_or_harmless_markdown(here, tmp_path):
    session = await here.api.new("me")
    path = conversation(tmp_path / "t.jsonl", (MARKDOWN, MARKDOWN))
    call = {"type": "tool_use", "id": "t1", "name": EVIL, "input": {EVIL: EVIL}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": EVIL, "is_error": True}
    with path.open("a") as file:
        for kind, content in (("assistant", [call]), ("user", [result])):
            file.write(json.dumps({"type": kind, "message": {"role": kind, "content": content}}) + "\n")
    await begin(here.api, session, path)
    await here.api.call("POST", f"/sessions/{session}/messages", body={"text": EVIL})
    here.api.engine.ports.panes.pane = lambda _: ShownPane(EVIL)
    tab = await here.tab()
    await tab.page.goto(here.at(f"/web/sessions/{session}"))
    await tab.page.locator(".entry.agent pre code").get_by_text("<script>alert(2)").wait_for()
    await tab.page.locator("details.tool summary").first.click()
    assert await tab.page.locator(".entry a").all_inner_texts() == ["i", "https://ok.example/"] * 2
    await unharmed(tab)


async def test_a_document_is_harmless_markdown_and_so_is_what_changed(here):
    session = await here.api.new("me")
    await begin(here.api, session)
    for text in (MARKDOWN, f"{MARKDOWN}\n\n{EVIL}\n"):
        body = {"requester_session_id": session, "document": text}
        await here.api.call("DELETE", f"/sessions/{session}/handoff")
        status, answer = await here.api.call("POST", f"/sessions/{session}/handoff", body=body)
        assert status == 200, answer
    tab = await here.tab()
    await tab.page.goto(here.at(f"/web/sessions/{session}"))
    await tab.page.get_by_role("link", name="difference from the one before").click()
    await tab.page.locator(".diff .add").first.wait_for()
    assert await tab.page.locator(".diff .add").all_inner_texts()
    await unharmed(tab)


async def test_what_is_searched_for_is_text(here):
    tab = await here.tab()
    await tab.page.goto(here.at("/web/search"))
    await tab.page.get_by_label("Words").fill(EVIL)
    await tab.page.get_by_role("button", name="Search").click()
    await tab.page.get_by_text("Nothing found").or_(tab.page.locator("p[role=status]")).first.wait_for()
    assert await tab.page.get_by_label("Words").input_value() == EVIL
    await unharmed(tab)


async def test_a_devices_name_is_text(here):
    tab = await here.tab(name=EVIL[:40])
    await tab.page.goto(here.at("/web/devices"))
    await tab.page.get_by_text("<img src=x").first.wait_for()
    await unharmed(tab)
