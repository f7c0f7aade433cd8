"""`sm doctor`: what it finds, and that it names the cause."""

import contextlib
import json
import os
import pwd
import socket
import sqlite3
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from sm import __version__
from sm.cli.doctor_checks import disk
from sm.cli.doctor_checks.finding import Surroundings
from sm.cli.doctor_checks.host import login_users
from sm.cli.doctor_checks.mounts import NETWORK, kind_of, linux_mounts, macos_mounts
from sm.cli.doctor_checks.programs import TESTED_VERSIONS
from sm.lock import announce
from sm.paths import SmHome
from sm.providers import codex
from tests.cli.rig import PATH

CODEX = Path(__file__).parents[2] / "clients" / "codex" / "package.json"
PACKAGE = Path(__file__).parents[2] / "clients" / "package.json"
PINNED = json.loads(PACKAGE.read_text())["dependencies"]["@anthropic-ai/claude-code"]


async def found(desk, **env):
    """Findings by name, with a client that says it is the tested one unless another is on PATH."""
    programs = desk.root / "programs"
    if not programs.exists():
        program(desk, "claude", f"echo '{TESTED_VERSIONS[-1]} (Claude Code)'")
    ran = await desk.run("doctor", "--json", env={"PATH": f"{programs}:{PATH}", "SHELL": "/bin/sh", **env})
    assert ran.code == min(ran.data["failed"], 1)
    return {check["name"]: check for check in ran.data["checks"]}


def program(desk, name, script):
    path = desk.root / "programs" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def level_and_words(finding):
    return finding["level"], finding["message"]


def test_the_pinned_clients_are_tested_ones():
    assert PINNED in TESTED_VERSIONS
    assert json.loads(CODEX.read_text())["dependencies"]["@openai/codex"] in codex.TESTED_VERSIONS


async def test_codex_is_looked_at_where_it_is_installed(bare):
    words = "codex is not on PATH; only sessions of --provider codex need it"
    assert level_and_words((await found(bare))["codex"]) == ("ok", words)
    program(bare, "codex", "echo 'codex-cli 0.171.0'")
    assert (await found(bare))["codex"]["message"].startswith("0.171.0 (")
    program(bare, "codex", "echo 'codex-cli 0.17.0'")
    level, message = level_and_words((await found(bare))["codex"])
    assert (level, message.partition(" (")[0]) == ("warn", "Codex 0.17.0 is not one that sm was tested with")


async def test_a_sound_place_passes(bare):
    checks = await found(bare)
    assert {check["name"]: check["message"] for check in checks.values() if check["level"] == "fail"} == {}
    assert len(checks) == 22


async def test_it_prints_each_finding_with_its_hint_within_60_columns(bare):
    (bare.root / "config.toml").write_text("[archive]\nkeep_dayz = 3")
    ran = await bare.run("doctor", env={"COLUMNS": "60", "PATH": "/nowhere"})
    assert ran.code == 1
    assert "fail  tmux           tmux is not on PATH\n" in ran.out
    assert "hint: the nearest one is archive.keep_days" in " ".join(ran.out.split())
    assert max(map(len, ran.out.splitlines())) <= 60


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("tmux 3.3a", "ok"),
        ("tmux 3.1c", "fail"),
        ("tmux 2.9", "fail"),
        ("tmux next-3.6", "ok"),
        ("tmux master", "warn"),
    ],
)
async def test_tmux_must_be_3_2_or_newer(bare, version, level):
    program(bare, "tmux", f"echo '{version}'")
    program(bare, "claude", "echo 2.1.328")
    assert (await found(bare))["tmux"]["level"] == level


@pytest.mark.parametrize(
    ("script", "level", "words"),
    [
        ("echo '9.9.9 (Claude Code)'", "warn", "client 9.9.9 is not one that sm was tested with"),
        ("echo broken >&2; exit 1", "fail", "--version fails: broken"),
        ("echo hello", "fail", "--version fails: hello"),
    ],
)
async def test_a_client_of_another_version_or_none_is_told(bare, script, level, words):
    program(bare, "claude", script)
    finding = (await found(bare))["client"]
    assert (finding["level"], words in finding["message"]) == (level, True)


async def test_a_missing_client_is_told(bare):
    program(bare, "other", "true")
    assert level_and_words((await found(bare))["client"]) == ("fail", "the client 'claude' is not on PATH")


@pytest.mark.parametrize(
    ("settings", "name", "level"),
    [
        ({"disableAllHooks": True}, ".claude/settings.json", "fail"),
        ({"allowedHttpHookUrls": ["https://elsewhere/*"]}, ".claude/settings.json", "ok"),
        ({"disableAllHooks": True}, "home/.claude/settings.json", "fail"),
        ({"disableAllHooks": True}, ".claude/settings.local.json", "fail"),
    ],
)
async def test_settings_that_keep_hooks_from_running_are_named(bare, settings, name, level):
    path = bare.root / name
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(settings))
    finding = (await found(bare))["hooks allowed"]
    assert finding["level"] == level
    assert str(path) in finding["message"]


async def test_a_hook_is_run_for_real_against_the_server(desk):
    finding = (await found(desk))["hooks answer"]
    assert finding["level"] == "fail"  # the fake server has no unix socket
    assert "hooks do not reach the server at unix:" in finding["message"]


async def test_a_profile_that_prints_is_named_by_file_and_line(bare):
    profile = bare.root / "profile.sh"
    profile.write_text("# ready\nexport X=1\necho ready\n")
    finding = (await found(bare, SHELL="/bin/bash", BASH_ENV=str(profile)))["shell profile"]
    assert level_and_words(finding) == ("warn", f"hook output begins with `ready`, printed by {profile}:3")


async def test_a_bashrc_without_an_interactive_check_is_named(bare):
    rc = bare.root / "home/.bashrc"
    rc.write_text("case $- in *i*) echo fine;; esac\n")
    assert (await found(bare, SHELL="/bin/bash"))["shell profile"]["level"] == "ok"
    rc.write_text("echo 'welcome back'\n")
    finding = (await found(bare, SHELL="/bin/bash"))["shell profile"]
    assert finding["message"] == f"hook output begins with `welcome back`, printed by {rc}:1"


async def test_a_zshrc_is_looked_for_in_zdotdir(bare):
    zsh = bare.root / "zsh"
    zsh.symlink_to("/bin/bash")
    (bare.root / "dots").mkdir()
    (bare.root / "dots/.zshrc").write_text("echo hi\n")
    finding = (await found(bare, SHELL=str(zsh), ZDOTDIR=str(bare.root / "dots")))["shell profile"]
    assert finding["message"] == f"hook output begins with `hi`, printed by {bare.root}/dots/.zshrc:1"


@pytest.mark.soak
async def test_a_profile_that_never_ends_is_told(bare):
    (bare.root / "home/.bashrc").write_text("sleep 60\n")
    finding = (await found(bare, SHELL="/bin/bash"))["shell profile"]
    assert (finding["level"], "did not come back" in finding["message"]) == ("warn", True)


@pytest.mark.parametrize(("name", "mode"), [("", 0o755), ("logs", 0o750), ("token", 0o644)])
async def test_what_others_may_read_in_sm_home_is_named(bare, name, mode):
    home = bare.root / "state"
    (home / "logs").mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    (home / "token").write_text("t")
    (home / "token").chmod(0o600)
    assert (await found(bare))["home"]["level"] == "ok"
    (home / name).chmod(mode)
    finding = (await found(bare))["home"]
    assert (finding["level"], str(home / name) in finding["message"]) == ("fail", True)


async def test_files_from_the_future_cast_doubt_on_the_clock(bare):
    (bare.root / "state").mkdir(mode=0o700)
    (bare.root / "state/x").touch(0o600)
    assert (await found(bare))["clock"]["level"] == "ok"
    os.utime(bare.root / "state/x", (time.time() + 9999,) * 2)
    assert level_and_words((await found(bare))["clock"])[0] == "warn"


@pytest.mark.parametrize(
    ("env", "level"),
    [
        ({"HTTPS_PROXY": "http://p"}, "warn"),
        ({"all_proxy": "socks5://p", "NO_PROXY": "localhost"}, "warn"),
        ({"http_proxy": "http://p", "no_proxy": "x, 127.0.0.1"}, "ok"),
        ({"http_proxy": "http://p", "NO_PROXY": "*"}, "ok"),
        ({"http_proxy": ""}, "ok"),
    ],
)
async def test_a_proxy_must_leave_loopback_alone(bare, env, level):
    assert (await found(bare, **env))["proxies"]["level"] == level


def test_other_people_are_those_who_can_log_in():
    def person(name, uid, shell):
        return pwd.struct_passwd((name, "x", uid, uid, "", "/", shell))

    entries = [
        person("me", 1000, "/bin/sh"),
        person("ann", 1001, "/bin/zsh"),
        person("daemon", 1, "/bin/sh"),
        person("svc", 1002, "/usr/sbin/nologin"),
        person("nobody", 65534, "/bin/sh"),
    ]
    assert login_users(entries, 1000) == ["ann"]


async def test_command_transport_is_enough_where_others_log_in(bare):
    (bare.root / "config.toml").write_text('[hooks]\ntransport = "command"')
    assert (await found(bare))["other users"]["level"] == "ok"


async def test_a_foreign_process_on_the_port_that_living_sessions_know_is_named(bare):
    home = SmHome(bare.root / "state")
    home.root.mkdir(mode=0o700)
    with socket.create_server(("127.0.0.1", 0)) as other:
        announce(home, f"http://127.0.0.1:{other.getsockname()[1]}", __version__)
        assert (await found(bare))["server"]["level"] == "ok"
        with contextlib.closing(sqlite3.connect(home.database)) as database:
            database.executescript("CREATE TABLE sessions (ended INTEGER); INSERT INTO sessions VALUES (0)")
        finding = (await found(bare))["server"]
    assert finding["level"] == "fail"
    assert f"taken by process {os.getpid()} (" in finding["message"]


async def test_a_running_server_is_shown_and_one_of_another_version_told(desk):
    finding = (await found(desk))["server"]
    assert level_and_words(finding) == ("warn", f"the server runs version 0, this is {__version__}")


async def test_a_broken_configuration_is_said_with_its_hint(bare):
    (bare.root / "config.toml").write_text("[server]\nport = 99999")
    finding = (await found(bare))["configuration"]
    assert (finding["level"], finding["hint"]) == ("fail", "accepted: a port number, or 0 for any free one")


async def test_a_long_home_has_its_sockets_elsewhere(bare):
    long = bare.root / ("x" * 90)
    finding = (await found(bare, SM_HOME=str(long), TMPDIR=str(bare.root)))["socket"]
    assert finding["level"] in {"warn", "fail"}


@pytest.mark.parametrize(
    ("env", "level"), [({"LANG": "C"}, "warn"), ({"LC_ALL": "POSIX"}, "warn"), ({"LANG": "C.UTF-8"}, "ok")]
)
async def test_a_terminal_without_utf8_is_told(bare, env, level):
    assert (await found(bare, **env))["terminal"]["level"] == level


async def test_what_another_client_left_in_the_environment_is_told(bare):
    finding = (await found(bare, CLAUDE_CODE_CHILD_SESSION="1", CLAUDECODE="1", CLAUDE_CONFIG_DIR="/x"))["environment"]
    expected = "this shell inherited CLAUDECODE, CLAUDE_CODE_CHILD_SESSION from a client"
    assert level_and_words(finding) == ("warn", expected)


async def test_a_configured_argument_that_no_session_can_have_is_named(bare):
    (bare.root / "config.toml").write_text('[claude]\narguments = ["--settings", "/dev/null"]\n')
    assert level_and_words((await found(bare))["client"]) == (
        "fail",
        "claude.arguments in the configuration: `sm` sets --settings itself",
    )


async def test_hooks_of_a_set_up_whose_installation_is_gone_are_named(bare):
    config = bare.root / "home/.claude"
    assert "sm setup" in (await found(bare))["own sessions"]["message"]
    assert (await bare.run("setup", "--yes")).code == 0
    assert (await found(bare))["own sessions"]["message"] == "sessions started without sm are measured"
    settings = config / "settings.json"
    settings.write_text(settings.read_text().replace("hook.py", "nowhere/sm/hook.py"))
    finding = (await found(bare))["own sessions"]
    assert (finding["level"], finding["hint"]) == ("fail", "sm setup")
    assert "nowhere/sm/hook.py" in finding["message"]
    settings.write_text("{")
    assert (await found(bare))["own sessions"]["level"] == "warn"


@pytest.mark.parametrize("name", ["sm.db", "tmux.sock", "server.json", "server.lock", "token"])
async def test_a_directory_in_the_place_of_a_file_is_named(bare, name):
    path = bare.root / "state" / name
    path.mkdir(parents=True, mode=0o700)
    path.parent.chmod(0o700)
    assert level_and_words((await found(bare))["home"]) == ("fail", f"a directory in the place of a file: {path}")


async def test_a_home_that_is_none_or_cannot_be_made_is_named(bare):
    file = bare.root / "config.toml"
    assert level_and_words((await found(bare, SM_HOME=str(file)))["home"]) == ("fail", f"{file} is not a directory")
    below = (await found(bare, SM_HOME=f"{file}/state"))["home"]
    assert level_and_words(below) == ("fail", f"{file}/state cannot be made: {file} is not a directory")


def sound(database):
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.executescript("CREATE TABLE a (b); CREATE INDEX c ON a (b);")
        connection.executemany("INSERT INTO a VALUES (?)", [(str(number) * 500,) for number in range(100)])
        connection.commit()


def torn(database):
    sound(database)
    os.truncate(database, 5000)


def overwritten(database):
    sound(database)
    with database.open("r+b") as file:
        file.seek(4096)
        file.write(b"x" * 8192)


def text(database):
    database.write_text("no database at all, only words")


@pytest.mark.parametrize(("make", "level"), [(sound, "ok"), (torn, "fail"), (overwritten, "fail"), (text, "fail")])
async def test_a_damaged_database_is_found(bare, make, level):
    database = SmHome(bare.root / "state").database
    database.parent.mkdir(mode=0o700)
    make(database)
    assert (await found(bare))["database"]["level"] == level


@pytest.mark.parametrize(
    ("blocks", "inodes", "level"),
    [(1 << 30, 1000, "ok"), (10_000, 1000, "warn"), (100, 1000, "fail"), (1 << 30, 0, "fail")],
)
def test_a_full_disk_is_found(bare, monkeypatch, blocks, inodes, level):
    free = SimpleNamespace(f_bavail=blocks, f_frsize=4096, f_files=1000, f_favail=inodes)
    monkeypatch.setattr(os, "statvfs", lambda _: free)
    where = Surroundings({}, bare.root, SmHome(bare.root / "not made yet"), None, "claude")
    assert disk.room(where).level == level


def of_version(desk, version):
    """A client as npm installs it, on the PATH of `found`."""
    package = desk.root / "package"
    program(desk, "claude", f"echo '{version} (Claude Code)'")
    package.mkdir()
    (desk.root / "programs" / "claude").rename(package / "claude")
    (package / "package.json").write_text(json.dumps({"name": "@anthropic-ai/claude-code", "version": version}))
    (desk.root / "programs" / "claude").symlink_to(package / "claude")


@pytest.mark.parametrize(
    ("driver", "version", "level", "words"),
    [
        ("auto", "2.1.290", "ok", "the plugin in the client, and keys where it does not answer"),
        ("mod", "2.1.290", "ok", "the plugin in the client"),
        ("keys", "2.1.200", "ok", "keys, as claude.driver says"),
        ("auto", "2.1.200", "warn", "Claude Code 2.1.200 is too old for the plugin in it, which needs 2.1.290"),
        ("mod", "2.1.200", "fail", "Claude Code 2.1.200 is too old for the plugin in it, which needs 2.1.290"),
    ],
)
async def test_it_says_what_drives_the_client_and_why_not_its_plugin(bare, driver, version, level, words):
    of_version(bare, version)
    checks = await found(bare, SM_CLAUDE_DRIVER=driver)
    assert level_and_words(checks["driver"]) == (level, words)


async def test_it_names_the_running_sessions_that_have_no_plugin_and_why(desk, session):
    await desk.api.alter(session, driver_note="the plugin died")
    checks = await found(desk)
    assert level_and_words(checks["driver"]) == ("warn", "a: the plugin died")


MOUNTS = r"""22 27 0:21 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:22 / /home rw,relatime - nfs4 server:/home rw,vers=4.2
24 23 0:23 / /home/me/a\040disk rw - xfs /dev/sdb rw
25 22 0:24 / /mnt/c rw - 9p drvfs rw
26 25 0:25 / /mnt/c rw master:1 propagate_from:2 - ext4 /dev/sdc rw
"""


@pytest.mark.parametrize(
    ("place", "kind", "network"),
    [
        ("/var/lib", "ext4", False),
        ("/home/me/.local/state", "nfs4", True),
        ("/home/me/a disk/sm", "xfs", False),
        ("/homely", "ext4", False),
        ("/mnt/c/sm", "ext4", False),
    ],
)
def test_the_file_system_of_a_place_is_the_deepest_one_around_it(place, kind, network):
    found = kind_of(Path(place), linux_mounts(MOUNTS))
    assert (found, NETWORK.fullmatch(found) is not None) == (kind, network)


def test_what_macos_prints_of_its_file_systems_is_read():
    printed = "/dev/disk1s1 on / (apfs, local, journaled)\n//me@host/share on /Volumes/a on b (smbfs)\nmap auto_home\n"
    assert macos_mounts(printed) == [("/", "apfs"), ("/Volumes/a on b", "smbfs")]


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "lustre"])
def test_a_file_system_over_a_network_is_known(kind):
    assert NETWORK.fullmatch(kind)


async def test_a_transcript_that_the_client_is_about_to_delete_is_named(desk, session):
    """Its client deletes it, whoever starts one: the session would begin without its conversation."""
    transcript = desk.root / "t.jsonl"
    transcript.write_text("{}\n")
    current = desk.api.engine.sessions.actors[session].session.conversation
    await desk.api.alter(session, conversation=replace(current, transcript=str(transcript)))
    assert (await found(desk))["transcripts"]["level"] == "ok"
    old = time.time() - 25 * 86_400
    os.utime(transcript, (old, old))
    finding = (await found(desk))["transcripts"]
    assert level_and_words(finding) == (
        "warn",
        "the client deletes a transcript that was not written for 30 days (cleanupPeriodDays): a in 4 days",
    )
    settings = desk.root / "home" / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{"cleanupPeriodDays": 365}')
    assert "365 days" in (await found(desk))["transcripts"]["message"]
    assert (await found(desk))["transcripts"]["level"] == "ok"


async def test_what_a_client_writes_into_its_copy_of_the_plugin_is_no_fault_and_the_rest_is(bare):
    """It writes types there by the user's umask; SM_HOME itself is closed."""
    home = SmHome(bare.root / "state")
    home.plugin_copy("0.1.0").mkdir(parents=True)
    home.root.chmod(0o700)
    written = home.plugin_copy("0.1.0") / "tsconfig.json"
    written.write_text("{}")
    written.chmod(0o644)
    assert (await found(bare))["home"]["level"] == "ok"
    home.server_log.write_text("")
    home.server_log.chmod(0o644)
    finding = (await found(bare))["home"]
    assert level_and_words(finding) == ("fail", f"others may get at {home.server_log}")
