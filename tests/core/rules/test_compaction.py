"""Before the client compacts: a document is made, and with `rotate` the agent first gets the time to hand off."""

from dataclasses import replace

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.context import ContextReading, Policy, Source
from sm.core.model.context_warnings import advice_of, critical_notice
from sm.core.model.handoff import HandoffState, HandoffType
from sm.core.model.rotation import Phase
from sm.core.model.session import Status
from sm.core.rules.compaction import HELD, MAX_BLOCKS, MAX_HOLD_S
from sm.providers.claude.traits import CLAUDE
from tests.core.playbook import HANDOFF, Playbook, event, idle_session

WINDOW = 200_000
ORDER = critical_notice(advice_of(".sm/handoff-aaaaaaaa.md"))
MADE = replace(
    HANDOFF, id="HO-20260202-064600-c0", path="/home/made.md", copy="/home/made.md", type=HandoffType.COMPACTION
)


def working(tokens=170_000, window=WINDOW, on_compact="rotate"):
    play = Playbook(idle_session(policy=Policy(on_compact=on_compact, enabled=False)))
    play >> event(ev.PromptSubmitted, text="do it")
    if tokens is not None:
        reading = ContextReading(tokens=tokens, projected=tokens, source=Source.USAGE, window=window)
        play >> event(ev.ContextRead, epoch=0, reading=reading, usable=None)
    return play


def blocked(**state):
    play = working(**state) >> event(ev.CompactionStarted)
    return play << ef.BlockCompaction(HELD) << ef.MakeDocument(rotate=True)


def rotating():
    play = blocked() >> event(ev.DocumentKept, handoff=MADE, rotate=True)
    return play << ef.RecordHandoff(MADE, HandoffState.PENDING)


def test_a_document_is_made_whatever_is_configured():
    working(on_compact="save") >> event(ev.CompactionStarted) << ef.MakeDocument(rotate=False)
    working() >> event(ev.CompactionStarted, automatic=False) << ef.MakeDocument(rotate=False)


def test_a_saved_document_is_kept_and_rotates_nothing():
    play = working(on_compact="save") >> event(ev.CompactionStarted) << ef.MakeDocument(rotate=False)
    play >> event(ev.DocumentKept, handoff=MADE) << ef.RecordHandoff(MADE, HandoffState.ACTIVE)
    assert play.session.rotation is None


def test_the_client_is_held_and_the_order_to_hand_off_rides_on_the_next_hook():
    play = blocked()
    assert play.session.status is Status.WORKING
    play >> event(ev.ToolUsed, tool="Bash") << ef.AddContext(ORDER, (ORDER,))
    play = play >> event(ev.CompactionStarted) << ef.BlockCompaction(HELD) << ef.MakeDocument(rotate=True)
    play >> event(ev.PromptSubmitted, text="and") << ef.AddContext(ORDER, (ORDER,))


def test_an_agent_that_ignores_it_goes_on_from_the_document_once_its_turn_has_ended():
    play = rotating() >> event(ev.ToolUsed, tool="Bash")
    play.skip(ef.AddContext) >> event(ev.CompactionStarted) << ef.BlockCompaction(HELD)
    play >> event(ev.TurnEnded) << ef.AwaitComposer(0, own=("/clear",))
    assert play.phase is Phase.RESERVED


def test_the_agents_own_document_takes_its_place():
    play = rotating() >> event(ev.HandoffRequested, handoff=HANDOFF)
    play << ef.RecordHandoff(MADE, HandoffState.CLEARED, "replaced by a newer one")
    play << ef.RecordHandoff(HANDOFF, HandoffState.PENDING)
    play >> event(ev.ToolUsed, tool="Bash")
    assert play.end().session.rotation.handoff == HANDOFF
    play >> event(ev.CompactionStarted) << ef.BlockCompaction(HELD)


def test_a_document_that_was_made_too_late_takes_nobodys_place():
    play = blocked() >> event(ev.HandoffRequested, handoff=HANDOFF) << ef.RecordHandoff(HANDOFF, HandoffState.PENDING)
    (
        play
        >> event(ev.DocumentKept, handoff=MADE, rotate=True)
        << ef.RecordHandoff(MADE, HandoffState.CLEARED, "the agent's own document waits")
    )
    assert play.session.rotation.handoff == HANDOFF


@pytest.mark.parametrize(
    ("tokens", "window"),
    [(WINDOW - CLAUDE.refusal_margin, WINDOW), (WINDOW + 5, WINDOW), (None, None), (170_000, None)],
)
def test_a_context_that_may_be_over_the_limit_is_never_held(tokens, window):
    play = working(tokens, window) >> event(ev.CompactionStarted) << ef.MakeDocument(rotate=False)
    assert play.session.status is Status.COMPACTING


def test_it_is_held_so_often_and_no_more():
    play = rotating()
    for _ in range(MAX_BLOCKS - 1):
        play >> event(ev.CompactionStarted) << ef.BlockCompaction(HELD)
    play >> event(ev.CompactionStarted) << ef.RecordHandoff(MADE, HandoffState.CLEARED, "the client compacted first")
    play << ef.MakeDocument(rotate=False)
    assert play.phase is Phase.CANCELLED
    play >> event(ev.CompactionEnded) >> event(ev.CompactionStarted)
    play << ef.BlockCompaction(HELD) << ef.MakeDocument(rotate=True)


def test_it_is_held_so_long_and_no_longer():
    play = rotating()
    play.now += MAX_HOLD_S
    play >> event(ev.CompactionStarted)
    play.skip(ef.RecordHandoff) << ef.MakeDocument(rotate=False)


def test_the_agents_own_handoff_outlives_a_compaction():
    play = working(on_compact="save") >> event(ev.HandoffRequested, handoff=HANDOFF)
    play.skip(ef.RecordHandoff) >> event(ev.CompactionStarted) << ef.MakeDocument(rotate=False)
    play >> event(ev.CompactionEnded) >> event(ev.TurnEnded) << ef.AwaitComposer(0, own=("/clear",))
