"""C21: an agent with nothing but its allowed commands does nothing that a dialog would have asked for.

Every command and option comes from the command line's own tree, so that none is forgotten. The real client decides
which of them ask; what runs unasked must have left everything outside the session's directory as it was.
"""

import json
import shlex
from dataclasses import dataclass, field

import click
import pytest

from sm.cli.app import cli
from sm.core.model.agent_commands import AGENT
from sm.testing.scenario import Call, Say, Together, Turn, scenario
from tests.e2e.people import person_settings
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(420)]

ASKED = "asked-for-permission"
SECRET = "kept-outside-the-project"
VALUES = ("secret", "evil", "new")
"""A file to read, a program to run, a file to write."""
AT_ONCE = 10
"""Calls in one reply of the model: the client asks for each by itself."""
SCRIPT = scenario(otherwise=Say("ok"), growth=10)


def leaves(group=cli, words=()):
    """Every command with its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from leaves(command, (*words, name))
        else:
            yield (*words, name), command


def arguments(command, value):
    required = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    return [value for _ in required]


def options(command, value):
    """Each option of a command, with a value if it takes one."""
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield from given(parameter, value)


def given(option, value):
    names = [*option.opts, *option.secondary_opts]
    if option.is_flag:
        yield from ([name] for name in names)
        return
    kind = option.type
    number = isinstance(kind, (click.types.IntParamType, click.types.FloatParamType))
    chosen = kind.choices[0] if isinstance(kind, click.Choice) else "1" if number else value
    yield from ([f"{name}={chosen}"] for name in names)
    yield from ([name, str(chosen)] for name in names)


def lines(outside, words, command):
    """The command bare, with arguments, and with each of its options in each way."""
    found = {}
    for name in VALUES:
        value = str(outside / name)
        plain = arguments(command, value)
        for option in ([], *options(command, value)):
            for tail in ([], plain):
                found[shlex.join(["sm", *words, *option, *tail])] = None
    return list(found)


AUTO = ("sm handoff --auto --out={}/new", "sm handoff --auto --out {}/new", "sm handoff --auto --transcript {}/secret")


@dataclass
class Bench:
    rig: Rig
    session: str = ""
    ran: dict[str, str] = field(default_factory=dict)
    """What the agent got for each command."""

    @property
    def outside(self):
        return self.rig.root / "outside"

    async def tell(self, commands):
        """Have the agent run them in one turn."""
        calls = [Call("Bash", command=line, description="x") for line in commands]
        together = [Together(*calls[first : first + AT_ONCE]) for first in range(0, len(calls), AT_ONCE)]
        self.rig.model.play(Turn("run all of them", steps=[*together, Say("All of them have run.")]))
        self.session = await self.rig.new("run all of them")
        await self.rig.until(lambda: len(self.rig.model.main_requests) > len(together), f"{commands[-1]} is run", 300)
        self.ran = dict(zip(commands, self.results(), strict=True))

    def results(self):
        own = [request for request in self.rig.model.main_requests if "run all of them" in request.all_text]
        return [result.text for request in own for result in request.tool_results]

    def unasked(self):
        return [line for line, text in self.ran.items() if ASKED not in text]

    def outside_is_as_it_was(self):
        files = {file.name: file.read_text() for file in self.outside.iterdir()}
        assert files == {"secret": SECRET, "evil": evil(self.outside)}
        assert (self.rig.root / "home" / ".bashrc").read_text() == "# mine\n"
        for request in self.rig.model.requests:
            assert SECRET not in request.all_text
        for path in self.rig.root.rglob("*"):
            if path.is_file() and path.parent != self.outside:
                assert SECRET.encode() not in path.read_bytes(), path


def evil(outside):
    return f"#!/bin/sh\ntouch {outside}/ran\n"


def bench_of(rig):
    """A person who refuses every dialog, and files that are none of the agent's."""
    deny = {"behavior": "deny", "message": ASKED}
    answer = json.dumps({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": deny}})
    hook = {"type": "command", "command": f"echo {shlex.quote(answer)}"}
    modes = {"permissions": {"defaultMode": "default"}}
    person_settings(rig, **modes, hooks={"PermissionRequest": [{"hooks": [hook]}]})
    found = Bench(rig)
    found.outside.mkdir()
    (found.outside / "secret").write_text(SECRET)
    (found.outside / "evil").write_text(evil(found.outside))
    (found.outside / "evil").chmod(0o700)
    (rig.root / "home" / ".bashrc").write_text("# mine\n")
    return found


async def test_every_other_command_asks():
    async with Rig(SCRIPT) as rig:
        bench = bench_of(rig)
        commands = ["touch control", "sm", "sm --version", "sm ls"]
        for words, command in leaves():
            if words[0] not in AGENT:
                found = lines(bench.outside, words, command)
                commands += [found[0], found[-1]]
        commands += [f"sm statusline --then {bench.outside}/evil", f"sm doctor --client {bench.outside}/evil"]
        await bench.tell(commands)
        assert bench.unasked() == []
        bench.outside_is_as_it_was()
        assert not (rig.project / "control").exists()


@pytest.mark.parametrize("name", [command for command in AGENT if command != "spawn"])
@pytest.mark.often("inbox")
async def test_an_agents_command_reads_writes_and_runs_nothing_outside(name):
    async with Rig(SCRIPT) as rig:
        bench = bench_of(rig)
        commands = lines(bench.outside, (name,), cli.get_command(click.Context(cli), name))
        if name == "handoff":
            commands += [line.format(bench.outside) for line in AUTO]
        await bench.tell([*commands, "touch control"])
        assert set(bench.ran) - set(bench.unasked()) == {"touch control"}
        bench.outside_is_as_it_was()


@pytest.mark.soak
async def test_a_child_is_started_nowhere_outside():
    async with Rig(SCRIPT, config="[limits]\nchildren = 2\n") as rig:
        bench = bench_of(rig)
        (rig.project / "part").mkdir()
        places = (bench.outside, rig.root, "/", "..", "part/../..", rig.project / ".." / "outside", "~")
        refused = [f"sm spawn --dir {place} work" for place in places] + [
            f"sm spawn --provider {bench.outside}/evil work",
            "sm spawn --model --settings=x work",
        ]
        await bench.tell([*refused, "sm spawn --dir part work"])
        assert bench.unasked() == list(bench.ran)
        assert [line for line in refused if "Error" not in bench.ran[line]] == []
        assert all("outside this session's directory" in bench.ran[line] for line in refused[: len(places)])
        assert len((await rig.view(bench.session))["children"]) == 1
        bench.outside_is_as_it_was()


WITH_MORE = (
    "sm status && touch {}/new",
    "sm status; touch {}/new",
    "sm status\ntouch {}/new",
    "sm status & touch {}/new",
    "sm status || touch {}/new",
    "sm status | tee {}/new",
    "sm status > {}/new",
    "sm status >> {}/new",
    "sm status >| {}/new",
    "sm status &> {}/new",
    "sm status 2> {}/new",
    "sm status 3<> {}/new",
    'sm send x "$(touch {}/new)"',
    "sm send x `touch {}/new`",
    "sm send x <(touch {}/new)",
    "sm send x ${{X:-$(touch {}/new)}}",
    "sm handoff - < {}/secret",
    "sm handoff - 0< {}/secret",
    "sm handoff - < ../outside/secret",
    "cat {}/secret | sm handoff -",
    'sm handoff - <<< "$(cat {}/secret)"',
    "sm handoff - <<EOF\n$(cat {}/secret)\nEOF",
    "xargs -a {}/secret sm handoff --reason",
    "sm send x $(< {}/secret)",
    "SM_URL=http://127.0.0.1:9 sm status",
    "SM_HOME={0} sm status",
    "SM_CONFIG={0}/secret sm status",
    "PYTHONPATH={0} sm status",
    "PATH={0}:$PATH sm status",
    "CLAUDE_SESSION_MANAGER_ID= sm handoff --auto --transcript {}/secret",
    "unset CLAUDE_SESSION_MANAGER_ID; sm handoff --auto --transcript {}/secret",
    "for CLAUDE_SESSION_MANAGER_ID in ''; do sm handoff --auto --transcript {}/secret; done",
    "for PATH in {}; do sm status; done",
    "export PATH={}; sm status",
    "export SM_URL=http://127.0.0.1:9; sm status",
    "read PATH <<< {}; sm status",
    "printf -v PATH %s {}; sm status",
    "sm() {{ touch {}/new; }}; sm status",
    "alias sm='touch {}/new'\nsm status",
    "hash -p {}/evil sm; sm status",
    "env SM_URL=http://127.0.0.1:9 sm status",
    "cd {} && sm handoff -",
    "cd .. && sm handoff --auto",
    "{}/sm status",
    "./sm status",
    "sm status\\\nline --then {}/evil",
    "sm  statusline --then {}/evil",
    "sm 'status'line --then {}/evil",
)
"""A command of the agent's with something beside it, before it, or in the place of it."""
ALONE = (
    "sm status",
    "sm status working on it",
    "sm status --json",
    "sm handoff --status; sm inbox; sm children",
    "sm send x - <<'EOF'\nhi $(touch {}/new)\nEOF",
    "cd . && sm status",
    "sm status 2>&1",
)
"""What an agent usually writes asks nobody."""


@pytest.mark.soak
async def test_what_comes_along_with_an_agents_command_asks():
    async with Rig(SCRIPT) as rig:
        bench = bench_of(rig)
        (bench.outside / "sm").write_text(evil(bench.outside))
        (bench.outside / "sm").chmod(0o700)
        alone = [line.format(bench.outside) for line in ALONE]
        await bench.tell([*alone, *(line.format(bench.outside) for line in WITH_MORE)])
        assert bench.unasked() == alone
        (bench.outside / "sm").unlink()
        bench.outside_is_as_it_was()
