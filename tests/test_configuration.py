import os

import pytest

from sm.configuration import Configuration
from sm.core.context import SMALLEST_WINDOW, WARNING, Threshold
from sm.settings import ConfigError, Settings


@pytest.fixture
def person(tmp_path):
    path = tmp_path / "config.toml"
    path.touch()
    return path


@pytest.fixture
def configuration(tmp_path, person):
    return Configuration({"SM_CONFIG": str(person), "HOME": str(tmp_path)}, Settings())


def write(path, text, later=1):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    os.utime(path, (1_000_000 + later, 1_000_000 + later))


def threshold(tokens):
    return f"[context_monitor]\nwarning_threshold = {tokens}\n"


def warning(configuration, directory):
    return configuration.policy(str(directory)).warning


def test_a_changed_file_holds_from_then_on(configuration, person, tmp_path):
    write(person, threshold(1_000))
    assert warning(configuration, tmp_path) == Threshold(tokens=1_000)
    write(person, threshold(2_000), later=2)
    assert warning(configuration, tmp_path) == Threshold(tokens=2_000)


def test_a_broken_file_leaves_running_sessions_what_they_had_and_refuses_new_ones(configuration, person, tmp_path):
    write(person, threshold(1_000))
    warning(configuration, tmp_path)
    write(person, "[context_monitor\n", later=2)
    assert warning(configuration, tmp_path) == Threshold(tokens=1_000)
    with pytest.raises(ConfigError):
        configuration.checked_policy(str(tmp_path))


def test_each_project_has_its_own_thresholds(configuration, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    write(tmp_path / "a" / ".sm" / "config.toml", threshold(3_000))
    assert warning(configuration, tmp_path / "a") == Threshold(tokens=3_000)
    assert warning(configuration, tmp_path / "b") == WARNING


def test_the_window_to_assume_is_a_projects_own_and_follows_its_file(configuration, tmp_path):
    (tmp_path / "a").mkdir()
    for later, tokens in enumerate((300_000, 500_000)):
        write(tmp_path / "a" / ".sm" / "config.toml", f"context_monitor.context_limit_estimate = {tokens}\n", later)
        assert configuration.policy(str(tmp_path / "a")).assumed_window == tokens
    assert configuration.policy(str(tmp_path)).assumed_window == SMALLEST_WINDOW


def test_the_instructions_of_a_project_are_its_own(configuration, tmp_path):
    (tmp_path / "a").mkdir()
    write(tmp_path / "a" / ".sm" / "config.toml", '[handoff]\ninstructions = "Run the tests."\n')
    assert configuration.instructions(str(tmp_path / "a")) == "Run the tests."
    assert configuration.instructions(str(tmp_path)) == ""
