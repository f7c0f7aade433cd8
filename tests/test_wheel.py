"""The package as somebody installs it: a wheel, in an environment of its own, far from this checkout.

Nothing is fetched: the build backend and the dependencies are those of this environment.
"""

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PATH = os.environ["PATH"]
SITE = "lib/python{}.{}/site-packages".format(*sys.version_info)
pytestmark = pytest.mark.timeout(180)
INLINE = re.compile(r"\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    target = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--no-index", "--no-build-isolation"]
    env = {"PATH": PATH, "HOME": str(target), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run([*pip, "-w", target, ROOT], check=True, env=env)
    return next(target.glob("agent_sm-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A fresh environment with the wheel, which takes its dependencies from this one."""
    home = tmp_path_factory.mktemp("installed")
    venv.create(home / "venv", symlinks=True, with_pip=False)
    site = home / "venv" / SITE
    pip = [sys.executable, "-m", "pip", "--python", str(home / "venv"), "install", "-qq", "--no-deps", "--no-index"]
    env = {"PATH": PATH, "HOME": str(home), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run([*pip, wheel], check=True, env=env)
    # A plain line: the .pth file in that directory that names this checkout is not read.
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"])
    return home


def run(installed, *arguments):
    env = {"PATH": "/usr/bin:/bin", "HOME": str(installed), "SM_HOME": str(installed / "state"), "LANG": "C.UTF-8"}
    command = [installed / "venv/bin/sm", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd=installed, check=False)


def test_the_installed_command_is_the_wheels(installed):
    ran = run(installed, "--version")
    assert (ran.returncode, ran.stdout.split()[0]) == (0, "sm")
    where = [installed / "venv/bin/python", "-c", "import sm; print(sm.__file__)"]
    found = subprocess.run(where, capture_output=True, text=True, env={}, cwd=installed, check=True).stdout
    assert found.startswith(str(installed))


@pytest.mark.parametrize("words", [["demo", "--help"], ["--help"], ["doctor", "--help"], ["completion", "bash"]])
def test_commands_answer(installed, words):
    ran = run(installed, *words)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout


@pytest.mark.parametrize("document", sorted(path.stem for path in (ROOT / "docs").glob("*.md")))
def test_the_documents_come_with_it(installed, document):
    assert run(installed, "help", document).stdout.strip() == (ROOT / f"docs/{document}.md").read_text().strip()


def test_the_plugin_and_all_that_is_no_code_come_with_it(wheel, installed):
    site = installed / "venv" / SITE / "sm"
    with_it = {path.relative_to(ROOT / "plugin") for path in (ROOT / "plugin").rglob("*") if path.is_file()}
    assert with_it
    assert with_it == {path.relative_to(site / "plugin") for path in (site / "plugin").rglob("*") if path.is_file()}
    ours = {path.relative_to(ROOT / "src/sm") for path in (ROOT / "src/sm").rglob("*") if path.is_file()}
    ours = {path for path in ours if "__pycache__" not in path.parts}
    inside = {Path(name) for name in zipfile.ZipFile(wheel).namelist()}
    assert {Path("sm") / path for path in ours} <= inside


def test_pictures_stay_in_the_checkout(wheel):
    """They are most of `docs/`, and what shows a document in a terminal shows no picture."""
    names = zipfile.ZipFile(wheel).namelist()
    assert "sm/docs/decisions/page-from-the-server.md" in names
    assert [name for name in names if name.startswith("sm/docs/") and not name.endswith(".md")] == []


def test_setup_writes_what_is_installed_and_nothing_of_this_checkout(installed):
    ran = run(installed, "setup", "--yes")
    assert ran.returncode == 0, ran.stderr
    settings = (installed / ".claude/settings.json").read_text()
    assert str(ROOT) not in settings
    plugin = json.loads(settings)["extraKnownMarketplaces"]["sm"]["source"]["path"]
    assert (Path(plugin) / "skills/handoff/SKILL.md").is_file()
    assert Path(plugin).is_relative_to(installed)


def test_the_description_shown_with_the_package_has_no_link_that_leads_nowhere(wheel):
    archive = zipfile.ZipFile(wheel)
    name = next(name for name in archive.namelist() if name.endswith("METADATA"))
    description = archive.read(name).decode()
    assert "# sm" in description
    assert all(target.startswith(("#", "https://")) for target in INLINE.findall(description))
