"""What may be typed into a composer so that exactly it is submitted."""

import pytest

from sm.core.handoff import Handoff, wake_prompt
from sm.core.mailbox import fits_composer

PLAIN = ["yes", "one\ntwo\nthree", "検査 — naïve 🙂", "- item", "Enter"]
CHANGED = {
    "letters the client composes": "e\u0301",
    "a character it drops": "zero\u200bwidth",
    "a tab": "a\tb",
    "a shell command": "!ls",
    "a command": "/clear",
    "a backslash that swallows the Enter": "wait\\",
    "four lines": "1\n2\n3\n4",
    "too long": "x" * 801,
    "blanks around it": " x",
    "nothing": "",
}


@pytest.mark.parametrize("text", PLAIN)
def test_plain_text_is_typed(text):
    assert fits_composer(text)


@pytest.mark.parametrize("text", CHANGED.values(), ids=CHANGED.keys())
def test_text_that_a_composer_changes_goes_through_a_file(text):
    assert not fits_composer(text)


def handoff(path):
    return Handoff("HO-1", path, "/copy.md", "c", "global", "/w", 0.0)


def test_the_wake_prompt_names_the_copy_where_the_agents_own_path_would_be_changed():
    assert wake_prompt(handoff("/w/cafe\u0301.md")) == "Read /copy.md and continue from where you left off."
    assert wake_prompt(handoff("/w/café.md")) == "Read /w/café.md and continue from where you left off."


def test_names_of_background_tasks_cannot_keep_the_wake_prompt_in_the_box():
    assert wake_prompt(handoff("/w/h.md"), ("tail -f a\\", "cafe\u0301\\")).endswith("background: tail -f a\\, café")
