"""What is printed while a session works: what somebody may wait for, and not each tool call."""

import pytest

from sm.runner.outcome import SessionLook
from sm.runner.progress import news


def look(status="working", rotations=0, detail=""):
    return SessionLook("0a1b2c3d", status, detail, at_rest=False, rotations=rotations, last_activity=1.0)


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (None, look(), "session 0a1b2c3d"),
        (look(), look(), ""),
        (look(), look("silent"), ""),
        (look("idle"), look(), ""),
        (look(), look(rotations=1), "context 2"),
        (look(), look("limited", detail="resets 03:20"), "limited: resets 03:20"),
        (look("limited", detail="resets 03:20"), look(), "works again"),
        (look(), look("waiting", detail="asks for permission"), "waiting: asks for permission"),
        (look("waiting"), look("waiting"), ""),
    ],
)
def test_only_what_has_changed_is_said(before, now, words):
    assert news(before, now) == words
