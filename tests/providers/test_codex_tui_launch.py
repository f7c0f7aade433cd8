"""How a Codex in a terminal is started, as 0.171.0 wants it."""

import tomllib
from pathlib import Path

import pytest

from sm.core.errors import SmError
from sm.providers.codex import options
from sm.providers.codex.tui import launch
from sm.providers.codex.tui.launch import HookCommand

HOOK = HookCommand("/usr/bin/python3", "/opt/sm/hook.py")
TOOLS = options.ToolServer("/usr/bin/python3", ("-m", "sm", "tools"))
HOSTILE = ["/a b", "/it's", '/"quoted"', "/back\\slash", "/line\nend", "/tab\tx", "/$HOME/`x`", "/\x7f"]
HOSTILE += ["/\N{LATIN SMALL LETTER E WITH ACUTE}/\N{GRINNING FACE}"]
STOP = "99551a51b888f6dc725f1199663b7b1e1ef9bb9b9cab0612d84e5e9218aca6f5"
PERMISSION = "84bfab601cd796832edd357e1b1cff50587dfa272fa1464175bc664008d5de00"
"""What the client itself says of such hooks that run `true` (`hooks/list` of its app-server)."""


def read(setting):
    """The value of a `-c` argument, as the client's parser reads it."""
    return tomllib.loads(setting)


@pytest.mark.parametrize("path", HOSTILE)
def test_a_path_is_read_as_it_is(path):
    flag, setting = launch.hooks(str(HookCommand(path, f"{path}/hook.py")))
    assert flag == "-c"
    command = read(setting)["hooks"]["Stop"][0]["hooks"][0]["command"]
    assert command == str(HookCommand(path, f"{path}/hook.py"))


def test_each_hook_is_trusted_by_its_hash():
    assert launch.trusted("Stop", "true") == f"sha256:{STOP}"
    assert launch.trusted("PermissionRequest", "true", holds=True) == f"sha256:{PERMISSION}"


def test_hooks_and_what_they_are_trusted_by_go_together():
    hooks = read(launch.hooks(str(HOOK))[1])["hooks"]
    state = hooks.pop("state")
    assert list(hooks) == launch.hook_names(gate=False)
    assert state == {
        f"/<session-flags>/config.toml:{launch.snake(name)}:0:0": {"trusted_hash": launch.trusted(name, str(HOOK))}
        for name in hooks
    }


@pytest.mark.parametrize(("holds", "seconds"), [(False, launch.HOOK_TIMEOUT_S), (True, launch.ASK_TIMEOUT_S)])
def test_a_dialog_waits_for_sm_only_where_that_is_wanted(holds, seconds):
    hooks = read(launch.hooks(str(HOOK), holds=holds)[1])["hooks"]
    assert hooks["PermissionRequest"][0]["hooks"][0]["timeout"] == seconds
    assert hooks["Stop"][0]["hooks"][0]["timeout"] == launch.HOOK_TIMEOUT_S


def test_a_gate_alone_asks_before_each_call():
    assert "PreToolUse" not in launch.hook_names(gate=False)
    assert set(launch.hook_names(gate=True)) - set(launch.hook_names(gate=False)) == {"PreToolUse"}


def test_what_a_session_needs_is_set():
    values = [read(value) for value in launch.settings(HOOK, TOOLS)[1::2]]
    assert {"disable_paste_burst": True} in values
    assert {"check_for_update_on_startup": False} in values
    assert any("hooks" in value for value in values)
    assert any("mcp_servers" in value for value in values)


def test_a_path_that_is_no_text_is_refused():
    with pytest.raises(SmError, match="not text"):
        launch.settings(HookCommand("/usr/bin/python3", "/opt/\udcff/hook.py"), TOOLS)


@pytest.mark.parametrize(
    ("given", "rest", "expected"),
    [
        ([], {}, "codex {} --"),
        (["-s", "read-only", "fix it"], {}, "codex -s read-only {} -- fix_it"),
        (["--", "-x"], {}, "codex {} -- -x"),
        (["-m", "a", "fix it"], {"prompt": "go on"}, "codex -m a {} -- go_on"),
        (["--search"], {"resume": "T", "prompt": "go"}, "codex resume --search {} -- T go"),
        ([], {"model": "m"}, "codex --model m {} --"),
        ([], {"prompt": "!ls"}, "codex {} -- _!ls"),
        (["-i", "a.png", "b.png"], {}, "codex -i a.png b.png {} --"),
        (["--image=a.png", "look"], {"prompt": "x"}, "codex --image=a.png {} -- x"),
        (["-mfast", "look"], {"prompt": "x"}, "codex -mfast {} -- x"),
    ],
)
def test_arguments_are_in_an_order_that_the_client_reads(given, rest, expected):
    found = launch.argv(("codex",), ("SETTINGS",), given, **rest)
    ours = "--no-daemon --no-alt-screen SETTINGS"
    assert " ".join(part.replace(" ", "_") for part in found) == expected.format(ours)


def test_configured_arguments_come_first():
    assert launch.argv(("codex", "-p", "work"), (), ["--search"], resume="T")[:5] == (
        "codex",
        "resume",
        "-p",
        "work",
        "--search",
    )


@pytest.mark.parametrize(
    "given",
    [
        ["--remote", "unix://x"],
        ["--remote=unix://x"],
        ["--worktree"],
        ["-C", "/x"],
        ["-C/x"],
        ["--help"],
        ["-V"],
        ["resume", "--last"],
        ["-m", "x", "exec", "do it"],
        ["app-server"],
        ["--", "resume"],
        ["-c", "hooks={}"],
        ["-c", "hooks.Stop=[]"],
        ["--config=features.hooks=false"],
        ["-c", "features = {}"],
        ["--disable", "hooks"],
        ["--disable=hooks"],
    ],
)
def test_what_a_session_cannot_have_is_refused(given):
    if given[0] == "--":  # behind it the client reads a prompt
        launch.check_arguments(given)
        return
    with pytest.raises(SmError):
        launch.check_arguments(given)


@pytest.mark.parametrize(
    "given",
    [
        [],
        ["fix the resume"],
        ["-m", "exec"],
        ["-c", "model=resume"],
        ["-c", "features.hooks=true"],
        ["--enable", "hooks"],
        ["--disable", "hooks_of_mine"],
        ["-c", "shooks=1"],
        ["--add-dir", "/x", "-a", "never"],
    ],
)
def test_what_only_looks_like_it_is_not(given):
    launch.check_arguments(given)


def test_a_refusal_says_where_the_argument_is():
    with pytest.raises(SmError, match=r"codex.arguments: --worktree runs the client where `sm` cannot see it"):
        launch.check_arguments(["--worktree"], "codex.arguments")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("config.toml", "[features]\nhooks = false"),
        ("work.config.toml", "features.hooks = false"),
        ("requirements.toml", "allow_managed_hooks_only = true"),
        ("project/.codex/config.toml", "features = { hooks = false }"),
    ],
)
def test_settings_that_switch_hooks_off_are_named(tmp_path, file, text):
    project = tmp_path / "project"
    (project / ".codex").mkdir(parents=True)
    assert launch.refuse_disabled(tmp_path, project, "work") is None
    (tmp_path / file).write_text(text)
    refused = launch.refuse_disabled(tmp_path, project, "work")
    assert refused is not None
    assert str(tmp_path / file) in str(refused)


@pytest.mark.parametrize("text", ["[features]\nhooks = true", "features = 3", "[broken", ""])
def test_other_settings_are_the_clients_own_business(tmp_path, text):
    (tmp_path / "config.toml").write_text(text)
    assert launch.refuse_disabled(tmp_path, Path("/none"), None) is None


@pytest.mark.parametrize(
    ("given", "profile"), [(["-p", "a"], "a"), (["--profile=b", "x"], "b"), (["-pc"], "c"), (["x", "-p", "d"], None)]
)
def test_the_profile_is_found(given, profile):
    assert launch.profile_of(given) == profile
