"""Children, reports, reminders and waits over HTTP: who may, what is passed on, what is refused."""

import asyncio
import re

import pytest

from sm.core import events as ev
from sm.core.model.message import SendRequest
from sm.core.ports.panes import PaneError
from sm.engine import termination
from tests.api.rig import USER

ENV = {"PATH": "/usr/bin:/bin", "CLAUDECODE": "1", "GIT_EDITOR": "true", "SM_SESSION_TOKEN": "stolen"}


def child(api, **given):
    return {"dir": str(api.home.root.parent), "prompt": "do it", "env": ENV, **given}


async def spawn(api, parent, token=None, **given):
    status, view = await api.call(
        "POST", f"/sessions/{parent}/children", token or api.tokens[parent], child(api, **given)
    )
    if status == 201:
        api.tokens[view["id"]] = api.launched[view["id"]]
    return status, view


async def until(expected):
    async with asyncio.timeout(5):
        while not expected():
            await asyncio.sleep(0.001)


def launched(api, session):
    return api.engine.sessions.launches[session]


async def test_a_child_is_its_parents_and_is_given_its_task_and_watched(api):
    parent = await api.new("boss")
    status, view = await spawn(api, parent)
    assert (status, view["parent"], view["name"]) == (201, parent, "boss-child")
    [task] = api.engine.sessions.actors[view["id"]].session.outbox.queue
    assert re.fullmatch(rf"\[Input from: boss \({parent}\) via sm send\] \(message {task.id}\)\ndo it", task.text)
    [watch] = (await api.call("GET", f"/sessions/{parent}/reminders", api.tokens[parent]))[1]
    assert (watch["kind"], watch["target"]) == ("stop", view["id"])
    assert api.engine.reminders.owned(parent)[0].message == task.id
    _, known = await api.call("GET", f"/sessions/{parent}/children", api.tokens[parent])
    assert [child["id"] for child in known] == [view["id"]]
    shown = (await api.call("GET", f"/sessions/{parent}", api.tokens[parent]))[1]["children"]
    assert [(session["id"], session["name"]) for session in shown] == [(view["id"], "boss-child")]


async def test_a_child_that_need_not_be_watched_is_not_and_one_can_be_tracked(api):
    parent = await api.new("boss")
    await spawn(api, parent, notify=False, track=600)
    kinds = [reminder["kind"] for reminder in (await api.call("GET", f"/sessions/{parent}/reminders"))[1]]
    assert kinds == ["track"]


async def test_a_child_has_its_parents_mode_and_restrictions_and_nothing_else_of_its_arguments(api):
    body = {"dir": str(api.home.root.parent), "name": "boss", "env": ENV, "model": "m"}
    arguments = ["--dangerously-skip-permissions", "--disallowedTools", "Bash(rm:*)", "WebFetch", "--verbose", "hello"]
    _, view = await api.call("POST", "/sessions", body={**body, "arguments": arguments})
    actor = api.engine.sessions.actors[view["id"]]
    mode = ev.PromptSubmitted(at=1.0, conversation=view["conversation"], text="x", mode="plan")
    await actor.ask(mode)
    _, kid = await spawn(api, view["id"], USER)
    expected = ("--disallowedTools", "Bash(rm:*)", "WebFetch", "--permission-mode", "plan")
    assert launched(api, kid["id"]).arguments == expected
    assert launched(api, kid["id"]).model == "m"


@pytest.mark.parametrize("mode", ["", "-p", "x" * 40])
async def test_an_unknown_mode_is_the_one_that_asks(api, mode):
    parent = await api.new("boss")
    actor = api.engine.sessions.actors[parent]
    await actor.ask(ev.PromptSubmitted(at=1.0, conversation=api.conversation(parent), text="x", mode=mode))
    _, kid = await spawn(api, parent)
    assert launched(api, kid["id"]).arguments == ("--permission-mode", "default")


@pytest.mark.parametrize(
    "given",
    [
        {"arguments": ["--dangerously-skip-permissions"]},
        {"command": "/bin/sh"},
        {"mode": "bypassPermissions"},
        {"model": "--dangerously-skip-permissions"},
        {"prompt": " \n"},
        {"dir": "relative"},
        {"track": 1},
        {"name": "a\nb"},
        {"provider": "nobody"},
    ],
)
async def test_what_an_agent_may_not_choose_is_refused_and_starts_nothing(api, given):
    parent = await api.new("boss")
    status, _ = await spawn(api, parent, **given)
    assert status >= 400
    assert len(api.engine.ports.panes.living) == 1


async def test_a_session_spawns_for_nobody_else(api):
    parent, other = await api.new("boss"), await api.new("other")
    assert (await spawn(api, parent, api.tokens[other]))[1]["code"] == "not_self"


async def test_limits_hold_for_many_calls_at_once(api, tmp_path):
    (tmp_path / "config.toml").write_text("[limits]\nchildren = 2\ndepth = 2\n")
    parent = await api.new("boss")
    answers = await asyncio.gather(*(spawn(api, parent, name=f"kid {number}") for number in range(4)))
    assert sorted(status for status, _ in answers) == [201, 201, 409, 409]
    assert {view["code"] for status, view in answers if status == 409} == {"too_many"}
    kid = next(view["id"] for status, view in answers if status == 201)
    _, grandchild = await spawn(api, kid)
    assert (await spawn(api, grandchild["id"]))[1]["code"] == "too_deep"


async def test_only_a_parent_or_a_person_acts_on_a_child(api):
    parent, other = await api.new("boss"), await api.new("other")
    _, kid = await spawn(api, parent)
    _, grandchild = await spawn(api, kid["id"])
    for token in (api.tokens[other], api.tokens[kid["id"]]):
        for method, suffix, body in (("POST", "/clear", {}), ("DELETE", "", None), ("POST", "/restore", {"env": ENV})):
            assert (await api.call(method, f"/sessions/{kid['id']}{suffix}", token, body))[0] == 403
    assert (await api.call("DELETE", f"/sessions/{grandchild['id']}", api.tokens[parent]))[0] == 403
    assert (await api.call("POST", f"/sessions/{kid['id']}/clear", api.tokens[parent], {}))[0] == 200
    assert (await api.call("DELETE", f"/sessions/{kid['id']}", api.tokens[parent]))[0] == 200
    seen = (await api.call("GET", f"/sessions/{kid['id']}"))[1]
    assert seen["detail"] == "killed by boss"


async def test_the_children_of_a_killed_session_go_on_unless_they_are_meant_too(api):
    parent = await api.new("boss")
    _, kid = await spawn(api, parent)
    _, grandchild = await spawn(api, kid["id"])
    await api.call("DELETE", f"/sessions/{kid['id']}")
    assert not api.engine.sessions.actors[grandchild["id"]].session.ended
    assert (await api.call("DELETE", f"/sessions/{parent}?children=1"))[0] == 200
    assert all(actor.session.ended for actor in api.engine.sessions.actors.values())
    assert (await api.call("DELETE", f"/sessions/{parent}?children=1"))[1]["code"] == "ended"


async def test_a_parent_brings_its_child_back_with_no_more_than_it_has_now(api):
    parent = await api.new("boss")
    _, kid = await spawn(api, parent)
    actor = api.engine.sessions.actors[parent]
    await api.call("DELETE", f"/sessions/{kid['id']}", api.tokens[parent])
    await until(lambda: len(api.engine.ports.panes.living) == 1)
    plan = ev.PromptSubmitted(at=1.0, conversation=api.conversation(parent), text="x", mode="plan")
    await actor.ask(plan)
    seen = []
    claude = api.engine.ports.providers["claude"]
    api.engine.ports.providers["claude"] = Spy(claude, seen)
    assert (await api.call("POST", f"/sessions/{kid['id']}/restore", api.tokens[parent], {"env": ENV}))[0] == 200
    assert seen == [("--permission-mode", "plan")]


class Spy:
    def __init__(self, provider, seen):
        self.provider, self.seen = provider, seen

    def launch(self, request, token):
        self.seen.append(request.arguments)
        return self.provider.launch(request, token)

    def __getattr__(self, name):
        return getattr(self.provider, name)


async def test_a_report_is_one_bounded_line_that_others_see(api):
    session, other = await api.new("me"), await api.new("other")
    body = {"text": "on\x1b[31m it\n" + "x" * 1000}
    _, view = await api.call("POST", f"/sessions/{session}/report", api.tokens[session], body)
    assert view["report"]["text"].startswith("on [31m it xxx")
    assert len(view["report"]["text"]) == 300
    seen = {session["id"]: session for session in (await api.call("GET", "/sessions", api.tokens[other]))[1]}
    assert seen[session]["report"] == view["report"]


async def test_a_reminder_is_listed_and_cancelled(api):
    session = await api.new("me")
    token = api.tokens[session]
    status, made = await api.call("POST", f"/sessions/{session}/reminders", token, {"delay": 60, "text": "look"})
    assert (status, made["kind"], made["due"] - made["created"]) == (201, "once", 60)
    assert (await api.call("GET", f"/sessions/{session}/reminders", token))[1] == [made]
    assert (await api.call("DELETE", f"/sessions/{session}/reminders/{made['id']}", token))[0] == 200
    assert (await api.call("DELETE", f"/sessions/{session}/reminders/{made['id']}", token))[1]["code"] == "not_found"


@pytest.mark.parametrize("delay", [0, -5, 1e12, "NaN", None])
async def test_a_delay_that_is_none_is_refused(api, delay):
    session = await api.new("me")
    body = {"delay": delay, "text": "look"}
    assert (await api.call("POST", f"/sessions/{session}/reminders", api.tokens[session], body))[0] == 400


async def test_a_wait_names_its_target_and_any_session_may_be_waited_for(api):
    session, other = await api.new("me"), await api.new("other")
    body = {"target": "other", "seconds": 60}
    status, answer = await api.call("POST", f"/sessions/{session}/waits", api.tokens[session], body)
    assert (status, answer) == (201, {"target": other, "name": "other", "idle": False, "ended": False})
    body["target"] = "nobody"
    assert (await api.call("POST", f"/sessions/{session}/waits", api.tokens[session], body))[1]["code"] == "not_found"


async def test_what_a_sender_wants_to_be_told_is_armed_for_its_message_and_not_for_a_persons(api):
    session, other = await api.new("me"), await api.new("other")
    body = {"text": "x", "notify_on_stop": True, "wait": 60}
    _, sent = await api.call("POST", f"/sessions/{other}/messages", api.tokens[session], body)
    armed = {reminder.kind.value: reminder for reminder in api.engine.reminders.owned(session)}
    assert {kind: (reminder.target, reminder.message) for kind, reminder in armed.items()} == {
        "stop": (other, sent["id"]),
        "check": (other, sent["id"]),
    }
    assert (await api.call("POST", f"/sessions/{other}/messages", USER, body))[0] == 400
    assert len(api.engine.reminders.owned(session)) == 2


async def test_a_message_that_is_refused_arms_nothing(api):
    session, other = await api.new("me"), await api.new("other")
    body = {"text": "", "notify_on_stop": True}
    assert (await api.call("POST", f"/sessions/{other}/messages", api.tokens[session], body))[0] == 400
    assert api.engine.reminders.owned(session) == []


# --- C1: first check and queue, then change anything ------------------------------------------------------------------


async def clear(api, session, token=USER, **body):
    return await api.call("POST", f"/sessions/{session}/clear", token, body)


def rotation_of(api, session):
    return api.engine.sessions.actors[session].session.rotation


async def test_a_person_clears_a_session_and_gives_it_another_task(api):
    session = await api.new("worker")
    status, _ = await clear(api, session, prompt="do that instead")
    assert status == 200
    assert rotation_of(api, session).active
    [task] = api.engine.sessions.actors[session].session.outbox.queue
    assert task.typed == "do that instead"
    assert api.engine.reminders.about == {}


@pytest.mark.parametrize("why", ["too_large", "too_fast", "paused", "queue_full", "bad_request", "too_many"])
async def test_a_task_that_is_refused_clears_nothing(api, tmp_path, why):
    parent = await api.new("boss")
    _, kid = await spawn(api, parent, notify=False)
    limits = {"too_fast": "sends_per_minute = 1", "paused": "exchanges = 2", "queue_full": "queued = 1"}
    (tmp_path / "config.toml").write_text(f"[limits]\n{limits.get(why, '')}\n")
    if why == "paused":
        await api.engine.messages.send(parent, kid["id"], SendRequest("back"))
    if why == "too_many":
        for _ in range(100):
            await api.engine.reminders.remind(parent, 60.0, "x", every=False)
    prompt = {"too_large": "x" * 300_000, "bad_request": "\x1b[0m"}.get(why, "do that")
    status, refused = await clear(api, kid["id"], api.tokens[parent], prompt=prompt)
    assert (status >= 400, refused["code"]) == (True, why)
    assert rotation_of(api, kid["id"]) is None
    assert api.engine.sessions.actors[kid["id"]].session.outbox.waiting <= 2


@pytest.mark.parametrize("prompt", ["x" * 300_000, "\x1b[0m"])
async def test_a_child_whose_task_is_refused_is_not_started(api, prompt):
    parent = await api.new("boss")
    assert (await spawn(api, parent, prompt=prompt))[0] >= 400
    assert (await api.call("POST", "/sessions", body={**child(api, prompt=prompt), "name": "b"}))[0] >= 400
    assert len(api.engine.ports.panes.living) == 1
    assert api.engine.reminders.owned(parent) == []


async def test_a_parent_that_has_sent_too_much_starts_no_child(api, tmp_path):
    (tmp_path / "config.toml").write_text("[limits]\nsends_per_minute = 1\n")
    parent, other = await api.new("boss"), await api.new("other")
    await api.engine.messages.send(other, parent, SendRequest("hello"))
    assert (await spawn(api, parent))[1]["code"] == "too_fast"
    assert len(api.engine.ports.panes.living) == 2


async def test_a_session_that_ends_too_slowly_does_not_keep_its_children_alive(api, monkeypatch):
    monkeypatch.setattr(termination, "TIMEOUT_S", 0.05)
    parent = await api.new("boss")
    kids = [(await spawn(api, parent, name=f"kid {number}"))[1]["id"] for number in range(2)]
    end = api.engine.ports.panes.end

    async def slow(session, grace):
        if session == parent:
            raise PaneError("tmux does not answer")
        await end(session, grace)

    api.engine.ports.panes.end = slow
    assert (await api.call("DELETE", f"/sessions/{parent}?children=1"))[1]["code"] == "still_ending"
    assert all(api.engine.sessions.actors[kid].session.ended for kid in kids)
