"""Which arguments an agent's tool passes on: those of the command line that give a sandboxed agent nothing more."""

import click
import pytest

from sm.cli.app import COMMANDS as CLI
from sm.cli.app import cli
from sm.core.model.agent_arguments import COMMANDS, WITHHELD, ArgumentError, command_line, understood
from sm.core.model.agent_commands import AGENT

STARTS_NO_SERVER = "--no-start"
"""An agent's command never does."""


def command_options(name):
    """Each option of a command on the command line, with how a value follows it."""
    command = cli.get_command(click.Context(cli), name)
    found = {}
    for option in command.params:
        if isinstance(option, click.Option):
            value = "" if option.is_flag else "="
            found |= dict.fromkeys([*option.opts, *option.secondary_opts], value)
    return found


def passed(*arguments):
    return command_line(*understood(arguments))


def test_the_tool_has_the_commands_of_an_agent_in_the_words_of_the_command_line():
    assert set(COMMANDS) == set(AGENT)
    assert {name: words for name, (_, words, _) in COMMANDS.items()} == {name: CLI[name][1] for name in AGENT}


@pytest.mark.parametrize("name", AGENT)
def test_each_option_of_the_command_line_is_passed_on_or_withheld_with_a_reason(name):
    known = COMMANDS[name][2].split()
    passes = {option.partition("[")[0].partition("=")[0]: option for option in known}
    withheld = {option for command, option in map(str.split, WITHHELD) if command == name}
    found = command_options(name)
    assert {*passes, *withheld, STARTS_NO_SERVER} == {*found, STARTS_NO_SERVER}
    assert not withheld & passes.keys()
    kinds = {option: spelled.removeprefix(option).strip("[]") for option, spelled in passes.items()}
    assert kinds == {option: found[option] for option in passes}


@pytest.mark.parametrize("name", AGENT)
def test_each_option_and_its_value_reach_the_parser_as_they_were_meant(name):
    for option in COMMANDS[name][2].split():
        plain = option.partition("[")[0].partition("=")[0]
        given = [plain, "7"] if option.endswith("=") and "[" not in option else [plain]
        assert passed(name, *given, "word") == [name, f"{plain}=7" if len(given) > 1 else plain, "word"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["status"], ["status"]),
        (["sm", "status", "at it"], ["status", "at it"]),
        (["send", "bob", "hi", "--important"], ["send", "--important", "bob", "hi"]),
        (["send", "bob", "-"], ["send", "bob", "-"]),
        (["send", "bob", "--", "--command"], ["send", "--", "bob", "--command"]),
        (["send", "bob", "--wait", "--command"], ["send", "--wait=--command", "bob"]),
        (["send", "bob", "--wait=5", "--", "-", "--"], ["send", "--wait=5", "--", "bob", "-", "--"]),
        (["spawn", "--track", "do it"], ["spawn", "--track", "do it"]),
        (["spawn", "--track=5m", "do it"], ["spawn", "--track=5m", "do it"]),
        (["spawn", "--name", "-x", "do it"], ["spawn", "--name=-x", "do it"]),
        (["spawn", "--help"], ["spawn", "--help"]),
        (["spawn", "--provider", "claude", "do it"], ["spawn", "--provider=claude", "do it"]),
        (["spawn", "--provider", "--yolo", "do it"], ["spawn", "--provider=--yolo", "do it"]),
        (["handoff", "-", "--to", "claude"], ["handoff", "--to=claude", "-"]),
        (["handoff", "-", "--to", "claude", "--", "--x"], ["handoff", "--to=claude", "--", "-", "--x"]),
        (["done", "-h"], ["done", "-h"]),
    ],
)
def test_what_is_passed_on_is_put_together_again(given, expected):
    assert passed(*given) == expected


@pytest.mark.parametrize(
    "given",
    [
        [],
        ["sm"],
        [""],
        ["new"],
        ["list"],
        ["server", "stop"],
        ["--help"],
        ["--version"],
        ["--", "server", "stop"],
        ["--json", "status"],
        ["-h"],
        ["sm", "sm", "status"],
        ["STATUS"],
        ["handoff --auto"],
    ],
    ids=" ".join,
)
def test_no_other_command_is_passed_on(given):
    with pytest.raises(ArgumentError, match="No command of an agent") as refused:
        understood(given)
    assert "handoff, send" in refused.value.hint


@pytest.mark.parametrize(
    "given",
    [
        ["handoff", "--auto", "--out", "x"],
        ["handoff", "--auto", "--out=x"],
        ["handoff", "--auto", "--transcript", "/etc/passwd"],
        ["handoff", "--status", "--session", "other"],
        ["handoff", "-", "--reason=full"],
        ["context", "--transcript=/etc/passwd"],
        ["context", "--provider", "codex"],
        ["send", "child", "--command", "/permissions"],
        ["send", "--command", "child", "/permissions"],
        ["spawn", "--dir", "sub", "do it"],
        ["spawn", "--dir=sub", "do it"],
    ],
    ids=" ".join,
)
def test_an_option_that_could_lead_out_of_the_sandbox_is_refused_with_what_to_do_instead(given):
    with pytest.raises(ArgumentError, match="is not available to an agent: ") as refused:
        understood(given)
    assert refused.value.hint


@pytest.mark.parametrize(
    "given",
    [
        ["spawn", "--di", "sub", "do it"],  # an abbreviation
        ["spawn", "--client", "./evil", "do it"],
        ["spawn", "--arg=--yolo", "do it"],
        ["status", "--home", "/x"],
        ["status", "--no-start"],
        ["status", "---json"],
        ["send", "bob", "-xhi"],
        ["remind", "--every=5", "5m", "x"],
        ["done", "--json="],
        ["wait", "bob", "-5"],
    ],
    ids=" ".join,
)
def test_an_option_that_is_not_known_is_refused(given):
    with pytest.raises(ArgumentError, match=r"has no option|takes no value"):
        understood(given)


def test_a_value_that_is_missing_and_a_nul_are_refused():
    with pytest.raises(ArgumentError, match="--name needs a value"):
        understood(["spawn", "do it", "--name"])
    with pytest.raises(ArgumentError, match="NUL"):
        understood(["status", "a\0b"])


def test_a_response_file_is_a_word_like_any_other():
    assert passed("status", "@/etc/passwd") == ["status", "@/etc/passwd"]
