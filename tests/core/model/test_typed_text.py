"""What may be typed into a composer so that exactly it is submitted."""

import pytest

from sm.core.model.framing import THE_USER, cleaned, composed
from sm.core.model.handoff import Handoff, wake_prompt
from sm.core.model.message import StoredMessage, fits_composer
from sm.providers.claude.traits import CLAUDE

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
    **{f"the client's order {word}": word for word in ("exit", "quit", ":q", ":q!", ":wq", ":wq!", "Exit")},  # C3
}


@pytest.mark.parametrize("text", PLAIN)
def test_plain_text_is_typed(text):
    assert fits_composer(text, CLAUDE)


@pytest.mark.parametrize("text", CHANGED.values(), ids=CHANGED.keys())
def test_text_that_a_composer_changes_goes_through_a_file(text):
    assert not fits_composer(text, CLAUDE)


def handoff(path):
    return Handoff("HO-1", path, "/copy.md", "c", "global", "/w", 0.0)


def test_the_wake_prompt_names_the_copy_where_the_agents_own_path_would_be_changed():
    assert wake_prompt(handoff("/w/cafe\u0301.md")) == "Read /copy.md and continue from where you left off."
    assert wake_prompt(handoff("/w/café.md")) == "Read /w/café.md and continue from where you left off."


def test_names_of_background_tasks_cannot_keep_the_wake_prompt_in_the_box():
    assert wake_prompt(handoff("/w/h.md"), ("tail -f a\\", "cafe\u0301\\")).endswith("background: tail -f a\\, café")


@pytest.mark.parametrize("word", ["exit", "quit", ":q", ":q!", ":wq", ":wq!", " exit ", "\tquit\n"])
def test_a_word_that_ends_the_client_reaches_its_box_only_as_a_file(word):
    """C3: from a person nothing stands before it, so it must not be typed bare."""
    stored = StoredMessage("m1", "a", cleaned(word), frame=THE_USER)
    made = composed(stored, lambda body: f"/messages/{body}.md", CLAUDE)
    assert made.pasted == f"Read the message in /messages/{word.strip()}.md and act on it."
    assert made.text.splitlines()[-1] in {word.strip(), made.pasted}
