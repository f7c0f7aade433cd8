"""What a call of a tool does, and what it does not do for an agent that tries."""

import asyncio
import os
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from sm.agent_tools.tools import COMMAND_TOOL, HANDOFF_TOOL
from sm.core.model.context_warnings import CONTENT, handoff_file
from sm.core.model.rotation import Phase
from tests.agent_tools.rig import tools
from tests.cli.rig import desk_with_server

SCHEDULED = "Handoff scheduled — will execute after current turn completes. End your turn now."
UNFIT = "Error: Cannot hand off {}: {}\nhint: give the document to the tool handoff\n(exit code 1)"
PLUGIN = Path(__file__).parents[2] / "plugin" / "hooks" / "sm.ts"


@pytest.fixture
async def desk(tmp_path):
    async with desk_with_server(tmp_path) as found:
        (tmp_path / ".sm").mkdir()
        yield found


@pytest.fixture
async def session(desk):
    return await desk.api.new("a")


@pytest.fixture
async def server(desk, session):
    """The tools of the session's agent, below its client: this process."""
    async with tools({**desk.env, **desk.agent_env(session), "SECRET": "x"}, desk.root) as found:
        yield found


async def rotation(desk, session):
    """Return the phase of the session's rotation, and the document it continues from, without head lines."""
    found = (await desk.api.call("GET", f"/sessions/{session}/handoff"))[1]
    if found["phase"] is None:
        return None, None
    return found["phase"], Path(found["copy"]).read_text().rpartition("-->\n")[2].strip()


def test_the_tool_is_described_as_the_plugin_describes_its_own():
    source = PLUGIN.read_text()
    declared = source[source.index("const HANDOFF_TOOL") : source.index("const TAKEN")]
    texts = [
        "".join(re.findall(r"'([^']*)'", text)) for text in re.findall(r"description:\s*((?:'[^']*'[\s+]*)+)", declared)
    ]
    assert texts == [
        HANDOFF_TOOL["description"],
        HANDOFF_TOOL["inputSchema"]["properties"]["document"]["description"],
    ]
    assert all(part in texts[1] for part in re.split(r", (?:and )?|\.$", CONTENT.replace("the exact", "exact")))
    assert "`sm` in a shell" in COMMAND_TOOL["description"]


async def test_a_document_is_handed_off_without_a_file_in_the_project(desk, session, server):
    assert await server.call("handoff", document="# The goal\n") == (SCHEDULED, False)
    assert await rotation(desk, session) == ("pending", "# The goal")
    assert list((desk.root / ".sm").iterdir()) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"document": " \n"}, "The document is empty"),
        ({"document": 5}, "`document` is not a string"),
        ({}, "`document`"),
    ],
)
async def test_a_document_that_is_none_is_refused(desk, session, server, given, words):
    text, is_error = await server.call("handoff", **given)
    assert (words in text, is_error) == (True, True)
    assert await rotation(desk, session) == (None, None)


async def test_what_the_server_refuses_is_an_error_with_its_hint(desk, session, server):
    assert not (await server.call("handoff", document="first"))[1]
    begun = desk.api.engine.sessions.actors[session].session.rotation
    await desk.api.alter(session, rotation=replace(begun, phase=Phase.CLEARING))
    text, is_error = await server.call("handoff", document="second")
    assert (text.startswith("Error: "), "\nhint: " in text, is_error) == (True, True, True)
    assert (await rotation(desk, session))[1] == "first"


async def test_a_helper_of_the_agent_hands_nothing_off(desk, session, server):
    said = "Error: Only the main agent hands off\nhint: report to it instead\n(exit code 1)"
    assert await server.call("handoff", document="goal", thread="subagent") == (said, True)
    assert await server.sm("handoff", "-", input="goal", thread="subagent") == (said, True)
    assert await server.sm("handoff", "--auto", thread="subagent") == (said, True)
    assert await rotation(desk, session) == (None, None)
    assert not (await server.sm("handoff", "--status", thread="subagent"))[1]


async def test_a_command_answers_what_it_prints(desk, session, server):
    assert await server.sm("status", "at it") == ("Reported", False)
    assert desk.api.engine.sessions.actors[session].session.report.text == "at it"
    text, is_error = await server.sm("message", "0000")
    assert (text.endswith("\n(exit code 1)"), "hint: " in text, is_error) == (True, True, True)


async def test_a_text_comes_by_standard_input(desk, session, server):
    other = await desk.api.new("b")
    text, is_error = await server.sm("send", "b", "-", input="two\nlines é")
    assert (re.fullmatch(r"[0-9a-f]+ \w+", text) is not None, is_error) == (True, False)
    found = (await desk.api.call("GET", f"/sessions/{other}/messages"))[1]
    assert [message["text"] for message in found] == ["two\nlines é"]


@pytest.mark.parametrize("arguments", [None, "status", [1], {"a": 1}, [["status"]]])
async def test_arguments_that_are_no_list_of_strings_are_refused(server, arguments):
    text, is_error = await server.call("sm", arguments=arguments)
    assert ("`arguments` is not a list of strings" in text, is_error) == (True, True)


@pytest.mark.parametrize("word", ["x" * 200_000, "\ud800"])
async def test_what_no_process_can_be_given_is_an_error(server, word):
    text, is_error = await server.sm("status", word)
    assert ("sm was not run" in text, "as `input`" in text, is_error) == (True, True, True)


async def test_a_child_session_gets_only_the_variables_that_are_listed(desk, server):
    panes, environments = desk.api.engine.ports.panes, []
    create = panes.create

    async def remember(session, launch, log):
        environments.append(launch.env)
        return await create(session, launch, log)

    panes.create = remember
    assert not (await server.sm("spawn", "do it"))[1]
    [environment] = environments
    assert (environment["HOME"], "SECRET" in environment) == (desk.env["HOME"], False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("spawn", "--dir", "/", "do it"),
        ("send", "a", "--command", "/exit"),
        ("handoff", "--auto", "--transcript", "/etc/passwd"),
        ("server", "stop"),
        ("new",),
    ],
    ids=" ".join,
)
async def test_what_an_agent_may_not_give_runs_nothing(desk, session, server, arguments):
    before = sorted(desk.root.rglob("*"))
    text, is_error = await server.sm(*arguments)
    assert (text.startswith("Error: "), "\nhint: " in text, is_error) == (True, True, True)
    assert (sorted(desk.root.rglob("*")), len(desk.api.engine.sessions.actors)) == (before, 1)


@pytest.mark.parametrize("name", ["click.py", "json.py"])
async def test_a_module_that_the_agent_has_written_is_not_run(desk, server, name):
    module = desk.root / name
    module.write_text(f"open({str(desk.root / 'ran')!r}, 'w')")
    text, is_error = await server.sm("status", "--json")
    assert (text.startswith("{"), is_error) == (True, False)
    assert not (desk.root / "ran").exists()


# --- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelled", [".sm/{}", "./.sm/../.sm/{}", "{root}/.sm/{}"])
async def test_the_agents_own_document_is_handed_off(desk, session, server, spelled):
    name = Path(handoff_file(session)).name
    (desk.root / ".sm" / name).write_text("the goal")
    path = spelled.format(name, root=desk.root)
    assert await server.sm("handoff", path) == (SCHEDULED, False)
    assert await rotation(desk, session) == ("pending", "the goal")


@pytest.mark.parametrize(
    "name",
    ["secret.md", "../secret.md", ".sm/../secret.md", "/etc/passwd", ".sm/deep/x.md", ".sm/key", ".sm", "~/.sm/x.md"],
)
async def test_any_other_file_is_refused(desk, session, server, name):
    for path in (desk.root / "secret.md", desk.root / ".sm" / "key"):
        path.write_text("secret")
    rule = f"only a document .sm/NAME.md in {desk.root} can be handed off"
    assert await server.sm("handoff", name) == (UNFIT.format(name, rule), True)
    assert await rotation(desk, session) == (None, None)


def a_link(place, secret):
    (place / ".sm" / "x.md").symlink_to(secret)


def a_hard_link(place, secret):
    (place / ".sm" / "x.md").hardlink_to(secret)


def a_linked_folder(place, secret):
    (place / ".sm").rmdir()
    (place / ".sm").symlink_to(secret.parent)
    (secret.parent / "x.md").write_text("secret")


def a_pipe(place, secret):
    os.mkfifo(place / ".sm" / "x.md")


def a_directory(place, secret):
    (place / ".sm" / "x.md").mkdir()


def a_large_file(place, secret):
    with (place / ".sm" / "x.md").open("wb") as file:
        file.truncate((1 << 20) + 1)


def an_old_file(place, secret):
    path = place / ".sm" / "x.md"
    path.write_text("old")
    os.utime(path, times=(time.time() - 60,) * 2)


def no_file(place, secret):
    pass


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (a_link, "it cannot be read"),
        (a_hard_link, "it is not a file of the agent's own"),
        (a_linked_folder, "only a document .sm/NAME.md in"),
        (a_pipe, "it cannot be read"),
        (a_directory, "it cannot be read"),
        (a_large_file, "it cannot be read"),
        (an_old_file, "it was written before this conversation began"),
        (no_file, "it does not exist"),
    ],
)
async def test_what_is_no_document_of_the_agents_own_is_not_read(desk, session, server, make, reason):
    secret = desk.root / "elsewhere" / "secret.md"
    secret.parent.mkdir()
    secret.write_text("secret")
    make(desk.root, secret)
    text, is_error = await asyncio.wait_for(server.sm("handoff", ".sm/x.md"), 10)
    assert (text.startswith(f"Error: Cannot hand off .sm/x.md: {reason}"), is_error) == (True, True), text
    assert await rotation(desk, session) == (None, None)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another user")
async def test_a_document_of_another_user_is_refused(desk, session, server):
    path = desk.root / ".sm" / "x.md"
    path.write_text("theirs")
    os.chown(path, 12345, -1)
    assert await server.sm("handoff", ".sm/x.md") == (
        UNFIT.format(".sm/x.md", "it is not a file of the agent's own"),
        True,
    )
    assert await rotation(desk, session) == (None, None)


@pytest.mark.parametrize("more", [(".sm/x.md", ".sm/y.md"), ("-", ".sm/x.md"), (".sm/x.md", "-")])
async def test_two_documents_are_refused(desk, session, server, more):
    (desk.root / ".sm" / "x.md").write_text("goal")
    text, is_error = await server.sm("handoff", *more, input="goal")
    assert (text.startswith("Error: sm handoff takes one document"), is_error) == (True, True)
    assert await rotation(desk, session) == (None, None)


# --- who may --------------------------------------------------------------------------------------------------------


async def test_tools_that_the_sessions_client_has_not_started_change_nothing(desk, session, server):
    other = await asyncio.create_subprocess_exec("sleep", "60")
    await desk.api.alter(session, pid=other.pid)
    for text, is_error in (await server.call("handoff", document="goal"), await server.sm("done")):
        assert (f"was not started by the client of session a (pid {other.pid})" in text, is_error) == (True, True)
    assert await rotation(desk, session) == (None, None)
    other.kill()
    await other.wait()
