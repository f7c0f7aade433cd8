"""Commands at the edge: closed or full streams, narrow terminals, impossible names and addresses, a directory gone."""

import shlex

import pytest

from tests.cli.rig import SM

DEPTH = 200_000
NESTED = {
    "whole": '{"a":' + "[" * DEPTH + "]" * DEPTH + "}",
    "torn": '{"type":"assistant","message":' + '{"usage":' * DEPTH,
}


def shell(line):
    """The command behind `sh`, which redirects its streams."""
    return ("/bin/sh", "-c", f'{shlex.join(SM)} "$@" {line}', "sm")


@pytest.mark.parametrize("arguments", [("list", "--json"), ("config", "show"), ("status", "--json")])
async def test_a_closed_standard_output_is_said_and_is_no_fault_of_ours(desk, arguments):
    ran = await desk.run(*arguments, command=shell(">&-"))
    assert ran.code != 0
    assert "please report" not in ran.err
    assert ran.err.startswith("Error: ")


async def test_a_closed_standard_output_is_said_by_the_doctor_too(bare):
    ran = await bare.run("doctor", command=shell(">&-"))
    assert (ran.code, ran.err) == (1, "Error: standard output is closed\n")


async def test_a_closed_standard_output_is_said_where_bytes_go_out(desk, session):
    desk.api.engine.ports.documents.log(session).parent.mkdir(parents=True, exist_ok=True)
    desk.api.engine.ports.documents.log(session).write_bytes(b"seen\n")
    ran = await desk.run("log", session, "--raw", command=shell(">&-"))
    assert (ran.code, ran.err) == (1, "Error: standard output is closed\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("run",), 1, "Error: sm run needs a terminal"),
        (("setup",), 2, "Error: Cannot ask for confirmation: standard input is not a terminal"),
        (("send", "x", "-"), 2, "Error: `sm send TARGET -` reads the text from standard input"),
        (("statusline",), 0, None),
    ],
)
async def test_a_closed_standard_input_is_no_terminal(bare, arguments, code, said):
    ran = await bare.run(*arguments, command=shell("<&-"))
    assert ran.code == code, ran.err
    assert said is None or said in ran.err


@pytest.mark.parametrize("stream", ["2>/dev/full", "2>&-"])
async def test_an_error_that_nobody_can_be_told_keeps_its_exit_code(desk, stream):
    assert (await desk.run("kill", "nope", command=shell(stream))).code == 1


async def test_the_doctor_can_be_read_in_20_columns(bare):
    ran = await bare.run("doctor", env={"COLUMNS": "20", "PATH": "/nowhere"})
    assert (ran.code, "please report" in ran.err) == (1, False)
    assert "tmux is not on PATH" in " ".join(ran.out.split())


@pytest.mark.parametrize("columns", ["²", "0", "9" * 5_000, "x"])
async def test_a_width_that_is_none_is_passed_over(desk, columns):
    ran = await desk.run("list", env={"COLUMNS": columns})
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999", "http://127.0.0.1:x", "http://", "unix:/nowhere"])
@pytest.mark.parametrize("command", [("status",), ("context",), ("handoff", "config.toml"), ("send", "a", "b")])
async def test_an_address_that_leads_nowhere_is_a_server_that_is_unavailable(bare, url, command):
    agent = {"CLAUDE_SESSION_MANAGER_ID": "0123abcd", "SM_SESSION_TOKEN": "t", "SM_URL": url}
    ran = await bare.run(*command, env=agent)
    assert (ran.code, ran.out) == (2, "")
    first, hint = ran.err.splitlines()
    assert first == "Error: Session manager unavailable"
    assert hint.startswith("hint: ask the user who runs sm: sm server start (")


@pytest.mark.parametrize("session", ["", "a/b", "../x"])
async def test_what_can_be_no_session_is_not_found(desk, session):
    ran = await desk.run("kill", session)
    assert (ran.code, ran.err.splitlines()[0]) == (1, f"Error: Session {session!r} not found")


async def test_an_id_in_the_environment_that_is_none_is_not_found(desk, session):
    ran = await desk.run("status", session=session, env={"CLAUDE_SESSION_MANAGER_ID": "../x"})
    assert ran.err.startswith("Error: Session '../x' not found")


@pytest.mark.parametrize("arguments", [("new", "--detach"), ("config", "show"), ("handoff", "h.md")])
async def test_a_working_directory_that_is_gone_is_named(desk, session, arguments):
    gone = desk.root / "gone"
    gone.mkdir()
    command = ("/bin/sh", "-c", f'cd {gone} && rmdir {gone} && exec {shlex.join(SM)} "$@"', "sm")
    inside = session if arguments[0] == "handoff" else None
    ran = await desk.run(*arguments, command=command, session=inside)
    assert ran.code == 1
    assert ran.err == "Error: The working directory is gone\nhint: cd to a directory that exists\n"


@pytest.mark.parametrize("provider", [(), ("--provider", "claude"), ("--provider", "codex")])
@pytest.mark.parametrize("line", NESTED.values(), ids=NESTED)
async def test_a_transcript_nested_without_end_holds_no_reading(bare, provider, line):
    path = bare.root / "t.jsonl"
    path.write_text(f'{{"type":"mode","mode":"default"}}\n{line}\n')
    ran = await bare.run("context", "--transcript", str(path), "--json", *provider)
    assert (ran.code, ran.data["tokens"]) == (0, None)


@pytest.mark.parametrize("arguments", ["new --detach --client sh", "handoffs active", "resume x.md --client sh"])
async def test_a_working_directory_that_is_no_utf8_is_named(desk, arguments):
    command = ("/bin/sh", "-c", f'd=$(printf "\\377"); mkdir $d; cd $d; : > x.md; exec {shlex.join(SM)} "$@"', "sm")
    ran = await desk.run(*arguments.split(), command=command)
    assert (ran.code, "Error: A name is not UTF-8 and cannot be sent as JSON: '" in ran.err) == (1, True), ran.err
    assert "SM_HOME" not in ran.err


async def test_a_home_that_is_a_file_is_named_as_one(bare):
    (bare.root / "state").write_text("x")
    ran = await bare.run("server", "start")
    assert f"Cannot use {bare.root / 'state'}: it is not a directory" in ran.err
    assert (bare.root / "state").read_text() == "x"
