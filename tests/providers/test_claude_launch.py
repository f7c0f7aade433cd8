"""How the client is started: environment, arguments, settings, and what the person's own settings allow."""

import json
import os
import re

import pytest

from sm.core.errors import SmError
from sm.providers.claude import launch
from sm.providers.claude.hooks import MAKERS

PLACE = launch.Installation(
    "/py", "/sm/hook.py", "http://127.0.0.1:8000", "/home/s.sock", ("/state/token", "/state/sm.db")
)
URL = PLACE.url


def environment(**caller):
    return launch.environment(caller, {"SM_URL": URL}, "/state/bin")


DROPPED = [
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SIMPLE",
    "CLAUDE_CODE_MESSAGING_TOKEN",
    "CLAUDE_PID",
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_SESSION_MANAGER_ID",
    "SM_SESSION_TOKEN",
    "SM_HOME",
    "SM_SOCKET",
    "TMUX",
    "TMUX_PANE",
    "TERM",
    "STY",
    "PWD",
    "SHLVL",
]
KEPT = [
    "HOME",
    "LANG",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "HTTPS_PROXY",
    "EDITOR",
    "SSH_AUTH_SOCK",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_AUTO_COMPACT_WINDOW",
]


@pytest.mark.parametrize("name", DROPPED)
def test_what_belongs_to_another_client_or_terminal_is_left_behind(name):
    assert name not in environment(**{name: "x"})


@pytest.mark.parametrize("name", KEPT)
def test_the_persons_own_environment_comes_along(name):
    assert environment(**{name: "x"})[name] == "x"


def test_our_own_variables_outrank_the_callers():
    caller = {"CLAUDE_SESSION_MANAGER_ID": "of another session", "SM_URL": "elsewhere"}
    env = launch.environment(caller, {"CLAUDE_SESSION_MANAGER_ID": "mine", "SM_URL": URL}, "/b")
    assert (env["CLAUDE_SESSION_MANAGER_ID"], env["SM_URL"]) == ("mine", URL)


def test_sm_is_first_on_the_path():
    assert environment(PATH="/usr/bin")["PATH"] == "/state/bin:/usr/bin"
    assert environment()["PATH"].startswith("/state/bin:/usr")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "127.0.0.1,localhost"),
        ("corp.example", "corp.example,127.0.0.1,localhost"),
        ("localhost,127.0.0.1", "localhost,127.0.0.1"),
    ],
)
def test_hooks_never_go_through_a_proxy(before, after):
    env = environment(NO_PROXY=before, HTTP_PROXY="http://proxy:1")
    assert (env["NO_PROXY"], env["no_proxy"]) == (after, "127.0.0.1,localhost")


def test_the_terminal_keeps_its_history():
    assert environment()["CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN"] == "1"


def test_the_settings_add_hooks_and_never_a_bypass():
    settings = launch.settings(PLACE, command_hooks=False, readable=("/home/messages/s", "/home/handoffs/p"))
    assert set(settings) == {"permissions", "disableAgentView", "hooks"}
    commands = "handoff send status context inbox message remind wait spawn children kill clear done search"  # C21
    assert settings["permissions"] == {
        "allow": [
            *(f"Bash(sm {command}:*)" for command in commands.split()),
            "Edit(.sm/handoff.md)",
            "Read(//home/messages/s/**)",
            "Read(//home/handoffs/p/**)",
        ],
        "deny": ["Read(//state/token)", "Read(//state/sm.db)"],
    }
    assert "token" not in json.dumps(settings["hooks"]).replace("SM_SESSION_TOKEN", "")


def test_with_the_plugin_no_hook_runs_after_a_tool_but_one_that_writes_a_file():
    groups = {
        name: hooks[0] for name, hooks in launch.settings(PLACE, command_hooks=False, every_tool=False)["hooks"].items()
    }
    matched = {name: group["matcher"] for name, group in groups.items() if "matcher" in group}
    assert matched == {"PostToolUse": "Edit|MultiEdit|Write", "PostToolUseFailure": "Edit|MultiEdit|Write"}
    assert not any("matcher" in hooks[0] for hooks in launch.settings(PLACE, command_hooks=False)["hooks"].values())


def test_hooks_are_http_but_for_the_one_that_must_be_a_command():
    hooks = launch.settings(PLACE, command_hooks=False)["hooks"]
    kinds = {name: groups[0]["hooks"][0]["type"] for name, groups in hooks.items()}
    always = MAKERS.keys() - launch.GATING
    assert kinds == {name: "command" if name == "SessionStart" else "http" for name in always}
    stop = hooks["Stop"][0]["hooks"][0]
    assert stop["headers"] == {"Authorization": "Bearer $SM_SESSION_TOKEN"}
    assert (stop["allowedEnvVars"], stop["timeout"]) == (["SM_SESSION_TOKEN"], 1)


def test_a_tool_call_is_asked_about_only_where_there_is_a_gate():
    gated = launch.settings(PLACE, command_hooks=False, gate=True)["hooks"]
    assert gated.keys() - launch.settings(PLACE, command_hooks=False)["hooks"].keys() == {"PreToolUse"}
    assert gated["PreToolUse"][0]["hooks"][0]["type"] == "http"


def test_command_hooks_run_without_a_shell():
    hooks = launch.settings(PLACE, command_hooks=True)["hooks"]
    for groups in hooks.values():
        [hook] = groups[0]["hooks"]
        assert (hook["command"], hook["args"]) == ("/py", ["-I", "-S", "/sm/hook.py", "claude"])


@pytest.mark.parametrize("argument", [*launch.RESERVED, "--settings={}", "--resume=x"])
def test_an_argument_that_would_break_the_session_is_refused_with_its_reason(argument):
    with pytest.raises(SmError, match=argument.partition("=")[0]) as refused:
        launch.check_arguments(["--verbose", argument])
    assert refused.value.refused.hint


def test_an_answer_without_a_session_is_refused_for_what_it_is():
    with pytest.raises(SmError, match=r"^-p answers once") as refused:
        launch.check_arguments(["-p", "hi"])
    assert refused.value.refused.hint == "start that client without `sm`"


@pytest.mark.parametrize(("argument", "name"), [("-pc", "-p"), ("-rabc", "-r")])
def test_short_options_written_together_are_refused_by_the_first(argument, name):
    with pytest.raises(SmError, match=f"{name} "):
        launch.check_arguments([argument])


def test_other_arguments_pass():
    launch.check_arguments(["--permission-mode", "plan", "--add-dir", "/x", "--name", "--bar"])


@pytest.fixture
def project(tmp_path):
    (tmp_path / "project" / ".claude").mkdir(parents=True)
    (tmp_path / "config").mkdir()
    return tmp_path


def person(project, **settings):
    (project / "config" / "settings.json").write_text(json.dumps(settings))


def policy(project):
    return launch.hook_policy(project / "config", project / "project", URL)


REFUSING = [
    {"httpHookAllowedEnvVars": []},
    {"httpHookAllowedEnvVars": ["OTHER"]},
    {"allowedHttpHookUrls": []},
    {"allowedHttpHookUrls": ["https://hooks.example/*"]},
]
ALLOWING = [
    {},
    {"httpHookAllowedEnvVars": ["SM_SESSION_TOKEN"]},
    {"allowedHttpHookUrls": ["http://127.0.0.1:*"]},
    {"allowedHttpHookUrls": ["*"]},
]


@pytest.mark.parametrize("settings", REFUSING)
def test_a_policy_against_our_http_hooks_is_seen(project, settings):
    person(project, **settings)
    assert policy(project) == launch.HookPolicy(None, str(project / "config" / "settings.json"))


@pytest.mark.parametrize("settings", ALLOWING)
def test_a_policy_that_lets_them_pass_is_none(project, settings):
    person(project, **settings)
    assert policy(project) == launch.HookPolicy()


@pytest.mark.parametrize("name", ["settings.local.json", "settings.json"])
@pytest.mark.parametrize("switch", ["disableAllHooks", "allowManagedHooksOnly"])
def test_hooks_that_are_switched_off_are_refused_and_the_file_is_named(project, name, switch):
    path = project / "project" / ".claude" / name
    path.write_text(json.dumps({switch: True}))
    refused = launch.refuse_disabled(policy(project))
    assert str(path) in refused.refused.message


@pytest.mark.parametrize("broken", ["{", "[]", "null", "\x00"])
def test_a_broken_settings_file_says_nothing(project, broken):
    (project / "config" / "settings.json").write_text(broken)
    assert policy(project) == launch.HookPolicy()
    assert launch.refuse_disabled(policy(project)) is None


# --- children --------------------------------------------------------------------------------------------------------


MADE = ["AI_AGENT", "COREPACK_ENABLE_AUTO_PIN", "GIT_EDITOR", "NoDefaultCurrentDirectoryInExePath"]


@pytest.mark.parametrize("name", MADE)
def test_what_a_client_sets_for_its_agents_shell_does_not_reach_a_child_but_a_persons_own_does(name):
    assert name not in environment(**{name: "x", "CLAUDECODE": "1"})
    assert environment(**{name: "x"})[name] == "x"


def test_our_directory_is_on_the_path_once():
    assert environment(PATH="/a:/state/bin:/b")["PATH"] == "/state/bin:/a:/b"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ((), ()),
        (("--permission-mode", "bypassPermissions"), ()),
        (("--dangerously-skip-permissions", "--permission-mode=auto", "do it"), ()),
        (("--disallowedTools", "Bash(rm:*)", "Edit", "--model", "x"), ("--disallowedTools", "Bash(rm:*)", "Edit")),
        (("--disallowed-tools=Bash", "--add-dir", "/"), ("--disallowed-tools=Bash",)),
        (("--allowedTools", "Bash", "--tools", "Read"), ("--tools", "Read")),
        (
            ("--setting-sources", "project", "--strict-mcp-config"),
            ("--setting-sources", "project", "--strict-mcp-config"),
        ),
    ],
)
def test_a_child_has_the_restrictions_of_its_parent_and_its_mode(given, kept):
    assert launch.child_arguments(given, "plan") == (*kept, "--permission-mode", "plan")


@pytest.mark.parametrize("bypass", sorted(launch.BYPASSING))
@pytest.mark.parametrize("asked", [("--permission-mode", "plan"), ("--permission-mode=plan",)])
def test_a_mode_that_is_asked_for_outranks_a_configured_bypass(bypass, asked):
    assert launch.without_bypass((bypass, "--verbose"), asked) == ("--verbose",)
    assert launch.without_bypass((bypass, "--verbose"), ()) == (bypass, "--verbose")


@pytest.mark.parametrize("model", ["", "--dangerously-skip-permissions", "-p"])
def test_a_model_is_no_option(model):
    with pytest.raises(SmError, match="is not a model name"):
        launch.check_model(model)


def test_settings_that_are_no_regular_file_or_nested_without_end_are_none(project):
    os.mkfifo(project / "project" / ".claude" / "settings.json")
    (project / "project" / ".claude" / "settings.local.json").write_text("[" * 200_000)
    person(project, disableAllHooks=True)
    assert policy(project).disabled_by == str(project / "config" / "settings.json")


ID = "01234567-89ab-cdef-0123-456789abcdef"


@pytest.mark.parametrize(
    ("arguments", "conversation"),
    [
        (("--resume", ID), ID),
        ((f"--resume={ID}",), ID),
        (("-r", ID), ID),
        ((f"-r{ID}",), ID),
        (("--model", "m", "-r", ID, "go on"), ID),
        (("--continue",), "newest"),
        (("-c", "go on"), "newest"),
        (("--resume", ID, "--fork-session"), ""),  # a copy
        (("--resume",), ""),  # the client lets one choose
        (("--resume", "a name"), ""),
        (("go on",), ""),
        ((), ""),
    ],
)
def test_the_conversation_that_arguments_continue_is_known(tmp_path, arguments, conversation):  # C8
    project = tmp_path / "a project.d"
    transcripts = tmp_path / "projects" / re.sub("[^A-Za-z0-9]", "-", str(project))
    transcripts.mkdir(parents=True)
    for name, at in ("older", 1.0), ("newest", 2.0):
        (transcripts / f"{name}.jsonl").touch()
        os.utime(transcripts / f"{name}.jsonl", (at, at))
    assert launch.resumed(arguments, tmp_path, str(project)) == conversation


def test_a_directory_without_a_conversation_continues_none(tmp_path):
    assert launch.resumed(("--continue",), tmp_path, "/nowhere") == ""
