"""`sm handoff … --to`: by an agent in its session, and by the user for one."""

from pathlib import Path

import pytest

SCHEDULED = "Handoff scheduled — will execute after current turn completes\n"


@pytest.fixture
def may_switch(desk):
    (desk.root / "config.toml").write_text("[team]\nmay_switch = true\n")


@pytest.fixture
def document(desk):
    (desk.root / "h.md").write_text("goal")
    return "h.md"


async def wanted(desk, session):
    rotation = desk.api.engine.sessions.actors[session].session.rotation
    switch = None if rotation is None else rotation.switch
    return None if switch is None else (switch.to, switch.arguments)


async def test_an_agent_has_another_client_continue(desk, session, document, may_switch):
    ran = await desk.run("handoff", document, "--to", "codex", session=session)
    assert (ran.code, ran.out, ran.err) == (0, SCHEDULED, "")
    assert await wanted(desk, session) == ("codex", ())


async def test_an_agent_gives_that_client_no_arguments(desk, session, document, may_switch):
    ran = await desk.run("handoff", document, "--to", "codex", "--", "--yolo", session=session)
    assert (ran.code, "An agent gives no client arguments" in ran.err) == (1, True)
    assert await wanted(desk, session) is None


async def test_an_agent_asks_the_user_where_it_may_not(desk, session, document):
    ran = await desk.run("handoff", document, "--to=codex", session=session)
    assert ran.code == 1
    assert f"ask the user: sm handoff FILE --to codex --session {session}" in ran.err


async def test_the_user_names_the_session_and_what_its_client_may_do(desk, session, document):
    ran = await desk.run("handoff", document, "--to", "codex", "--session", "a", "--", "-s", "read-only")
    assert (ran.code, ran.out, ran.err) == (0, "", "a continues with codex once its turn has ended\n")
    assert await wanted(desk, session) == ("codex", ("-s", "read-only"))
    status = await desk.run("handoff", "--status", "--session", "a", "--json")
    assert status.data["to"] == "codex"


async def test_a_document_comes_from_standard_input_or_is_made(desk, session):
    ran = await desk.run("handoff", "-", "--to", "codex", "--session", "a", "--json", stdin=b"# The goal\n")
    assert "# The goal" in Path(ran.data["copy"]).read_text()
    ran = await desk.run("handoff", "--auto", "--to", "codex", "--session", "a")
    assert (ran.code, "has no transcript yet" in ran.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["h.md", "--to", "codex"], "Which session?"),
        (["--to", "codex", "--session", "a"], "FILE is missing"),
        (["no.md", "--to", "codex", "--session", "a"], "File not found"),
        (["h.md", "--to", "gemini", "--session", "a"], "No provider 'gemini'"),
        (["--status", "--to", "codex", "--session", "a"], "go with a document alone"),
        (["h.md", "--to=", "--session", "a", "--", "-x"], "go with a document alone"),
        (["h.md", "--session", "a"], "self-directed only"),
    ],
)
async def test_what_is_wrong_is_said(desk, session, document, arguments, words):
    ran = await desk.run("handoff", *arguments)
    assert (ran.code != 0, words in ran.err) == (True, True), ran.err
    assert await wanted(desk, session) is None


async def test_the_help_says_what_follows_the_dashes(desk):
    assert "[--to PROVIDER -- CLIENT ARGS]" in (await desk.run("handoff", "--help")).out
