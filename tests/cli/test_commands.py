"""The command line as a whole: help, completion, version, wrong usage."""

import click
import pytest

from sm import __version__
from sm.cli.app import ALIASES, COMMANDS, cli
from tests.cli.rig import SM


def every_command(group=cli, words=()):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from every_command(command, (*words, name))


EVERY = dict(every_command())
PROMISED = (
    "new list attach output tail rename kill restore context status handoff handoffs resume server doctor config demo"
    " completion help"
)


def test_the_promised_commands_exist():
    assert set(PROMISED.split()) <= set(COMMANDS)


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_each_command_and_each_option_says_what_it_does(words):
    command = EVERY[words]
    assert command.help
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert [option.name for option in options if not option.help] == []


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
@pytest.mark.often("new", "handoff", "web devices", "watch", "auto")
async def test_sm_help_shows_what_the_commands_own_help_shows(bare, words):
    if len(words) > 1 or words[0] in {"server", "config", "handoff"}:
        by_word, by_option = await bare.run("help", *words), await bare.run(*words, "--help")
        assert (by_word.code, by_word.out) == (0, by_option.out)
    assert (await bare.run("help", *words, env={"COLUMNS": "60"})).code == 0


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_every_help_fits_60_columns_and_is_ascii(words):
    context = click.Context(EVERY[words], info_name=" ".join(("sm", *words)), terminal_width=60, max_content_width=60)
    text = context.get_help()
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 60


async def test_without_a_terminal_sm_alone_prints_its_help_and_watch_says_what_does_the_same(bare):
    assert (await bare.run()).out == (await bare.run("--help")).out
    ran = await bare.run("watch")
    assert (ran.code, "sm list --json" in ran.err) == (1, True)
    inside = await bare.run("watch", env={"CLAUDE_SESSION_MANAGER_ID": "ab12cd34"})
    assert (inside.code, "sm status" in inside.err) == (1, True)


async def test_version(bare):
    assert (await bare.run("--version")).out == f"sm {__version__}\n"


@pytest.mark.parametrize(
    "arguments", [("nope",), ("list", "--nope"), ("output",), ("help", "nope"), ("server", "nope")]
)
async def test_a_wrong_call_ends_with_2_and_a_hint_also_as_json(bare, arguments):
    ran = await bare.run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Error: ")
    assert "\nhint: sm" in ran.err
    assert (await bare.run(*arguments, "--json")).error["code"] == "usage"


async def test_json_after_two_dashes_is_the_clients(bare):
    ran = await bare.run("new", "/nowhere", "--", "--json")
    assert (ran.code, ran.out) == (1, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_completion_prints_the_shells_script(bare, shell):
    ran = await bare.run("completion", shell)
    assert (ran.code, "_SM_COMPLETE" in ran.out) == (0, True)
    assert f"sm completion {shell}" in (await bare.run("completion")).out


async def test_completion_script_of_bash_is_sound_and_completes(bare):
    script = (await bare.run("completion", "bash")).out
    (bare.root / "sm").write_text(f'#!/bin/sh\nexec {" ".join(SM)} "$@"\n')
    (bare.root / "sm").chmod(0o755)
    code = f'{script}\nCOMP_WORDS=(sm rest); COMP_CWORD=1; _sm_completion "{bare.root}/sm"; echo "${{COMPREPLY[@]}}"'
    assert (await bare.run("-c", code, command=("bash",))).out.split() == ["restore"]


async def test_a_shell_completes_the_names_of_sessions(desk):
    for name in ("rate limiter", "rates", "docs"):
        await desk.api.new(name)
    words = {"_SM_COMPLETE": "bash_complete", "COMP_WORDS": "sm attach rat", "COMP_CWORD": "2"}
    assert (await desk.run(env=words)).out.split("\n") == ["plain,rate limiter", "plain,rates", ""]


async def test_a_shell_completes_no_session_where_no_server_runs_and_starts_none(bare):
    words = {"_SM_COMPLETE": "bash_complete", "COMP_WORDS": "sm kill ", "COMP_CWORD": "2"}
    ran = await bare.run(env=words)
    assert (ran.out.strip(), ran.err) == ("", "")


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("lst", "sm list"),
        ("stauts", "sm status"),
        ("xyzzy", "sm --help"),
        ("tree", "sm --help"),
        ("ps", "sm list"),
        ("version", "sm --version"),
        (
            "claude-wrapper",
            "auto-handoff has this name; in sm: sm run -- CLIENT ARGS: the arguments are kept at each restart",
        ),
        ("retire", "session-manager has this name; in sm: sm kill"),
    ],
)
async def test_an_unknown_command_is_told_the_nearest(bare, typed, hint):
    ran = await bare.run(typed)
    assert (ran.code, ran.err) == (2, f"Error: No such command '{typed}'.\nhint: {hint}\n")


async def test_a_runner_of_an_earlier_tool_is_said_by_its_name_here(bare):
    ran = await bare.run("ll-sprint")
    assert ran.code == 2
    assert "sm sprint run NAME" in ran.err


async def test_what_the_parser_refuses_leads_to_the_help_of_that_command(bare):
    ran = await bare.run("handoff", "--auto", "--out")
    assert (ran.code, ran.err) == (2, "Error: Option '--out' requires an argument.\nhint: sm handoff --help\n")


async def test_ls_is_list(bare):
    assert ALIASES == {"ls": "list"}
    assert (await bare.run("ls", "--help")).code == 0


async def test_a_fault_of_ours_is_a_sentence_unless_it_is_debugged(bare):
    broken = (
        "-c",
        "from sm.cli import app, guarded; app.COMMANDS['x'] = ('nowhere:x', ''); raise SystemExit(guarded(['x']))",
    )
    ran = await bare.run(*broken, command=(SM[0], "-I"))
    assert (ran.code, ran.err.splitlines()[0]) == (1, "Error: ModuleNotFoundError: No module named 'nowhere'")
    assert "Traceback" in (await bare.run(*broken, command=(SM[0], "-I"), env={"SM_DEBUG": "1"})).err
