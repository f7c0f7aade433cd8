"""Which threads are those of a session's subagents, and what they have under way."""

import msgspec
import pytest

from sm.providers.codex.app.rpc import ServerMessage
from sm.providers.codex.app.subagents import Subagents

MAIN = "t-main"


def message(method, thread, **item):
    params = {"threadId": thread, "turnId": "u", "item": {"id": "i-1", **item}}
    return ServerMessage(method, msgspec.Raw(msgspec.json.encode(params)))


def starts(sender, *receivers):
    call = {"type": "collabAgentToolCall", "senderThreadId": sender, "receiverThreadIds": receivers}
    return message("item/completed", sender, **call)


@pytest.fixture
def known():
    found = Subagents()
    found.note(starts(MAIN, "t-1"), MAIN)
    return found


def test_the_call_that_starts_one_names_its_thread_also_one_of_a_subagents_own(known):
    known.note(starts("t-1", "t-2"), MAIN)
    assert known.threads == {"t-1", "t-2"}


def test_the_subagent_of_another_thread_is_none(known):
    known.note(starts("t-other", "t-3"), MAIN)
    assert known.threads == {"t-1"}


def test_what_a_subagent_has_under_way_is_kept_until_it_is_done(known):
    known.note(message("item/started", "t-1", type="fileChange", changes=[{"path": "a"}]), MAIN)
    assert known.started["i-1"].changes[0].path == "a"
    known.note(message("item/completed", "t-1", type="fileChange"), MAIN)
    assert known.started == {}


def test_an_item_of_any_other_thread_is_not_kept(known):
    known.note(message("item/started", MAIN, type="fileChange"), MAIN)
    known.note(message("item/started", "t-other", type="fileChange"), MAIN)
    assert known.started == {}
