"""Which threads are those of a session's subagents, and what they have under way."""

import msgspec
import pytest

from sm.providers.codex.app import schema
from sm.providers.codex.app.rpc import RefusedError, ServerMessage
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


class AppServer:
    """Answers of an app-server whose threads have these parents; it remembers which were taken up."""

    def __init__(self, parents, ended=()):
        self.parents, self.ended, self.taken_up = parents, ended, []

    async def call(self, request):
        match request:
            case schema.ThreadLoadedList(cursor=None):
                return schema.ThreadLoadedListResponse([*self.parents, *self.ended][:2], "2")
            case schema.ThreadLoadedList(cursor="2"):
                return schema.ThreadLoadedListResponse([*self.parents, *self.ended][2:])
            case schema.ThreadRead(thread_id=thread) if thread in self.ended:
                raise RefusedError("thread not loaded")
            case schema.ThreadRead(thread_id=thread):
                return schema.ThreadReadResponse(schema.Thread(id=thread, parent_thread_id=self.parents[thread]))
            case schema.ThreadResume(thread_id=thread):
                self.taken_up.append(thread)
                return schema.ThreadResumeResponse(thread=schema.Thread(id=thread))
        raise AssertionError(request)


async def test_a_server_that_was_away_takes_up_the_subagents_at_any_depth_and_no_other_thread():
    server, found = AppServer({"t-2": "t-1", "t-1": MAIN, "t-3": "t-other", MAIN: None}, ended=["t-4"]), Subagents()
    await found.take_up(server, MAIN)
    assert server.taken_up == ["t-1", "t-2"]
    assert found.threads == {"t-1", "t-2"}
