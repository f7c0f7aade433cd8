"""What a new thread of an app-server is begun with: what the last one had when it was left, and never more."""

import json

import msgspec
import pytest

from sm.core.ports.provider import ConnectedSession
from sm.providers.codex.app import schema
from sm.providers.codex.app.rpc import RefusedError, connected
from sm.providers.codex.app.threads import SANDBOXES, ThreadSettings, resumed, started
from sm.providers.lenient import lenient
from tests.fakes.app_server import app_server

WRITES = {"type": "workspaceWrite", "writableRoots": ["/srv"], "networkAccess": True}
GRANULAR = {"granular": {"mcp_elicitations": True, "rules": False, "sandbox_approval": True}}
SESSION = ConnectedSession("aaaaaaaa", "worker", "/p", 7)


def opened(**told):
    return lenient(schema.ThreadStartResponse, json.dumps(told).encode())


def changed(**told):
    return lenient(schema.ThreadSettings, json.dumps(told).encode())


def begun(settings):
    return json.loads(msgspec.json.encode(settings.of_new_thread("/p", "clear")))


def first(settings):
    return json.loads(msgspec.json.encode(settings.first_turn("t-2", [])))


@pytest.fixture
def settings():
    made = ThreadSettings()
    told = {"approvalPolicy": "on-request", "approvalsReviewer": "user", "model": "mock", "reasoningEffort": "high"}
    made.note(opened(**told, sandbox=WRITES))
    return made


def test_the_first_thread_is_begun_by_the_users_configuration():
    settings = ThreadSettings()
    assert begun(settings) == {"cwd": "/p", "serviceName": "sm", "sessionStartSource": "clear"}
    assert first(settings) == {"input": [], "threadId": "t-2"}
    assert settings.mode == ""


def test_a_new_thread_has_what_the_last_one_had(settings):
    asked = begun(settings)
    assert (asked["sandbox"], asked["approvalPolicy"]) == ("workspace-write", "on-request")
    assert (asked["approvalsReviewer"], asked["model"]) == ("user", "mock")
    assert first(settings) == {"input": [], "threadId": "t-2", "sandboxPolicy": WRITES, "effort": "high"}
    assert settings.mode == "workspace-write on-request"


def test_only_the_first_turn_has_the_sandbox_and_a_change_of_the_user_stays(settings):
    begun(settings)
    assert "sandboxPolicy" in first(settings)
    assert "sandboxPolicy" in first(settings)  # the one before was refused
    settings.first_turn_begun()
    assert "sandboxPolicy" not in first(settings)


def test_what_the_user_changes_in_the_screen_goes_on(settings):
    told = {"approvalPolicy": "never", "approvalsReviewer": "auto_review", "model": "other", "effort": None}
    settings.note(changed(**told, sandboxPolicy={"type": "readOnly"}))
    asked = begun(settings)
    assert (asked["sandbox"], asked["approvalPolicy"], asked["model"]) == ("read-only", "never", "other")
    assert first(settings)["sandboxPolicy"] == {"type": "readOnly"}
    assert settings.mode == "read-only never"


@pytest.mark.parametrize("kind", sorted(SANDBOXES))
@pytest.mark.parametrize("approval", ["untrusted", "on-request", "never", GRANULAR], ids=str)
def test_no_right_is_added_for_any_sandbox_and_any_way_to_ask(kind, approval):
    settings = ThreadSettings()
    settings.note(opened(sandbox={"type": kind}, approvalPolicy=approval))
    asked = begun(settings)
    assert (asked["sandbox"], asked["approvalPolicy"]) == (SANDBOXES[kind], approval)
    assert first(settings)["sandboxPolicy"] == {"type": kind}
    assert settings.mode == f"{SANDBOXES[kind]} {approval if isinstance(approval, str) else 'granular'}"


@pytest.mark.parametrize("odd", [{"type": "externalSandbox"}, {"type": "tomorrows"}, {}, {"type": 5}, {"type": ["x"]}])
def test_a_sandbox_that_has_no_name_at_a_start_begins_as_the_strictest(odd):
    settings = ThreadSettings()
    settings.note(opened(sandbox=odd, approvalPolicy="never"))
    assert begun(settings)["sandbox"] == "read-only"
    assert first(settings)["sandboxPolicy"] == odd
    assert settings.mode == "read-only never"


@pytest.mark.parametrize("odd", [None, 5, "danger-full-access", [], True])
def test_odd_settings_keep_what_is_known(settings, odd):
    for told in (opened(sandbox=odd, approvalsReviewer=odd and [odd], model=[odd]), changed(sandboxPolicy=odd)):
        settings.note(told)
        asked = begun(settings)
        assert (asked["sandbox"], asked["approvalsReviewer"], asked["model"]) == ("workspace-write", "user", "mock")
        assert first(settings)["sandboxPolicy"] == WRITES


@pytest.mark.parametrize("odd", [5, [], [1], True, 1.5])
def test_an_odd_way_to_ask_keeps_what_is_known(settings, odd):
    settings.note(opened(approvalPolicy=odd))
    settings.note(changed(approvalPolicy=odd))
    assert begun(settings)["approvalPolicy"] == "on-request"


async def test_a_thread_that_is_begun_has_a_name_so_that_it_can_be_taken_up(tmp_path, settings):
    async with app_server(tmp_path / "s") as server, connected(server.path) as rpc:
        thread = (await started(rpc, SESSION, settings, "clear")).thread
        assert server.threads[thread.id].name == "worker"
        assert server.called("thread/start") == [begun(settings)]
        again = await resumed(rpc, thread.id)
        assert again.thread == thread
        assert again.sandbox == {"type": "workspaceWrite"}


async def test_a_thread_without_a_file_is_none(tmp_path):
    async with app_server(tmp_path / "s") as server, connected(server.path) as rpc:
        assert await resumed(rpc, server.begin().id) is None
        assert await resumed(rpc, "unknown") is None


async def test_a_refusal_for_another_reason_is_told(tmp_path):
    async with app_server(tmp_path / "s") as server, connected(server.path) as rpc:
        server.refuses["thread/resume"] = "config is broken"
        with pytest.raises(RefusedError, match="config is broken"):
            await resumed(rpc, "t-1")
