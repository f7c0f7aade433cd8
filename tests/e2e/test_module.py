"""The plugin's module as the client judges it: its source, its own tests, and its types."""

import shutil
import subprocess
from pathlib import Path

import pytest

from sm import __version__
from sm.paths import plugin_directory
from sm.providers.claude.mod.folder import write_folder
from sm.testing.offline import offline_client_env
from sm.testing.scenario import Say, scenario
from tests.e2e.rig import REAL_CLIENT, ROOT, Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

KIT = Path(__file__).parents[1] / "plugin"
COMPILER = ROOT / "clients" / "node_modules" / ".bin" / "tsc"
BY_MOD = '[claude]\ndriver = "auto"\n'


@pytest.fixture
def folder(tmp_path):
    return write_folder(plugin_directory(), tmp_path / "mod", __version__)


def run(tmp_path, *command):
    env = offline_client_env(tmp_path / "home", "http://127.0.0.1:9", tmp_path)
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_client_loads_it_and_it_calls_nothing_else(folder, tmp_path):
    """An unknown name kills the whole module; one more call is one more right that users grant."""
    code, shown = run(tmp_path, REAL_CLIENT, "plugin", "validate", folder)
    assert code == 0, shown
    [calls] = [line for line in shown.splitlines() if "calls:" in line]
    found = {call.split(" ")[0] for call in calls.partition("calls: ")[2].split(", ") if call.startswith("$")}
    assert found == {
        "$.clock.after",
        "$.clock.every",
        "$.clock.sleep",
        "$.command.run",
        "$.env.get",
        "$.http.fetch",
        "$.model.fork",
        "$.prompt.submit",
        "$.session.append",
        "$.session.id",
        "$.session.usage",
        "$.tool.register",
        "$.ui.ask",
    }
    assert "env writes: nothing" in shown
    [reads] = [line for line in shown.splitlines() if "env reads:" in line]
    session = ["CLAUDE_SESSION_MANAGER_ID", "SM_DRIVER", "SM_SESSION_TOKEN", "SM_SOCKET"]
    own = ["HOME", "SM_HOME", "SM_PLUGIN_ROTATE", "XDG_STATE_HOME"]
    assert sorted(reads.partition("env reads: ")[2].split(", ")) == sorted([*session, *own])


def test_its_own_tests_pass(folder, tmp_path):
    shutil.copytree(KIT, folder / "tests")
    code, shown = run(tmp_path, REAL_CLIENT, "plugin", "test", folder)
    assert code == 0, shown
    assert " 0 fail" in shown


@pytest.mark.soak
async def test_its_types_are_those_of_the_client():
    async with Rig(scenario(otherwise=Say("ok")), config=BY_MOD) as rig:
        session = await rig.new()
        await rig.wait_view(session, lambda view: view["driver"] == "mod", "driven by the plugin")
        folder = rig.home.root / f"mod-{__version__}"
        shutil.copy(KIT / "tsconfig.json", folder / "tsconfig.json")
        done = subprocess.run([COMPILER, "-p", folder], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "")
