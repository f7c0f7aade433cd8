"""The list: what it shows at each width, that it is live, and what it says of a server that is gone."""

import socket

from sm.core import events as ev
from sm.fleet import title
from sm.plain_marks import in_cells
from sm.tui.look import PlainMarks
from tests.tui.rig import watching


async def two(api):
    await api.new("beta", parent=await api.new("alpha"))


async def put(api, session, kind, **members):
    conversation = api.engine.sessions.actors[session].session.conversation
    await api.engine.sessions.actors[session].ask(
        kind(at=api.clock.now(), conversation=conversation.id if conversation else "", **members)
    )


async def test_a_child_is_below_its_parent_and_the_title_counts_what_the_rows_show(tmp_path, width):
    async with watching(tmp_path, width, before=two) as seen:
        lines = seen.text().split("\n")
        assert [line.split()[:2] for line in lines[2:4]] == [["alpha", "◌"], ["└", "beta"]]
        assert lines[0].strip() == title(seen.app.main.rows) == "2 work"
        assert seen.app.title == "sm: 2 work"


async def test_a_change_is_shown_without_a_key(tmp_path, width):
    async with watching(tmp_path, width, before=two) as seen:
        session = seen.app.main.rows[0].id
        await put(seen.api, session, ev.PermissionAsked, tool="Bash")
        await seen.until("? waiting")
        await seen.until(lambda: seen.app.title == "sm: 1 needs you · 1 works")
        await seen.until("asks for permission: Bash")
        await seen.api.new("gamma")
        await seen.until("gamma")


async def test_the_cursor_stays_on_its_session_wherever_that_is(tmp_path):
    async with watching(tmp_path, before=two) as seen:
        other = await seen.api.new("gamma")
        await seen.until("gamma")
        await seen.press("end")
        assert seen.app.chosen.name == "gamma"
        await put(seen.api, other, ev.PermissionAsked, tool="Bash")
        await seen.until(lambda: seen.app.main.rows[0].id == other)
        assert seen.app.chosen.name == "gamma"


async def test_a_cursor_that_nobody_has_moved_is_on_who_needs_the_user_most(tmp_path):
    async with watching(tmp_path, before=two) as seen:
        other = await seen.api.new("gamma")
        await seen.until("gamma")
        assert seen.app.chosen.name == "alpha"
        await put(seen.api, other, ev.PermissionAsked, tool="Bash")
        await seen.until(lambda: seen.app.main.rows[0].id == other)
        assert seen.app.chosen.name == "gamma"


async def test_a_session_that_is_removed_leaves_the_list(tmp_path):
    async with watching(tmp_path, before=two) as seen:
        other = await seen.api.new("gamma")
        await seen.until("gamma")
        await seen.api.call("DELETE", f"/sessions/{other}")
        await seen.api.call("POST", f"/sessions/{other}/remove", body={})
        await seen.gone("gamma")


async def test_ages_count_on_in_steps_while_nothing_happens(tmp_path):
    async with watching(tmp_path, 200, before=two) as seen:
        await put(seen.api, seen.app.main.rows[0].id, ev.PromptSubmitted, text="go")
        await seen.until("working <10 s")
        seen.api.clock.advance(25)
        await seen.until("working 20 s")
        seen.api.clock.advance(40)
        await seen.until("working 1 min")


async def test_a_server_that_is_gone_is_said_over_the_last_picture_until_one_is_back(tmp_path, width):
    async with watching(tmp_path, width, before=two) as seen:
        await seen.stop_server()
        await seen.until("no server since 0 s: last picture 0 s old")
        seen.api.clock.advance(12)
        await seen.until("no server since 12 s: last picture 12 s old")
        assert "alpha" in seen.text()
        await seen.press("down", "question_mark")
        assert "Keys" in seen.text()
        await seen.press("escape")
        await seen.api.new("gamma")
        await seen.start_server()
        await seen.until("gamma")
        assert "no server" not in seen.text()


async def test_a_server_that_takes_requests_and_answers_none_is_no_server(tmp_path, monkeypatch):
    monkeypatch.setattr("sm.tui.server.follower.IDLE_INTERVAL_S", 0.2)
    async with watching(tmp_path, before=two) as seen:
        await seen.stop_server()
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            seen.port = silent.getsockname()[1]
            await seen.until("the server does not answer since")
            assert "alpha" in seen.text()


async def test_plain_marks_are_where_the_others_were(tmp_path, width):
    async with watching(tmp_path, width, before=two) as seen:
        marked = seen.text()
        seen.app._own_filters = (PlainMarks(),)
        seen.app.refresh_css()
        await seen.until(lambda: seen.text() != marked)
        plain = seen.text()
        assert plain == "\n".join(in_cells(line) for line in marked.split("\n"))
        assert "+ starting" in plain


async def test_q_leaves(tmp_path, width):
    async with watching(tmp_path, width) as seen:
        assert "no session yet" in seen.text()
        await seen.press("q")
        await seen.until(lambda: not seen.app.is_running)


async def test_without_a_server_a_dialog_says_so_and_keeps_what_was_typed(tmp_path, width):
    async with watching(tmp_path, width, before=two) as seen:
        await seen.stop_server()
        await seen.until("no server since")
        await seen.press("m")
        await seen.type("hello")
        await seen.press("enter")
        await seen.until("Session manager unavailable")
        assert "hello" in seen.text()
        await seen.start_server()
        await seen.until(lambda: seen.app.lost is None)
        await seen.press("enter")
        await seen.until("queued: message")
