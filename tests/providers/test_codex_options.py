"""How Codex is started: what is configured, which arguments are taken, what a child may do, in which environment."""

import math
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.core.errors import SmError
from sm.providers.codex import options
from sm.providers.codex.app import launch
from sm.providers.environment import client_environment

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(TEXT, parts, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_a_value_is_read_back_as_it_was_given(value):
    written = options.toml(value)
    assert "\n" not in written
    assert tomllib.loads(f"x = {written}") == {"x": value}


@pytest.mark.parametrize("value", ["\x7f", "\U0001f600", "\x00\x1f", 'a"b\\', "é", {"\x7f": 1}, {"\U0001f600": ["'"]}])
def test_a_value_with_such_characters_is_read_back(value):
    assert tomllib.loads(f"x = {options.toml(value)}") == {"x": value}


def test_a_number_that_is_none_is_read_back():
    assert math.isnan(tomllib.loads(f"x = {options.toml(math.nan)}")["x"])


def test_a_tuple_is_an_array_and_a_path_a_string(tmp_path):
    assert options.toml((1, "a")) == '[1,"a"]'
    assert tomllib.loads(f"x = {options.toml(tmp_path)}")["x"] == str(tmp_path)


def test_our_tools_are_one_argument_without_a_token():
    flag, table = options.tools(options.ToolServer("/py", ("-m", "sm.tools")))
    name, _, value = table.partition("=")
    server = tomllib.loads(f"x = {value}")["x"]
    assert (flag, name) == ("-c", "mcp_servers.sm")
    assert (server["command"], server["args"]) == ("/py", ["-m", "sm.tools"])
    assert {"SM_SESSION_TOKEN", "SM_URL", "CLAUDE_SESSION_MANAGER_ID"} <= set(server["env_vars"])


@pytest.mark.parametrize("argument", sorted(options.RESERVED))
@pytest.mark.parametrize("value", ["", "=x"])
def test_a_reserved_argument_is_refused_with_what_to_do(argument, value):
    with pytest.raises(SmError, match=argument) as caught:
        options.check_arguments(["-m", "x", argument + value], "codex.arguments in the configuration")
    assert "codex.arguments in the configuration: " in str(caught.value)


def test_arguments_of_the_user_are_not_reserved():
    options.check_arguments(["-m", "mock", "--sandbox=read-only", "-c", "resume_on=1", "--yolo"])


@pytest.mark.parametrize("model", ["", "-c", "--yolo"])
def test_a_model_is_a_name(model):
    with pytest.raises(SmError):
        options.check_model(model)
    options.check_model(None)
    options.check_model("mock-model")


SETTINGS = [
    (["-m", "mock"], ["-c", 'model="mock"']),
    (["--model=mock"], ["-c", 'model="mock"']),
    (
        ["-s", "read-only", "--ask-for-approval=never"],
        ["-c", 'sandbox_mode="read-only"', "-c", 'approval_policy="never"'],
    ),
    (["--yolo"], ["-c", 'sandbox_mode="danger-full-access"', "-c", 'approval_policy="never"']),
    (["-c", "a.b=1", "--config=c=2"], ["-c", "a.b=1", "--config", "c=2"]),
    (["--enable", "goals", "--disable=hooks"], ["--enable", "goals", "--disable", "hooks"]),
    (["-m", 'x" \n'], ["-c", 'model="x\\" \\n"']),
    ([], []),
]


@pytest.mark.parametrize(("given_arguments", "taken"), SETTINGS)
def test_arguments_are_the_app_servers_settings(given_arguments, taken):
    assert list(launch.settings_of(given_arguments)) == taken


@pytest.mark.parametrize("argument", ["-i", "--image", "--search", "-p", "prompt text", "--yolo=1", "--sandboxed"])
def test_an_argument_that_is_no_setting_is_refused(argument):
    with pytest.raises(SmError, match="takes no argument") as caught:
        launch.settings_of(["-m", "x", argument])
    assert "--provider codex-tui" in caught.value.refused.hint


MODES = st.tuples(
    st.sampled_from(["", *options.ORDER, "full", "Danger-full-access", "externalSandbox"]) | TEXT,
    st.sampled_from(["", *options.ASKING, "granular", "untrusted", "on-failure"]) | TEXT,
).map(" ".join)
ARGUMENTS = st.lists(
    st.sampled_from(["--yolo", "-s", "danger-full-access", "-a", "never", "-c", "sandbox_mode=danger-full-access"])
)


@given(ARGUMENTS, MODES)
def test_a_child_never_gets_more_than_the_mode(arguments, mode):
    given_ = dict(options.options(options.child_arguments(arguments, mode)))
    sandbox, _, approval = mode.partition(" ")
    is_known = sandbox in options.ORDER and approval != "untrusted"
    assert given_["-s"] == (sandbox if is_known else "read-only")
    assert given_["-a"] == (approval if approval in options.ASKING else "on-request")


def test_a_childs_arguments_can_be_given_to_the_app_server():
    for sandbox in options.ORDER:
        for asks in options.ASKING:
            child = options.child_arguments((), f"{sandbox} {asks}")
            assert launch.settings_of(child) == (*options.configured(sandbox_mode=sandbox, approval_policy=asks),)


def test_the_configuration_is_where_the_client_looks(tmp_path):
    assert str(options.config_directory({"HOME": "/home/u"})) == "/home/u/.codex"
    assert str(options.config_directory({"HOME": "/home/u", "CODEX_HOME": "/c"})) == "/c"
    rollout = tmp_path / "sessions" / "2026" / "05" / "28" / "rollout-x.jsonl"
    assert options.config_directory_of(rollout) == tmp_path


OF_A_RUNNING_CLIENT = [
    *("CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PID"),
    *("CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED"),
    *("SM_SESSION_TOKEN", "SM_URL", "SM_HOME", "TMUX", "TMUX_PANE", "TERM", "PWD", "SHLVL", "STY"),
]
OF_THE_USER = [
    *("HOME", "LANG", "HTTPS_PROXY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"),
    *("CLAUDE_CONFIG_DIR", "CLAUDE_CODE_USE_BEDROCK", "CODEX_HOME", "CODEX_API_KEY", "CODEX_CA_CERTIFICATE"),
]


@pytest.mark.parametrize("name", OF_A_RUNNING_CLIENT)
def test_what_a_client_has_set_for_its_agent_is_left_behind(name):
    assert name not in client_environment({name: "x"}, {}, "/bin/sm")


@pytest.mark.parametrize("name", OF_THE_USER)
def test_what_the_user_has_set_for_either_client_comes_along(name):
    assert client_environment({name: "x"}, {}, "/bin/sm")[name] == "x"


@pytest.mark.parametrize("name", ["TERM", "TMUX", "TMUX_PANE"])
def test_in_the_foreground_the_terminal_is_the_callers_own(name):
    assert client_environment({name: "x"}, {}, "/bin/sm", foreground=True)[name] == "x"


def test_what_claude_code_sets_for_its_agent_is_dropped_only_below_it():
    caller = {"GIT_EDITOR": "true", "AI_AGENT": "1"}
    assert client_environment(caller, {}, "/b")["GIT_EDITOR"] == "true"
    assert "GIT_EDITOR" not in client_environment({**caller, "CLAUDECODE": "1"}, {}, "/b")
