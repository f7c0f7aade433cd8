"""The archive over HTTP: who may read and search what, and how it answers."""

import pytest

from tests.api.rig import USER
from tests.fakes.panes import FakePane

SECRET = "ghp_abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"


async def body_of(api, path, token=USER):
    async with api.client(Authorization=f"Bearer {token}") as client:
        answer = await client.get(path)
    return answer.status_code, answer.content


async def tended(api):
    """What two looks at the logs leave: the second takes in what was there at the first."""
    for _ in range(2):
        api.archiving.archive.tend(await api.archiving.histories(), api.clock.now())


def shows(api, session, text):
    api.home.logs.mkdir(exist_ok=True)
    with api.home.log(session).open("ab") as file:
        file.write(text.encode())


@pytest.fixture
async def two(api):
    """Sessions `me` and `other`, each with something on its screen; the other's project is another one."""
    me, other = await api.new("me"), await api.new("other")
    for session, word in ((me, "okapi"), (other, "zebra")):
        shows(api, session, f"a \x1b[1m{word}\x1b[0m word\r\n\r\n{SECRET}\r\n" + "line\r\n\r\n" * 200)
    return me, other


async def test_a_log_is_text_without_secrets(api, two):
    me, _ = two
    status, text = await body_of(api, f"/sessions/{me}/log")
    assert status == 200
    assert text.startswith(b"a okapi word\n\n[REDACTED:github-token]\nline\n")
    assert (await body_of(api, "/sessions/me/log?lines=2"))[1] == b"\nline\n"


async def test_the_raw_log_is_its_bytes_for_the_person_alone(api, two):
    me, _ = two
    assert await body_of(api, f"/sessions/{me}/log?raw=1") == (200, api.home.log(me).read_bytes())
    assert (await api.call("GET", f"/sessions/{me}/log?raw=1", api.tokens[me]))[1]["code"] == "forbidden"


async def test_one_context_of_a_log(api, two):
    me, _ = two
    assert (await body_of(api, f"/sessions/{me}/log?context=1"))[1].startswith(b"a okapi word\n")
    status, answer = await api.call("GET", f"/sessions/{me}/log?context=2")
    assert (status, answer["code"]) == (404, "no_context")


async def test_a_session_without_a_log_has_shown_nothing(api):
    session = await api.new("a")
    assert await body_of(api, f"/sessions/{session}/log") == (200, b"")
    assert await api.call("GET", f"/sessions/{session}/archive") == (200, [])


@pytest.mark.parametrize("suffix", ["/log", "/log?context=1", "/archive"])
async def test_a_session_reads_its_own_log_and_its_childrens_and_no_other(api, two, suffix):
    me, other = two
    child = await api.new("child", parent=me)
    assert (await body_of(api, f"/sessions/{me}{suffix}", api.tokens[me]))[0] == 200
    assert (await body_of(api, f"/sessions/{child}{suffix}", api.tokens[me]))[0] == 200
    status, answer = await api.call("GET", f"/sessions/{other}{suffix}", api.tokens[me])
    assert (status, answer["code"]) == (403, "not_self")


async def test_what_is_found_tells_where_it_stands(api, two):
    me, _ = two
    await tended(api)
    status, [hit] = await api.call("GET", "/search?q=okapi")
    assert status == 200
    assert (hit["session"], hit["name"], hit["context"], hit["kind"]) == (me, "me", 1, "terminal")
    assert (hit["line"], hit["marks"]) == ("a okapi word", [[2, 7]])
    assert (await api.call("GET", f"/search?q={SECRET}"))[1] == []


async def test_a_person_searches_everything_or_one_session(api, two):
    me, other = two
    await tended(api)
    assert {hit["session"] for hit in (await api.call("GET", "/search?q=word"))[1]} == {me, other}
    assert {hit["session"] for hit in (await api.call("GET", "/search?q=word&session=other"))[1]} == {other}
    assert len((await api.call("GET", "/search?q=word&limit=1"))[1]) == 1
    assert (await api.call("GET", "/search?q=word&session=nobody"))[1]["code"] == "not_found"


async def test_a_session_searches_its_own_channel(api, two, tmp_path):
    me, other = two
    await tended(api)
    assert {hit["session"] for hit in (await api.call("GET", "/search?q=word", api.tokens[me]))[1]} == {me, other}
    for name, session in (("one", me), ("two", other)):
        (tmp_path / name / ".git").mkdir(parents=True)
        (tmp_path / name / ".git" / "HEAD").touch()
        await api.alter(session, directory=str(tmp_path / name))
    assert {hit["session"] for hit in (await api.call("GET", "/search?q=word", api.tokens[me]))[1]} == {me}
    status, answer = await api.call("GET", f"/search?q=word&session={other}", api.tokens[me])
    assert (status, answer["code"]) == (403, "forbidden")


@pytest.mark.parametrize("query", ["", "q=", "q=--", "q=%22%22", "q=word&limit=0", "q=word&limit=x"])
async def test_what_is_no_search(api, query):
    assert (await api.call("GET", f"/search?{query}"))[1]["code"] == "bad_request"


@pytest.mark.parametrize(
    "query", ["%22", "AND", "a%20OR", "(", "*", "text%3A", "x%00y", "a%22%20NEAR(", "%F0%9F%99%82%20a"]
)
async def test_no_query_makes_it_fail(api, two, query):
    await tended(api)
    status, _ = await api.call("GET", f"/search?q={query}")
    assert status in {200, 400}


async def test_the_files_of_a_session(api, two):
    me, _ = two
    _, [log] = await api.call("GET", f"/sessions/{me}/archive")
    assert (log["kind"], log["contexts"], log["path"]) == ("log", [1], str(api.home.log(me)))
    assert log["size"] == api.home.log(me).stat().st_size


async def test_only_a_person_prunes(api, two):
    me, _ = two
    assert (await api.call("POST", "/archive/prune", api.tokens[me], {}))[1]["code"] == "forbidden"
    assert (await api.call("POST", "/archive/prune", body={"dry_run": True}))[1] == {"removed": False, "files": []}
    assert (await api.call("POST", "/archive/prune", body={}))[1] == {"removed": True, "files": []}


async def test_output_and_events_show_no_secret(api, monkeypatch):
    session = await api.new("a")
    monkeypatch.setattr(FakePane, "history", history_of(f"one\n{SECRET[:20]}\n{SECRET[20:]}\nthree\n"))
    _, shown = await api.call("GET", f"/sessions/{session}/output")
    assert shown["text"] == "one\n[REDACTED:github-token]\n[REDACTED:github-token]\nthree"
    _, shown = await api.call("GET", f"/sessions/{session}/output?lines=2")
    assert shown["text"] == "[REDACTED:github-token]\nthree"
    stop = api.hook("Stop", session_id=api.conversation(session), background_tasks=[task(SECRET)])
    await api.call("POST", "/hooks/claude", api.tokens[session], stop)
    _, told = await api.call("GET", f"/sessions/{session}/events")
    assert SECRET not in str(told)


def history_of(text):
    async def history(_):
        return text

    return history


def task(description):
    return {"id": "b1", "type": "shell", "status": "running", "description": f"curl -H {description}"}
