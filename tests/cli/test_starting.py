"""What a start costs, in modules: their count does not depend on how busy the machine is."""

import asyncio
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from sm.bootstrap import command_script
from sm.core.model.handoff import SCHEDULED

HEAVY = {"starlette", "asyncio", "textual", "rich", "structlog", "logging", "uvicorn", "http.client", "urllib.request"}
REPORT = """import sys
before = {{*sys.modules}}
{}
loaded = {{*sys.modules}} - before
import json
sys.__stderr__.write("\\n" + json.dumps(sorted(loaded)))
"""
COMMAND = "import sys\nsys.argv[0] = 'sm'\nfrom sm.cli import guarded\nguarded(sys.argv[1:])"


def loaded(code, *arguments, **env):
    command = [sys.executable, "-I", "-c", REPORT.format(code), *arguments]
    environ = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", **env}
    found = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    return set(json.loads(found.stderr.rpartition("\n")[2]))


@pytest.mark.parametrize(
    "arguments",
    [("list", "--help"), ("status",), ("list", "--no-start"), ("context",), ("handoff", "--help"), ("--help",)],
)
def test_a_command_loads_fewer_than_150_modules_and_nothing_heavy(arguments):
    modules = loaded(COMMAND, *arguments)
    assert len(modules) < 120  # the interpreter itself has some thirty
    assert not modules & HEAVY


def test_an_agents_handoff_loads_next_to_nothing(tmp_path):
    (tmp_path / "h.md").write_text("goal")
    inside = {"CLAUDE_SESSION_MANAGER_ID": "0123abcd", "SM_SESSION_TOKEN": "t", "SM_URL": "http://127.0.0.1:1"}
    code = f"import sm.cli.fastpath as quick\nassert quick.is_plain_handoff([{str(tmp_path / 'h.md')!r}])"
    extra = loaded(code, **inside) - loaded("")
    assert {name for name in extra if name.startswith("sm")} == {
        "sm",
        "sm.cli",
        "sm.cli.exits",
        "sm.cli.format",
        "sm.cli.fastpath",
        "sm.hook",
    }
    assert not extra & {"json", "re", "typing", "dataclasses", "enum", "pathlib", "socket", "collections"}


def test_the_hook_loads_nothing_of_ours_and_little_else():
    from sm import hook

    code = f"exec(compile(open({hook.__file__!r}).read(), 'hook.py', 'exec'), {{'__name__': 'probe'}})"
    extra = loaded(code) - loaded("")
    assert extra <= {"_socket", "select", "math"}


def test_the_quick_ways_words_are_the_cores():
    from sm.cli import fastpath

    assert fastpath.SCHEDULED == SCHEDULED


@pytest.mark.parametrize("folder", ["plain", "with a blank", "it's", "x" * 200])
def test_the_script_on_a_sessions_path_runs_whatever_the_interpreters_place(tmp_path, folder):
    place = tmp_path / folder / "venv"
    venv.create(place, symlinks=True, with_pip=False)
    site = next((place / "lib").glob("python*/site-packages"))
    (site / "sm.pth").write_text(os.pathsep.join([str(Path(__file__).parents[2] / "src")]))
    (site / "libs.pth").write_text(str(next(p for p in map(Path, sys.path) if p.name == "site-packages")))
    script = tmp_path / "sm"
    script.write_text(command_script(str(place / "bin" / "python")))
    script.chmod(0o700)
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "/nonexistent", "PYTHONSTARTUP": "/nonexistent"}
    found = subprocess.run([script, "--version"], env=env, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert found.stdout.startswith("sm ")


def test_what_follows_the_two_dashes_is_the_clients_with_or_without_a_directory(tmp_path):
    from sm.cli.new import CLIENT_ARGUMENTS, new

    for own, directory in ([], "."), ([str(tmp_path)], str(tmp_path)):
        context = new.make_context("new", [*own, "--detach", "--", "--permission-mode", "plan", "--", "x"])
        assert context.params["directory"] == directory
        assert context.meta[CLIENT_ARGUMENTS] == ["--permission-mode", "plan", "--", "x"]


async def test_sm_alone_shows_its_help_and_is_no_error(bare):
    done = await bare.run()
    assert done.code == 0
    assert "Usage: sm" in done.out


@pytest.mark.parametrize("command", ["status", "context"])
async def test_an_agents_question_does_without_the_command_parser(desk, session, command):
    modules = await asyncio.to_thread(loaded, COMMAND, command, **desk.agent_env(session))
    assert "sm.cli.descriptions" in modules
    assert not modules & {"click", "dataclasses", "pathlib", "socket"}
