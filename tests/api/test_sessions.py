"""The routes about sessions, and what they refuse."""

import asyncio
import json

import pytest

from sm.api.errors import CODES
from tests.api.rig import HEALTH


@pytest.fixture
async def session(api):
    return await api.new("a")


async def refused(api, method, path, body=None, token=None):
    status, answer = await api.call(method, path, *([token] if token else []), body=body)
    assert set(answer) == {"error", "code", "hint"}
    assert status == CODES[answer["code"]][0]
    return answer["code"]


ODD = [b'{"dir": "\xff"}', b'{"dir": ' + b"[" * 100_000]


BODIES = [b"{", b"[]", b'"x"', b"\xff", b"{}", b'{"dir": 1}', b'{"dir": "/", "extra": 1}', *ODD]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body[:12].hex())
async def test_a_body_that_is_not_what_the_route_takes_is_refused(api, body):
    assert await refused(api, "POST", "/sessions", body) == "bad_request"


@pytest.mark.parametrize("lines", ["0", "-1", "1e3", "x", "", "200001", "9" * 40, "²", "\u0661", "1.5"])
async def test_a_number_of_lines_out_of_range_is_refused(api, session, lines):
    assert await refused(api, "GET", f"/sessions/{session}/output?lines={lines}") == "bad_request"
    assert await refused(api, "GET", f"/sessions/{session}/events?lines={lines}") == "bad_request"


async def test_output_gives_the_last_lines(api, session):
    assert (await api.call("GET", f"/sessions/{session}/output?lines=2"))[1] == {"text": "second\nthird"}


NO_NAMES = ["", " ", " x", "x ", "a\nb", "a\0b", "x" * 65, "\x1b[31m", "a\u200b", "\u202ea", "0123abcd", "a/b", "a,b"]


@pytest.mark.parametrize("name", [*NO_NAMES, "parent", "children"])
async def test_a_name_that_cannot_be_seen_or_typed_or_is_an_id_is_refused(api, session, name):
    assert await refused(api, "PATCH", f"/sessions/{session}", {"name": name}) == "bad_name"


@pytest.mark.parametrize(
    ("directory", "name"), [("children", "children-2"), ("a,b", "a_b"), ("0123abcd", "0123abcd-2")]
)
async def test_a_directory_that_can_be_no_name_gives_one_that_can(api, tmp_path, directory, name):
    (tmp_path / directory).mkdir()
    body = {"dir": str(tmp_path / directory), "env": {"PATH": "/usr/bin:/bin"}}
    assert (await api.call("POST", "/sessions", body=body))[1]["name"] == name


async def test_sessions_that_are_made_at_once_without_a_name_get_different_ones(api, tmp_path):
    body = {"dir": str(tmp_path), "env": {"PATH": "/usr/bin:/bin"}}
    made = await asyncio.gather(*(api.call("POST", "/sessions", body=body) for _ in range(6)))
    assert [status for status, _ in made] == [201] * 6
    assert len({view["name"] for _, view in made}) == 6


@pytest.mark.parametrize("name", ["x" * 64, "ünï çödé", "#(rm -rf ~)", "%d:.S"])
async def test_any_other_name_is_kept_as_it_is(api, session, name):
    assert (await api.call("PATCH", f"/sessions/{session}", body={"name": name}))[1]["name"] == name
    assert [view["name"] for view in (await api.call("GET", "/sessions"))[1]] == [name]


async def test_a_living_sessions_name_is_taken_until_it_ends(api, session):
    other = await api.new("b")
    assert await refused(api, "PATCH", f"/sessions/{other}", {"name": "a"}) == "name_taken"
    body = {"dir": str(api.home.root), "name": "a", "env": {"PATH": "/usr/bin:/bin"}}
    assert await refused(api, "POST", "/sessions", body) == "name_taken"
    await api.call("DELETE", f"/sessions/{session}")
    assert (await api.call("PATCH", f"/sessions/{other}", body={"name": "a"}))[0] == 200


async def test_a_session_is_found_by_its_name(api, session):
    assert (await api.call("GET", "/sessions/a"))[1]["id"] == session


async def test_the_beginning_of_an_id_serves_as_the_id_where_it_is_the_only_one(api):
    ids = ["abcd1234", "abcd5678", "0a1b2c3d"]
    for name, identity in zip(("web", "docs", "api"), ids, strict=True):
        await named_by(api, name, identity)
    assert (await api.call("GET", "/sessions/0a1b"))[1]["name"] == "api"
    assert (await api.call("GET", "/sessions/abcd5"))[1]["name"] == "docs"
    status, body = await api.call("DELETE", "/sessions/abcd")
    assert (status, body["code"]) == (409, "ambiguous")
    assert "web (abcd1234), docs (abcd5678)" in body["error"]
    assert await refused(api, "DELETE", "/sessions/0a1") == "not_found"
    assert {view["status"] for view in (await api.call("GET", "/sessions"))[1]} == {"starting"}


async def test_a_name_that_is_the_beginning_of_anothers_id_means_neither_of_them(api):
    await named_by(api, "web", "abcd1234")
    await named_by(api, "abcd", "ffff0000")
    status, body = await api.call("DELETE", "/sessions/abcd")
    assert (status, body["code"]) == (409, "ambiguous")
    assert "abcd (ffff0000), web (abcd1234)" in body["error"]
    assert (await api.call("GET", "/sessions/ffff"))[1]["name"] == "abcd"
    await named_by(api, "cafe", "cafe0000")
    assert (await api.call("GET", "/sessions/cafe"))[1]["id"] == "cafe0000"


async def test_an_agent_may_do_no_more_to_a_session_that_it_names_by_the_beginning_of_its_id(api, session):
    other = await api.new("other")
    token = api.tokens[session]
    for method, path, body in (
        ("DELETE", "", None),
        ("GET", "/output", None),
        ("POST", "/restore", {}),
        ("POST", "/remove", {}),
        ("POST", "/clear", {}),
        ("PATCH", "", {"name": "mine"}),
    ):
        assert await refused(api, method, f"/sessions/{other[:5]}{path}", body, token) in {"forbidden", "not_self"}
    assert set((await api.call("GET", f"/sessions/{other[:5]}", token))[1]) == {
        "id",
        "name",
        "status",
        "parent",
        "report",
    }
    assert (await api.call("GET", f"/sessions/{other}"))[1]["status"] == "starting"


async def named_by(api, name, identity):
    """A session with that id, instead of the one that it was given."""
    made, actors = await api.new(name), api.engine.sessions.actors
    await api.alter(made, id=identity)
    actors[identity] = actors.pop(made)


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("wbe-front", "did you mean web-front? sm list shows the sessions"),
        ("web", "did you mean web-front? sm list shows the sessions"),
        ("bilded", "did you mean billed? sm list shows the sessions"),
        ("w", "sm list shows the sessions"),
        ("other", "sm list shows the sessions"),
    ],
)
async def test_a_mistyped_name_is_answered_with_the_one_that_was_probably_meant(api, typed, hint):
    for name in ("web-front", "billed"):
        await api.new(name)
    status, body = await api.call("GET", f"/sessions/{typed}")
    assert (status, body["error"], body["hint"]) == (404, f"Session {typed} not found", hint)


async def test_what_does_not_exist_is_said_in_the_contracts_words(api):
    assert (await api.call("GET", "/sessions/deadbeef"))[1]["error"] == "Session deadbeef not found"


async def test_a_killed_session_ends_and_comes_back_by_restore(api, session):
    assert (await api.call("DELETE", f"/sessions/{session}"))[1]["status"] == "exited"
    assert await refused(api, "DELETE", f"/sessions/{session}") == "ended"
    env = {"env": {"PATH": "/usr/bin:/bin"}}
    assert (await api.call("POST", f"/sessions/{session}/restore", body=env))[1]["status"] == "starting"
    assert await refused(api, "POST", f"/sessions/{session}/restore", env) == "alive"


@pytest.mark.parametrize(
    "member",
    [
        {"model": "a\0b"},
        {"arguments": ["a\0b"]},
        {"command": "sh\0"},
        {"env": {"PATH": "/usr/bin:/bin", "X": "a\0b"}},
        {"env": {"PATH": "/usr/bin:/bin", "X\0": "a"}},
    ],
)
async def test_a_nul_character_that_a_client_cannot_be_given_is_refused_and_leaves_no_session(api, tmp_path, member):
    body = {"dir": str(tmp_path), "env": {"PATH": "/usr/bin:/bin"}, **member}
    assert await refused(api, "POST", "/sessions", body) == "bad_request"
    assert (await api.call("GET", "/sessions"))[1] == []


@pytest.mark.parametrize(("problem", "code"), [(ValueError("no"), "launch_failed"), (RuntimeError("no"), "internal")])
async def test_a_launch_that_fails_in_whatever_way_leaves_a_session_that_says_so(api, tmp_path, problem, code):
    async def create(*_):
        raise problem

    api.engine.ports.panes.create = create
    body = {"dir": str(tmp_path), "env": {"PATH": "/usr/bin:/bin"}, "name": "a"}
    assert await refused(api, "POST", "/sessions", body) == code
    (actor,) = api.engine.sessions.actors.values()
    while not actor.session.ended:
        await asyncio.sleep(0)
    assert "could not be started" in actor.session.detail


async def test_a_directory_that_is_missing_and_a_client_that_is_missing_are_refused(api, tmp_path):
    env = {"PATH": "/nowhere"}
    assert await refused(api, "POST", "/sessions", {"dir": "/nowhere", "env": env}) == "no_directory"
    assert await refused(api, "POST", "/sessions", {"dir": "relative", "env": env}) == "no_directory"
    for impossible in ("/" + "x" * 5_000, "/a\0b"):
        assert await refused(api, "POST", "/sessions", {"dir": impossible, "env": env}) == "no_directory"
    assert await refused(api, "POST", "/sessions", {"dir": str(tmp_path), "env": env}) == "client_not_found"
    reserved = {"dir": str(tmp_path), "env": env, "arguments": ["--settings", "x"]}
    assert await refused(api, "POST", "/sessions", reserved) == "reserved_argument"
    assert await refused(api, "POST", "/sessions", {"dir": str(tmp_path), "provider": "x"}) == "unknown_provider"


async def test_the_view_has_what_scripts_rely_on(api, session):
    _, (view,) = await api.call("GET", "/sessions")
    promised = {"id", "name", "provider", "status", "dir", "pid", "parent", "conversation", "transcript"}
    promised |= {"rotations", "created", "last_activity"}
    assert promised <= set(view)
    assert {"tokens", "usable", "percent", "level", "source"} <= set(view["context"])
    assert {"phase", "path"} <= set(view["handoff"])


async def test_those_sessions_that_are_named_are_listed_alone_and_say_what_they_say_in_the_whole_list(api):
    first, second, other = [await api.new(name) for name in ("a", "b", "c")]
    whole = {view["id"]: view for view in (await api.call("GET", "/sessions"))[1]}
    _, found = await api.call("GET", f"/sessions?ids={other},gone,{first}")
    assert found == [whole[first], whole[other]]
    assert (await api.call("GET", "/sessions?ids="))[1] == []
    _, seen = await api.call("GET", f"/sessions?ids={second},{first}", api.tokens[first])
    assert ["dir" in view for view in seen] == [True, False]


async def test_the_environment_of_a_session_is_neither_stored_nor_shown(api, tmp_path):
    body = {"dir": str(tmp_path), "env": {"PATH": "/usr/bin:/bin", "SECRET": "sk-ant-api03-TESTTEST"}}
    _, view = await api.call("POST", "/sessions", body=body)
    _, events = await api.call("GET", f"/sessions/{view['id']}/events")
    stored = b"".join(path.read_bytes() for path in api.home.root.rglob("*") if path.is_file())
    assert b"sk-ant-api03" not in stored
    assert "sk-ant-api03" not in json.dumps([view, events])


async def test_an_empty_message_is_refused(api, session):
    assert await refused(api, "POST", f"/sessions/{session}/messages", {"text": " \n"}) == "bad_request"


async def test_a_bad_hook_payload_is_refused(api, session):
    assert await refused(api, "POST", "/hooks/claude", b"[]", api.tokens[session]) == "bad_payload"


async def test_health_tells_version_sessions_and_uptime(api, session):
    assert (await api.call("GET", "/health", api.tokens[session]))[1] == {**HEALTH, "sessions": 1, "uptime": 0.0}


async def test_a_fault_of_ours_is_json_without_details(api, session, caplog):
    api.engine.sessions.actors[session].session = None
    status, answer = await api.call("GET", f"/sessions/{session}")
    assert (status, answer["code"]) == (500, "internal")
    assert "NoneType" not in json.dumps(answer)


async def test_what_an_agent_has_said_is_shown_without_secrets_and_to_its_owner_alone(api, session):
    own = api.tokens[session]
    other = await api.new("b")
    await api.alter(session, said=f"The token is {own} and password=hunter2hunter2, tests pass")
    shown = (await api.call("GET", f"/sessions/{session}"))[1]
    assert shown["said"].startswith("The token is [REDACTED:")
    assert shown["said"].endswith("], tests pass")
    assert own not in shown["said"]
    assert "hunter2" not in shown["said"]
    [listed] = [one for one in (await api.call("GET", "/sessions"))[1] if one["id"] == session]
    assert listed["said"] == shown["said"]
    assert "said" not in (await api.call("GET", f"/sessions/{session}", api.tokens[other]))[1]


async def test_the_branch_is_read_behind_the_request_that_shows_it(api, tmp_path):
    folder = tmp_path / "tree"
    (folder / ".git").mkdir(parents=True)
    head = folder / ".git" / "HEAD"
    head.write_text("ref: refs/heads/a/feature\n")
    session = await api.new("a", directory=str(folder))
    assert await eventually(api, session, "branch", "a/feature")


async def eventually(api, session, member, value):
    async with asyncio.timeout(10):
        while (await api.call("GET", f"/sessions/{session}"))[1][member] != value:
            await asyncio.sleep(0.01)
    return True
