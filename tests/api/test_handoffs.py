"""Handing off over HTTP: each unfit document is refused with its reason."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from sm.core.model.context import ContextReading, Monitor
from sm.core.model.loop_guard import LoopGuard
from sm.core.model.rotation import Phase
from tests.api.rig import USER


@pytest.fixture
async def session(api):
    return await api.new("a")


async def hand_off(api, session, path):
    body = {"requester_session_id": session, "file_path": str(path)}
    return await api.call("POST", f"/sessions/{session}/handoff", api.tokens[session], body)


def empty(path):
    path.write_text(" \n")


def directory(path):
    path.mkdir()


def fifo(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def dangling(path):
    path.symlink_to(path.with_name("nowhere"))


def large(path):
    path.write_bytes(b"x" * ((1 << 20) + 1))


def old(path):
    path.write_text("goal")
    os.utime(path, (1_000_000_000, 1_000_000_000))


def memory(path):
    path.symlink_to("/proc/self/mem")


REASONS = {
    empty: ("file_unfit", "it is empty"),
    directory: ("file_unfit", "it is a directory"),
    fifo: ("file_unfit", "not a regular file"),
    device: ("file_unfit", "not a regular file"),
    large: ("file_unfit", "larger than 1,048,576 bytes"),
    memory: ("file_unfit", "it cannot be read (input/output error)"),
    dangling: ("file_not_found", "File not found: "),
    old: ("file_old", "before this conversation began"),
}


async def test_a_path_that_no_file_can_have_is_refused(api, session):
    assert (await hand_off(api, session, "/a\0b"))[1]["code"] == "file_unfit"


@pytest.mark.parametrize("make", REASONS, ids=lambda make: make.__name__)
async def test_an_unfit_document_is_refused_with_its_reason(api, session, tmp_path, make):
    make(tmp_path / "h.md")
    status, answer = await hand_off(api, session, tmp_path / "h.md")
    code, words = REASONS[make]
    assert (status, answer["code"]) == (404 if code == "file_not_found" else 409, code)
    assert words in answer["error"]
    assert (await api.call("GET", f"/sessions/{session}/handoff"))[1]["phase"] is None


@pytest.mark.parametrize("name", ["a b.md", 'it\'s "q".md', "é-日本.md", "two\nlines.md", "-x.md", "$(x).md", "%2e.md"])
async def test_any_name_of_a_file_is_fine(api, session, tmp_path, name):
    (tmp_path / name).write_text("goal")
    status, answer = await hand_off(api, session, tmp_path / name)
    assert (status, answer["status"]) == (200, "scheduled")
    assert (await api.call("GET", f"/sessions/{session}/handoff"))[1]["path"] == str(tmp_path / name)


async def test_a_link_to_a_file_of_ones_own_is_fine(api, session, tmp_path):
    (tmp_path / "real.md").write_text("goal")
    (tmp_path / "h.md").symlink_to(tmp_path / "real.md")
    assert (await hand_off(api, session, tmp_path / "h.md"))[0] == 200


async def test_a_pending_handoff_can_be_looked_at_taken_back_and_tried_again(api, session, tmp_path):
    (tmp_path / "h.md").write_text("goal")
    await hand_off(api, session, tmp_path / "h.md")
    path, token = f"/sessions/{session}/handoff", api.tokens[session]
    assert (await api.call("POST", f"{path}/retry", token))[1]["phase"] == "pending"
    assert (await api.call("DELETE", path, token))[1]["phase"] == "cancelled"
    assert (await api.call("DELETE", path, token))[1]["code"] == "no_handoff"
    assert (await api.call("POST", f"{path}/retry", token))[1]["code"] == "no_handoff"


async def test_the_last_call_wins(api, session, tmp_path):
    for name in ("one.md", "two.md"):
        (tmp_path / name).write_text(name)
        await hand_off(api, session, tmp_path / name)
    assert (await api.call("GET", f"/sessions/{session}/handoff"))[1]["path"] == str(tmp_path / "two.md")


async def just_begun(api, session):
    """Its context is one that a handoff has begun, and that has hardly grown."""
    current = api.engine.sessions.actors[session].session.conversation
    reading = ContextReading(tokens=30_000, projected=30_500, window=200_000)
    current = replace(current, start=30_000, monitor=Monitor(reading))
    await api.alter(session, conversation=current, guard=LoopGuard(current.id, without_progress=3))


async def test_an_agent_that_hands_off_again_at_once_is_refused_and_the_user_is_not(api, session, tmp_path):
    (tmp_path / "h.md").write_text("goal")
    await just_begun(api, session)
    status, answer = await hand_off(api, session, tmp_path / "h.md")
    assert (status, answer["code"]) == (409, "too_soon")
    assert "from 70,000 tokens on" in answer["error"]
    guard = {"start": 30_000, "needed": 70_000, "without_progress": 3, "limit": 3, "paused": False}
    assert (await api.call("GET", f"/sessions/{session}"))[1]["loop_guard"] == guard
    body = {"requester_session_id": session, "file_path": str(tmp_path / "h.md")}
    assert (await api.call("POST", f"/sessions/{session}/handoff", USER, body))[0] == 200
    assert not (await api.call("GET", f"/sessions/{session}"))[1]["loop_guard"]["paused"]


async def test_an_agent_cannot_lift_the_pause_itself(api, session, tmp_path):
    (tmp_path / "h.md").write_text("goal")
    await hand_off(api, session, tmp_path / "h.md")
    rotation = api.engine.sessions.actors[session].session.rotation
    await api.alter(session, rotation=replace(rotation, phase=Phase.PENDING, paused=True, note="paused: in vain"))
    path = f"/sessions/{session}/handoff/retry"
    status, answer = await api.call("POST", path, api.tokens[session])
    assert (status, answer["code"]) == (409, "rotation_paused")
    assert (await api.call("POST", path, USER))[0] == 200
    assert not api.engine.sessions.actors[session].session.rotation.paused


async def test_a_document_comes_as_text_too(api, session):
    path = f"/sessions/{session}/handoff"
    body = {"requester_session_id": session, "document": "# Goal"}
    status, answer = await api.call("POST", path, api.tokens[session], body)
    assert status == 200
    assert Path(answer["copy"]).read_text().endswith("# Goal")
    assert (await api.call("GET", path))[1]["path"] == answer["copy"]


@pytest.mark.parametrize("given", [{}, {"document": " \n"}, {"file_path": ""}])
async def test_a_handoff_without_a_document_is_refused(api, session, given):
    body = {"requester_session_id": session, **given}
    status, answer = await api.call("POST", f"/sessions/{session}/handoff", api.tokens[session], body)
    assert (status, answer["error"]) == (400, "The document is empty")


async def test_a_document_as_text_is_for_the_callers_own_session_too(api, session):
    other = await api.new("b")
    body = {"requester_session_id": session, "document": "# Goal"}
    status, answer = await api.call("POST", f"/sessions/{session}/handoff", api.tokens[other], body)
    assert (status, answer["code"]) == (403, "not_self")
