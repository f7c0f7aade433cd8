"""What the page shows against what the server has recorded and what `sm list --json` prints, while sessions change."""

import asyncio
import contextlib
from itertools import zip_longest

import pytest

from sm.fleet import title
from tests.api.test_asks import asking
from tests.fleet_truth import SESSIONS, Truth, commands, passing, told, twenty
from tests.web.page_rig import begin, eventually

pytestmark = pytest.mark.timeout(180)
CHANGES = 100
SHOWN = """() => ({
    seen: Number(document.body.dataset.seen.split("-")[1]),
    rows: [...document.querySelectorAll("#rows > .row")].map((row) => {
        const copy = row.cloneNode(true);
        const since = row.querySelector(".state + time")?.dataset.since;
        copy.querySelectorAll("time").forEach((time) => { time.textContent = "T"; });
        const fill = row.querySelector(".gauge .fill");
        return [row.id.slice(4), [...copy.children].map((cell) => cell.textContent.trim().replace(/\\s+/g, " ")),
            since === undefined ? null : Number(since), row.classList.contains("ended"),
            fill === null ? null : ["bad", "care"].find((name) => fill.classList.contains(name)) || "ok"];
    }),
})"""
LEVELS = {"ok": "ok", "warning": "care", "critical": "bad"}
PATIENCE_S = 30.0
ROUNDED_S = 1.0
"""A row is sent again once its state is of another second."""


def short(count):
    return "unknown" if count is None else f"{count / 1_000:.0f}k" if count >= 1_000 else str(count)


def size(row):
    if row.percent is None and row.tokens is None:
        return "context unknown"
    left = "" if row.turns_left is None else f" · about {row.turns_left} turn{'s' * (row.turns_left != 1)} left"
    share = "" if row.percent is None else f"{round(row.percent)} % · "
    return f"{share}{short(row.tokens)}{'' if row.usable is None else f' of {short(row.usable)}'}{left}"


def written(row):
    """What the page has to show of a row, as SHOWN returns it."""
    who = " · ".join(part for part in (row.provider, row.model, row.driver, row.branch) if part)
    seen = "" if row.seen is None else ", T ago"
    state = f"{row.mark} {row.state}" + ("" if row.since is None else " T")
    numbers = [f"{row.rotations or 0} rotation{'s' * (row.rotations != 1)}"]
    numbers += [f"{row.queued} queued"] * bool(row.queued)
    numbers += [] if row.usd is None else [f"${row.usd:.2f}"]
    numbers += [part for part in (row.limit, row.attempt) if part]
    cells = [f"{row.name} {who}", " ".join(f"{state} {row.why} {row.evidence}{seen}".split()), size(row)]
    cells += [" · ".join(numbers), *([row.said] if row.said else [])]
    since = row.since
    level = None if row.percent is None else LEVELS[row.level]
    return [row.id, [" ".join(cell.split()) for cell in cells], since, row.ended, level]


def differences(shown, wanted):
    """The rows that differ, in pairs; moments may by as much as the page rounds them."""
    return [pair for pair in zip_longest(shown, wanted) if not alike(*pair)]


def alike(shown, wanted):
    if shown is None or wanted is None:
        return False
    moments = shown[2], wanted[2]
    close = moments[0] == moments[1] or (None not in moments and abs(moments[0] - moments[1]) <= ROUNDED_S)
    return close and shown[:2] + shown[3:] == wanted[:2] + wanted[3:]


@contextlib.asynccontextmanager
async def noting(live):
    """Yield every picture that open pages have got, by its version: when it was made, and its rows."""
    pictures = {}

    async def note():
        while True:
            changed = live.changed
            pictures[live.version] = live.picture
            await changed.wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(note())
        try:
            yield pictures
        finally:
            task.cancel()


async def test_no_row_is_older_than_a_second_and_a_browser_shows_the_picture_it_was_sent(here):
    await twenty(here.api)
    tab, truth = await here.tab(), Truth(here.api)
    live = here.api.app.app.state.live_pages
    looks = []

    async def look():
        while True:
            looks.append(await tab.page.evaluate(SHOWN))
            await asyncio.sleep(0.3)

    async with passing(here.api), noting(live) as pictures, asyncio.TaskGroup() as group:
        looking = group.create_task(look())
        await truth.change(CHANGES)
        await truth.settled()
        looking.cancel()
    made = [(found.at, {row.id: told(row) for row in found.rows}) for found in pictures.values()]
    assert truth.late(made) == []
    assert truth.untrue(made) == []
    sent = [look for look in looks if look["seen"] in pictures]
    assert len({look["seen"] for look in sent}) > 3
    for look in sent:
        found = pictures[look["seen"]]
        assert differences(look["rows"], [written(row) for row in found.rows]) == []
    assert {row.state for found in pictures.values() for row in found.rows} >= {"waiting", "blocked", "working", "idle"}


async def test_every_row_is_what_sm_list_prints(here):
    await twenty(here.api)
    asks = await here.api.new("asks")
    tab, truth = await here.tab(), Truth(here.api)
    async with passing(here.api), asking(here.api, asks):
        with commands(here.api, here.port) as desk:
            for _ in range(3):
                await truth.change(15)
                listed = await truth.listed(desk)
                wanted = [written(row) for row in listed]
                assert len(wanted) == SESSIONS + 1
                different = wanted
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PATIENCE_S):
                        while different:
                            await asyncio.sleep(0.1)
                            different = differences((await tab.page.evaluate(SHOWN))["rows"], wanted)
                assert different == []
                assert await tab.page.locator("#counts").inner_text() == title(listed)


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
