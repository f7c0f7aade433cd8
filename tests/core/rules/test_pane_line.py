"""What the line below a pane says."""

from dataclasses import replace

import pytest

from sm.core.model.context import ContextReading, Monitor
from sm.core.model.message import message
from sm.core.model.message_queue import MessageQueue
from sm.core.model.rotation import Phase, Rotation
from sm.core.model.session import Conversation, Status
from sm.core.model.usage_limit import UsageLimit
from sm.core.rules.pane_line import pane_line, waits_for_user
from tests.core.playbook import idle_session

FULL = Conversation("c0", monitor=Monitor(reading=ContextReading(tokens=105_000, projected=105_000), usable=167_000))


@pytest.mark.parametrize(
    ("changes", "waiting", "line"),
    [
        ({"conversation": None}, (), "agent"),
        ({"conversation": FULL}, (), "agent · context 63%"),
        ({"conversation": None, "rotation": Rotation(None, phase=Phase.PENDING)}, (), "agent · handoff pending"),
        ({"conversation": None, "limit": UsageLimit("five_hour", 9.0)}, (), "agent · usage limit"),
        ({"conversation": None, "outbox": MessageQueue(queue=(message("m1", "x"),))}, (), "agent · 1 message queued"),
        ({"conversation": None}, ("docs",), "docs waits for you · agent"),
        ({"conversation": None}, ("agent", "a", "b", "c", "d"), "a, b, c and 1 more wait for you · agent"),
    ],
)
def test_it_names_the_session_its_context_and_what_waits(changes, waiting, line):
    assert pane_line(replace(idle_session(), name="agent", **changes), waiting) == line


@pytest.mark.parametrize(("status", "waits"), [(Status.WAITING, True), (Status.BLOCKED, True), (Status.IDLE, False)])
def test_who_waits(status, waits):
    assert waits_for_user(replace(idle_session(), status=status)) is waits
