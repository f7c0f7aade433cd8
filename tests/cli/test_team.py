"""Commands of an agent about its team: what they print, what they send, and how they end."""

import asyncio
import time

import pytest

from sm.cli.tables import display_width
from sm.cli.team import reminder_columns, seconds
from sm.core import events as ev
from sm.core.errors import SmError
from tests.cli.test_sessions import shown


@pytest.fixture
async def boss(desk):
    return await desk.api.new("boss")


async def spawned(desk, boss, *arguments, **options):
    ran = await desk.run("spawn", *arguments, session=boss, **options)
    assert ran.code == 0, ran.err
    child = ran.out.strip()
    desk.api.tokens[child] = desk.api.launched[child]
    return child


def session(desk, identity):
    return desk.api.engine.sessions.actors[identity].session


def tasks(desk, identity):
    return [message.text.partition("\n")[2] for message in session(desk, identity).outbox.queue]


@pytest.mark.parametrize(
    ("text", "value"), [("90", 90), ("90s", 90), ("5m", 300), ("2h", 7200), ("1d", 86_400), ("1.5m", 90), (" 2 ", 2)]
)
def test_a_delay_has_a_unit_or_is_in_seconds(text, value):
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "m", "-5", "5x", "5 minutes", "1e9", "٣"])
def test_what_is_no_delay_is_refused(text):
    with pytest.raises(SmError, match="Invalid delay"):
        seconds(text)


async def test_spawn_prints_the_id_and_gives_the_task(desk, boss):
    child = await spawned(desk, boss, "--name", "kid", "do", "it all")
    assert session(desk, child).parent == boss
    assert session(desk, child).name == "kid"
    assert session(desk, child).directory == str(desk.root)
    await asyncio.sleep(0.05)
    assert tasks(desk, child) == ["do it all"]


@pytest.mark.parametrize(
    ("arguments", "every"),
    [(("--track", "do it"), 600), (("--track=5m", "do it"), 300), (("do it",), None), (("--", "--track"), None)],
)
async def test_track_takes_its_delay_only_behind_an_equals_sign(desk, boss, arguments, every):
    child = await spawned(desk, boss, *arguments)
    tracked = [reminder.every for reminder in desk.api.engine.reminders.owned(boss) if reminder.kind == "track"]
    assert tracked == ([every] if every else [])
    await asyncio.sleep(0.05)
    assert tasks(desk, child) == [arguments[-1]]


async def test_a_task_comes_from_standard_input_but_not_from_nothing(desk, boss):
    child = await spawned(desk, boss, "-", stdin=b"do it\n")
    await asyncio.sleep(0.05)
    assert tasks(desk, child) == ["do it"]
    assert (await desk.run("spawn", "-", session=boss, stdin=b" \n")).code == 2
    assert (await desk.run("spawn", session=boss)).code == 2


@pytest.mark.parametrize(
    "words", [["spawn", "x"], ["wait", "boss", "5"], ["remind", "5", "x"], ["done"], ["status", "x"], ["children"]]
)
async def test_a_command_of_an_agent_outside_a_session_ends_with_2(desk, boss, words):
    ran = await desk.run(*words, "--json")
    assert (ran.code, ran.error["code"]) == (2, "not_in_session")
    assert ("name one" in ran.error["hint"]) is (words == ["children"])  # the others take no session's name


async def test_children_shows_each_with_what_it_said(desk, boss):
    assert (await desk.run("children", session=boss)).err == "no children\nhint: sm spawn PROMPT starts one\n"
    first, two = await spawned(desk, boss, "x"), await spawned(desk, boss, "y")
    await desk.run("status", "half", "way", session=first)
    assert (await desk.run("done", session=two)).out == "Done — reported to your parent\n"
    ran = await desk.run("children", session=boss)
    assert [line.split()[0] for line in ran.out.splitlines()] == ["NAME", "boss-child", "boss-child-2"]
    assert ran.out.splitlines()[1].endswith("half way")
    assert ran.out.splitlines()[2].endswith("done")
    assert [child["report"]["text"] for child in (await desk.run("children", "boss", "--json")).data] == [
        "half way",
        "",
    ]


async def test_a_dead_child_is_listed_with_its_reason(desk, boss):
    child = await spawned(desk, boss, "x")
    assert (await desk.run("kill", child, session=boss)).code == 0
    ran = await desk.run("children", session=boss)
    assert "exited" in ran.out
    assert ran.err == "boss-child: killed by boss\n"


async def test_status_tells_of_oneself_and_ones_children(desk, boss):
    child = await spawned(desk, boss, "x")
    assert (await desk.run("status", "on it", session=boss)).out == "Reported\n"
    ran = await desk.run("status", session=boss)
    assert ran.out.splitlines()[3:] == ["driver keys", "report on it", f"child boss-child ({child}) starting"]


@pytest.mark.parametrize("columns", [60, 80, 200])
async def test_the_list_shows_who_belongs_to_whom_at_any_width(desk, boss, columns):
    child = await spawned(desk, boss, "x")
    await desk.api.new("zebra")
    await spawned(desk, child, "y")
    await desk.run("status", "a long report " * 10, session=child)
    lines = (await shown(desk, "list", COLUMNS=str(columns), NO_COLOR="1")).splitlines()
    names = ("boss", "└ boss-child", "  └ boss-child-child", "zebra")
    assert all(line.startswith(f"{name}  ") for line, name in zip(lines[1:], names, strict=True))
    assert max(display_width(line.rstrip()) for line in lines) <= columns
    assert ("SAYS" in lines[0]) is (columns == 200)


@pytest.mark.parametrize("columns", [60, 100])
async def test_children_keeps_the_reports_at_any_width(desk, boss, columns):
    child = await spawned(desk, boss, "x")
    await desk.run("status", "a long report " * 10, session=child)
    lines = (await shown(desk, "children", "boss", COLUMNS=str(columns), NO_COLOR="1")).splitlines()
    assert max(display_width(line.rstrip()) for line in lines) <= columns
    assert "a long report" in lines[1]


async def test_reminders_are_made_listed_and_cancelled(desk, boss):
    assert (await desk.run("remind", "list", session=boss)).err.startswith("no reminders\nhint: sm remind DELAY TEXT")
    made = (await desk.run("remind", "5m", "look", "at it", session=boss)).out.strip()
    again = (await desk.run("remind", "10m", "--every", "and again", "--json", session=boss)).data
    assert (again["kind"], again["every"]) == ("every", 600)
    ran = await desk.run("remind", "list", session=boss)
    assert ran.out.splitlines()[1].split()[:2] == [made, "once"]
    assert "look at it" in ran.out
    assert (await desk.run("remind", "cancel", made, session=boss)).err == f"cancelled {made}\n"
    assert (await desk.run("remind", "cancel", "../x", "--json", session=boss)).error["code"] == "not_found"
    assert [reminder.id for reminder in desk.api.engine.reminders.owned(boss)] == [again["id"]]


async def test_what_is_waited_for_is_listed_by_its_name(desk, boss):
    other = await desk.api.new("other")
    await desk.run("wait", "other", "60", session=boss)
    assert (await desk.run("remind", "list", session=boss)).out.splitlines()[1].endswith(f"other ({other})")


@pytest.mark.parametrize(("away", "told"), [(0.0, "2d"), (-3.0, "2d"), (-60.0, "1d")])
def test_a_reminder_just_asked_for_is_listed_with_its_delay(away, told):
    due = time.time() + 2 * 86_400 + away
    row = {"id": "a", "kind": "once", "due": due, "every": None, "text": "x", "about": "a (1)"}
    (cell,) = next(column.cells for column in reminder_columns([row]) if column.head == "IN")
    assert cell == told


@pytest.mark.parametrize("words", [["list", "x"], ["cancel"], ["cancel", "a", "b"], ["soon", "x"], ["5m"]])
async def test_a_reminder_that_is_none_is_wrong_usage(desk, boss, words):
    assert (await desk.run("remind", *words, session=boss)).code == 2


async def test_a_delay_the_server_refuses_is_refused_with_a_hint(desk, boss):
    ran = await desk.run("remind", "1s", "x", "--every", session=boss)
    assert (ran.code, ran.err) == (
        1, "Error: Invalid delay 1 s: must be 10 seconds to 30 days\nhint: Use 90, 90s, 5m, 2h or 1d\n",
    )  # fmt: skip


async def test_wait_says_what_will_happen(desk, boss):
    other = await desk.api.new("other")
    ran = await desk.run("wait", "other", "2m", session=boss)
    assert ran.out == "You will get a message when other is idle, or after 2m\n"
    actor = desk.api.engine.sessions.actors[other]
    await actor.ask(ev.ActivityChanged(at=1.0, activity=ev.Activity.IDLE))
    assert (await desk.run("wait", other, "60", session=boss)).out == "other is idle already\n"
    await desk.api.engine.sessions.kill(other)
    assert (await desk.run("wait", other, "60", session=boss)).out == "other has ended already\n"


async def test_clear_and_kill_reach_ones_children_only(desk, boss):
    child = await spawned(desk, boss, "x")
    ran = await desk.run("clear", child, "do", "that", session=boss)
    assert ran.err == "boss-child will be cleared as soon as it is idle\n"
    assert session(desk, child).rotation.handoff is None
    assert (await desk.run("clear", child, session=boss, env={})).code == 1
    for words in (["clear", "boss"], ["kill", "boss"], ["restore", "boss"]):
        ran = await desk.run(*words, "--json", session=child)
        assert (ran.code, ran.error["code"]) == (1, "forbidden")


async def test_kill_with_children_ends_what_is_below(desk, boss):
    child = await spawned(desk, boss, "x")
    assert (await desk.run("kill", "boss", "--children")).code == 0
    assert session(desk, child).ended
