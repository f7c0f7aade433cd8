"""Messages over HTTP: to whom, from whom, how many, and what is told of them."""

import pytest

from sm.core.model.message_queue import MessageQueue
from sm.core.model.session import Status
from tests.api.rig import house


@pytest.fixture
async def api(tmp_path):
    async with house(tmp_path) as found:
        yield found


@pytest.fixture
async def family(api):
    """A parent and its two children, and a stranger."""
    parent = await api.new("parent-one")
    children = [await api.new(name, parent) for name in ("left", "right")]
    return parent, *children, await api.new("stranger")


async def send(api, to, sender=None, **options):
    token = api.tokens[sender] if sender else "the-user-token"
    return await api.call("POST", "/messages", token, {"to": to, "text": "hello", **options})


async def names(api, *request, **options):
    status, sent = await send(api, *request, **options)
    assert status == 201, sent
    return [answer["name"] for answer in sent]


async def test_a_target_is_an_id_a_name_several_of_them_a_parent_or_children(api, family):
    parent, left, _, stranger = family
    assert await names(api, left) == ["left"]
    assert await names(api, " left , stranger ,", parent) == ["left", "stranger"]
    assert await names(api, "parent", left) == ["parent-one"]
    assert await names(api, "children", parent) == ["left", "right"]
    assert (await send(api, "parent", stranger))[1]["code"] == "not_found"
    assert (await send(api, " , "))[1]["code"] == "bad_request"


async def test_of_several_targets_each_is_answered_for_itself(api, family):
    status, sent = await send(api, "left,nobody,right")
    assert (status, [answer.get("code") for answer in sent]) == (201, [None, "not_found", None])
    assert (await send(api, "nobody"))[1]["code"] == "not_found"
    assert [answer.get("code") for answer in (await send(api, "children", family[3]))[1]] == ["not_found"]


async def test_what_is_asked_of_a_message_is_kept_with_it(api, family):
    options = {"mode": "important", "expires": 60, "notify_on_stop": True, "wait": 30}
    sent = (await send(api, "left", family[0], **options))[1][0]
    view = (await api.call("GET", f"/messages/{sent['id']}", api.tokens[family[0]]))[1]
    assert {name: view[name] for name in ("mode", "notify_on_stop", "wait", "state", "command")} == {
        "mode": "important", "notify_on_stop": True, "wait": 30.0, "state": "queued", "command": False,
    }  # fmt: skip
    assert view["expires"] == pytest.approx(view["queued"] + 60, abs=1)
    assert view["from"] == f"parent-one ({family[0]})"


@pytest.mark.parametrize("wrong", [{"mode": "shout"}, {"expires": 0}, {"wait": -1}, {"from": "the user"}, {"text": 1}])
async def test_what_is_no_message_is_refused(api, family, wrong):
    assert (await send(api, "left", **wrong))[1]["code"] == "bad_request"


async def test_an_inbox_is_its_own_sessions_and_the_users(api, family):
    parent, left, right, _ = family
    await send(api, "left", right)
    waiting = (await api.call("GET", f"/sessions/{left}/messages", api.tokens[left]))[1]
    assert [(view["text"], view["from"], view["state"]) for view in waiting] == [
        ("hello", f"right ({right})", "queued")
    ]
    assert (await api.call("GET", f"/sessions/{left}/messages"))[1] == waiting
    assert (await api.call("GET", f"/sessions/{left}/messages", api.tokens[parent]))[1]["code"] == "not_self"


async def test_what_did_not_arrive_is_told_to_both_ends_with_its_reason(api, family):
    _, left, right, stranger = family
    lost = (await send(api, "left", right, expires=5))[1][0]["id"]
    api.clock.advance(6)
    await api.engine.ports.store.expire_messages()
    for session in (left, right):
        dead = (await api.call("GET", f"/sessions/{session}/messages?dead=1", api.tokens[session]))[1]
        assert [(view["id"], view["state"], view["reason"]) for view in dead] == [
            (lost, "expired", "expired before delivery")
        ]
    assert (await api.call("GET", f"/sessions/{stranger}/messages?dead=1"))[1] == []
    assert (await api.call("GET", f"/sessions/{left}/messages?dead=1", api.tokens[stranger]))[1]["code"] == "not_self"


async def test_a_command_is_for_a_person_and_for_a_parent_to_its_child(api, family):
    parent, _, right, _ = family
    command = {"text": "/compact", "command": True}
    assert (await send(api, "left", right, **command))[1]["code"] == "forbidden"
    assert (await send(api, "left", parent, **command))[0] == 201
    assert (await send(api, "left", **command))[0] == 201


async def test_to_a_session_that_has_ended_nothing_is_sent_and_the_hint_says_how_to_go_on(api, family):
    await api.engine.sessions.kill(family[1])
    status, answer = await send(api, family[1])
    assert (status, answer["code"], "sm restore" in answer["hint"]) == (409, "ended", True)


async def test_the_limits_are_those_of_the_configuration_at_that_moment(api, family, tmp_path):
    (tmp_path / "config.toml").write_text("[limits]\nmessage_bytes = 1024\nqueued = 3\nsends_per_minute = 2\n")
    assert (await send(api, "left", text="x" * 1025))[1]["code"] == "too_large"
    await send(api, "left", family[2])
    await send(api, "right", family[3])
    assert (await send(api, "left", family[2]))[0] == 201
    status, answer = await send(api, "stranger", family[2])
    assert (status, answer["code"], "limits.sends_per_minute" in answer["error"]) == (429, "too_fast", True)
    assert (await send(api, "left"))[0] == 201
    assert (await send(api, "left"))[1]["code"] == "queue_full"


async def test_two_agents_that_answer_each_other_are_paused_and_shown_until_a_person_speaks(api, family, tmp_path):
    (tmp_path / "config.toml").write_text("[limits]\nexchanges = 4\n")
    _, left, right, _ = family
    for _ in range(2):
        await send(api, "right", left)
        await send(api, "left", right)
    for sender, target in ((left, "right"), (right, "left")):
        assert (await send(api, target, sender))[1]["code"] == "paused"
    assert (await api.call("GET", f"/sessions/{left}"))[1]["paused_with"] == [right]
    assert (await send(api, "stranger", left))[0] == 201
    await send(api, "left")
    assert (await send(api, "right", left))[0] == 201
    assert (await api.call("GET", f"/sessions/{left}"))[1]["paused_with"] == []


async def test_the_prompt_a_person_types_lets_two_agents_go_on(api, family, tmp_path):
    (tmp_path / "config.toml").write_text("[limits]\nexchanges = 2\n")
    _, left, right, _ = family
    await send(api, "right", left)
    await send(api, "left", right)
    for prompt, code in (("<task-notification>done", "paused"), ("go on, you two", None)):
        payload = api.hook("UserPromptSubmit", session_id=api.conversation(left), prompt=prompt)
        await api.call("POST", "/hooks/claude", api.tokens[left], payload)
        answer = (await send(api, "right", left))[1]
        assert (answer["code"] if isinstance(answer, dict) else None) == code


async def test_a_message_rides_on_the_reply_to_stop(api, family):
    _, left, right, _ = family
    stop = api.hook("UserPromptSubmit", session_id=api.conversation(left), prompt="work")
    await api.call("POST", "/hooks/claude", api.tokens[left], stop)
    sent = (await send(api, "left", right))[1][0]
    stop = api.hook("Stop", session_id=api.conversation(left))
    said = (await api.call("POST", "/hooks/claude", api.tokens[left], stop))[1]["hookSpecificOutput"]
    frame = f"[Input from: right ({right}) via sm send] (message {sent['id']})"
    assert said == {"hookEventName": "Stop", "additionalContext": f"{frame}\nhello"}
    receipt = (await api.call("GET", f"/messages/{sent['id']}"))[1]
    assert (receipt["state"], receipt["channel"], receipt["delivered"] is not None) == ("delivered", "stop", True)


async def test_a_sender_or_the_user_takes_back_what_is_queued_and_no_other_may(api, family):
    """C3"""
    _, left, right, stranger = family
    mine, users = [(await send(api, "left", sender))[1][0]["id"] for sender in (right, None)]
    for caller in (left, stranger):
        assert (await api.call("DELETE", f"/messages/{mine}", api.tokens[caller]))[1]["code"] == "not_found"
    assert (await api.call("DELETE", f"/messages/{users}", api.tokens[right]))[1]["code"] == "not_found"
    status, view = await api.call("DELETE", f"/messages/{mine}", api.tokens[right])
    assert (status, view["state"], view["reason"]) == (200, "failed", "cancelled before it was delivered")
    assert (await api.call("DELETE", f"/messages/{users}"))[0] == 200
    assert (await api.call("GET", f"/sessions/{left}/messages"))[1] == []
    status, again = await api.call("DELETE", f"/messages/{mine}", api.tokens[right])
    assert (status, again["code"], again["error"]) == (409, "too_late", f"Message {mine} is already failed")


async def test_whoever_takes_a_message_back_is_not_told_that_it_never_arrived(api, family):
    right = family[2]
    sent = (await send(api, "left", right, notify_on_stop=True))[1][0]["id"]
    assert (await api.call("DELETE", f"/messages/{sent}", api.tokens[right]))[0] == 200
    assert api.engine.reminders.owned(right) == []


async def test_a_queued_message_says_why_it_waits_and_to_a_stranger_no_more_than_the_status(api, family):  # C38
    parent, left, _, stranger = family
    mine = (await send(api, "left", parent))[1][0]["id"]
    other = (await send(api, "left", stranger))[1][0]["id"]
    await api.alter(left, status=Status.WAITING, detail="the client is stopped")
    for message, sender, reason in (
        (mine, parent, "left is waiting: the client is stopped"),
        (other, stranger, "left is waiting"),
    ):
        assert (await api.call("GET", f"/messages/{message}", api.tokens[sender]))[1]["reason"] == reason
    await api.alter(
        left, status=Status.IDLE, detail="the last turn failed", outbox=MessageQueue(note="a person is typing")
    )
    assert (await api.call("GET", f"/messages/{mine}"))[1]["reason"] == "a person is typing"
    (first, *_) = (await api.call("GET", f"/sessions/{left}/messages", api.tokens[left]))[1]
    assert first["reason"] == "a person is typing"


@pytest.mark.parametrize("word", ["parent", "children"])
async def test_parent_and_children_are_words_of_a_session(api, family, word):
    sent = (await send(api, word))[1]
    said = sent[0] if isinstance(sent, list) else sent
    assert said["error"] == f"'{word}' is a target inside a session only"
