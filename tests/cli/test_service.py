"""`sm server install`: the service's file, and which commands run; a program of the test stands in for systemctl."""

import configparser
import os
import plistlib
import shlex
import sys

import pytest

from sm.cli.doctor_checks.logout import ENABLE, kills_processes, outcome
from sm.cli.service import launchd_text, service, systemd_text
from sm.core.errors import SmError
from tests.cli.rig import PATH
from tests.cli.test_server import end_tmux

PYTHON = sys.executable


def entries(text):
    """The entries of a unit file in their order, one for each line."""
    lines = [line for line in text.decode().splitlines() if "=" in line and not line.startswith("#")]
    return [tuple(line.split("=", 1)) for line in lines]


def test_only_the_server_itself_is_ended_with_the_service():
    found = dict(entries(systemd_text({})))
    assert (found["KillMode"], found["OOMPolicy"], found["Restart"]) == ("process", "continue", "on-failure")
    assert shlex.split(found["ExecStart"]) == [PYTHON, "-I", "-m", "sm", "server", "run"]
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.read_string(systemd_text({"PATH": "/bin"}).decode())
    assert parser.sections() == ["Unit", "Service", "Install"]


def test_what_a_unit_file_would_expand_is_quoted():
    text = systemd_text({"PATH": '/a b/50%/x"y\\z', "SM_HOME": "/h"})
    assert ("Environment", '"PATH=/a b/50%%/x\\"y\\\\z"') in entries(text)
    assert ("Environment", '"SM_HOME=/h"') in entries(text)
    with pytest.raises(SmError, match="A service cannot have this"):
        systemd_text({"PATH": "/a\nExecStart=/bin/evil"})


def test_launchd_leaves_the_agents_alone_too():
    found = plistlib.loads(launchd_text({"PATH": "/bin"}))
    assert found["ProgramArguments"][1:] == ["-I", "-m", "sm", "server", "run"]
    assert (found["AbandonProcessGroup"], found["KeepAlive"]) == (True, {"SuccessfulExit": False})
    made = service({"HOME": "/Users/me"}, "darwin", 501)
    assert str(made.path) == "/Users/me/Library/LaunchAgents/sm.server.plist"
    assert made.start == (("launchctl", "bootstrap", "gui/501", str(made.path)),)


def systemctl(desk, script="exit 0"):
    """A stand-in that writes down how it is called; `start` runs the server as systemd would."""
    programs = desk.root / "programs"
    programs.mkdir(exist_ok=True)
    path = programs / "systemctl"
    path.write_text(f'#!/bin/sh\necho "$*" >> {desk.root}/called\n{script}\n')
    path.chmod(0o755)
    return {"PATH": f"{programs}:{PATH}"}


def called(desk):
    return (desk.root / "called").read_text().splitlines()


STARTS = f"""case "$2" in start) env -i HOME="$HOME" PATH="$PATH" SM_HOME="$SM_HOME" SM_CONFIG="$SM_CONFIG" \\
  setsid {PYTHON} -I -m sm server run >/dev/null 2>&1 </dev/null & esac"""


async def test_install_enables_the_service_and_takes_over_from_a_running_server(bare):
    env = systemctl(bare, STARTS)
    assert (await bare.run("server", "start", env=env)).code == 0
    before = (await bare.run("server", "status", "--json", env=env)).data["pid"]
    try:
        ran = await bare.run("server", "install", "--json", env=env)
        assert ran.code == 0, ran.err
        assert ran.data["pid"] != before
        unit = bare.root / "home/.config/systemd/user/sm.service"
        assert f'Environment="SM_HOME={bare.root / "state"}"' in unit.read_text()
        assert called(bare) == [
            "--user daemon-reload", "--user enable sm.service", "--user stop sm.service", "--user start sm.service",
        ]  # fmt: skip
        ran = await bare.run("server", "uninstall", env=env)
        assert (ran.code, unit.exists()) == (0, False)
        assert called(bare)[4:] == ["--user disable --now sm.service", "--user daemon-reload"]
        assert (await bare.run("server", "uninstall", env=env)).code == 1
    finally:
        await bare.run("server", "stop", env=env)
        await end_tmux(bare)


async def test_a_service_that_cannot_be_enabled_leaves_no_file_and_the_server_as_it_was(bare):
    env = systemctl(bare, "echo 'Failed to connect to bus: No medium found' >&2; exit 1")
    ran = await bare.run("server", "install", env=env)
    assert (ran.code, "No medium found" in ran.err, "sm server start works without a service" in ran.err) == (
        1,
        True,
        True,
    )
    assert not (bare.root / "home" / ".config").exists()
    assert called(bare) == ["--user daemon-reload"]


async def test_print_shows_the_file_and_changes_nothing(bare):
    ran = await bare.run("server", "install", "--print")
    assert (ran.code, "KillMode=process" in ran.out) == (0, True)
    assert not (bare.root / "home/.config").exists()


@pytest.mark.parametrize("verb", ["install", "uninstall"])
async def test_an_agent_installs_nothing(desk, session, verb):
    ran = await desk.run("server", verb, session=session)
    assert (ran.code, ran.err.splitlines()[0]) == (1, f"Error: A session may not {verb} the server")


def place(root, *, kills="", lingers=False, systemd=True):
    for folder in ("run/systemd/system" if systemd else "x", "etc/systemd", "var/lib/systemd/linger"):
        (root / folder).mkdir(parents=True)
    (root / "etc/systemd/logind.conf").write_text(f"[Login]\n#KillUserProcesses=yes\n{kills}\n")
    if lingers:
        (root / "var/lib/systemd/linger/me").touch()
    return root


@pytest.mark.parametrize(
    ("made", "service", "level", "hint"),
    [
        ({"systemd": False, "kills": "KillUserProcesses=yes"}, False, "ok", ""),
        ({}, False, "ok", ""),
        ({"kills": "KillUserProcesses=yes"}, False, "warn", f"sm server install, then {ENABLE}"),
        ({"kills": "KillUserProcesses=yes", "lingers": True}, False, "warn", f"sm server install, then {ENABLE}"),
        ({"kills": "KillUserProcesses=yes", "lingers": True}, True, "ok", ""),
        ({}, True, "warn", ENABLE),
    ],
)
def test_what_a_logout_does_to_the_agents(tmp_path, made, service, level, hint):
    found = outcome(place(tmp_path, **made), "me", service=service)
    assert (found.level, found.hint) == (level, hint)


def test_the_last_word_on_killing_is_that_of_the_last_addition(tmp_path):
    root = place(tmp_path, kills="KillUserProcesses=no")
    for folder, name, value in (("usr/lib", "90-b", "yes"), ("etc", "10-a", "no")):
        (root / folder / "systemd/logind.conf.d").mkdir(parents=True)
        (root / folder / f"systemd/logind.conf.d/{name}.conf").write_text(f"[Login]\nKillUserProcesses = {value}\n")
    assert kills_processes(root)
    (root / "etc/systemd/logind.conf.d/90-b.conf").write_text("")
    assert not kills_processes(root)
    assert os.sep == "/"
