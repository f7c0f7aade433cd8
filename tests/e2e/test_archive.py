"""What is left of past contexts on the real client: log, search, files, and no secret in any of it."""

import asyncio
import json
import subprocess
import sys
import time

import pytest

from sm import __version__
from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import AWOKE, Person, person_settings
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SECRET = "ghp_abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"
WRAPPED = f"{'word ' * 36}{SECRET} and more words after it."
"""Goes over the end of a line of 200 columns."""
BANNER = "Claude Code v"


def hands_off(document, say=""):
    return Call("Bash", command=f"sm handoff - <<'EOF'\n{document}\nEOF").but(say=say)


LATER = Say("Once more.", delay=1.1)
"""A snapshot is dated to the second: its context has to be the one of that second."""
SCRIPT = scenario(
    Turn(
        "first job",
        steps=[
            Call("Bash", command=f"echo zebra; echo {SECRET}"),
            hands_off("next: the tapir", WRAPPED),
            Say("Handed off."),
        ],
    ),
    Turn(AWOKE, times=1, steps=[Call("Bash", command="echo giraffe"), hands_off("next: the lemur"), LATER]),
    Turn(AWOKE, steps=[Call("Bash", command="echo okapi"), Say("At the end.")]),
)


async def rotated_twice(rig):
    person_settings(rig, permissions={"defaultMode": "default", "allow": ["Bash"]})
    session = await rig.new("first job please")
    await rig.wait_view(session, lambda view: view["rotations"] == 2, "rotated twice")
    await rig.wait_event(session, "TurnEnded", 3)
    return session


async def sm(rig, *arguments):
    """Standard output of a person's command."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "sm", *arguments, env=rig.server_env(), cwd="/", stdout=subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, arguments
    return output


async def found(rig, words, *, kinds):
    """The hits, once the index holds one of each kind."""
    hits = []

    def complete():
        hits[:] = rig.call("GET", f"/search?limit=100&q={words}")
        return kinds <= {hit["kind"] for hit in hits}

    await rig.until(complete, f"{words!r} in {kinds}, last: {hits}")
    return hits


@pytest.mark.soak
async def test_past_contexts_can_be_read_and_found():
    async with Rig(SCRIPT) as rig:
        session = await rotated_twice(rig)
        whole = (await sm(rig, "log", "a")).decode()
        assert BANNER in whole.splitlines()[0]
        assert [whole.count(f"● Bash(echo {word}") for word in ("zebra", "giraffe", "okapi")] == [1, 1, 1]
        assert not any(character in whole for character in "\x1b\r\x07\x00")
        for number, word in enumerate(("zebra", "giraffe", "okapi"), start=1):
            text = (await sm(rig, "log", "a", "--context", str(number))).decode()
            assert BANNER in text.splitlines()[0]
            assert f"● Bash(echo {word}" in text
            assert text.count("● Bash(echo") == 1
        for number, word in enumerate(("zebra", "giraffe"), start=1):
            hits = await found(rig, word, kinds={"terminal", "transcript"})
            shown = {hit["context"] for hit in hits if hit["kind"] != "handoff"}
            assert (shown, {hit["session"] for hit in hits}) == ({number}, {session})
        assert {hit["kind"] for hit in await found(rig, "lemur", kinds={"handoff"})} >= {"handoff", "transcript"}
        assert b"**zebra**" in await sm(rig, "search", "zebra", "--session", "a")
        files = json.loads(await sm(rig, "archive", "list", "a", "--json"))["data"]
        assert [(file["kind"], file["contexts"]) for file in files] == [
            ("log", [1, 2, 3]),
            *[(kind, [number]) for number in (1, 2) for kind in ("snapshot", "transcript", "handoff")],
            ("transcript", [3]),
        ]
        raw = await sm(rig, "log", "a", "--raw")
        assert raw == rig.home.log(session).read_bytes()
        assert len((await sm(rig, "log", "a", "--lines", "7")).splitlines()) == 7


async def test_a77_a_secret_is_in_nothing_that_is_kept_or_shown_but_the_raw_log():
    async with Rig(SCRIPT) as rig:
        session = await rotated_twice(rig)
        await found(rig, "zebra", kinds={"terminal", "transcript"})
        with Person(rig, session):  # another width: all of it is wrapped and painted anew
            await asyncio.sleep(0.5)
        shown = [
            await sm(rig, "log", "a"),
            await sm(rig, "log", "a", "--json"),
            await sm(rig, "output", "a", "--lines", "10000"),
            await sm(rig, "tail", "a", "--lines", "1000", "--json"),
            await sm(rig, "search", "zebra", "word", "REDACTED"),
            *(path.read_bytes() for path in rig.home.root.glob("search.db*")),
            *(path.read_bytes() for path in rig.home.archive.rglob("dump.txt")),
        ]
        assert len(shown) >= 8
        for text in shown:
            assert SECRET.encode() not in text
            assert SECRET[4:14].encode() not in text
            assert SECRET[-10:].encode() not in text
        assert SECRET.encode() in await sm(rig, "log", "a", "--raw")
        by_client = rig.home.root / f"mod-{__version__}"  # where the client writes too, as it likes
        own = [path for path in rig.home.root.rglob("*") if by_client not in path.parents]
        assert {path.stat().st_mode & 0o077 for path in own} == {0}


@pytest.mark.soak
async def test_the_new_context_is_told_of_log_and_snapshot_and_is_given_neither():
    async with Rig(SCRIPT) as rig:
        session = await rotated_twice(rig)
        request = await rig.model.wait_for(lambda r: AWOKE in r.user_text)
        log, [dump, _] = rig.home.log(session), sorted(rig.home.archive.rglob("dump.txt"))
        told = request.all_text
        assert f"Full session log (complete since start, raw bytes): {log}\n" in told
        assert f'Don\'t read this file — search it only if you need a specific detail: grep -a "keyword" {log}' in told
        assert (
            f"Recent terminal transcript (readable): {dump}\nDon't read this proactively — grep it if needed." in told
        )
        second = [r for r in rig.model.main_requests if r.session == request.session]
        calls = [result.text for request in second for result in request.tool_results]
        assert not any("zebra" in text for text in [told, *calls])


@pytest.mark.soak
async def test_a_snapshot_that_was_not_taken_is_not_told():
    async with Rig(SCRIPT) as rig:
        rig.home.archive.write_text("no directory: nothing can be kept in it")
        person_settings(rig, permissions={"defaultMode": "default", "allow": ["Bash"]})
        await rig.new("first job please")
        request = await rig.model.wait_for(lambda r: AWOKE in r.user_text)
        assert "Full session log" in request.all_text
        assert "Recent terminal transcript" not in request.all_text


@pytest.mark.soak
async def test_a49_the_log_is_turned_over_while_the_client_works():
    async with Rig(SCRIPT, config='[archive]\nmax_log = "4 KiB"\n') as rig:
        session = await rotated_twice(rig)
        logs = rig.home.logs
        await rig.until(lambda: list(logs.glob(f"{session}.log.*")), "turned over")
        with Person(rig, session) as person:
            deadline = time.monotonic() + 90
            while not list(logs.glob(f"{session}.log.*.gz")):  # a letter that is taken back in one frame paints nothing
                assert time.monotonic() < deadline, "never packed"
                for key in ("x" * 20, "\x7f" * 20):
                    for one in key:
                        person.type(one)
                        await asyncio.sleep(0.02)
        whole = (await sm(rig, "log", "a")).decode()
        assert BANNER in whole.splitlines()[0]
        assert [whole.count(f"● Bash(echo {word}") for word in ("zebra", "giraffe", "okapi")] == [1, 1, 1]
        hits = await found(rig, "giraffe", kinds={"terminal"})
        assert {hit["context"] for hit in hits if hit["kind"] == "terminal"} == {2}


@pytest.mark.soak
async def test_what_was_shown_before_a_restart_of_the_server_is_found_once():
    async with Rig(SCRIPT) as rig:
        session = await rotated_twice(rig)
        await found(rig, "zebra", kinds={"terminal", "transcript"})
        before = rig.call("GET", "/search?limit=100&q=zebra")
        await rig.kill_server()
        await rig.start_server()
        await rig.ask("DELETE", f"/sessions/{session}")
        hits = await found(rig, "%22at%20the%20end%22", kinds={"terminal"})
        assert {hit["context"] for hit in hits} == {3}
        assert rig.call("GET", "/search?limit=100&q=zebra") == before
