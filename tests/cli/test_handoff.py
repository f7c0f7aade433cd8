"""`sm handoff` as the process an agent calls."""

import asyncio
import os
import pty
import sys

import pytest

from sm.bootstrap import command_script

SCHEDULED = "Handoff scheduled — will execute after current turn completes\n"
UNAVAILABLE = "Error: Session manager unavailable\n"
NOT_INSIDE = "Error: CLAUDE_SESSION_MANAGER_ID not set. sm handoff can only be called from within a session.\n"


@pytest.fixture
def script(tmp_path):
    """`sm` as it stands on a session's PATH."""
    path = tmp_path / "sm"
    path.write_text(command_script(sys.executable))
    path.chmod(0o700)
    return (str(path),)


async def phase_and_path(desk, session):
    found = (await desk.api.call("GET", f"/sessions/{session}/handoff"))[1]
    return found["phase"], found["path"]


@pytest.mark.parametrize("name", ["h.md", "a b.md", 'it\'s "q".md', "é-日本.md", "two\nlines.md", "$(x)`y`.md", "*.md"])
async def test_a_file_of_any_name_is_scheduled(desk, session, script, name):
    (desk.root / name).write_text("goal")
    ran = await desk.run("handoff", name, session=session, command=script)
    assert (ran.code, ran.out, ran.err) == (0, SCHEDULED, "")
    assert await phase_and_path(desk, session) == ("pending", str(desk.root / name))


@pytest.mark.parametrize("arguments", [("--", "-x.md"), ("./-x.md",)])
async def test_a_leading_dash_is_a_file_after_two_dashes_or_a_directory(desk, session, arguments):
    (desk.root / "-x.md").write_text("goal")
    assert (await desk.run("handoff", *arguments, session=session)).out == SCHEDULED
    assert await phase_and_path(desk, session) == ("pending", str(desk.root / "-x.md"))


async def test_a_name_that_is_not_utf8_is_refused_with_its_reason(desk, session):
    name = b"\xff.md"
    (desk.root / os.fsdecode(name)).write_text("goal")
    ran = await desk.run("handoff", name, session=session)
    assert (ran.code, "its name is not UTF-8" in ran.err) == (1, True)
    assert "its name is not UTF-8" in (await desk.run("handoff", "--reason", "x", name, session=session)).err


async def test_a_missing_file_is_named_in_full(desk, session):
    ran = await desk.run("handoff", "nope.md", session=session)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"Error: File not found: {desk.root}/nope.md\nhint: ")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.touch(), "it is empty"),
        (lambda path: path.mkdir(), "it is a directory"),
        (os.mkfifo, "not a regular file"),
        (lambda path: path.symlink_to("/dev/null"), "not a regular file"),
        (lambda path: path.write_bytes(b"x" * ((1 << 20) + 1)), "larger than 1,048,576 bytes"),
        (lambda path: (path.write_text("x"), os.utime(path, (1, 1))), "before this conversation began"),
    ],
    ids=["empty", "directory", "fifo", "device", "large", "old"],
)
async def test_an_unfit_file_is_refused_with_its_reason(desk, session, make, reason):
    make(desk.root / "h.md")
    ran = await desk.run("handoff", "h.md", session=session)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"Error: Cannot hand off {desk.root}/h.md: it ")
    assert reason in ran.err
    assert await phase_and_path(desk, session) == (None, None)


@pytest.mark.parametrize("arguments", [("h.md",), ("-",), ("--status",), ("--cancel",), ()])
async def test_outside_a_session_it_ends_with_2_and_starts_nothing(bare, arguments):
    (bare.root / "h.md").write_text("goal")
    ran = await bare.run("handoff", *arguments, stdin=b"goal")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(
        NOT_INSIDE if arguments not in {("--status",), ("--cancel",)} else "Error: Not running inside an sm session"
    )
    assert not (bare.root / "state").exists()


async def test_without_a_server_it_ends_with_2_and_starts_none(desk, session):
    (desk.root / "h.md").write_text("goal")
    gone = {"SM_URL": "http://127.0.0.1:1"}
    for arguments in (("h.md",), ("h.md", "--reason", "x"), ("--status",)):
        ran = await desk.run("handoff", *arguments, session=session, env=gone)
        assert (ran.code, ran.out, ran.err.startswith(UNAVAILABLE)) == (2, "", True)


@pytest.mark.parametrize("missing", ["SM_URL", "SM_SESSION_TOKEN"])
async def test_half_an_environment_is_no_server(desk, session, missing):
    (desk.root / "h.md").write_text("goal")
    ran = await desk.run("handoff", "h.md", session=session, env={missing: ""})
    assert (ran.code, ran.err.startswith(UNAVAILABLE)) == (2, True)


async def test_a_document_on_standard_input_is_kept_where_warnings_say(desk, session):
    """C2: the session's own file, whichever directory its shell is in."""
    file = desk.root / f".sm/handoff-{session}.md"
    (desk.root / "below").mkdir()
    ran = await desk.run("handoff", "-", session=session, stdin="goal é\n".encode(), cwd=desk.root / "below")
    assert ran.out == SCHEDULED
    assert file.read_text() == "goal é\n"
    assert await phase_and_path(desk, session) == ("pending", str(file))


async def test_a_document_is_written_through_no_link(desk, session, tmp_path):
    """C43: `.sm` of a cloned repository may lead anywhere."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (desk.root / ".sm").symlink_to(outside)
    ran = await desk.run("handoff", "-", session=session, stdin=b"goal")
    assert (ran.code, ".sm is a symbolic link" in ran.err, list(outside.iterdir())) == (1, True, [])


async def test_a_link_in_the_documents_place_is_replaced_and_not_followed(desk, session, tmp_path):
    victim = tmp_path / "bashrc"
    victim.write_text("mine")
    (desk.root / ".sm").mkdir()
    file = desk.root / f".sm/handoff-{session}.md"
    file.symlink_to(victim)
    assert (await desk.run("handoff", "-", session=session, stdin=b"goal")).out == SCHEDULED
    assert (victim.read_text(), file.read_text(), file.is_symlink()) == ("mine", "goal", False)


@pytest.mark.parametrize(
    ("document", "reason"), [(b"", "is empty"), (b" \n", "is empty"), (b"x" * ((1 << 20) + 1), "is larger")]
)
async def test_an_unfit_document_on_standard_input_is_refused_and_nothing_is_written(desk, session, document, reason):
    ran = await desk.run("handoff", "-", session=session, stdin=document)
    assert (ran.code, reason in ran.err) == (1, True)
    assert not (desk.root / ".sm").exists()


async def test_a_fifo_in_the_documents_place_is_replaced_and_not_waited_for(desk, session):
    (desk.root / ".sm").mkdir()
    os.mkfifo(desk.root / f".sm/handoff-{session}.md")
    assert (await desk.run("handoff", "-", session=session, stdin=b"goal")).out == SCHEDULED


async def test_a_terminal_on_standard_input_is_refused(desk, session):
    controller, terminal = pty.openpty()
    process = await desk.start("handoff", "-", session=session, stdin=terminal)
    _, err = await process.communicate()
    os.close(controller)
    os.close(terminal)
    assert (process.returncode, b"reads the document from standard input" in err) == (2, True)


async def test_status_cancel_and_retry_tell_the_phase(desk, session):
    (desk.root / "h.md").write_text("goal")
    assert (await desk.run("handoff", "--status", session=session)).out == "No handoff yet\n"
    await desk.run("handoff", "h.md", "--reason", "full", session=session)
    assert (await desk.run("handoff", "--status", session=session)).out.startswith("pending")
    assert (await desk.run("handoff", "--retry", "--json", session=session)).data["phase"] == "pending"
    assert (await desk.run("handoff", "--cancel", "--json", session=session)).data["phase"] == "cancelled"
    again = await desk.run("handoff", "--cancel", "--json", session=session)
    assert (again.code, again.error["code"]) == (1, "no_handoff")


async def test_a_reason_is_kept(desk, session):
    (desk.root / "h.md").write_text("goal")
    data = (await desk.run("handoff", "h.md", "--reason", "full", "--json", session=session)).data
    assert data["status"] == "scheduled"
    await asyncio.sleep(0.1)
    assert (await desk.api.call("GET", "/handoffs"))[1][0]["reason"] == "full"


async def test_a_person_names_the_session_for_everything_but_scheduling(desk, session):
    assert (await desk.run("handoff", "--status", "--session", "a")).out == "No handoff yet\n"
    ran = await desk.run("handoff", "h.md", "--session", "a")
    assert (ran.code, ran.err) == (
        1,
        "Error: sm handoff is self-directed only — requester must equal target session\n",
    )


async def test_a_session_cannot_ask_for_anothers_handoff(desk, session):
    other = await desk.api.new("b")
    ran = await desk.run("handoff", "--status", "--session", other, "--json", session=session)
    assert (ran.code, ran.error["code"]) == (1, "not_self")


@pytest.mark.parametrize("arguments", [(), ("a", "b"), ("--status", "x"), ("--bogus",), ("-x.md",)])
async def test_a_wrong_call_ends_with_2_and_a_hint(desk, session, arguments):
    ran = await desk.run("handoff", *arguments, session=session)
    assert (ran.code, ran.out) == (2, "")
    assert "\nhint: " in ran.err


async def test_a_session_the_server_does_not_know_is_not_found(desk, session):
    (desk.root / "h.md").write_text("goal")
    ran = await desk.run("handoff", "h.md", session=session, env={"CLAUDE_SESSION_MANAGER_ID": "deadbeef"})
    assert (ran.code, ran.err.splitlines()[0]) == (1, "Error: Session deadbeef not found")
