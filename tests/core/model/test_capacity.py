import pytest

from sm.core.model.capacity import Lesson, named, taught


@pytest.mark.parametrize(
    ("told", "known", "name"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5[1m]", "claude-sonnet-4-5-20250929[1m]"),
        ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5[1m]", "claude-sonnet-4-5[1m]"),
        ("claude-opus-4-5", "claude-sonnet-4-5[1m]", "claude-opus-4-5"),
        ("claude-opus-4-5", "claude-sonnet-4-5", "claude-opus-4-5"),
        (None, "claude-opus-4-5", "claude-opus-4-5"),
        ("claude-opus-4-5", None, "claude-opus-4-5"),
        (None, None, None),
    ],
)
def test_a_longer_window_that_was_asked_for_stays_in_the_models_name(told, known, name):  # C12
    assert named(told, known) == name


@pytest.mark.parametrize(
    ("usable", "model", "expected"),
    [(967_000, "m", 166_000), (None, "m", 166_000), (67_000, "m", 67_000), (967_000, "other", 967_000)],
)
def test_where_the_client_compacted_by_itself_its_limit_is(usable, model, expected):  # C13
    assert taught(usable, Lesson("m", 166_000), model) == expected
