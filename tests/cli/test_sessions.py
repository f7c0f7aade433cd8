"""Commands of a person about sessions: what they print, where, and how they end."""

import asyncio
import contextlib
import json
import os
import pty
import time

import pytest

from sm.cli.exits import INTERRUPTED
from sm.cli.sessions import notes
from sm.cli.tables import display_width
from sm.core.model.session import Status
from sm.core.rules.session.status import PANE_LOST

BIG = "x" * 40


@contextlib.contextmanager
def terminal():
    controller, end = pty.openpty()
    try:
        yield controller, end
    finally:
        os.close(controller)


async def shown(desk, *arguments, **env):
    """What a command writes to a terminal of `COLUMNS` columns."""
    with terminal() as (controller, end):
        process = await desk.start(*arguments, env={"TERM": "xterm", **env}, stdout=end, stderr=end, stdin=end)
        os.close(end)
        await process.wait()
        return os.read(controller, 65536).decode()


async def test_list_gives_data_on_stdout_and_words_on_stderr(desk):
    ran = await desk.run("list")
    assert (ran.code, ran.out, ran.err) == (0, "", "no sessions\nhint: sm new starts one\n")
    session = await desk.api.new("a")
    ran = await desk.run("ls")
    assert ran.err == ""
    assert session in ran.out
    assert [view["id"] for view in (await desk.run("list", "--json")).data] == [session]


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
@pytest.mark.parametrize("name", ["short", BIG, "日本語" * 12, "ünï çödé"])
async def test_list_fits_the_terminal_whatever_a_name_holds(desk, columns, name):
    await desk.api.new(name)
    lines = (await shown(desk, "list", COLUMNS=str(columns), NO_COLOR="1")).splitlines()
    assert max(display_width(line.rstrip()) for line in lines) <= columns
    assert {"NAME", "STATUS", "CONTEXT", "SEEN"} <= set(lines[0].split())
    assert ("DIR" in lines[0]) is (columns == 200)


async def test_list_shows_those_that_need_the_user_first_and_only_those_that_are_asked_for(desk, session):
    (desk.root / "elsewhere").mkdir()
    gone = await desk.api.new("gone")
    await desk.api.call("DELETE", f"/sessions/{gone}")
    asks = await desk.api.new("asks", directory=desk.root / "elsewhere")
    await desk.api.alter(asks, status=Status.WAITING)

    async def shown(*arguments, **options):
        return [view["name"] for view in (await desk.run("list", "--json", *arguments, **options)).data]

    assert await shown() == ["asks", "a", "gone"]
    assert await shown("--running") == ["asks", "a"]
    assert await shown("--waiting") == ["asks"]
    assert await shown("--here", cwd=desk.root / "elsewhere") == ["asks"]
    assert (await desk.run("list", "--here", "--waiting", cwd=desk.root / "work")).err == (
        "no session waits for you in this project\nhint: sm list\n"
    )
    lines = (await desk.run("list", "--running")).out.splitlines()
    assert [line.split()[0] for line in lines] == ["NAME", "asks", "a"]


async def test_what_was_lost_is_listed_with_the_command_that_restarts_all(desk):
    for name in ("one", "two"):
        lost = await desk.api.new(name)
        await desk.api.call("DELETE", f"/sessions/{lost}")
        at = time.time() - 3 * 86_400
        await desk.api.alter(lost, status=Status.EXITED, detail=PANE_LOST, failed_starts=(at,), last_activity=at)
    ran = await desk.run("list")
    assert ran.err.splitlines()[-1] == "2 sessions were lost: sm restore --all restarts them"
    assert {"one", "two"} <= set(ran.out.split())


async def test_colour_is_for_terminals_that_want_it(desk):
    session = await desk.api.new("a")
    await desk.api.call("DELETE", f"/sessions/{session}")
    assert "\x1b[90mexited" in await shown(desk, "list", "--all")
    assert "\x1b" not in await shown(desk, "list", "--all", NO_COLOR="1")
    assert "\x1b" not in await shown(desk, "list", "--all", TERM="dumb")
    assert "\x1b" not in (await desk.run("list")).out


@pytest.mark.parametrize("locale", [{"LANG": "C"}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX", "LANG": "en_US.UTF-8"}])
async def test_without_utf8_everything_is_ascii(desk, locale):
    session = await desk.api.new("näme")
    (desk.root / "h.md").write_text("goal")
    for arguments in (("list",), ("handoff", "h.md"), ("status",), ("--help",)):
        ran = await desk.run(*arguments, session=session, env={"LC_ALL": "", **locale})
        assert (ran.code, (ran.out + ran.err).isascii()) == (0, True)


async def test_without_utf8_columns_stay_below_one_another(desk):
    for name in ("x" * 40, "日本" * 20, "plain"):
        await desk.api.new(name)
    head, *rows = (await desk.run("list", env={"LC_ALL": "C"})).out.splitlines()[:4]
    assert {row.index("starting") for row in rows} == {head.index("STATUS")}
    assert rows[0].startswith("x" * 23 + "~  ")


async def test_names_cannot_write_to_the_terminal(desk):
    await desk.api.alter(await desk.api.new("a"), name="a\x9b31m\u202eb")  # as an older version took it
    assert "a?31m?b" in (await desk.run("list")).out


async def test_an_agent_sees_itself_whole_and_others_by_name_and_status(desk, session):
    other = await desk.api.new("other")
    ran = await desk.run("list", session=session)
    assert (ran.code, "other" in ran.out) == (0, True)
    data = {view["id"]: view for view in (await desk.run("list", "--json", session=session)).data}
    assert set(data[other]) == {"id", "name", "status", "parent", "report"}
    assert data[session]["created"]


async def test_status_is_an_agents_own(desk, session):
    ran = await desk.run("status", session=session)
    assert ran.out.splitlines()[0] == f"a ({session}) starting"
    assert (await desk.run("status", "--json", session=session)).data["id"] == session


@pytest.mark.parametrize("command", ["status", "context"])
async def test_an_agents_plain_question_is_answered_as_by_the_command_parser(desk, session, command):
    quick = await desk.run(command, session=session)
    parsed = await desk.run(command, "--no-start" if command == "context" else "--", session=session)
    assert (quick.code, quick.out) == (0, parsed.out)


@pytest.mark.parametrize("command", ["status", "context"])
async def test_an_agents_plain_question_that_is_refused_says_why(desk, session, command):
    ran = await desk.run(command, session=session, env={"SM_SESSION_TOKEN": "none"})
    assert (ran.code, ran.out, ran.err.startswith("Error: A valid bearer token")) == (1, "", True)
    ran = await desk.run(command, session=session, env={"SM_URL": "http://127.0.0.1:1"})
    assert (ran.code, ran.out, ran.err.startswith("Error: Session manager unavailable")) == (2, "", True)


@pytest.mark.parametrize("arguments", [("status",), ("context",), ("handoff", "x"), ("handoff", "--status")])
async def test_an_agents_command_outside_a_session_ends_with_2_and_starts_nothing(bare, arguments):
    ran = await bare.run(*arguments)
    assert (ran.code, ran.out, "CLAUDE_SESSION_MANAGER_ID" in ran.err) == (2, "", True)
    assert not (bare.root / "state").exists()


NEED_A_SERVER = [
    ("list",),
    ("new", "--detach"),
    ("output", "a"),
    ("tail", "a"),
    ("rename", "a", "b"),
    ("kill", "a"),
    ("restore", "a"),
    ("restore", "--all"),
    ("rm", "a"),
    ("prune", "--yes"),
    ("context", "a"),
    ("handoff", "--status", "--session", "a"),
]


@pytest.mark.parametrize("arguments", NEED_A_SERVER, ids=lambda arguments: arguments[0])
async def test_no_start_refuses_with_2_and_starts_nothing(bare, arguments):
    ran = await bare.run(*arguments, "--no-start")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "Error: Session manager unavailable\nhint: sm server start\n"
    assert (await bare.run(*arguments, "--no-start", "--json")).error["code"] == "unavailable"
    assert not (bare.root / "state").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("output", "x"),
        ("tail", "x"),
        ("rename", "x", "y"),
        ("kill", "x"),
        ("restore", "x"),
        ("rm", "x"),
        ("context", "x"),
    ],
    ids=lambda arguments: arguments[0],
)
async def test_an_unknown_session_is_refused_in_words_and_as_json(desk, arguments):
    ran = await desk.run(*arguments)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "Error: Session x not found\nhint: sm list shows the sessions\n"
    refused = await desk.run(*arguments, "--json")
    assert (refused.code, refused.err, refused.error["code"]) == (1, "", "not_found")


async def test_a_session_is_renamed_killed_and_restored_without_a_question(desk, session):
    assert (await desk.run("rename", "a", "b c")).err == "renamed to b c\n"
    assert (await desk.run("kill", "b c")).err == f"ended b c ({session})\n"
    error = (await desk.run("kill", "b c", "--json")).error
    assert (error["code"], error["hint"]) == ("ended", f"sm restore {session} brings it back")
    ran = await desk.run("restore", "b c", "--attach")
    assert (ran.code, ran.err.splitlines()[0]) == (1, "Error: sm restore --attach needs a terminal")
    assert (await desk.run("restore", "b c", "--json")).data["id"] == session


async def test_each_session_that_a_kill_ended_is_named_and_no_other(desk, session):
    child = await desk.api.new("kid", parent=session)
    other = await desk.api.new("other", parent=session)
    assert (await desk.run("kill", "a")).err == f"ended a ({session})\n"
    ran = await desk.run("kill", "a", "--children")
    assert sorted(ran.err.splitlines()) == [f"ended kid ({child})", f"ended other ({other})"]


CRASH = {"detail": "the client has ended (exit code 1)", "status": "crashed", "foreground": False, "lost_at": None}


@pytest.mark.parametrize(
    ("sessions", "told"),
    [
        ([{}], ["web: the client has ended (exit code 1) (sm output web; sm restore web)"]),
        ([{"foreground": True}], ["web: the client has ended (exit code 1) (sm restore web)"]),
        ([{"adopted": True}], ["web: the client has ended (exit code 1)"]),
        (
            [{}, {"id": "2", "foreground": True}],
            [
                "web (1): the client has ended (exit code 1) (sm output 1; sm restore 1)",
                "web (2): the client has ended (exit code 1) (sm restore 2)",
            ],
        ),
        ([{"status": "exited", "detail": "the client has ended (exit code 0)"}], []),
        ([{"status": "exited", "detail": "killed"}], []),
        ([{"status": "exited", "detail": "killed by boss"}], ["web: killed by boss"]),
        (
            [{"status": "exited", "detail": "pane lost (tmux stopped or machine rebooted)", "lost_at": 1.0}],
            ["web: pane lost (tmux stopped or machine rebooted) (sm restore web)"],
        ),
    ],
)
def test_what_is_behind_a_status_is_told_of_the_right_session(sessions, told):
    assert notes([{"id": "1", "name": "web", "adopted": False, **CRASH, **session} for session in sessions]) == told


async def test_output_prints_the_end_of_the_pane(desk, session):
    assert (await desk.run("output", "a", "--lines", "2")).out == "second\nthird\n"
    assert (await desk.run("output", "a", "--json")).data == {"text": "first\nsecond\nthird"}
    assert (await desk.run("output", "a", "--lines", "0")).code == 2


async def test_tail_prints_what_happened(desk, session):
    assert (await desk.run("tail", "a")).out.split(maxsplit=1)[1] == "started    the client\n"
    assert "SessionLaunched" in (await desk.run("tail", "a", "--all")).out
    data = (await desk.run("tail", "a", "--json", "--lines", "5")).data
    assert [event["kind"] for event in data["events"]] == ["SessionLaunched"]


async def test_context_is_unknown_until_something_was_read(desk, session):
    assert (await desk.run("context", "a")).out == "unknown\n"
    assert (await desk.run("context", session=session)).out == "unknown\n"
    assert (await desk.run("context", "a", "--rearm", "--json")).data["tokens"] is None


async def test_new_prints_the_id_where_there_is_no_terminal(desk):
    ran = await desk.run("new", str(desk.root / "work"), "--client", "sh", "--name", "n", "--", "-x")
    (view,) = (await desk.api.call("GET", "/sessions"))[1]
    assert (ran.code, ran.out, ran.err) == (0, f"{view['id']}\n", f"started n ({view['id']})\n")
    assert (await desk.run("new", "work", "--client", "sh", "--json")).data["name"] == "work"


async def test_new_is_refused_inside_a_session(desk, session):
    ran = await desk.run("new", session=session)
    assert (ran.code, ran.err) == (1, "Error: sm new cannot be used inside a session\nhint: sm spawn starts a child\n")


@pytest.mark.parametrize(
    ("config", "hint"),
    [("x = 1", "sm config show"), ("[handoff]\nexpiry_hours = 'x'", "accepted: "), ("[", "a line reads")],
)
async def test_new_is_refused_while_the_configuration_is_broken(desk, config, hint):
    (desk.root / "config.toml").write_text(config)
    ran = await desk.run("new", "--client", "sh")
    assert (ran.code, hint in ran.err) == (1, True)
    assert (await desk.api.call("GET", "/sessions"))[1] == []


async def test_a_variable_that_is_not_utf8_is_left_out_and_said(desk):
    ran = await desk.run("new", "--client", "sh", env={"BAD": b"\xff"})
    assert (ran.code, "not UTF-8: BAD" in ran.err) == (0, True)


async def test_attach_waiting_shows_the_one_that_has_waited_longest(desk, session):
    assert "no session waits for you" in await shown(desk, "attach", "--waiting")
    for name, seen in (("new", 20.0), ("old", 10.0)):
        await desk.api.alter(await desk.api.new(name), status=Status.WAITING, last_activity=seen)
    await desk.api.alter(session, status=Status.BLOCKED, last_activity=5.0)
    assert "attaching to old; detach with Ctrl-b d" in await shown(desk, "attach", "--waiting")
    assert (await desk.run("attach")).code == (await desk.run("attach", "a", "--waiting")).code == 2


async def test_attach_needs_a_terminal(desk, session):
    ran = await desk.run("attach", "a")
    assert (ran.code, ran.err.startswith("Error: sm attach needs a terminal\nhint: ")) == (1, True)


@pytest.mark.parametrize(("tmux", "keys"), [({}, "Ctrl-b d"), ({"TMUX": "/tmp/x,1,0"}, "Ctrl-b Ctrl-b d")])
async def test_attach_tells_the_keys_that_detach(desk, session, tmux, keys):
    assert f"detach with {keys}" in await shown(desk, "attach", "a", **tmux)


async def test_only_the_sessions_token_is_used_inside_one(desk, session):
    ran = await desk.run("list", "--json", session=session, env={"SM_SESSION_TOKEN": "stolen"})
    assert (ran.code, ran.error["code"]) == (1, "unauthorized")


@pytest.mark.parametrize("verb", ["run", "start", "stop", "restart"])
async def test_a_session_may_not_touch_the_server(desk, session, verb):
    ran = await desk.run("server", verb, session=session)
    assert (ran.code, ran.err.splitlines()[0]) == (1, f"Error: A session may not {verb} the server")


async def test_a_reader_that_has_gone_is_no_traceback(desk, session):
    read, write = os.pipe()
    os.close(read)
    process = await desk.start("list", stdout=write)
    os.close(write)
    _, err = await process.communicate()
    assert (process.returncode, err) == (1, b"")


@pytest.mark.parametrize("arguments", [("list",), ("list", "--json"), ("--help",), ("config", "show")])
async def test_a_full_disk_under_stdout_is_said(desk, session, arguments):
    full = os.open("/dev/full", os.O_WRONLY)
    process = await desk.start(*arguments, stdout=full)
    os.close(full)
    _, err = await process.communicate()
    assert (process.returncode, err) == (1, b"Error: No space left on device\n")


async def test_a_closed_stdout_is_said_and_a_closed_stderr_is_not(desk, session):
    shell = ("/bin/sh", "-c", 'exec "$@" >&-', "sh")
    ran = await desk.run("list", command=(*shell, *_sm()))
    assert (ran.code, ran.err) == (1, "Error: standard output is closed\n")
    shell = ("/bin/sh", "-c", 'exec "$@" 2>&-', "sh")
    assert (await desk.run("kill", "a", command=(*shell, *_sm()))).code == 0


def _sm():
    from tests.cli.rig import SM

    return SM


async def test_ctrl_c_ends_with_130_and_no_words(desk, session):
    process = await desk.start("tail", "a", "-f")
    assert b"started" in await asyncio.wait_for(process.stdout.readline(), 10)
    process.send_signal(2)
    _, err = await process.communicate()
    assert (process.returncode, err.strip()) == (INTERRUPTED, b"")


async def test_following_prints_one_object_per_line_as_it_happens(desk, session):
    process = await desk.start("tail", "a", "-f", "--json")
    seen = [json.loads(await asyncio.wait_for(process.stdout.readline(), 10))]
    while not desk.api.feed.listeners:
        await asyncio.sleep(0.01)
    await desk.api.call("PATCH", "/sessions/a", body={"name": "b"})
    seen.append(json.loads(await asyncio.wait_for(process.stdout.readline(), 10)))
    process.terminate()
    await process.wait()
    assert [line["schema"] for line in seen] == [1, 1]
    assert [line["data"]["kind"] for line in seen] == ["SessionLaunched", "SessionRenamed"]


async def test_something_else_on_the_servers_port_is_no_server(desk, session):
    async def other(reader, writer):
        await reader.readline()
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n<html>")
        writer.close()

    server = await asyncio.start_server(other, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    ran = await desk.run("status", session=session, env={"SM_URL": url})
    server.close()
    words = f"Error: Something else answers at {url}\nhint: ask the user who runs sm: sm doctor\n"
    assert (ran.code, ran.err) == (2, words)


async def test_what_a_projects_file_sets_is_said_when_a_session_begins_there(desk):
    """C42: it may have come with a clone, and may switch off the warnings."""
    (desk.root / ".sm").mkdir()
    lines = '[context_monitor]\nenabled = false\n[handoff]\ninstructions = "Run \\u001b[31m"\n'
    (desk.root / ".sm/config.toml").write_text(lines)
    ran = await desk.run("new", "--detach", "--client", "sh")
    assert "set by this project's .sm/config.toml: context_monitor.enabled = false\n" in ran.err
    assert "set by this project's .sm/config.toml: handoff.instructions = " in ran.err
    assert "\x1b" not in ran.err


async def test_a_session_has_its_directory_as_the_file_system_knows_it(desk):
    """C34"""
    (desk.root / "web").mkdir()
    (desk.root / "api").mkdir()
    (desk.root / "link").symlink_to("web")
    for number, place in enumerate(("api/../web", "link")):
        ran = await desk.run("new", place, "--name", f"n{number}", "--detach", "--client", "sh", "--json")
        assert ran.data["dir"] == str(desk.root / "web")
