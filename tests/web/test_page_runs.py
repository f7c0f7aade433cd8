"""Runs on the page: what the real engine has kept of them, with the sessions that work for them, and their reports."""

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from sm.runner.attempt import attempt_name
from sm.runner.outcome import Result, RunOutcome, Spent
from tests.web.browser import logged_in
from tests.web.page_rig import begin, eventually
from tests.web.test_page_hostile import EVIL, MARKDOWN, unharmed
from tests.web.written_runs import outcome, written

pytestmark = pytest.mark.timeout(120)
ENDED = RunOutcome(
    "R-20260130-101112-aa11",
    "/home/dev/pro-ject",
    (
        outcome("FEAT-001", Result.DELIVERED, attempts=2, merge="abc123", spent=Spent(1_200_000, 5.1)),
        outcome("BUG-002", Result.NEEDS_YOU, attempts=1, reason="the check failed", hint="sm issues list"),
    ),
)
WORKS = {
    "run": "R-20260202-061200-bb22",
    "issues": ["FEAT-003", "FEAT-004"],
    "steps": [["prepare", {"type": "Prepared", "title": "Write the parser"}], ["ensure_session", "0123abcd"]],
}


def at_home(api):
    """Have the page look for runs where this test's are."""
    state = api.app.app.state
    state.backend = replace(
        state.backend, health=msgspec.structs.replace(state.backend.health, home=str(api.home.root))
    )


async def read(visitor, path):
    answer = await visitor.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_the_fleets_page_lists_runs_and_a_runs_page_its_issues_and_report(api):
    at_home(api)
    api.clock.time = time.time() + 230  # the engine has a clock of its own
    session = await api.new("parser")
    await api.alter(session, attempt=attempt_name(WORKS["run"], "FEAT-003", 2))
    visitor = await logged_in(api)
    async with written(api.home, [ENDED], WORKS):
        fleet = await read(visitor, "/")
        assert fleet.count(">3 min</time> ago") == 2
        assert fleet.index(f'id="run-{WORKS["run"]}"') < fleet.index(f'id="run-{ENDED.run}"')
        assert "1 delivered · 1 needs you" in fleet
        assert "Write the parser" in fleet
        ended = await read(visitor, f"/web/runs/{ENDED.run}")
        for words in (
            "Title of FEAT-001",
            "2 attempts",
            "1,200,000 tokens, $5.10",
            "the check failed",
            "sm issues list",
        ):
            assert words in ended, words
        assert "<h4>Delivered</h4>" in ended
        assert "Merged as <code>abc123</code>" in ended
        works = await read(visitor, f"/web/runs/{WORKS['run']}")
        assert f'<a href="/web/sessions/{session}"><bdi>parser</bdi></a>' in works
        assert "2 attempts" in works
        assert "Report" not in works


async def test_a_run_whose_process_has_died_is_not_shown_as_worked_on(api):
    at_home(api)
    visitor = await logged_in(api)
    async with written(api.home, works=WORKS) as process:
        assert "interrupted" not in await read(visitor, f"/web/runs/{WORKS['run']}")
        process.kill()
        await process.wait()
        assert "Its process has ended" in await read(visitor, f"/web/runs/{WORKS['run']}")


async def test_runs_of_several_projects_are_listed_the_newest_first_and_a_damaged_database_hides_no_other(api):
    at_home(api)
    visitor = await logged_in(api)
    other = RunOutcome("R-20260101-000000-cc33", "/home/dev/other", (outcome("FEAT-009", Result.SKIPPED),))
    async with written(api.home, [ENDED]), written(api.home, [other], project="other"):
        for name in ("bad", "begun"):
            file = api.home.runs / f"{name}-0123abcd.sqlite"
            file.write_bytes(b"no database at all, but longer than the head of one" * 9)
        os.utime(api.home.runs / "bad-0123abcd.sqlite", (1.0, 1.0))
        page = await read(visitor, "/")
        assert ENDED.run in page
        assert other.run in page
        assert "The runs of bad cannot be read (file is not a database)" in page
        assert "The runs of begun" not in page  # it may be what a run is only beginning to make
        assert "FEAT-009" in await read(visitor, f"/web/runs/{other.run}")


async def test_without_a_run_no_process_is_started(api):
    at_home(api)
    visitor = await logged_in(api)
    assert "No run yet." in await read(visitor, "/")
    assert not api.app.app.state.live_pages.reader.working


async def test_the_process_that_reads_ends_when_no_page_asks(api, monkeypatch):
    monkeypatch.setattr("sm.web.pages.run_reader.IDLE_S", 0.3)
    at_home(api)
    visitor = await logged_in(api)
    async with written(api.home, [ENDED]):
        for _ in range(2):
            assert "Title of BUG-002" in await read(visitor, f"/web/runs/{ENDED.run}")
            reader = api.app.app.state.live_pages.reader
            await eventually(lambda: not reader.working)  # noqa: B023  # called at once


async def test_a_process_that_was_killed_is_replaced(api):
    at_home(api)
    visitor = await logged_in(api)
    async with written(api.home, [ENDED]):
        await read(visitor, f"/web/runs/{ENDED.run}")
        [pid] = [pid for pid in children(os.getpid()) if "sm.runner.reader" in command(pid)]
        os.kill(pid, 9)
        await asyncio.sleep(0.2)
        began = time.monotonic()
        refused = await visitor.get(f"/web/runs/{ENDED.run}")
        assert "The runs cannot be read now" in refused.text
        assert time.monotonic() - began < 5
        await read(visitor, f"/web/runs/{ENDED.run}")


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def command(pid):
    return Path(f"/proc/{pid}/cmdline").read_text()


@pytest.mark.parametrize("name", ["R-nothing", "..", "%2e%2e%2fx", "<script>", "x" * 500, "a%00"])
async def test_what_is_no_run_is_not_found(api, name):
    at_home(api)
    visitor = await logged_in(api)
    answer = await visitor.get(f"/web/runs/{name}")
    assert answer.status_code in {400, 404}
    assert "<script>" not in answer.text


async def test_an_agent_sees_no_run(api):
    token = api.tokens[await api.new("s1")]
    for path in (f"/web/runs/{ENDED.run}", f"/web/runs/{ENDED.run}/parts"):
        status, answer = await api.call("GET", path, token)
        assert (status, answer["code"]) == (403, "forbidden")


async def test_secrets_in_a_report_are_not_shown(api):
    at_home(api)
    secret = "ghp_" + "a1B2" * 9
    said = outcome("FEAT-001", Result.NEEDS_YOU, said=f"export TOKEN={secret}")
    async with written(api.home, [RunOutcome(ENDED.run, "/p", (said,))]):
        page = await read(await logged_in(api), f"/web/runs/{ENDED.run}")
    assert "The last message of its agent" in page
    assert secret not in page


async def test_titles_reasons_and_reports_are_text_or_harmless_markdown(here):
    at_home(here.api)
    evil = outcome(
        f"X {EVIL}",
        Result.NEEDS_YOU,
        title=MARKDOWN,
        reason=EVIL,
        hint=EVIL,
        said=MARKDOWN,
        notes=(MARKDOWN,),
        branch=EVIL,
    )
    works = {**WORKS, "issues": [EVIL], "steps": [["prepare", {"title": EVIL}], ["ensure_session", EVIL]]}
    async with written(here.api.home, [RunOutcome(ENDED.run, EVIL, (evil,))], works):
        tab = await here.tab()
        await tab.page.get_by_text("<script>alert(2)").first.wait_for()
        await unharmed(tab)
        for run in (ENDED.run, WORKS["run"]):
            await tab.page.goto(here.at(f"/web/runs/{run}"))
            await tab.page.get_by_text("<script>alert(2)").first.wait_for()
            await unharmed(tab)


async def test_a_run_that_ends_is_news_to_every_open_page(here):
    at_home(here.api)
    session = await here.api.new("parser")
    await here.api.alter(session, attempt=attempt_name(WORKS["run"], "FEAT-003", 1))
    await begin(here.api, session)
    fleet, phone = await here.tab(), await here.tab("phone", "dark")
    async with written(here.api.home, [ENDED], WORKS) as process:
        await fleet.page.locator(f"#run-{WORKS['run']} .s-working").wait_for(timeout=15_000)
        await phone.page.goto(here.at(f"/web/runs/{WORKS['run']}"))
        await phone.page.get_by_text("Write the parser").wait_for()
        assert await phone.findings() == []
        await phone.page.goto(here.at(f"/web/runs/{ENDED.run}"))
        assert await phone.findings() == []
        await phone.page.goto(here.at(f"/web/runs/{WORKS['run']}"))
        process.kill()
        await process.wait()
        await fleet.page.locator(f"#run-{WORKS['run']} .s-blocked").wait_for(timeout=15_000)
        await phone.page.get_by_text("Its process has ended").wait_for(timeout=15_000)
        assert await fleet.findings() == []
    for tab in (fleet, phone):
        assert (await tab.violations(), tab.complaints) == ([], [])
