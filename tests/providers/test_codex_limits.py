"""Where Codex compacts, by its arguments and its configuration: from real files."""

import os

import pytest

from sm.core.model.capacity import ClientLimits
from sm.providers.codex.limits import KEY, ConfigReader, asked
from sm.providers.codex.transcript import compacts_at


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), ()),
        (("-c", f"{KEY}=60000"), ((KEY, "60000"),)),
        (("--config", f"{KEY} = 60_000"), ((KEY, "60000"),)),
        ((f"--config={KEY}=60000",), ((KEY, "60000"),)),
        (("-c", f"{KEY}=1", "-m", "some", "-c", f"{KEY}=60000"), ((KEY, "60000"),)),
        (("-m", f"{KEY}=60000"), ()),
        (("-c", "model_context_window=60000"), ()),
    ],
)
def test_the_last_argument_that_names_the_limit_counts(arguments, said):
    assert asked(arguments) == said


def test_an_argument_counts_before_the_users_file(tmp_path):
    (tmp_path / "config.toml").write_text(f"{KEY} = 80000\n")
    reader = ConfigReader()
    assert reader.of(tmp_path, ()) == ClientLimits(auto_compact=80_000)
    assert reader.of(tmp_path, ((KEY, "60000"),)) == ClientLimits(auto_compact=60_000)
    assert reader.of(tmp_path, ((KEY, "many"),)) == ClientLimits(auto_compact=80_000)


@pytest.mark.parametrize("text", ["", f"{KEY} = -1\n", f'{KEY} = "80000"\n', f"{KEY} = true\n", "no toml"])
def test_a_file_that_says_nothing_of_it_limits_nothing(tmp_path, text):
    (tmp_path / "config.toml").write_text(text)
    assert ConfigReader().of(tmp_path, ()) == ClientLimits()
    assert ConfigReader().of(tmp_path / "absent", ()) == ClientLimits()


def test_a_file_that_has_changed_is_read_again(tmp_path):
    file, reader = tmp_path / "config.toml", ConfigReader()
    file.write_text(f"{KEY} = 80000\n")
    assert reader.of(tmp_path, ()).auto_compact == 80_000
    file.write_text(f"{KEY} = 70000\n")
    os.utime(file, (1, 1))
    assert reader.of(tmp_path, ()).auto_compact == 70_000


def test_what_is_more_than_the_model_can_have_changes_nothing():
    assert compacts_at(258_400, ClientLimits(auto_compact=999_999)) == 244_800
    assert compacts_at(258_400, ClientLimits(auto_compact=98_213)) == 98_213
