import os
from dataclasses import asdict

import pytest

from sm.configuration import Configuration, starting_configuration
from sm.core.model.capacity import SMALLEST_WINDOW, WARNING, Threshold
from sm.paths import SmHome
from sm.settings import ConfigError, Settings, reference


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


def test_the_instructions_of_a_project_are_its_own(configuration, person, tmp_path):
    """C42: and are told as such; the user's are told as they are."""
    write(person, '[handoff]\ninstructions = "Be brief."\n')
    (tmp_path / "a").mkdir()
    write(tmp_path / "a" / ".sm" / "config.toml", '[handoff]\ninstructions = "Run the tests."\n')
    told = configuration.instructions(str(tmp_path / "a"))
    assert told == "The project's .sm/config.toml adds this; the user did not write it:\n> Run the tests."
    assert configuration.instructions(str(tmp_path)) == "Be brief."


# --- a start with a broken configuration (C40) -------------------------------------------------------------------

BROKEN = {
    "not TOML": lambda path: path.write_text("[context_monitor\n"),
    "an unknown key": lambda path: path.write_text("nonsense = 1\n"),
    "a wrong type": lambda path: path.write_text("[server]\nport = []\n"),
    "a value out of range": lambda path: path.write_text("[server]\nport = 99999\n"),
    "not UTF-8": lambda path: path.write_bytes(b"# \xff\xfe\n"),
    "nested": lambda path: path.write_text("a = " + "[" * 5000),
    "a directory": lambda path: (path.unlink(), path.mkdir()),
    "a FIFO": lambda path: (path.unlink(), os.mkfifo(path)),
    "gone, though named": lambda path: path.unlink(),
    "others may write it": lambda path: path.chmod(0o666),
    "too large": lambda path: path.write_text("# x\n" * 600_000),
}


@pytest.fixture
def place(tmp_path):
    (tmp_path / "state").mkdir()
    return SmHome(tmp_path / "state")


@pytest.fixture
def environ(tmp_path, person):
    return {"SM_CONFIG": str(person), "HOME": str(tmp_path)}


@pytest.mark.parametrize("spoil", BROKEN.values(), ids=BROKEN)
def test_a_server_starts_with_the_last_good_configuration(spoil, environ, person, place):
    person.write_text(threshold(1_234))
    assert starting_configuration(environ, place).problems() == []
    spoil(person)
    found = starting_configuration(environ, place)
    assert found.base.policy().warning == Threshold(tokens=1_234)
    assert found.everywhere().policy().warning == Threshold(tokens=1_234)
    assert found.problems()[0].startswith(found.problem)
    assert str(person) in found.problem
    with pytest.raises(ConfigError):
        found.checked_policy(str(person.parent))
    person.rmdir() if person.is_dir() else person.unlink(missing_ok=True)
    write(person, threshold(4_321), later=9)
    person.chmod(0o600)
    assert found.everywhere().policy().warning == Threshold(tokens=4_321), "a corrected file holds at once"
    assert found.problems() == []


@pytest.mark.parametrize("spoil", BROKEN.values(), ids=BROKEN)
def test_where_there_was_never_a_good_one_it_starts_with_the_defaults(spoil, environ, person, place):
    spoil(person)
    found = starting_configuration(environ, place)
    assert found.base == found.everywhere() == Settings()
    assert found.problem


@pytest.mark.parametrize("variable", [{"SM_SERVER_PORT": "many"}, {"SM_CONFIG": "relative/config.toml"}])
def test_a_broken_variable_keeps_no_server_from_starting(variable, environ, person, place):
    person.write_text(threshold(1_234))
    assert starting_configuration(environ, place).problems() == []
    found = starting_configuration({**environ, **variable}, place)
    assert found.base.policy().warning == Threshold(tokens=1_234)
    assert next(iter(variable)) in found.problem
    assert found.everywhere().policy().warning == Threshold(tokens=1_234)


def test_the_last_good_configuration_is_kept_without_a_word_where_it_cannot_be(environ, person, place):
    place.good_configuration.mkdir()
    person.write_text(threshold(1_234))
    found = starting_configuration(environ, place)
    assert found.everywhere().policy().warning == Threshold(tokens=1_234)
    assert found.problems() == []


def test_the_limits_without_a_file_are_those_that_the_reference_shows(configuration, tmp_path):
    found = asdict(configuration.limits()) | asdict(configuration.team_limits(str(tmp_path)))
    shown = {name: default for table, name, default, _ in reference() if table == "limits" and name in found}
    assert {name: str(limit) for name, limit in found.items()} == shown
