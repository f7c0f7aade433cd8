"""`sm handoff --auto` as a process: of this session, or of any transcript."""

from pathlib import Path

import pytest

from tests.cli.test_handoff import NOT_INSIDE, SCHEDULED
from tests.fakes.conversation import Conversation

CASES = Path(__file__).parents[1] / "cases"


@pytest.fixture
def transcript(tmp_path):
    talk = Conversation()
    talk.person("Add a dry run to the importer.")
    talk.closed("Done, see the token.")
    return talk.save(tmp_path / "t.jsonl")


@pytest.fixture
async def session(desk, transcript):
    """A session whose conversation has that transcript."""
    session = await desk.api.new("a")
    members = {"session_id": desk.api.conversation(session), "transcript_path": str(transcript), "source": "startup"}
    body = desk.api.hook("SessionStart", **members)
    status, _ = await desk.api.call("POST", "/hooks/claude", token=desk.api.tokens[session], body=body)
    assert status == 200
    return session


async def test_in_a_session_it_makes_the_document_and_schedules_the_rotation(desk, session):
    ran = await desk.run("handoff", "--auto", session=session)
    assert (ran.code, ran.out, ran.err) == (0, SCHEDULED, "")
    path = desk.root / f".sm/handoff-auto-{session}.md"
    assert '- "Add a dry run to the importer."' in path.read_text()
    pending = (await desk.api.call("GET", f"/sessions/{session}/handoff"))[1]
    assert pending["path"] == str(path)
    assert "<!-- TYPE: auto -->" in Path(pending["copy"]).read_text()


async def test_the_document_goes_where_out_says(desk, transcript):
    ran = await desk.run("handoff", "--auto", "--transcript", str(transcript), "--out", "d.md", "--json")
    assert ran.data["path"] == str(desk.root / "d.md")
    assert (desk.root / "d.md").read_text() == ran.data["document"]
    assert not (desk.root / ".sm").exists()


async def test_the_sessions_own_token_is_in_no_document(desk, session, transcript):
    token = "kP9xQ2vT7bR4mZ8wL3nC6yHdE1kP9xQ2vT7bR4mZ8wL"
    transcript.write_bytes(transcript.read_bytes().replace(b"the token", token.encode()))
    ran = await desk.run("handoff", "--auto", "--transcript", str(transcript), env={"SM_SESSION_TOKEN": token})
    assert ran.code == 0
    assert token not in ran.out


async def test_before_there_is_a_transcript_it_is_refused(desk):
    session = await desk.api.new("b")
    actor = desk.api.engine.sessions.actors[session]
    assert actor.session.conversation is None or actor.session.conversation.transcript is None
    ran = await desk.run("handoff", "--auto", "--json", session=session)
    assert (ran.code, ran.error["code"]) == (1, "no_conversation")


async def test_of_a_transcript_it_needs_no_server_and_schedules_nothing(bare, transcript):
    ran = await bare.run("handoff", "--auto", "--transcript", str(transcript))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("# Session Continuation\n")
    written = await bare.run("handoff", "--auto", "--transcript", str(transcript), "--out", "d.md")
    assert (written.code, written.out) == (0, "")
    assert (bare.root / "d.md").read_text() == ran.out
    data = (await bare.run("handoff", "--auto", "--transcript", str(transcript), "--json")).data
    assert data == {"path": None, "characters": len(ran.out), "document": ran.out}
    assert not (bare.root / "state").exists()


async def test_it_holds_what_is_configured_and_a_bad_file_costs_a_warning(bare, tmp_path):
    talk = Conversation()
    talk.person("Add a dry run to the importer.")
    talk.edited("importer.py")
    ask = ("handoff", "--auto", "--transcript", str(talk.save(tmp_path / "edited.jsonl")))
    assert "`importer.py`: edited" in (await bare.run(*ask)).out
    (bare.root / "config.toml").write_text("[continuation]\ninclude_recent_files = false\n")
    assert "importer.py" not in (await bare.run(*ask)).out
    (bare.root / "config.toml").write_text("[continuation]\ninclude_recent_file = false\n")
    ran = await bare.run(*ask)
    assert (ran.code, "`importer.py`: edited" in ran.out) == (0, True)
    assert ran.err.startswith("warning: ")
    assert "include_recent_files" in ran.err


async def test_outside_a_session_it_ends_with_2_and_says_what_works_there(bare):
    ran = await bare.run("handoff", "--auto")
    assert (ran.code, ran.out, ran.err.startswith(NOT_INSIDE.rstrip("\n"))) == (2, "", True)
    assert "--transcript" in ran.err


@pytest.mark.parametrize("path", ["nowhere.jsonl", "."])
async def test_an_unreadable_transcript_is_refused(bare, path):
    ran = await bare.run("handoff", "--auto", "--transcript", path, "--json")
    assert (ran.code, ran.error["code"]) == (1, "unreadable")


@pytest.mark.parametrize(
    "content",
    ["", "root:x:0:0:root:/root:/bin/bash\n", '{\n "name": "x",\n "type": "module"\n}\n', "\0\0\n", "[]\n"],
    ids=["empty", "passwd", "package.json", "nul", "array"],
)
@pytest.mark.parametrize("command", [("handoff", "--auto"), ("context",), ("context", "--provider", "codex")])
async def test_a_file_that_is_no_transcript_is_refused(bare, content, command):  # C35
    (bare.root / "f").write_text(content)
    ran = await bare.run(*command, "--transcript", "f", "--json")
    assert ran.code == 1
    assert (ran.error["code"], "f is not a transcript" in ran.error["message"]) == ("unreadable", True)


async def test_it_can_be_made_of_another_clients_transcript(bare):
    (bare.root / "r.jsonl").write_bytes((CASES / "recorded/codex_day.jsonl").read_bytes())
    ran = await bare.run("handoff", "--auto", "--transcript", "r.jsonl", "--json")
    assert (ran.code, "- `prices.py`: edited" in ran.data["document"]) == (0, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--auto", "x.md"),
        ("--auto", "--status"),
        ("--auto", "--session", "a"),
        ("--out", "d.md"),
        ("--transcript", "t"),
    ],
)
async def test_a_wrong_call_ends_with_2_and_a_hint(bare, arguments):
    ran = await bare.run("handoff", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert "\nhint: " in ran.err
