"""Whose a submitted prompt is."""

import pytest

from sm.providers.claude.traits import CLAUDE


@pytest.mark.parametrize(
    ("prompt", "is_own"),
    [
        ("<task-notification>done</task-notification>", True),
        (" <task-notification>", True),
        ("Your claude.ai usage limit has reset. Continue the task", True),
        ("Your claude.ai usage is available again before the usage-limit reset. Continue the task", True),
        ("Your claude.ai usage limit, has it reset?", False),
        ('<pasted_content id="1">\nand use port 8080\n</pasted_content id="1">', False),
    ],
)
def test_what_the_client_submits_itself_is_not_its_users(prompt, is_own):
    assert CLAUDE.made_by_client(prompt) is is_own
