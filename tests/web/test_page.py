"""The page in a real browser: the fleet as it changes, asks that are answered there, a session and its messages."""

import pytest

from tests.api.test_asks import RULE, asking
from tests.web.page_rig import begin, conversation, eventually, prompt, question, row

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("size", ["desktop", "phone"])
async def test_the_fleet_shows_each_session_and_what_changes_of_it(here, size):
    first = await here.api.new("first")
    tab = await here.tab(size)
    await row(tab, "first").wait_for()
    await tab.page.locator('#link[data-state="live"]').wait_for()
    await here.api.new("second")
    await row(tab, "second").wait_for()
    await begin(here.api, first)
    await prompt(here.api, first)
    await row(tab, "first").get_by_text("working").wait_for()
    assert await tab.page.locator("#counts").inner_text() in await tab.page.title()
    assert await tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert (tab.complaints, await tab.violations()) == ([], [])


async def test_a_row_that_has_not_changed_is_not_sent_again(here):
    for name in ("first", "second"):
        await here.api.new(name)
    tab = await here.tab()
    await tab.page.locator('#link[data-state="live"]').wait_for()
    await row(tab, "second").get_by_text("$0.00").wait_for()  # what it has used is read behind the first picture
    await tab.page.evaluate("document.querySelectorAll('.row').forEach((row) => { row.dataset.old = 'yes'; })")
    await begin(here.api, (session := here.api.engine.sessions.find("first").session.id))
    await prompt(here.api, session)
    await row(tab, "first").get_by_text("working").wait_for()
    assert await tab.page.locator('.row[data-old="yes"]').count() == 1


async def test_a_permission_is_allowed_on_the_page(here):
    session = await here.api.new("me")
    tab = await here.tab()
    async with asking(here.api, session) as client:
        asked = tab.page.locator(f"#ask-{client.id}")
        await asked.get_by_text("command: make").wait_for()
        await asked.get_by_role("button", name="Allow", exact=True).click()
        status, reply = await client.hook
        assert (status, reply["hookSpecificOutput"]["decision"]) == (200, {"behavior": "allow"})
        await asked.wait_for(state="detached")
    await tab.page.get_by_text("No agent asks anything").wait_for()


async def test_it_is_denied_with_the_reason_that_was_typed(here):
    session = await here.api.new("me")
    tab = await here.tab("phone")
    async with asking(here.api, session) as client:
        asked = tab.page.locator(f"#ask-{client.id}")
        await asked.get_by_label("Reason").fill("use make <b>check</b>")
        await asked.get_by_role("button", name="Deny").click()
        decision = (await client.hook)[1]["hookSpecificOutput"]["decision"]
        assert (decision["behavior"], decision["message"]) == ("deny", "use make <b>check</b>")


async def test_it_is_allowed_for_always(here):
    session = await here.api.new("me")
    tab = await here.tab()
    async with asking(here.api, session, permission_suggestions=[RULE]) as client:
        await tab.page.locator(f"#ask-{client.id}").get_by_role("button", name="Always allow").click()
        assert (await client.hook)[1]["hookSpecificOutput"]["decision"]["updatedPermissions"] == [RULE]


async def test_questions_are_answered_by_a_choice_by_several_and_in_own_words(here):
    session = await here.api.new("me")
    tab = await here.tab()
    asked = [
        question("Which?", "red", "blue"),
        question("What for?", "a", "b", "c", several=True),
        question("Why?", "x"),
    ]
    call = {"tool_name": "AskUserQuestion", "tool_input": {"questions": asked}}
    async with asking(here.api, session, **call) as client:
        form = tab.page.locator(f"#ask-{client.id}")
        await form.get_by_label("blue").check()
        await form.get_by_label("a about a").check()
        await form.get_by_label("c about c").check()
        await form.get_by_label("In your own words").nth(2).fill("because")
        await form.get_by_role("button", name="Answer", exact=True).click()
        given = (await client.hook)[1]["hookSpecificOutput"]["decision"]["updatedInput"]["answers"]
        assert given == {"Which?": "blue", "What for?": "a, c", "Why?": "because"}


async def test_a_form_keeps_what_was_typed_while_the_fleet_changes(here):
    session, other = await here.api.new("me"), await here.api.new("other")
    tab = await here.tab()
    async with asking(here.api, session) as client:
        reason = tab.page.locator(f"#ask-{client.id}").get_by_label("Reason")
        await reason.fill("half a")
        await begin(here.api, other)
        await prompt(here.api, other)
        await row(tab, "other").get_by_text("working").wait_for()
        assert await reason.input_value() == "half a"


async def test_a_session_shows_its_transcript_as_markdown_with_tools_folded(here, tmp_path):
    session = await here.api.new("me")
    path = conversation(tmp_path / "t.jsonl", ("Do **this**", "It is `done`:\n\n```\nx < 1\n```"))
    await begin(here.api, session, path)
    tab = await here.tab()
    await row(tab, "me").get_by_role("link").first.click()
    await tab.page.locator(".entry.user strong", has_text="this").wait_for()
    assert await tab.page.locator(".entry.agent pre code").inner_text() == "x < 1\n"
    assert (tab.complaints, await tab.violations()) == ([], [])


async def test_a_message_is_sent_and_its_receipt_is_shown(here):
    session = await here.api.new("me")
    await begin(here.api, session)
    await prompt(here.api, session)
    tab = await here.tab("phone")
    await tab.page.goto(here.at(f"/web/sessions/{session}"))
    await tab.page.get_by_role("textbox", name="Message", exact=True).fill("hello <i>you</i>")
    await tab.page.get_by_role("button", name="Send").click()
    receipt = tab.page.locator("#messages li", has_text="hello <i>you</i>")
    await receipt.get_by_text("queued").wait_for()
    waiting = (await here.api.call("GET", f"/sessions/{session}/messages"))[1]
    assert [message["text"] for message in waiting] == ["hello <i>you</i>"]


async def test_a_refused_change_says_why(here):
    session = await here.api.new("me")
    tab = await here.tab()
    await tab.page.goto(here.at(f"/web/sessions/{session}"))
    await tab.page.evaluate("document.querySelector('#message').removeAttribute('required')")
    await tab.page.get_by_role("button", name="Send").click()
    said = tab.page.locator("form output.failed").first
    await said.wait_for()
    assert await said.inner_text() != ""


async def test_an_agent_is_ended_after_a_question_and_restored(here):
    session = await here.api.new("me")
    await begin(here.api, session)
    tab = await here.tab()
    await tab.page.goto(here.at(f"/web/sessions/{session}"))
    await tab.page.get_by_text("End", exact=True).click()
    tab.agrees = True
    await tab.page.get_by_role("button", name="End its client").click()
    await eventually(lambda: here.api.engine.sessions.actors[session].session.ended)
    assert tab.questions[0].startswith("End the client of me?")
    await tab.page.get_by_role("textbox", name="Message", exact=True).wait_for(state="hidden")
    await tab.page.get_by_role("button", name="Restore").click()
    await eventually(lambda: not here.api.engine.sessions.actors[session].session.ended)
    await tab.page.get_by_role("textbox", name="Message", exact=True).wait_for()
    assert tab.complaints == []


async def test_without_javascript_the_pages_show_the_state(here, tmp_path):
    session = await here.api.new("me")
    await begin(here.api, session, conversation(tmp_path / "t.jsonl", ("Do it", "Done.")))
    tab = await here.tab()
    state = await tab.page.context.storage_state()
    plain = await here.empty_tab(java_script_enabled=False, storage_state=state)
    await plain.page.goto(here.at("/"))
    await row(plain, "me").wait_for()
    await plain.page.goto(here.at(f"/web/sessions/{session}"))
    await plain.page.get_by_text("Done.").wait_for()
