"""Search, chart, documents and faults of access, in a real browser; the page's own files."""

import asyncio
import hashlib
import re
import sys

import pytest

from scripts import web_assets
from sm.core import events as ev
from sm.core.model.context import ContextReading
from sm.web.answers import CSP
from tests.api.test_archive import shows, tended
from tests.web.page_rig import begin, conversation

pytestmark = pytest.mark.timeout(90)


async def readings(api, session, *tokens):
    actor = api.engine.sessions.actors[session]
    for count in tokens:
        reading = ContextReading(tokens=count, projected=count, exact=True, window=200_000)
        at = api.clock.advance(60)
        own = actor.session.conversation
        await actor.ask(ev.ContextRead(at=at, conversation=own.id, epoch=own.epoch, reading=reading, usable=180_000))


async def test_all_contexts_are_searched_and_the_words_marked(here):
    for name, words in (("me", "okapi"), ("other", "okapi zebra")):
        shows(here.api, await here.api.new(name), f"a {words} here\r\n" + "line\r\n\r\n" * 200)
    await tended(here.api)
    tab = await here.tab("phone")
    await tab.page.get_by_role("link", name="Search").click()
    await tab.page.get_by_label("Words").fill("okapi")
    await tab.page.get_by_role("button", name="Search").click()
    await tab.page.locator("mark").first.wait_for()
    assert await tab.page.locator("mark").all_inner_texts() == ["okapi", "okapi"]
    await tab.page.get_by_role("link", name="other").click()
    await tab.page.get_by_role("searchbox").fill("zebra")
    await tab.page.get_by_role("button", name="Search").click()
    await tab.page.locator("mark", has_text="zebra").wait_for()


async def test_the_chart_has_each_reading_and_what_happened(here):
    session = await here.api.new("me")
    await begin(here.api, session)
    await readings(here.api, session, 10_000, 60_000, 150_000)
    tab = await here.tab()
    await tab.page.goto(here.at(f"/web/sessions/{session}"))
    await tab.page.locator("#chart canvas").wait_for()
    found = await tab.page.evaluate(
        "(path) => fetch(path).then((one) => one.json())", f"/sessions/{session}/context/history"
    )
    assert found["tokens"] == [10_000, 60_000, 150_000]
    assert "started" in {mark["words"] for mark in found["marks"]}
    drawn = "(() => { const c = document.querySelector('#chart canvas'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; return d.some((value) => value > 0); })()"  # noqa: E501  # one expression
    assert await tab.page.evaluate(drawn)
    assert (tab.complaints, await tab.violations()) == ([], [])


async def test_documents_are_a_chain_with_what_changed(here):
    session = await here.api.new("me")
    await begin(here.api, session)
    for text in ("# One\n\nsame\n", "# Two\n\nsame\n"):
        await here.api.call("DELETE", f"/sessions/{session}/handoff")
        here.api.clock.advance(60)
        body = {"requester_session_id": session, "document": text}
        assert (await here.api.call("POST", f"/sessions/{session}/handoff", body=body))[0] == 200
    tab = await here.tab()
    await tab.page.goto(here.at(f"/web/sessions/{session}"))
    await tab.page.get_by_role("link", name="difference from the one before").click()
    await tab.page.locator(".diff .add", has_text="# Two").wait_for()
    assert "-# One" in await tab.page.locator(".diff .del").all_inner_texts()
    await tab.page.get_by_role("link", name="the one before", exact=False).first.click()
    await tab.page.get_by_role("heading", name="One").wait_for()


async def test_a_long_transcript_is_read_page_by_page_and_grows(here, tmp_path):
    session = await here.api.new("me")
    path = conversation(tmp_path / "t.jsonl", *((f"q{number}.", f"a{number}.") for number in range(100)))
    await begin(here.api, session, path)
    tab = await here.tab()
    await tab.page.goto(here.at(f"/web/sessions/{session}"))
    assert await tab.page.get_by_text("a99.").count() == 1
    assert await tab.page.get_by_text("a20.").count() == 0
    await tab.page.get_by_role("link", name="Show earlier").click()
    await tab.page.get_by_text("q60.").wait_for()
    more = conversation(tmp_path / "more.jsonl", ("and now?", "The newest.")).read_bytes()
    with path.open("ab") as file:
        file.write(more)
    await begin(here.api, session, path)
    await tab.page.get_by_text("The newest.").wait_for()
    assert await tab.page.get_by_text("The newest.").count() == 1
    texts = await tab.page.locator(".entry .text").all_inner_texts()
    assert len(texts) == len(set(texts))


async def test_secrets_are_not_in_a_transcript_on_the_page(here, tmp_path):
    session = await here.api.new("me")
    secret = "ghp_" + "a1B2" * 9
    await begin(here.api, session, conversation(tmp_path / "t.jsonl", (f"use {secret}", f"with {secret}")))
    tab = await here.tab()
    await tab.page.goto(here.at(f"/web/sessions/{session}"))
    await tab.page.get_by_text("[REDACTED:github-token]").first.wait_for()
    assert secret not in await tab.page.content()


def test_what_was_taken_from_npm_is_what_the_table_says():
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in web_assets.VENDOR.iterdir()}
    assert found == web_assets.HASHES


def test_no_template_has_a_script_or_a_style_in_it():
    for path in (web_assets.VENDOR.parent.parent / "templates").iterdir():
        text = path.read_text()
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|\|\s*safe\b|javascript:", text), (
            path.name
        )
    assert "unsafe" not in CSP


async def test_a_server_without_the_extra_says_what_to_install(tmp_path):
    """A process whose import of the templates fails has no page, and everything else."""
    code = (
        "import sys; sys.modules['jinja2'] = None; import importlib.util as u; found = u.find_spec;"
        "u.find_spec = lambda name, *more: None if name == 'jinja2' else found(name, *more);"
        "from sm.web.routes import EVERY_ROUTE as every;"
        "print([route.path for route in every if route.path in ('/', '/web/live')]);"
        "from sm.web import not_installed as n; import asyncio; asyncio.run(n.home(None))"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-c", code),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin"},
    )
    out, err = await process.communicate()
    assert out.decode().strip() == "['/']"
    assert "The page is not installed" in err.decode()
