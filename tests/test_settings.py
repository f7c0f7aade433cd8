import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sm.core.model.budget import Budget, Budgets
from sm.core.model.capacity import Threshold
from sm.core.model.context import Policy
from sm.core.model.cost import Price
from sm.core.model.notify_rules import NotificationKind, NotifyRules
from sm.settings import (
    ACCEPTED,
    KEYS,
    ConfigError,
    ContinuationSettings,
    CostSettings,
    NotifySettings,
    RunnerSettings,
    Settings,
    accepted_values,
    config_file,
    load,
    project_file,
    reference,
    sources,
    trust,
)

ROOT = Path(__file__).parents[1]


class Place:
    """A person's home, a project in it, and an environment that names both."""

    def __init__(self, root):
        self.root = root
        self.project = root / "project"
        (self.project / "src/deep").mkdir(parents=True)
        self.env = {"HOME": str(root), "SM_HOME": str(root / "state"), "XDG_CONFIG_HOME": str(root / "config")}
        self.user_file = root / "config/sm/config.toml"
        self.project_file = self.project / ".sm/config.toml"

    def user(self, text):
        return self._write(self.user_file, text)

    def own(self, text):
        return self._write(self.project_file, text)

    def _write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def load(self, flags=None, **env):
        return load(self.project / "src/deep", {**self.env, **env}, flags)

    def source(self, dotted, flags=None, **env):
        found = sources(self.project, {**self.env, **env}, flags)
        return next(setting for setting in found if (setting.table, setting.key) == tuple(dotted.rsplit(".", 1)))

    def refuse(self, flags=None, **env):
        with pytest.raises(ConfigError) as caught:
            self.load(flags, **env)
        return caught.value


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_without_a_file_every_value_is_the_contracts_default(place):
    found = place.load()
    assert found.policy() == Policy()
    assert found.handoff.expiry_hours == 2
    assert found.limits.message_bytes == 256 * 1024
    assert {setting.source for setting in sources(None, place.env)} == {"default"}


def test_each_layer_wins_over_the_one_before(place):
    key = "context_monitor.remind_every"
    assert place.source(key).value == 60
    place.user("context_monitor.remind_every = 1\ncontext_monitor.check_frequency = 7")
    assert place.source(key)[2:] == (1, str(place.user_file))
    place.own("[context_monitor]\nremind_every = 2")
    assert place.source(key)[2:] == (2, str(place.project_file))
    variable = {"SM_CONTEXT_MONITOR_REMIND_EVERY": "3"}
    assert place.source(key, **variable)[2:] == (3, "SM_CONTEXT_MONITOR_REMIND_EVERY")
    assert place.source(key, {key: 4}, **variable)[2:] == (4, "flag")
    assert place.load({key: 4}, **variable).context_monitor.check_frequency == 7


def test_the_nearest_project_file_above_counts(place):
    assert project_file(place.project / "src/deep") is None
    place.own("")
    place._write(place.root / ".sm/config.toml", "")
    assert project_file(place.project / "src/deep") == place.project_file
    assert project_file(place.root) == place.root / ".sm/config.toml"


def test_another_file_can_be_named(place):
    other = place._write(place.root / "other.toml", "server.port = 4711")
    assert place.load(SM_CONFIG=str(other)).server.port == 4711
    assert place.load(SM_CONFIG="/dev/null").server.port == 0
    assert config_file({"HOME": "/h"}).as_posix() == "/h/.config/sm/config.toml"


@pytest.mark.parametrize("named", ["", "relative.toml", "/no/such/file.toml", "/"])
def test_a_named_file_must_be_one(place, named):
    with pytest.raises(Exception, match=r"SM_CONFIG|Cannot read"):
        place.load(SM_CONFIG=named)


def test_variables_that_are_no_settings_are_somebody_elses(place):
    known = {"SM_URL": "x", "SM_SESSION_TOKEN": "x", "SM_SERVER": "x", "SM_NO_SUCH": "x", "SM_CHANNELS": "x"}
    assert place.load(**known, SM_SERVER_PORT="") == place.load()


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        ("SM_SERVER_PORT", "8_080", 8080),
        ("SM_PRIMER_ENABLED", "off", False),
        ("SM_CONTEXT_MONITOR_WARNING_THRESHOLD", " 45 % ", "45%"),
        ("SM_CONTEXT_MONITOR_WARNING_THRESHOLD", "90_000", 90_000),
        ("SM_CONTEXT_MONITOR_AUTO_HANDOFF_THRESHOLD", "70", "70%"),
        ("SM_CONTEXT_MONITOR_MAX_TOKENS", "none", None),
        ("SM_CONTEXT_MONITOR_ESTIMATE_WEIGHTS_READ_PER_LINE", "12.5", 12.5),
        ("SM_LIMITS_MESSAGE_BYTES", "64 KiB", 65_536),
        ("SM_HANDOFF_INSTRUCTIONS", "12", "12"),
        ("SM_CLAUDE_ARGUMENTS", "--add-dir '/a b'", ["--add-dir", "/a b"]),
    ],
)
def test_a_variable_holds_any_value_as_text(place, variable, text, value):
    found = sources(None, {**place.env, variable: text})
    assert [setting.value for setting in found if setting.source == variable] == [value]


@pytest.mark.parametrize(
    "line",
    [
        "context_monitor.warning_threshold = 80",
        'context_monitor.warning_threshold = "0%"',
        'context_monitor.warning_threshold = "101%"',
        "context_monitor.warning_threshold = 0.6",
        "context_monitor.warning_threshold = true",
        "context_monitor.auto_handoff_threshold = 49",
        'context_monitor.auto_handoff_threshold = "96%"',
        "context_monitor.max_tokens = -1",
        "context_monitor.remind_every = -1",
        "context_monitor.remind_every = nan",
        "context_monitor.remind_every = inf",
        "context_monitor.check_frequency = 0",
        "context_monitor.enabled = 1",
        'context_monitor.enabled = "maybe"',
        "context_monitor.enabled = [true]",
        "handoff.instructions = 5",
        'handoff.on_compact = "never"',
        'hooks.transport = "https"',
        "server.port = 65_536",
        "tmux.history_limit = 10",
        'archive.max_log = "5 MB"',
        'claude.command = ""',
        'claude.arguments = "" \n claude.arguments.x = 1',
        "claude.arguments = [1]",
        "handoff.expiry_hours = 1979-05-27",
        'channels = "x"',
        'channels."relative" = "x"',
        'channels."/a" = ""',
        "limits = 3",
    ],
)
def test_a_value_out_of_range_is_refused_with_file_and_reason(place, line):
    path = place.user(line)
    problem = place.refuse()
    assert str(path) in str(problem)
    assert problem.refused.hint


def test_a_refusal_says_what_is_accepted(place):
    place.user("server.port = -1")
    problem = place.refuse()
    assert str(problem) == f"{place.user_file}: server.port = -1"
    assert problem.refused.hint == "accepted: a port number, or 0 for any free one"


@pytest.mark.parametrize("name", ACCEPTED)
def test_every_key_says_what_it_accepts(name):
    assert len(accepted_values(name)) > 3


@pytest.mark.parametrize(
    ("line", "nearest"),
    [
        ('context_monitor.warning_treshold = "5%"', "context_monitor.warning_threshold"),
        ('warning_threshold = "5%"', "context_monitor.warning_threshold"),
        ("handoff.max_continuations = 2", "continuation.max_continuations"),
        ("[contextmonitor]\nenabled = true", "context_monitor"),
        ("[context_monitor.weights]\nedit = 1", "context_monitor.estimate_weights"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_one(place, line, nearest):
    path = place.user(line)
    problem = place.refuse()
    assert str(problem).startswith(f"{path}: unknown key ")
    assert problem.refused.hint.startswith("the nearest one is ")
    assert problem.refused.hint.endswith(nearest)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('[context_monitor]\nstate_file = ".ll/state.json"', "sm context --json"),
        ("EARLY_WARN_KB = 1300", "context_monitor.warning_threshold"),
        ("[context_monitor]\nwarning_percentage = 50", "context_monitor.warning_threshold"),
        ('memory-keeper = "x"', "handoff.instructions"),
        ("zzz = 1", "sm config show lists all keys"),
    ],
)
def test_an_earlier_tools_key_is_refused_with_what_it_is_here(place, line, words):
    place.user(line)
    assert words in place.refuse().refused.hint


def test_an_unknown_flag_is_refused_too(place):
    assert "server.prot" in str(place.refuse({"server.prot": 1}))


def test_broken_toml_is_refused_with_its_line(place):
    path = place.user("a = 1\nb = = 2\n")
    assert str(path) in str(place.refuse())
    assert "line 2" in str(place.refuse())
    path.write_bytes(b"a = 1\n\nb = '\xff'")
    assert "line 3 is not UTF-8" in str(place.refuse())


def test_a_byte_order_mark_is_no_mistake(place):
    place.user("\ufeffserver.port = 5")
    assert place.load().server.port == 5


def test_the_warning_comes_before_the_critical_level(place):
    path = place.user('[context_monitor]\nwarning_threshold = "80%"')
    assert f'warning_threshold = "80%" ({path}) is not below' in str(place.refuse())
    place.user("[context_monitor]\nwarning_threshold = 90_000\ncritical_threshold = 90_000")
    assert "not below" in str(place.refuse())
    place.user("[context_monitor]\nwarning_threshold = 190_000")
    assert place.load().context_monitor.warning_threshold == Threshold(tokens=190_000)


def test_a_warning_nobody_set_gives_way_to_a_low_critical_level(place):
    place.user("[context_monitor]\nauto_handoff_threshold = 50")
    found = place.load().context_monitor
    assert (found.warning_threshold, found.critical_threshold) == (
        Threshold(0.375, 150_000),
        Threshold(share=0.5),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("60%, 150000", Threshold(0.6, 150_000)),
        (" 150_000 ,60 % ", Threshold(0.6, 150_000)),
        ("60%", Threshold(share=0.6)),
        ("150000", Threshold(tokens=150_000)),
    ],
)
def test_a_threshold_is_a_share_a_number_or_both(place, text, expected):  # C18
    place.user(f'[context_monitor]\nwarning_threshold = "{text}"\ncritical_threshold = "95%, 900000"')
    assert place.load().context_monitor.warning_threshold == expected


@pytest.mark.parametrize(
    "text", ["60%, 70%", "150000, 200000", "60%,", ", 9000", "60%, 9000, 5", "60%, 5", "60%; 9000"]
)
def test_a_threshold_of_two_parts_has_one_of_each(place, text):  # C18
    place.user(f'[context_monitor]\nwarning_threshold = "{text}"')
    refused = place.refuse().refused
    assert f'warning_threshold = "{text}"' in refused.message
    assert 'both with a comma between, as in "60%, 150000"' in refused.hint


def test_the_default_thresholds_are_a_share_and_a_number(place):  # C18
    found = place.load().context_monitor
    assert (found.warning_threshold, found.critical_threshold) == (Threshold(0.6, 150_000), Threshold(0.8, 200_000))
    assert found.context_limit_estimate == 200_000


def test_a_default_gives_way_part_by_part_to_what_is_set(place):  # C18
    place.user("[context_monitor]\ncritical_threshold = 100_000")
    assert place.load().context_monitor.warning_threshold == Threshold(0.6, 75_000)
    place.user("[context_monitor]\nwarning_threshold = 300_000")
    assert place.load().context_monitor.critical_threshold == Threshold(share=0.8)


def test_one_threshold_under_two_names_is_refused(place):
    place.user('[context_monitor]\nauto_handoff_threshold = 70\ncritical_threshold = "70%"')
    assert "both are set" in str(place.refuse())


def test_channels_are_merged_path_by_path(place):
    place.user('[channels]\n"/home/a/" = "a"\n"~/b" = "b"')
    assert place.load().channels == {"/home/a": "a", f"{place.root}/b": "b"}


def test_a_project_may_say_how_its_agents_are_told_and_go_on(place):
    place.own("""
        continuation.enabled = false
        handoff.instructions = "run make"
        [context_monitor.estimate_weights]
        edit = 1
    """)
    found = place.load()
    assert (found.handoff.instructions, found.continuation.enabled) == ("run make", False)
    assert found.context_monitor.estimate_weights.edit == 1


@pytest.mark.parametrize(
    "line",
    [
        'claude.command = "./evil"',
        'claude.arguments = ["--x"]',
        'hooks.transport = "command"',
        'channels."/" = "mine"',
        "handoff.expiry_hours = 1",
        "limits.children = 1000",
    ],
)
def test_a_project_may_set_nothing_else_until_it_is_trusted(place, line):
    path = place.own(line)
    problem = place.refuse()
    assert problem.refused.code == "config_untrusted"
    assert str(path) in str(problem)
    assert f"sm trust {place.project}" in problem.refused.hint
    assert trust(place.project, place.env) == path
    place.load()


def test_trust_ends_with_the_content_it_was_given_to(place):
    place.own("limits.depth = 1")
    trust(place.project, place.env)
    place.own("limits.depth = 2")
    place.refuse()


def test_trust_does_not_move_to_another_place(place):
    place.own("limits.depth = 1")
    trust(place.project, place.env)
    place._write(place.project / "src/.sm/config.toml", "limits.depth = 1")
    place.refuse()


def test_trust_needs_a_file(place):
    with pytest.raises(ConfigError, match="Cannot read"):
        trust(place.project, place.env)


def test_a_file_that_everybody_can_write_is_refused(place):
    path = place.user("server.port = 1")
    path.chmod(0o666)
    assert "can be written by everybody" in str(place.refuse())


def test_a_file_of_somebody_else_is_refused(place, monkeypatch):
    path = place.user("server.port = 1")
    if os.getuid() == 0:
        os.chown(path, 12_345, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 12_345)
    assert "belongs to another user" in str(place.refuse())


def test_a_project_file_everybody_can_write_needs_trust_whatever_it_sets(place):
    place.own("[continuation]\nenabled = false").chmod(0o666)
    assert "can be written by everybody" in str(place.refuse())
    trust(place.project, place.env)
    assert not place.load().continuation.enabled


def test_the_persons_own_file_is_no_project_file(place):
    path = place.own("server.port = 5")
    assert place.load(SM_CONFIG=str(path)).server.port == 5


def loop(path):
    path.symlink_to(path.name)


def dangling(path):
    path.symlink_to("nowhere")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, loop, dangling])
def test_what_stands_in_a_files_place_and_is_none_is_refused_and_holds_nobody(place, make):
    for path in place.user_file, place.project_file:
        path.parent.mkdir(parents=True, exist_ok=True)
        make(path)
        assert f"Cannot read {path}" in str(place.refuse())
        path.rmdir() if make is os.mkdir else path.unlink()
        place.load()


TOO_MUCH = {
    "nested": "a = " + "[" * 5_000,
    "digits": "server.port = " + "9" * 5_000,
    "hex": "server.port = 0x" + "f" * 5_000,
    "dotted": "a" + ".a" * 5_000 + " = 1",
}


@pytest.mark.parametrize("text", TOO_MUCH.values(), ids=TOO_MUCH)
def test_a_file_that_is_more_than_a_parser_takes_is_refused(place, text):
    path = place.own(text)
    assert str(path) in str(place.refuse())


@pytest.mark.parametrize("row", reference(), ids=lambda row: f"{row[0]}.{row[1]}")
def test_every_key_has_its_reference_text(row):
    assert len(row[3]) > 10
    assert row[3].endswith(".")


def test_the_reference_is_complete():
    rows = {f"{table}.{key}".removeprefix("."): default for table, key, default, _ in reference()}
    assert rows.keys() == KEYS.keys()
    assert (rows["context_monitor.warning_threshold"], rows["primer.enabled"]) == ('"60%, 150000"', "true")


def test_variables_of_two_keys_are_never_the_same():
    variables = [key.variable for key in ACCEPTED.values()]
    assert len(set(variables)) == len(variables)
    assert not {"SM_HOME", "SM_CONFIG", "SM_URL", "SM_SESSION_TOKEN"} & set(variables)


def test_importing_the_settings_loads_nothing_big():
    script = "import sys; before = {*sys.modules}; import sm.settings; print(*{*sys.modules} - before)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"asyncio", "structlog", "platformdirs", "hashlib", "difflib", "subprocess", "sqlite3"} & set(loaded)


def test_every_setting_is_read_somewhere():
    others = [path for path in (ROOT / "src/sm").rglob("*.py") if path.name not in {"settings.py", "earlier_tools.py"}]
    text = "\n".join(path.read_text() for path in others) + inspect.getsource(Settings.policy)
    text += inspect.getsource(ContinuationSettings.leaves_out.fget)
    text += inspect.getsource(CostSettings.budgets) + inspect.getsource(RunnerSettings.budgets)
    unread = {name for name, key in KEYS.items() if not re.search(rf"[.]{key.name}\b", text)}
    weights = {name for name in KEYS if name.startswith("context_monitor.estimate_weights.")}  # read as a table
    assert unread - weights == set()


@pytest.mark.parametrize("entry", ["x 3", "x 3 15 4", "3 15", "x a b", "x -1 2", "x 1e9 2", "", 7])
def test_a_price_that_is_none_is_refused(place, entry):
    place.user(f"[cost]\nprices = [{entry!r}]\n" if isinstance(entry, str) else "[cost]\nprices = [7]\n")
    assert "MODEL INPUT OUTPUT" in place.refuse().refused.hint


def test_a_price_needs_input_and_output_and_may_name_the_caches():
    found = CostSettings(("claude-x 2 10", "claude-y 1 2 3 4 5")).table()
    assert found == {"claude-x": Price(2.0, 10.0, 2.5, 4.0, 0.2), "claude-y": Price(1.0, 2.0, 3.0, 4.0, 5.0)}


@pytest.mark.parametrize(
    "amount", ['"$0"', '"$0.00"', '"$-1"', '"20"', '"$1.234"', "0", "999", "-1", "true", "2.5", '""']
)
def test_a_budget_that_is_none_is_refused(place, amount):
    place.user(f"[cost]\nbudget = {amount}\n")
    assert '"$20"' in place.refuse().refused.hint


@pytest.mark.parametrize(
    ("amount", "budget"),
    [
        ('"$20"', Budget(20.0, in_usd=True)),
        ('"$0.50"', Budget(0.5, in_usd=True)),
        ("5_000_000", Budget(5e6, in_usd=False)),
        ('"5000"', Budget(5e3, in_usd=False)),
        ('"none"', None),
    ],
)
def test_a_budget_is_of_dollars_or_of_tokens(place, amount, budget):
    place.user(f"[cost]\nbudget = {amount}\ntree_budget = {amount}\n")
    assert place.load().cost.budgets() == Budgets(budget, budget)


def test_a_project_sets_no_budget(place):
    place.own('[cost]\nbudget = "$1000"\n')
    assert "a project may not set cost.budget" in place.refuse().refused.message


@pytest.mark.parametrize("hours", ["22-7", "24:00-07:00", "22:00", "22:60-07:00", "7:00-8:00"])
def test_quiet_hours_that_are_none_are_refused(place, hours):
    place.user(f'[notify]\nquiet = "{hours}"\n')
    assert "22:00-07:00" in place.refuse().refused.hint


def test_what_is_notified_of_is_what_the_core_decides_by():
    found = NotifySettings(quiet="22:30-07:05", kinds=(NotificationKind.ASK,), digest=60.0).rules()
    assert found == NotifyRules(frozenset({"ask"}), quiet=(22 * 60 + 30, 7 * 60 + 5), digest=60.0)


@pytest.mark.parametrize("key", ['command = ["sh"]', 'urls = ["json://x"]', 'terminal = "osc9"', "after = 0"])
def test_a_project_names_no_channel(place, key):
    place.own(f"[notify]\n{key}\n")
    assert place.refuse().refused.code == "config_untrusted"
