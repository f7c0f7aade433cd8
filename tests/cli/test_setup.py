"""`sm setup`: what it puts into a settings file, and that it leaves every other byte as it was."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sm.cli import settings_file
from sm.core.errors import SmError
from sm.paths import SmHome
from sm.providers.claude.user_settings import entries

OURS = entries.OwnEntries(
    python="/opt/sm/bin/python",
    hook="/opt/sm/lib/sm/hook.py",
    socket="/home/dev/.local/state/sm/hooks.sock",
    token="/home/dev/.local/state/sm/token",
    plugin="/opt/sm/plugin",
    status_line="/home/dev/sm/bin/sm statusline --server unix:/home/dev/sm/hooks.sock --token /home/dev/sm/token",
)
FOREIGN = {
    "model": "opus",
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "notify-send done"}]}],
        "PostToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "lint", "timeout": 3}]}],
        "Notification": [],
    },
    "statusLine": {"type": "command", "command": "~/bin/line.sh 'a b' | head -1", "padding": 0},
    "permissions": {"allow": ["Bash(git:*)"], "deny": []},
    "enabledPlugins": {"other@market": True},
}
COMPACT = json.dumps(FOREIGN, separators=(",", ":"))
PRETTY = json.dumps(FOREIGN, indent=2)
ODD = {
    "empty object": "{}",
    "empty object with a line end": "{}\n",
    "blank inside": "{ }\n",
    "line inside": "{\n}\n",
    "empty file": "",
    "blank file": " \n\n",
    "two blanks": PRETTY + "\n",
    "no line end": PRETTY,
    "four blanks": json.dumps(FOREIGN, indent=4) + "\n",
    "tabs": json.dumps(FOREIGN, indent="\t") + "\n",
    "one line": json.dumps(FOREIGN),
    "compact": COMPACT,
    "crlf": PRETTY.replace("\n", "\r\n") + "\r\n",
    "byte order mark": "\ufeff" + PRETTY,
    "blanks around": "\n\n  " + PRETTY + "  \n\n",
    "empty containers": '{\n  "hooks": {},\n  "enabledPlugins": {},\n  "extraKnownMarketplaces": { }\n}\n',
    "empty lists": '{"hooks": {"Stop": [], "SessionStart": [ ]}}',
    "mixed": '{"hooks":\n{ "Stop" :[\n{"hooks" : [ {"type":"command","command":"x"} ] }\n ,\n{"hooks":[]}]} , "b":1}',
    "escapes": '{"a\\u0041\\"}": "\\ud83d \\\\", "ü": "檔 \u2028", "n": -1.5e+3, "t": [true, null]}',
    "same key twice": '{"hooks": {"Stop": []}, "hooks": {"Stop": [{"hooks": []}]}}',
    "null status line": '{"statusLine": null, "x": 1}',
}


@pytest.fixture
def home(tmp_path):
    return SmHome(tmp_path / "state")


def target(tmp_path, content):
    path = tmp_path / "settings.json"
    if content is not None:
        path.write_bytes(content)
    return path


def install(path, home, *, status_line=False):
    change = settings_file.installed_change(path, home, OURS, status_line=status_line)
    settings_file.apply(change, home)
    return change


def remove(path, home):
    settings_file.apply(settings_file.removed_change(path, home), home)


def read(path):
    return json.loads(path.read_bytes().removeprefix(settings_file.BOM))


def our_hooks(found):
    return [name for name, groups in found["hooks"].items() for group in groups for _ in ours_in(group)]


def ours_in(group):
    return [hook for hook in group.get("hooks", ()) if entries.is_our_hook(hook)]


@pytest.mark.parametrize("status_line", [False, True])
@pytest.mark.parametrize("name", ODD)
def test_taking_out_gives_back_the_identical_bytes(tmp_path, home, name, status_line):
    before = ODD[name].encode()
    path = target(tmp_path, before)
    change = install(path, home, status_line=status_line)
    assert sorted(our_hooks(read(path))) == sorted(entries.HOOKS)
    assert read(path)["enabledPlugins"]["sm@sm"] is True
    assert settings_file.installed_change(path, home, OURS, status_line=status_line).needed is False
    assert change.original == before
    remove(path, home)
    assert path.read_bytes() == before
    assert settings_file.removed_change(path, home).needed is False


@pytest.mark.parametrize("name", sorted(ODD.keys() - {"blank file", "empty file"}))
def test_everything_of_the_person_is_still_there_and_comes_first(tmp_path, home, name):
    path = target(tmp_path, ODD[name].encode())
    before = read(path)
    install(path, home)
    after = read(path)
    assert {key: after[key] for key in before if key not in {"hooks", "enabledPlugins", "extraKnownMarketplaces"}} == {
        key: before[key] for key in before if key not in {"hooks", "enabledPlugins", "extraKnownMarketplaces"}
    }
    for hook, groups in before.get("hooks", {}).items():
        assert after["hooks"][hook][: len(groups)] == groups
    assert before.get("enabledPlugins", {}).items() <= after["enabledPlugins"].items()


@pytest.mark.parametrize(
    "name", ["two blanks", "four blanks", "tabs", "crlf", "byte order mark", "compact", "one line"]
)
def test_a_file_edited_since_loses_our_entries_alone(tmp_path, home, name):
    """The same without the record: everything beside our entries keeps its bytes."""
    before = ODD[name].encode()
    path = target(tmp_path, before)
    install(path, home, status_line=True)
    path.write_bytes(path.read_bytes().replace(b"opus", b"sonnet"))
    remove(path, home)
    assert path.read_bytes() == before.replace(b"opus", b"sonnet")


def test_the_style_of_the_file_is_taken_up(tmp_path, home):
    path = target(tmp_path, b'{\r\n\t"model": "opus"\r\n}\r\n')
    install(path, home)
    lines = path.read_bytes().decode().split("\r\n")
    assert not any("\n" in line for line in lines)
    assert '\t\t"SessionStart": [' in lines
    flat = target(tmp_path, b'{"a": 1, "b": 2}')
    install(flat, home)
    assert b"\n" not in flat.read_bytes()


def test_a_file_that_was_not_there_is_gone_again(tmp_path, home):
    path = target(tmp_path, None)
    install(path, home)
    assert read(path)["hooks"].keys() == set(entries.HOOKS)
    assert path.stat().st_mode & 0o777 == 0o600
    remove(path, home)
    assert not path.exists()


def test_a_file_that_was_not_there_and_was_edited_since_stays(tmp_path, home):
    path = target(tmp_path, None)
    install(path, home)
    path.write_text(json.dumps({**read(path), "model": "opus"}))
    remove(path, home)
    assert read(path) == {"model": "opus"}


def test_containers_that_the_person_had_empty_stay(tmp_path, home):
    path = target(tmp_path, b'{"hooks": {"Stop": []}, "x": 1}')
    install(path, home)
    path.write_bytes(path.read_bytes().replace(b'"x": 1', b'"x": 2'))
    remove(path, home)
    assert path.read_bytes() == b'{"hooks": {"Stop": []}, "x": 2}'


def test_an_older_set_up_is_replaced_and_its_record_kept(tmp_path, home):
    before = ODD["two blanks"].encode()
    path = target(tmp_path, before)
    install(path, home)
    old = path.read_bytes().replace(b"/opt/sm/bin/python", b"/old/python")
    path.write_bytes(old)
    install(path, home)
    assert b"/old/python" not in path.read_bytes()
    assert len(our_hooks(read(path))) == len(entries.HOOKS)
    remove(path, home)
    assert path.read_bytes() == before


def test_a_status_line_of_the_person_goes_on_behind_ours_and_comes_back(tmp_path, home):
    path = target(tmp_path, PRETTY.encode())
    install(path, home)
    assert read(path)["statusLine"] == FOREIGN["statusLine"]
    install(path, home, status_line=True)
    line = read(path)["statusLine"]
    assert line["command"].startswith(OURS.status_line)
    assert line["padding"] == 0
    assert entries.status_line_words(line["command"])[-1] == FOREIGN["statusLine"]["command"]
    assert settings_file.installed_change(path, home, OURS, status_line=False).needed is False, (
        "a later setup leaves it"
    )
    remove(path, home)
    assert path.read_bytes() == PRETTY.encode()


def test_a_plugin_that_the_person_has_switched_off_stays_off(tmp_path, home):
    path = target(tmp_path, b'{"enabledPlugins": {"sm@sm": false}}')
    install(path, home)
    assert read(path)["enabledPlugins"] == {"sm@sm": False}
    remove(path, home)
    assert path.read_bytes() == b'{"enabledPlugins": {"sm@sm": false}}'


OWN_PLUGIN = json.dumps(
    {
        "enabledPlugins": {"sm@sm": True},
        "extraKnownMarketplaces": {"sm": {"source": {"source": "directory", "path": OURS.plugin}}},
    },
    indent=2,
).encode()
"""What `claude plugin install sm@sm` leaves, as the README has it."""


def test_a_plugin_that_the_person_installed_stays(tmp_path, home):
    path = target(tmp_path, OWN_PLUGIN)
    assert settings_file.removed_change(path, home).needed is False, "nothing was set up"
    install(path, home)
    remove(path, home)
    assert path.read_bytes() == OWN_PLUGIN
    install(path, home)
    path.write_bytes(path.read_bytes().replace(b"{", b'{"model": "opus",', 1))
    install(path, home)  # of an edited file as well
    remove(path, home)
    assert read(path) == {"model": "opus", **json.loads(OWN_PLUGIN)}


@pytest.mark.parametrize("before", ['"é"', '"abc"', "5", "[" * 100_000])
def test_a_record_that_is_damaged_is_no_record(tmp_path, home, before):
    path = target(tmp_path, PRETTY.encode())
    install(path, home)
    left = settings_file._fingerprint(path.read_bytes())
    home.setup_record(str(path)).write_text(f'{{"left": "{left}", "before": {before}}}')
    remove(path, home)
    assert read(path) == FOREIGN


def test_another_marketplace_of_our_name_is_refused(tmp_path, home):
    path = target(tmp_path, b'{"extraKnownMarketplaces": {"sm": {"source": {"source": "github", "repo": "a/b"}}}}')
    with pytest.raises(SmError) as refused:
        settings_file.installed_change(path, home, OURS, status_line=False)
    assert refused.value.refused.code == "setup_conflict"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": 1,\n  "b": }', "line 2, column 8"),
        (b'{"a": 1} // comment', "line 1, column 10"),
        (b"[1, 2]", "not an object"),
        (b'{"hooks": []}', "hooks is not an object"),
        (b'{"hooks": {"Stop": {}}}', "hooks.Stop is not a list"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "recursion"),
    ],
)
def test_a_file_that_is_no_settings_file_is_refused_with_the_position(tmp_path, home, content, words):
    path = target(tmp_path, content)
    install = partial(settings_file.installed_change, path, home, OURS, status_line=False)
    for change in (install, partial(settings_file.removed_change, path, home)):
        with pytest.raises(SmError) as refused:
            change()
        assert refused.value.refused.code == "bad_settings"
        assert words in refused.value.refused.message
    assert path.read_bytes() == content


def test_a_link_stays_a_link_and_the_mode_stays_the_mode(tmp_path, home):
    real = tmp_path / "dotfiles.json"
    real.write_bytes(b"{}")
    real.chmod(0o640)
    link = tmp_path / "settings.json"
    link.symlink_to(real)
    install(Path(os.path.realpath(link)), home)
    assert link.is_symlink()
    assert read(link)["hooks"]
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_read_only_file_is_left_alone(tmp_path, home):
    path = target(tmp_path, b"{}")
    path.chmod(0o444)
    with pytest.raises(SmError, match="read-only"):
        settings_file.installed_change(path, home, OURS, status_line=False)


def test_a_file_that_changed_while_the_person_was_asked_is_not_overwritten(tmp_path, home):
    path = target(tmp_path, b"{}")
    change = settings_file.installed_change(path, home, OURS, status_line=False)
    path.write_bytes(b'{"new": 1}')
    with pytest.raises(SmError, match="while the command ran"):
        settings_file.apply(change, home)
    assert path.read_bytes() == b'{"new": 1}'


def test_the_record_holds_no_token_and_nobody_else_can_read_it(tmp_path, home):
    path = target(tmp_path, b"{}")
    install(path, home)
    record = home.setup_record(str(path))
    assert record.stat().st_mode & 0o777 == 0o600
    assert OURS.token in path.read_text(), "the file's name, and not what it holds"


BLANKS = st.text(" \t\n", max_size=3)
NAMES = st.one_of(
    st.sampled_from(["hooks", "enabledPlugins", "extraKnownMarketplaces", "statusLine", "Stop", "SessionStart", "sm"]),
    st.text(max_size=4),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)


@st.composite
def documents(draw):
    """A settings file as odd as JSON allows: any members, any white space between any two tokens."""
    found = draw(st.dictionaries(NAMES, VALUES, max_size=5))
    groups = st.lists(st.dictionaries(st.sampled_from(["hooks", "matcher"]), VALUES, max_size=2), max_size=2)
    if draw(st.booleans()):
        found["hooks"] = draw(st.dictionaries(st.sampled_from([*entries.HOOKS, "Other"]), groups, max_size=4))
    text = json.dumps(found, indent=draw(st.sampled_from([None, 0, 1, 2, "\t"])), ensure_ascii=draw(st.booleans()))
    text = draw(BLANKS) + text + draw(BLANKS)
    return (b"\xef\xbb\xbf" if draw(st.booleans()) else b"") + text.replace(
        "\n", draw(st.sampled_from(["\n", "\r\n"]))
    ).encode("utf-8", "replace")


@given(content=documents(), status_line=st.booleans())
def test_any_file_comes_back_as_it_was_or_is_refused(tmp_path_factory, content, status_line):
    root = tmp_path_factory.mktemp("setup")
    home = SmHome(root / "state")
    path = target(root, content)
    try:
        install(path, home, status_line=status_line)
    except SmError:
        assert path.read_bytes() == content
        return
    assert settings_file.installed_change(path, home, OURS, status_line=status_line).needed is False
    remove(path, home)
    assert path.read_bytes() == content


@given(content=documents())
@example(content=b'{"extraKnownMarketplaces": {"sm": null}}')
def test_without_the_record_what_is_left_says_the_same(tmp_path_factory, content):
    root = tmp_path_factory.mktemp("setup")
    path = target(root, content)
    before = json.loads(content.removeprefix(settings_file.BOM))
    try:
        install(path, SmHome(root / "state"), status_line=True)
    except SmError:
        return
    remove(path, SmHome(root / "elsewhere"))
    assert without_empty(read(path)) == without_empty(before)


def without_empty(found):
    kept = dict(found)
    if isinstance(kept.get("hooks"), dict):
        kept["hooks"] = {name: groups for name, groups in kept["hooks"].items() if groups}
    names = ("hooks", "enabledPlugins", "extraKnownMarketplaces")
    kept = {key: value for key, value in kept.items() if value or key not in names}
    return {key: value for key, value in kept.items() if key != "statusLine" or value is not None}


# --- the command -------------------------------------------------------------------------------------------------


def sm(tmp_path, *arguments, **env):
    own = {"HOME": str(tmp_path / "home"), "SM_HOME": str(tmp_path / "state"), "PATH": os.environ["PATH"], **env}
    return subprocess.run(
        [sys.executable, "-m", "sm", *arguments],
        env=own,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_nothing_is_changed_without_a_yes(tmp_path):
    done = sm(tmp_path, "setup")
    assert done.returncode == 2
    assert '+  "hooks": {' in done.stdout
    assert "--yes" in done.stderr
    assert not (tmp_path / "home/.claude").exists()


def test_the_command_sets_up_and_takes_out(tmp_path):
    config = tmp_path / "config"
    config.mkdir()
    path = config / "settings.json"
    path.write_text(PRETTY)
    done = sm(tmp_path, "setup", "--yes", CLAUDE_CONFIG_DIR=str(config))
    assert done.returncode == 0, done.stderr
    assert "set up in" in done.stderr
    hook = read(path)["hooks"]["SessionStart"][0]["hooks"][0]
    assert Path(hook["command"]).exists()
    assert Path(hook["args"][2]).exists()
    plugin = Path(read(path)["extraKnownMarketplaces"]["sm"]["source"]["path"])
    assert json.loads((plugin / ".claude-plugin/plugin.json").read_text())["name"] == "sm"
    again = sm(tmp_path, "setup", "--json", "--yes", CLAUDE_CONFIG_DIR=str(config))
    assert json.loads(again.stdout)["data"] == {"path": str(path), "changed": False, "diff": ""}
    assert sm(tmp_path, "setup", "--remove", "--yes", CLAUDE_CONFIG_DIR=str(config)).returncode == 0
    assert path.read_text() == PRETTY


def test_the_status_line_it_installs_runs(tmp_path):
    assert sm(tmp_path, "setup", "--statusline", "--yes").returncode == 0
    command = read(tmp_path / "home/.claude/settings.json")["statusLine"]["command"]
    done = subprocess.run(["sh", "-c", command], input="{}", capture_output=True, text=True, check=True, env={})
    assert "context unknown" in done.stdout


def test_a_session_may_not_change_them(tmp_path):
    done = sm(tmp_path, "setup", "--yes", CLAUDE_SESSION_MANAGER_ID="12345678")
    assert (done.returncode, "forbidden" in done.stderr or "may not" in done.stderr) == (1, True)


def test_a_client_that_the_plugin_drives_runs_no_hook_after_a_tool_call(tmp_path):
    package = tmp_path / "client"
    package.mkdir()
    program = package / "claude"
    program.touch(0o700)
    for version, names in (("2.1.290", set(entries.HOOKS) - {"PostToolUse"}), ("2.1.289", set(entries.HOOKS))):
        (package / "package.json").write_text(json.dumps({"name": "@anthropic-ai/claude-code", "version": version}))
        path = f"{package}:{os.environ['PATH']}"
        assert sm(tmp_path, "setup", "--yes", PATH=path).returncode == 0
        assert read(tmp_path / "home/.claude/settings.json")["hooks"].keys() == names
        again = sm(tmp_path, "setup", "--json", "--yes", PATH=path)
        assert json.loads(again.stdout)["data"]["changed"] is False
    assert sm(tmp_path, "setup", "--remove", "--yes").returncode == 0
    assert not (tmp_path / "home/.claude/settings.json").exists()
