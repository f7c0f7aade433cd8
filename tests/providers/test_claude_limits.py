import json
import os

import pytest

from sm.core.model.capacity import ClientLimits
from sm.providers.claude.limits import SettingsReader, asked
from sm.providers.claude.windows import usable_of, window_of

WINDOW = "CLAUDE_CODE_AUTO_COMPACT_WINDOW"
PERCENT = "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"


@pytest.fixture
def place(tmp_path):
    (tmp_path / "project" / ".claude").mkdir(parents=True)
    (tmp_path / "config").mkdir()
    return tmp_path


FILES = {
    "local": "project/.claude/settings.local.json",
    "project": "project/.claude/settings.json",
    "user": "config/settings.json",
}


def limits(place, said=(), *, reader=None, **files):
    for name, content in files.items():
        (place / FILES[name]).write_text(json.dumps(content))
    return (reader or SettingsReader()).of(place / "config", place / "project", tuple(said))


@pytest.mark.parametrize(
    ("env", "arguments", "expected"),
    [
        ({}, (), ()),
        ({WINDOW: "200000", "HOME": "/home/dev"}, (), ((WINDOW, "200000"),)),
        ({}, ("--autocompact", "100k", "--autocompact=150k"), (("--autocompact", "150k"),)),
        ({PERCENT: "50", WINDOW: ""}, ("--verbose", "--autocompact"), ((PERCENT, "50"),)),
    ],
)
def test_a_launch_says_it_by_variables_and_by_its_last_argument(env, arguments, expected):  # C13
    assert asked(env, arguments) == expected


@pytest.mark.parametrize(
    ("said", "window"),
    [
        ({WINDOW: "200000"}, 200_000),
        ({WINDOW: "200k"}, 200_000),
        ({WINDOW: "0.5m"}, 500_000),
        ({WINDOW: "150"}, 100_000),
        ({WINDOW: "many"}, None),
        ({"--autocompact": "150"}, 150_000),
        ({"--autocompact": "150k"}, 150_000),
        ({"--autocompact": "auto"}, None),
        ({WINDOW: "200000", "--autocompact": "100k"}, 200_000),
    ],
)
def test_the_auto_compact_window_of_a_launch(place, said, window):  # C13
    assert limits(place, said.items(), user={"autoCompactWindow": 900_000 if window else "auto"}).auto_compact == window


def test_settings_outrank_each_other_as_in_the_client(place):  # C13
    found = limits(place, user={"autoCompactWindow": 300_000, "env": {PERCENT: "70", WINDOW: "400000"}})
    assert (found.auto_compact, found.percent) == (400_000, 70)
    found = limits(place, [(WINDOW, "200000")], project={"env": {WINDOW: "500000"}})
    assert (found.auto_compact, found.percent) == (500_000, 70)
    found = limits(place, local={"env": {WINDOW: "", PERCENT: 60}}, project={"autoCompactWindow": 250_000})
    assert (found.auto_compact, found.percent) == (250_000, 60)


def test_a_window_for_one_model_comes_before_the_one_for_all(place):  # C13
    of = {"claude-opus-5-5": {"autoCompactWindow": 200_000}, "claude-sonnet-5-5": {"autoCompactWindow": "auto"}}
    found = limits(place, user={"autoCompactWindow": 400_000, "modelSettings": of})
    assert usable_of(1_000_000, "claude-opus-5-5-20261101", found) == 167_000
    assert usable_of(1_000_000, "claude-sonnet-5-5", found) == 967_000
    assert usable_of(1_000_000, "claude-opus-4-8", found) == 367_000
    found = limits(place, project={"autoCompactWindow": 600_000})
    assert usable_of(1_000_000, "claude-opus-5-5", found) == 567_000
    found = limits(place, [("--autocompact", "150k")])
    assert usable_of(1_000_000, "claude-opus-5-5", found) == 117_000


@pytest.mark.parametrize(
    ("found", "usable"),
    [
        (ClientLimits(), 967_000),
        (ClientLimits(percent=50), 490_000),
        (ClientLimits(percent=99.9), 967_000),
        (ClientLimits(auto_compact=100_000, percent=50), 40_000),
        (ClientLimits(max_output=8_000), 979_000),
        (ClientLimits(max_output=64_000), 967_000),
        (ClientLimits(never_compacts=True), 977_000),
        (ClientLimits(never_compacts=True, auto_compact=100_000, percent=50), 977_000),
    ],
)
def test_the_usable_context_is_what_the_client_compares_with(found, usable):  # C13
    assert usable_of(1_000_000, "claude-opus-5-5", found) == usable


def test_a_window_may_be_no_longer_than_usual_or_that_of_an_unknown_model_set(place):  # C12, C13
    found = limits(
        place, user={"env": {"CLAUDE_CODE_DISABLE_1M_CONTEXT": "1", "CLAUDE_CODE_MAX_CONTEXT_TOKENS": "123000"}}
    )
    assert window_of("claude-opus-5-5", found) == 200_000
    assert window_of("claude-sonnet-4-5[1m]", found) == 200_000
    assert window_of("my-gateway-model", found) == 123_000
    assert window_of("my-gateway-model") is None


@pytest.mark.parametrize(
    ("said", "settings", "never"),
    [
        ((), {}, False),
        ((), {"autoCompactEnabled": True}, False),
        ((), {"autoCompactEnabled": False}, True),
        ([("DISABLE_AUTO_COMPACT", "1")], {}, True),
        ([("DISABLE_COMPACT", "yes")], {}, True),
        ([("DISABLE_AUTO_COMPACT", "0")], {}, False),
        ([("DISABLE_AUTO_COMPACT", "1")], {"env": {"DISABLE_AUTO_COMPACT": "0"}}, False),
    ],
)
def test_compaction_may_be_switched_off(place, said, settings, never):  # C13
    assert limits(place, said, user=settings).never_compacts is never


@pytest.mark.parametrize(
    "content",
    ["{", "[]", "null", "\x00", '{"env": []}', '{"modelSettings": {"x": 5}}', '{"env": {"' + WINDOW + '": []}}'],
)
def test_odd_settings_say_nothing(place, content):
    (place / FILES["user"]).write_text(content)
    assert limits(place) == ClientLimits()


def test_a_file_is_read_again_once_it_has_changed(place):
    reader = SettingsReader()
    assert limits(place, reader=reader, user={"autoCompactWindow": 300_000}).auto_compact == 300_000
    path = place / FILES["user"]
    path.write_text(json.dumps({"autoCompactWindow": 400_000}))
    os.utime(path, (1, 1))
    assert limits(place, reader=reader).auto_compact == 400_000
    path.unlink()
    assert limits(place, reader=reader) == ClientLimits()
