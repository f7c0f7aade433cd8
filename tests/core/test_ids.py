"""Names of sessions: which can be one, and by which rule another cannot."""

import pytest

from sm.core.ids import is_prefix, name_fault, name_taken_hint, token_hash, too_short

FAULTS = [
    ("", "names have 1 to"),
    ("two\nlines", "printable"),
    (" blank", "without blanks at their ends"),
    ("a/b", "commas or slashes"),
    ("a,b", "commas or slashes"),
    ("-x", "an option or a directory"),
    ("..", "an option or a directory"),
    ("parent", "a target of sm send"),
    ("0a1b2c3d", "eight hexadecimal digits are an id"),
]


@pytest.mark.parametrize(("name", "rule"), FAULTS)
def test_a_name_that_breaks_a_rule_is_told_which(name, rule):
    assert rule in name_fault(name)


def test_any_other_name_is_free_to_take():
    assert [name_fault(name) for name in ("api", "my project", "0a1b2c3", "ä-1")] == [None] * 4


def test_a_token_is_kept_as_a_hash_whatever_it_holds():
    assert token_hash("\ud800") == token_hash("?") != token_hash("x")
    assert len(token_hash("x")) == 64


def test_four_digits_of_an_id_are_enough():
    assert [is_prefix(text) for text in ("0a1b", "0a1b2c3d", "0a1", "0a1g", "0a1b2c3d4", "")] == [True, True] + [
        False
    ] * 4


def test_a_printed_command_quotes_a_name_that_a_shell_would_take_apart():
    assert name_taken_hint("my docs") == "choose another name, or show that one: sm attach 'my docs'"


def test_four_characters_in_any_case_begin_an_id():
    assert [is_prefix(text) for text in ("0a1b", "0A1B", "0a1", "0a1g", "0a1b2c3d4")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert [too_short(text) for text in ("0A1", "xyz", "", "0a1b")] == [True, False, False, False]
