"""What clients ask, through the API: who may answer, who is first, and how each ask ends."""

import asyncio
import contextlib
import json
import os
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from sm.core import events as ev
from sm.core.model.ask import AskKind, AskRequest, Decision
from sm.core.model.session import DIALOG_DELAY_S
from sm.core.ports.panes import Terminal
from sm.engine.unseen_asks import IN_THE_TERMINAL

PID = {"X-SM-Client-Pid": str(os.getpid())}
RULE = {"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "allow", "destination": "session"}
SECRET = "ghp_" + "a1B2" * 9
ALLOW, DENY = {"decision": "allow"}, {"decision": "deny", "text": "no: use make"}
ALLOWED = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}


def payload(api, session, **members):
    own = {"session_id": api.conversation(session), "tool_name": "Bash", "tool_input": {"command": "make"}}
    return api.hook("PermissionRequest", **{**own, **members})


@contextlib.asynccontextmanager
async def asking(api, session, token=None, **members):
    """A client whose hook waits: `ask` as the user sees it, and `hook`, the request under way."""
    before = {ask["id"] for ask in await open_asks(api)}
    body = payload(api, session, **members)
    async with asyncio.TaskGroup() as group:
        hook = group.create_task(api.call("POST", "/hooks/claude", token or api.tokens[session], body, **PID))
        while not (new := [ask for ask in await open_asks(api) if ask["id"] not in before]):
            await asyncio.sleep(0.005)
        try:
            yield SimpleNamespace(ask=new[0], id=new[0]["id"], hook=hook)
        finally:
            hook.cancel()


async def open_asks(api):
    return [ask for ask in (await api.call("GET", "/asks"))[1] if ask["state"] == "open"]


async def kinds(api, session):
    events = (await api.call("GET", f"/sessions/{session}/events"))[1]["events"]
    return [event["kind"] for event in events if event["kind"].startswith("Ask")]


async def put(api, session, event):
    await api.engine.sessions.actors[session].ask(event)


@pytest.fixture
async def session(api):
    return await api.new("me")


async def test_the_users_answer_is_the_hooks_reply(api, session):
    async with asking(api, session, permission_suggestions=[RULE]) as client:
        assert client.ask["input"] == {"command": "make"}
        assert client.ask["always"] == ["uses Bash without asking, in this session"]
        status, view = await api.call("POST", f"/asks/{client.id}", body=ALLOW)
        assert (status, view["state"], view["decision"], view["by"]) == (200, "answered", "allow", "")
        assert await client.hook == (200, ALLOWED)
    assert await open_asks(api) == []
    assert await kinds(api, session) == ["AskOpened", "AskAnswered"]


async def test_a_beginning_of_an_id_that_no_other_has_names_an_ask(api, session):
    async with asking(api, session) as client:
        assert (await api.call("GET", f"/asks/{client.id[:5]}"))[1]["id"] == client.id
        assert (await api.call("GET", f"/asks/{client.id[:4].upper()}"))[1]["id"] == client.id
        _, short = await api.call("GET", f"/asks/{client.id[:3]}")
        assert "the beginning of an id needs 4 characters" in short["hint"]
        for unknown in ("%25", "_", "x", client.id + "0", client.id[:3]):
            assert (await api.call("GET", f"/asks/{unknown}"))[0] == 404


async def test_always_gives_back_what_the_client_offered(api, session):
    async with asking(api, session, permission_suggestions=[RULE]) as client:
        await api.call("POST", f"/asks/{client.id}", body={**ALLOW, "always": True})
        _, reply = await client.hook
        assert reply["hookSpecificOutput"]["decision"] == {"behavior": "allow", "updatedPermissions": [RULE]}


async def test_of_two_answers_at_once_the_first_counts_and_the_other_is_late(api, session):
    async with asking(api, session) as client:
        both = await asyncio.gather(*(api.call("POST", f"/asks/{client.id}", body=body) for body in (DENY, ALLOW)))
        assert sorted(status for status, _ in both) == [200, 409]
        late = next(answer for status, answer in both if status == 409)
        assert late["code"] == "ask_over"
        [won] = [answer for status, answer in both if status == 200]
        assert (await client.hook)[1]["hookSpecificOutput"]["decision"]["behavior"] == won["decision"]
    assert (await api.call("POST", f"/asks/{client.id}", body=ALLOW))[1]["code"] == "ask_over"


async def test_an_answer_that_does_not_fit_leaves_the_ask_open(api, session):
    async with asking(api, session) as client:
        for body in ({"decision": "answer", "answers": ["x"]}, {**ALLOW, "always": True}, {"decision": "maybe"}):
            assert (await api.call("POST", f"/asks/{client.id}", body=body))[0] == 400
        assert [ask["id"] for ask in await open_asks(api)] == [client.id]


async def test_a_session_names_its_only_open_ask_to_be_shown_and_not_to_be_answered(api, session):
    async with asking(api, session) as first:
        for named in ("me", session):
            assert (await api.call("GET", f"/asks/{named}"))[1]["id"] == first.id
            status, refused = await api.call("POST", f"/asks/{named}", body=ALLOW)
            assert (status, f"needs the id of what it asks: {first.id} (Bash)" in refused["error"]) == (400, True)
        assert [ask["id"] for ask in await open_asks(api)] == [first.id]
        async with asking(api, session, tool_input={"command": "ls"}) as second:
            _, refused = await api.call("POST", "/asks/me", body=ALLOW)
            assert (refused["code"], first.id in refused["error"], second.id in refused["error"]) == (
                "ambiguous",
                True,
                True,
            )
    other = await api.new("other")
    assert (await api.call("POST", f"/asks/{other}", body=ALLOW))[1]["error"] == "Session other has no open ask"


async def test_a_session_that_is_called_like_the_beginning_of_an_asks_id_has_nothing_approved(api, session):
    """The hostile agent: it chooses its child's name, and hopes that its user shortens the id of another ask to it."""
    async with asking(api, session) as wanted:
        child = await api.new(wanted.id[:5])
        async with asking(api, child, tool_input={"command": "rm -rf /"}) as hostile:
            assert (await api.call("POST", f"/asks/{wanted.id[:5]}", body=ALLOW))[1]["code"] == "ambiguous"
            assert {ask["id"] for ask in await open_asks(api)} == {wanted.id, hostile.id}


async def test_an_answer_waits_for_a_client_that_asks_again_after_a_restart(api, session, monkeypatch):
    async with asking(api, session) as client:
        await put(api, session, ev.ServerStarted(at=1e10))
        assert await client.hook == (200, {})
        answer = asyncio.create_task(api.call("POST", f"/asks/{client.id}", body=ALLOW))
        await asyncio.sleep(0.2)
        assert not answer.done()
        actor = api.engine.sessions.actors[session]
        request = AskRequest(AskKind.PERMISSION, "Bash", '{"command": "make"}')
        again = asyncio.create_task(api.engine.asks.hold_exchange(actor, client.id, request, 5.0))
        assert (await answer)[1]["state"] == "answered"
        assert (await again).answer.decision is Decision.ALLOW
        monkeypatch.setattr("sm.api.asks.ASKED_AGAIN_S", 0.05)
    async with asking(api, session) as client:
        await put(api, session, ev.ServerStarted(at=1e10))
        _, late = await api.call("POST", f"/asks/{client.id}", body=ALLOW)
        assert (late["code"], late["hint"]) == (
            "ask_over",
            "try again in a moment, or answer it in its dialog: sm attach me",
        )


# --- who may ------------------------------------------------------------------------------------------------------


async def refused_to(api, token, ask):
    answers = [
        await api.call("GET", "/asks", token),
        await api.call("GET", f"/asks/{ask}", token),
        await api.call("POST", f"/asks/{ask}", token, ALLOW),
    ]
    return {(status, answer["code"]) for status, answer in answers}


async def test_no_sessions_token_answers_its_own_its_childs_its_parents_or_anothers(api):
    """The hostile agent: it has a token, and would like to allow what its client asks its user."""
    boss, other = await api.new("boss"), await api.new("other")
    me = await api.new("me", parent=boss)
    child = await api.new("child", parent=me)
    async with asking(api, me) as client:
        for session in (me, boss, child, other):
            assert await refused_to(api, api.tokens[session], client.id) == {(403, "forbidden")}
        assert [ask["id"] for ask in await open_asks(api)] == [client.id]


async def test_a_parent_that_the_user_lets_answer_its_child_answers_no_other_and_never_for_always(api, tmp_path):
    (tmp_path / "config.toml").write_text("[asks]\nparents = true\n")
    boss, other = await api.new("boss"), await api.new("other")
    me = await api.new("me", parent=boss)
    child = await api.new("child", parent=me)
    async with asking(api, me, permission_suggestions=[RULE]) as client, asking(api, other) as foreign:
        for session in (me, child, other):
            token = api.tokens[session]
            assert (await api.call("POST", f"/asks/{client.id}", token, ALLOW))[1]["code"] == "forbidden"
        token = api.tokens[boss]
        assert [ask["id"] for ask in (await api.call("GET", "/asks", token))[1]] == [client.id]
        assert (await api.call("POST", f"/asks/{foreign.id}", token, ALLOW))[1]["code"] == "forbidden"
        for_always = await api.call("POST", f"/asks/{client.id}", token, {**ALLOW, "always": True})
        assert for_always[1]["code"] == "forbidden"
        status, view = await api.call("POST", f"/asks/{client.id}", token, DENY)
        assert (status, view["by"], view["answer"]) == (200, boss, "no: use make")


async def test_a_project_cannot_let_parents_answer(api, tmp_path):
    boss = await api.new("boss")
    me = await api.new("me", parent=boss)
    (tmp_path / ".sm").mkdir()
    (tmp_path / ".sm" / "config.toml").write_text("[asks]\nparents = true\n")
    async with asking(api, me) as client:
        assert await refused_to(api, api.tokens[boss], client.id) == {(403, "forbidden")}


async def test_an_agent_that_forges_an_ask_answers_no_real_one(api, session):
    """Its token may post hooks: the answer to a hook goes to whoever posted that one."""
    async with asking(api, session) as real, asking(api, session, tool_input={"command": "rm -rf /"}) as forged:
        assert forged.id != real.id
        assert (await api.call("POST", f"/asks/{forged.id}", body=ALLOW))[0] == 200
        assert await forged.hook == (200, ALLOWED)
        assert not real.hook.done()
        assert [ask["id"] for ask in await open_asks(api)] == [real.id]


async def test_an_ask_of_another_clients_conversation_is_not_opened(api, session):
    foreign = payload(api, session, session_id="another")
    assert await api.call("POST", "/hooks/claude", api.tokens[session], foreign, **PID) == (200, {})
    assert await open_asks(api) == []


# --- how an ask ends ----------------------------------------------------------------------------------------------


async def ended(api, ask):
    while (view := (await api.call("GET", f"/asks/{ask}"))[1])["state"] == "open":
        await asyncio.sleep(0.01)
    return view["state"], view["reason"]


async def test_a_hook_that_lets_go_of_a_dialog_that_is_gone_withdraws_it(api, session):
    async with asking(api, session) as client:
        client.hook.cancel()
        assert await ended(api, client.id) == ("withdrawn", "answered or left in its terminal")
        late = await api.call("POST", f"/asks/{client.id}", body=ALLOW)
        assert (late[0], late[1]["code"]) == (409, "ask_over")


async def test_a_hook_that_runs_out_while_the_dialog_is_open_expires_it(api, session, monkeypatch):
    waits = replace_state(api, monkeypatch, ev.Activity.WAITING)
    async with asking(api, session) as client:
        client.hook.cancel()
        state, _ = await ended(api, client.id)
        assert (state, waits.called) == ("expired", True)
        _, late = await api.call("POST", f"/asks/{client.id}", body=ALLOW)
        assert (late["code"], "sm attach me" in late["hint"]) == ("ask_over", True)


def replace_state(api, monkeypatch, activity, since=0.0):
    """The client's own file says this."""
    from sm.core.ports.provider import ClientState

    seen = SimpleNamespace(called=False)

    def client_state(*_):
        seen.called = True
        return ClientState(activity, "", "c", since)

    monkeypatch.setattr(type(api.engine.ports.providers["claude"]), "client_state", client_state)
    return seen


async def test_an_answer_after_the_one_in_the_terminal_is_late_though_nothing_has_told_yet(api, session, monkeypatch):
    async with asking(api, session) as client:
        replace_state(api, monkeypatch, ev.Activity.BUSY)
        api.clock.time += DIALOG_DELAY_S
        late = await api.call("POST", f"/asks/{client.id}", body=ALLOW)
        assert (late[0], late[1]["code"]) == (409, "ask_over")
        assert await client.hook == (200, {})
        assert (await ended(api, client.id))[0] == "withdrawn"


@pytest.mark.parametrize(
    ("event", "state", "reason"),
    [
        (ev.SessionKilled(at=1e10), "withdrawn", "the session was killed"),
        (ev.ClientExited(at=1e10, signal=9), "withdrawn", "the client has ended"),
        (ev.ServerStarted(at=1e10), "expired", "the server was restarted"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_the_hook_is_let_go_of_as_soon_as_its_ask_is_over(api, session, event, state, reason):
    async with asking(api, session) as client:
        await put(api, session, event)
        assert await client.hook == (200, {})
        assert await ended(api, client.id) == (state, reason)
        while len(told := await kinds(api, session)) < 2:
            await asyncio.sleep(0.01)
        assert told == ["AskOpened", "AskExpired" if state == "expired" else "AskWithdrawn"]


async def test_what_a_subagent_asks_is_let_go_of_once_a_terminal_shows_its_client(api, session, monkeypatch):
    monkeypatch.setattr("sm.engine.unseen_asks.LOOK_S", 0.01)
    async with asking(api, session, agent_id="sub1") as client:
        await asyncio.sleep(0.1)
        assert not client.hook.done()
        api.engine.asks.unseen.panes.shown = [Terminal("another", "/dev/pts/1", 0.0)]
        await asyncio.sleep(0.1)
        assert not client.hook.done()
        api.engine.asks.unseen.panes.shown.append(Terminal(session, "/dev/pts/2", 0.0))
        assert await client.hook == (200, {})
        after = (await api.call("GET", f"/asks/{client.id}"))[1]
        assert (after["state"], after["reason"]) == ("expired", IN_THE_TERMINAL)


async def test_what_the_main_agent_asks_is_held_beside_its_dialog_where_a_terminal_shows_it(api, session, monkeypatch):
    monkeypatch.setattr("sm.engine.unseen_asks.LOOK_S", 0.01)
    api.engine.asks.unseen.panes.shown = [Terminal(session, "/dev/pts/2", 0.0)]
    async with asking(api, session) as client:
        await asyncio.sleep(0.1)
        assert not client.hook.done()


async def test_a_server_that_stops_answers_the_hooks_that_wait(api, session):
    async with asking(api, session) as client:
        api.engine.asks.release()
        assert await client.hook == (200, {})


@pytest.fixture
async def plugin(api, session):
    """The exchanges of the plugin in the session's client."""
    actor = api.engine.sessions.actors[session]

    async def exchange(**body):
        peer = ("unix", actor.session.pid)
        given = {"generation": "g1", **body}
        return await api.call("POST", f"/sessions/{session}/link", api.tokens[session], given, peer)

    await exchange()
    return exchange


@contextlib.asynccontextmanager
async def asking_by_plugin(api, session, plugin, number=1, **members):
    body = {"number": number, "hook": json.loads(payload(api, session, **members))}
    before = {ask["id"] for ask in await open_asks(api)}
    async with asyncio.TaskGroup() as group:
        held = group.create_task(plugin(ask=body, hold=20))
        while not (new := [ask for ask in await open_asks(api) if ask["id"] not in before]):
            await asyncio.sleep(0.005)
        try:
            yield SimpleNamespace(id=new[0]["id"], held=held, body=body)
        finally:
            held.cancel()


def result_in(transcript, tool, given, at):
    """The client has written that the call came back."""
    call = {"type": "tool_use", "id": f"t{at}", "name": tool, "input": given}
    lines = [{"content": [call]}, {"content": [{"type": "tool_result", "tool_use_id": f"t{at}", "content": "ok"}]}]
    moment = datetime.fromtimestamp(at, UTC).isoformat()
    with transcript.open("a") as file:
        file.writelines(json.dumps({"message": message, "timestamp": moment}) + "\n" for message in lines)


async def test_a_command_that_ran_is_not_said_to_be_denied_while_the_next_one_is_asked(
    api, session, monkeypatch, tmp_path
):
    transcript = tmp_path / "t.jsonl"
    moved = ev.TranscriptMoved(at=1.0, conversation=api.conversation(session), transcript=str(transcript))
    await put(api, session, moved)
    replace_state(api, monkeypatch, ev.Activity.WAITING)
    other = {"tool_input": {"command": "make test"}, "transcript_path": str(transcript)}
    async with asking(api, session, transcript_path=str(transcript)) as one, asking(api, session, **other) as two:
        result_in(transcript, "Bash", {"command": "make test"}, api.clock.now() - 60)  # an earlier one
        result_in(transcript, "Bash", {"command": "make"}, api.clock.now() + 1)
        late = await api.call("POST", f"/asks/{one.id}", body=DENY)
        assert (late[0], late[1]["code"]) == (409, "ask_over")
        assert await one.hook == (200, {})
        assert await ended(api, one.id) == ("withdrawn", "answered or left in its terminal")
        assert (await api.call("POST", f"/asks/{two.id}", body=DENY))[0] == 200


async def test_an_answer_that_was_lost_on_its_way_is_given_again_and_its_ask_stays_answered(api, session, plugin):
    words = f"never send {SECRET}"
    async with asking_by_plugin(api, session, plugin) as client:
        assert (await api.call("POST", f"/asks/{client.id}", body={**DENY, "text": words}))[0] == 200
        _, first = await client.held
        assert first["reply"]["hookSpecificOutput"]["decision"]["message"] == words
        before = await api.call("GET", f"/asks/{client.id}")
        _, again = await plugin(ask=client.body, hold=5)
        assert again["reply"] == first["reply"]
        api.engine.asks.given.clear()  # as after a restart: the record is what is left
        _, recorded = await plugin(ask=client.body, hold=5)
        told = recorded["reply"]["hookSpecificOutput"]["decision"]
        assert (told["behavior"], SECRET in told["message"], "never send" in told["message"]) == ("deny", False, True)
        assert await api.call("GET", f"/asks/{client.id}") == before
        assert await open_asks(api) == []
    assert await kinds(api, session) == ["AskOpened", "AskAnswered"]


TWO = {
    "questions": [
        {"question": "Which?", "options": [{"label": "a; b"}, {"label": "c"}]},
        {"question": "Why?", "options": [{"label": "x"}]},
    ]
}
ASKED = {"tool_name": "AskUserQuestion", "tool_input": TWO}


async def test_what_was_answered_to_questions_is_given_again_from_the_record_word_for_word(api, session, plugin):
    async with asking_by_plugin(api, session, plugin, **ASKED) as client:
        body = {"decision": "answer", "answers": [1, "because; of that"]}
        assert (await api.call("POST", f"/asks/{client.id}", body=body))[0] == 200
        _, first = await client.held
        api.engine.asks.given.clear()  # as after a restart
        assert (await plugin(ask=client.body, hold=5))[1] == first
        answers = first["reply"]["hookSpecificOutput"]["decision"]["updatedInput"]["answers"]
        assert answers == {"Which?": "a; b", "Why?": "because; of that"}
    assert await kinds(api, session) == ["AskOpened", "AskAnswered"]


async def test_an_answer_with_a_secret_that_was_lost_is_asked_for_again(api, session, plugin):
    body = {"decision": "answer", "answers": [1, f"use {SECRET}"]}
    async with asking_by_plugin(api, session, plugin, **ASKED) as client:
        await api.call("POST", f"/asks/{client.id}", body=body)
        await client.held
        api.engine.asks.given.clear()
        again = asyncio.ensure_future(plugin(ask=client.body, hold=20))
        async with asyncio.timeout(10):
            while not (now := await open_asks(api)):
                await asyncio.sleep(0.005)
        assert [(ask["id"], ask["decision"], ask["answer"]) for ask in now] == [(client.id, None, "")]
        assert "held a secret; answer it again" in now[0]["reason"]
        assert (await api.call("POST", f"/asks/{client.id}", body=body))[0] == 200
        decision = (await again)[1]["reply"]["hookSpecificOutput"]["decision"]
        assert decision["updatedInput"]["answers"]["Why?"] == f"use {SECRET}"
    after = (await api.call("GET", f"/asks/{client.id}"))[1]
    assert (after["state"], after["reason"]) == ("answered", "")
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in api.home.root.glob("sm.db*"))


async def state_of(api, ask, wanted):
    async with asyncio.timeout(10):
        while (view := (await api.call("GET", f"/asks/{ask}"))[1])["state"] != wanted:
            await asyncio.sleep(0.01)
    return view


@pytest.mark.parametrize("server", ["same", "next"])
async def test_an_answer_whose_dialog_stays_open_is_said_to_have_been_lost(api, session, monkeypatch, server):
    """The hook of the settings asks once: what a server that was killed has not sent never comes."""
    looks_soon(monkeypatch)
    async with asking(api, session) as client:
        await api.call("POST", f"/asks/{client.id}", body=ALLOW)
        await client.hook
        if server == "next":
            await asyncio.sleep(0.2)  # this one has no doubt: nothing shows a dialog
        replace_state(api, monkeypatch, ev.Activity.WAITING, since=1.0)
        if server == "next":
            await api.engine.asks.arrival.start()
        view = await state_of(api, client.id, "expired")
        assert (view["reason"], view["decision"]) == ("the answer did not reach the client", None)
        _, late = await api.call("POST", f"/asks/{client.id}", body=DENY)
        assert (late["code"], "sm attach me" in late["hint"]) == ("ask_over", True)
    assert await kinds(api, session) == ["AskOpened", "AskAnswered", "AskOpened", "AskExpired"]


def looks_soon(monkeypatch):
    monkeypatch.setattr("sm.engine.asks.HOOK_GONE_S", 0.0)
    monkeypatch.setattr("sm.engine.answer_arrival.ARRIVAL_S", 0.05)


async def test_an_answer_for_which_the_plugin_may_ask_again_is_not_said_to_be_lost(api, session, plugin, monkeypatch):
    looks_soon(monkeypatch)
    monkeypatch.setattr("sm.engine.asks.PLUGIN_GONE_S", 0.0)
    waits = replace_state(api, monkeypatch, ev.Activity.WAITING, since=1.0)
    async with asking_by_plugin(api, session, plugin) as client:
        await api.call("POST", f"/asks/{client.id}", body=ALLOW)
        await client.held
        for _ in range(3):
            waits.called = False
            async with asyncio.timeout(10):
                while not waits.called:
                    await asyncio.sleep(0.01)
        assert (await api.call("GET", f"/asks/{client.id}"))[1]["state"] == "answered"
        api.engine.sessions.actors[session].link.client_started()  # it has not asked
        await state_of(api, client.id, "expired")


async def test_a_dialog_that_opened_after_the_answer_or_is_of_another_ask_says_nothing_of_it(api, session, monkeypatch):
    looks_soon(monkeypatch)
    waits = replace_state(api, monkeypatch, ev.Activity.WAITING, since=1e12)
    async with asking(api, session) as one:
        await api.call("POST", f"/asks/{one.id}", body=ALLOW)
        await one.hook
        waits.called = False
        async with asyncio.timeout(10):
            while not waits.called:
                await asyncio.sleep(0.01)
    replace_state(api, monkeypatch, ev.Activity.WAITING, since=1.0)
    async with asking(api, session) as two, asking(api, session) as three:
        await api.call("POST", f"/asks/{two.id}", body=ALLOW)
        await two.hook
        await asyncio.sleep(0.3)
        assert [(await api.call("GET", f"/asks/{ask}"))[1]["state"] for ask in (one.id, two.id)] == ["answered"] * 2
        await api.call("POST", f"/asks/{three.id}", body=ALLOW)
        await three.hook
        await state_of(api, two.id, "expired")


async def test_an_ask_that_is_over_is_not_opened_again_by_its_number(api, session, plugin):
    async with asking_by_plugin(api, session, plugin) as client:
        await put(api, session, ev.AskWithdrawn(at=1e10, ask=client.id, reason="gone"))
        await ended(api, client.id)
        assert (await plugin(ask=client.body, hold=5))[1] == {"orders": [], "over": True}
        assert await kinds(api, session) == ["AskOpened", "AskWithdrawn"]


async def test_an_answer_that_is_on_disk_reaches_the_hook_whatever_fails_afterwards(api, session, monkeypatch):
    store, read = type(api.engine.asks.store), type(api.engine.asks.store).ask
    reads = []

    async def fails_after_the_route(self, identity):
        reads.append(identity)
        if len(reads) > 1:
            raise OSError("disk")
        return await read(self, identity)

    async with asking(api, session) as client:
        monkeypatch.setattr(store, "ask", fails_after_the_route)
        assert (await api.call("POST", f"/asks/{client.id}", body=ALLOW))[0] == 500
        assert await asyncio.wait_for(client.hook, 5) == (200, ALLOWED)
        monkeypatch.undo()
    assert (await api.call("GET", f"/asks/{client.id}"))[1]["state"] == "answered"


async def test_a_session_has_so_many_open_asks_and_its_client_asks_any_other_by_itself(api, session, monkeypatch):
    monkeypatch.setattr("sm.engine.asks.MAX_OPEN", 2)
    other = await api.new("other")
    async with asking(api, session) as one, asking(api, session) as two:
        assert await api.call("POST", "/hooks/claude", api.tokens[session], payload(api, session), **PID) == (200, {})
        assert {ask["id"] for ask in await open_asks(api)} == {one.id, two.id}
        async with asking(api, other), contextlib.AsyncExitStack() as more:
            await api.call("POST", f"/asks/{one.id}", body=ALLOW)
            await one.hook
            assert (await more.enter_async_context(asking(api, session))).id


async def test_the_words_of_an_answer_are_held_to_what_a_message_may_have(api, session):
    question = {"questions": [{"question": "Q?", "options": [{"label": "a"}]}]}
    huge = "x" * (api.engine.ports.policies.limits().message_bytes + 1)
    async with asking(api, session) as client:
        status, refused = await api.call("POST", f"/asks/{client.id}", body={**DENY, "text": huge})
        assert (status, refused["code"], "limits.message_bytes" in refused["error"]) == (413, "too_large", True)
        assert (await api.call("POST", f"/asks/{client.id}", body={**DENY, "text": huge[1:]}))[0] == 200
    async with asking(api, session, tool_name="AskUserQuestion", tool_input=question) as client:
        body = {"decision": "answer", "answers": [huge]}
        assert (await api.call("POST", f"/asks/{client.id}", body=body))[1]["code"] == "too_large"
        assert [ask["id"] for ask in await open_asks(api)] == [client.id]


@pytest.mark.parametrize("name", [SECRET + "\n\x1b[2J", "T" * 1_000_000], ids=["secret", "huge"])
async def test_the_name_of_a_tool_is_one_short_line_without_secrets(api, session, name):
    async with asking(api, session, tool_name=name) as client:
        [stored] = await api.engine.ports.store.asks(standing=True)
        for shown in (client.ask["tool"], stored.ask.tool, api.engine.sessions.actors[session].session.asks[0].tool):
            assert (len(shown) <= 200, shown.isprintable(), SECRET in shown) == (True, True, False)


# --- what is kept ---------------------------------------------------------------------------------------------------


async def test_what_the_tool_was_given_is_shown_whole_while_it_can_be_answered_and_kept_without_secrets(api, session):
    """What is hidden could not be judged: the open ask shows what the dialog shows."""
    given = {"command": f"curl -H 'Authorization: {SECRET}' example.org"}
    async with asking(api, session, tool_input=given) as client:
        assert client.ask["input"] == given
        assert SECRET.encode() not in api.home.database.read_bytes()
        await api.call("POST", f"/asks/{client.id}", body={**DENY, "text": f"never send {SECRET}"})
        assert (await client.hook)[1]["hookSpecificOutput"]["decision"]["message"] == f"never send {SECRET}"
    _, after = await api.call("GET", f"/asks/{client.id}")
    assert SECRET not in json.dumps(after)
    assert "curl" in after["input"]["command"]
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in api.home.root.glob("sm.db*"))


async def test_no_event_holds_what_a_tool_was_given_or_what_was_answered(api, session):
    async with asking(api, session, tool_input={"command": "very-special"}) as client:
        await api.call("POST", f"/asks/{client.id}", body={**DENY, "text": "quite-unusual"})
        await client.hook
    events = json.dumps((await api.call("GET", f"/sessions/{session}/events"))[1])
    assert "AskAnswered" in events
    assert "very-special" not in events
    assert "quite-unusual" not in events


async def test_what_is_over_is_listed_on_request(api, session):
    async with asking(api, session) as client:
        await api.call("POST", f"/asks/{client.id}", body=ALLOW)
        await client.hook
    assert (await api.call("GET", "/asks"))[1] == []
    assert [ask["id"] for ask in (await api.call("GET", "/asks?all=1"))[1]] == [client.id]
