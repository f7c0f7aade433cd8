"""A channel's manifest in the contract's form, replaced as a whole."""

import json
import threading
from dataclasses import replace

import pytest

from sm.archive.handoffs.manifest import MAX_HISTORY, manifest, write
from sm.core.model.handoff import HandoffState, StoredHandoff
from tests.core.playbook import HANDOFF

NEWEST = replace(HANDOFF, id="HO-2", created=2.0)
CONTRACT = {
    "id",
    "session_id",
    "created_at",
    "created_by_pid",
    "working_dir",
    "type",
    "status",
    "consumed_by_pid",
    "consumed_at",
}


def entry(handoff=HANDOFF, state=HandoffState.ACTIVE, **more):
    return StoredHandoff(handoff, state, 3.0, **more)


def test_it_has_the_contracts_members_and_utc_with_a_z():
    consumed = entry(
        state=HandoffState.CONSUMED, holder="b" * 8, created_pid=7, consumed=1_770_014_730.0, consumed_pid=8
    )
    found = manifest("global", [consumed])
    assert set(found) == {"channel", "current", "active", "history"}
    assert set(found["current"]) >= CONTRACT
    assert {name: found["current"][name] for name in CONTRACT} == {
        "id": HANDOFF.id,
        "session_id": "c0",
        "created_at": "1970-01-01T00:00:01Z",
        "created_by_pid": 7,
        "working_dir": "/p",
        "type": "agent",
        "status": "consumed",
        "consumed_by_pid": 8,
        "consumed_at": "2026-02-02T06:45:30Z",
    }


def test_the_current_one_is_the_newest_that_is_active_or_else_the_last():
    over = entry(NEWEST, HandoffState.CLEARED)
    assert manifest("c", [over, entry()])["current"]["id"] == HANDOFF.id
    assert manifest("c", [over, entry(state=HandoffState.CONSUMED)])["current"]["id"] == NEWEST.id
    assert manifest("c", []) == {"channel": "c", "current": None, "active": [], "history": []}


def test_the_history_has_an_end():
    entries = [entry(replace(HANDOFF, id=f"HO-{number}"), HandoffState.EXPIRED) for number in range(MAX_HISTORY + 5)]
    assert len(manifest("c", entries)["history"]) == MAX_HISTORY


def test_it_is_written_where_it_differs_alone(tmp_path):
    path = tmp_path / "c" / "manifest.json"
    assert write(path, "c", [entry()])
    assert not write(path, "c", [entry()])
    assert write(path, "c", [entry(state=HandoffState.EXPIRED)])
    assert [entry.name for entry in path.parent.iterdir()] == ["manifest.json"]


@pytest.mark.parametrize("content", [b"", b'{"half": ', b"[1]", b"\xff\xfe", b"[" * 200_000])
def test_a_damaged_one_is_kept_aside(tmp_path, content):
    path = tmp_path / "manifest.json"
    path.write_bytes(content)
    assert write(path, "c", [])
    assert path.with_name("manifest.json.damaged").read_bytes() == content


def test_whoever_reads_meanwhile_reads_the_whole_of_one(tmp_path):
    path = tmp_path / "manifest.json"
    states = [HandoffState.ACTIVE, HandoffState.CONSUMED]
    write(path, "c", [entry(state=states[0])])
    done = threading.Event()

    def rewrite():
        for number in range(300):
            write(path, "c", [entry(state=states[number % 2])])
        done.set()

    writer = threading.Thread(target=rewrite)
    writer.start()
    while not done.is_set():
        assert json.loads(path.read_text())["channel"] == "c"
    writer.join()
