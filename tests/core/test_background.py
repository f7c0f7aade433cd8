"""A handoff whose turn ends while background tasks run."""

from dataclasses import replace

from sm.core import events as ev
from sm.core.model.context import Policy
from sm.core.model.handoff import Handoff
from sm.core.model.rotation import Phase
from sm.core.model.session import Session
from sm.core.rules.session.advance import next_alarm
from tests.core.playbook import advance

TASK = (ev.BackgroundTask("1", "shell", "a build"),)
HANDOFF = Handoff("HO-1", "/h.md", "/copy.md", "c", "global", "/w", 1.0)


def pending(wait_background):
    session = Session("0" * 8, "a", "claude", "/w", 0.0, policy=Policy(wait_background=wait_background))
    launched = ev.SessionLaunched(at=1.0, pane="%1", pid=1, conversation="c")
    session, _ = advance(session, launched)
    session, _ = advance(session, ev.ToolUsed(at=2.0, conversation="c", tool="Bash"))
    session, _ = advance(session, ev.HandoffRequested(at=3.0, handoff=HANDOFF))
    return session


def ended(session, background=TASK):
    return advance(session, ev.TurnEnded(at=10.0, conversation="c", background=background))[0]


def test_rotates_at_once_where_nobody_wants_to_wait_for_background_tasks():
    assert ended(pending(0.0)).rotation.phase is Phase.RESERVED


def test_waits_for_background_tasks_as_long_as_configured():
    session = ended(pending(120.0))
    assert (session.rotation.phase, session.rotation.note) == (Phase.PENDING, "waits for background tasks: a build")
    assert ended(session).rotation == replace(session.rotation, stopped=10.0)
    assert advance(session, ev.AlarmRang(at=130.0))[0].rotation.phase is Phase.RESERVED
    assert next_alarm(session) == 130.0


def test_goes_on_when_the_next_turn_ends_with_nothing_in_the_background():
    assert ended(ended(pending(120.0)), background=()).rotation.phase is Phase.RESERVED
