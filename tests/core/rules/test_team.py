"""How many children, how deep, what may be cleared, and a rotation that carries nothing over."""

from dataclasses import replace

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.foreground import Foreground
from sm.core.model.handoff import HandoffState
from sm.core.model.message import StoredMessage, message
from sm.core.model.rotation import Phase
from sm.core.model.session import Status
from sm.core.rules.session.refusals import may_hand_off
from sm.core.rules.session.status import lost_at
from sm.core.rules.team import (
    TeamLimits,
    already_ended,
    children_of,
    family_of,
    generation,
    may_clear,
    may_remove,
    may_spawn,
)
from sm.providers.claude.traits import CLAUDE
from tests.core.playbook import HANDOFF, Playbook, event, idle_session, result

ROOT = idle_session()


def below(parent, number, **changes):
    return replace(ROOT, id=f"{number:08d}", parent=parent.id, **changes)


def known(*sessions):
    return {session.id: session for session in (ROOT, *sessions)}


def test_a_session_has_so_many_living_children():
    living = [below(ROOT, number) for number in range(2)]
    dead = below(ROOT, 9, status=Status.CRASHED)
    assert may_spawn(ROOT, known(*living, dead), TeamLimits(children=3, depth=4)) is None
    assert may_spawn(ROOT, known(*living, dead), TeamLimits(children=2, depth=4)).code == "too_many"


def test_generations_have_a_limit():
    first = below(ROOT, 1)
    second = below(first, 2)
    every = known(first, second)
    assert [generation(session, every) for session in (ROOT, first, second)] == [0, 1, 2]
    assert may_spawn(first, every, TeamLimits(children=16, depth=2)) is None
    assert may_spawn(second, every, TeamLimits(children=16, depth=2)).code == "too_deep"


def test_one_that_has_ended_spawns_nothing():
    assert may_spawn(replace(ROOT, status=Status.EXITED), known(), TeamLimits(children=16, depth=4)).code == "ended"


def test_the_family_is_everything_below():
    first, other = below(ROOT, 1), below(ROOT, 2)
    grand = below(first, 3)
    assert children_of(ROOT.id, known(first, other, grand).values()) == (first, other)
    assert family_of(ROOT.id, known(first, other, grand).values()) == (first, other, grand)
    assert family_of(grand.id, known(first, other, grand).values()) == ()


def test_a_session_that_lives_or_has_living_children_stays_in_the_list():
    ended, child = replace(ROOT, status=Status.EXITED), below(ROOT, 1)
    assert may_remove(ROOT, known().values()).code == "alive"
    assert may_remove(ended, known(child).values()).message.endswith(f"living children: {child.name}")
    assert may_remove(ended, known(replace(child, status=Status.EXITED)).values()) is None


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({"status": Status.CRASHED}, 7.0),
        ({"status": Status.EXITED, "detail": "pane lost (tmux stopped or machine rebooted)"}, 7.0),
        ({"status": Status.EXITED, "detail": "you left it"}, None),
        ({"status": Status.CRASHED, "adopted": True}, None),
        ({}, None),
    ],
)
def test_a_client_that_ended_without_an_order_to_is_lost(changes, lost):
    assert lost_at(replace(ROOT, failed_starts=(3.0, 7.0), **changes)) == lost


# --- clearing -------------------------------------------------------------------------------------------------------


def clearing():
    return (
        Playbook()
        >> event(ev.ClearRequested)
        << ef.AwaitComposer(0, own=("/clear",))
        >> result(ev.ComposerReady)
        << ef.TakeSnapshot(0)
        >> result(ev.SnapshotTaken)
        << ef.ClearContext(0)
    )


def new_context(conversation="c1"):
    return ev.ConversationStarted(at=0, conversation=conversation, transcript="/t1", origin=ev.Origin.CLEAR)


def test_a_cleared_session_begins_anew_with_nothing_and_is_then_free_for_its_messages():
    play = clearing() >> new_context()
    play.end()
    assert play.phase is Phase.DONE
    assert play.session.rotations == 1
    assert not play.session.rotation.holds_messages


def test_a_working_agent_finishes_its_turn_first():
    play = Playbook() >> event(ev.PromptSubmitted, text="x") >> event(ev.ClearRequested)
    play.end()
    play >> event(ev.TurnEnded) << ef.AwaitComposer(0, own=("/clear",))


def test_a_handoff_that_waited_gives_way_to_the_clear():
    play = Playbook() >> event(ev.PromptSubmitted, text="x") >> event(ev.HandoffRequested, handoff=HANDOFF)
    play << ef.RecordHandoff(HANDOFF, HandoffState.PENDING)
    play >> event(ev.ClearRequested) << ef.RecordHandoff(HANDOFF, HandoffState.CLEARED, "replaced by a newer one")
    assert play.session.rotation.handoff is None


@pytest.mark.parametrize("phase", [Phase.RESERVED, Phase.CLEARING, Phase.EMPTY, Phase.PROMPTING])
def test_a_rotation_under_way_refuses_it(phase):
    play = Playbook() >> event(ev.HandoffRequested, handoff=HANDOFF)
    rotating = replace(play.session, rotation=replace(play.session.rotation, phase=phase))
    assert may_clear(rotating, CLAUDE).code == "rotating"


def test_the_agent_itself_cannot_hand_off_what_is_about_to_be_cleared():
    play = Playbook() >> event(ev.PromptSubmitted, text="x") >> event(ev.ClearRequested)
    assert may_hand_off(play.session).code == "rotating"
    assert may_clear(play.session, CLAUDE).code == "rotating"
    assert may_clear(ROOT, CLAUDE) is None
    assert may_clear(replace(ROOT, status=Status.EXITED), CLAUDE).code == "ended"


def test_a_client_that_dies_before_the_clear_begins_anew_when_it_is_started_again():
    play = clearing() >> event(ev.ClientExited, signal=9)
    play.skip(ef.LeavePane, ef.MakeDocument)
    assert play.session.rotation.unfinished
    play >> event(ev.SessionLaunched, pane="%2", pid=2, conversation="c2")
    play >> replace(new_context("c2"), origin=ev.Origin.STARTUP)
    play.skip(ef.AddContext).end()
    assert play.phase is Phase.DONE


def test_a_kill_ends_it():
    play = clearing() >> event(ev.SessionKilled)
    assert play.phase is Phase.CANCELLED


def test_a_document_that_is_gone_is_no_matter_of_a_clear():
    play = clearing() >> event(ev.DocumentGone, handoff=HANDOFF.id)
    play.end()
    assert play.phase is Phase.CLEARING


def test_the_report_does_not_survive_it():
    play = Playbook() >> event(ev.StatusReported, text="busy")
    assert play.session.report.text == "busy"
    play >> event(ev.ClearRequested) << ef.AwaitComposer(0, own=("/clear",))
    assert play.session.report is None


def test_the_permission_mode_is_the_last_hooks():
    play = Playbook() >> event(ev.PromptSubmitted, text="x", mode="plan") >> event(ev.ToolUsed, tool="Bash")
    assert play.session.mode == "plan"
    play >> event(ev.ToolUsed, tool="Bash", mode="default")
    assert play.session.mode == "default"
    play = Playbook() >> event(ev.PromptSubmitted, text="x", mode="plan")
    assert (play >> event(ev.SessionLaunched, pid=2, conversation="c1")).session.mode == ""
    assert (play >> event(ev.SessionLaunched, pid=3, conversation="c1", mode="auto")).session.mode == "auto"


def test_the_next_task_is_queued_with_the_clear_and_begins_the_new_context():
    """C1: one event, so that no clear is without its task and no task reaches the old context."""
    task, stored = replace(message("m1", "do that"), number=1), StoredMessage("m1", "a" * 8, "do that", number=1)
    play = Playbook() >> event(ev.ClearRequested, message=task, stored=stored)
    play << ef.AwaitComposer(0, own=("/clear",)) << ef.KeepMessage(stored)
    play >> result(ev.ComposerReady) << ef.TakeSnapshot(0)
    play >> result(ev.SnapshotTaken) << ef.ClearContext(0) >> new_context()
    play << ef.AwaitComposer(0, patience=play.session.policy.max_hold)
    assert play.session.outbox.queue == (task,)


def test_a_client_in_the_users_own_terminal_is_not_cleared():
    session = replace(idle_session(), foreground=Foreground(wrapper=7, born="100"))
    refused = may_clear(session, CLAUDE)
    assert (refused.code, refused.hint) == ("in_foreground", "type /clear there")


def test_a_session_that_has_ended_is_named_with_what_brings_it_back():
    refused = already_ended(replace(idle_session(), detail="killed"))
    assert (refused.code, refused.message) == ("ended", "Session x has already ended (killed)")
    assert refused.hint == "sm restore x brings it back"
