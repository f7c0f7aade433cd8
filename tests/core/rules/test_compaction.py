"""Before the client compacts: a document is made, and with `rotate` the agent first gets the time to hand off."""

from dataclasses import replace

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.compaction import CompactionHold
from sm.core.model.context import ContextReading, Policy, Source
from sm.core.model.context_warnings import advice_of, critical_notice
from sm.core.model.forked_document import FORK_TIMEOUT_S
from sm.core.model.handoff import HandoffState, HandoffType
from sm.core.model.rotation import Phase
from sm.core.model.session import Session, Status
from sm.core.rules.compaction import FORK_ROOM, HELD, MAX_BLOCKS, MAX_HOLD_S
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


def handed_off(**state):
    return (working(on_compact="save", **state) >> event(ev.HandoffRequested, handoff=HANDOFF)).skip(ef.RecordHandoff)


def test_a_client_whose_agent_has_handed_off_is_held_whatever_is_configured():
    play = handed_off() >> event(ev.CompactionStarted) << ef.BlockCompaction(HELD)
    play >> event(ev.ToolUsed, tool="Bash") >> event(ev.TurnEnded) << ef.AwaitComposer(0, own=("/clear",))


def test_the_agents_own_handoff_outlives_a_compaction():
    play = handed_off(tokens=190_000) >> event(ev.CompactionStarted) << ef.MakeDocument(rotate=False)
    play >> event(ev.CompactionEnded) >> event(ev.TurnEnded) << ef.AwaitComposer(0, own=("/clear",))


# --- a fork of its model --------------------------------------------------------------------------------------------

FORKS = ef.RefreshDocument(MADE, fork=True)
LITTLE_ROOM = WINDOW - CLAUDE.refusal_margin - FORK_ROOM
FORKED = event(ev.DocumentForked, handoff=MADE.id)


def driven(**state):
    """An agent whose client has the plugin that can fork it."""
    return working(**state) >> event(ev.DriverChanged, driver=ev.DrivenBy.MOD)


def asked_to_compact(**state):
    return driven(**state) >> event(ev.CompactionStarted) << ef.BlockCompaction(HELD)


def saving():
    """A fork writes the document of a context that is compacted afterwards."""
    play = asked_to_compact(on_compact="save") << ef.MakeDocument(rotate=False)
    return play >> event(ev.DocumentKept, handoff=MADE) << ef.RecordHandoff(MADE, HandoffState.ACTIVE) << FORKS


def test_before_a_compaction_a_fork_is_asked_once_for_the_document_and_waited_for():
    play = saving() >> event(ev.CompactionStarted) << ef.BlockCompaction(HELD)
    play >> FORKED >> event(ev.CompactionStarted) << FORKS  # lets it go, and brings the facts up to date
    assert play.session.status is Status.COMPACTING
    assert (play.session.kept, play.session.rotation) == (MADE, None)
    play.end() >> event(ev.ConversationStarted, origin=ev.Origin.COMPACT)
    play << ef.InjectHandoff(MADE, None, until=play.now)


def test_an_agent_that_saves_is_not_ordered_to_hand_off():
    play = saving() >> event(ev.ToolUsed, tool="Bash")
    assert not play.end().session.conversation.monitor.owed


def test_after_a_compaction_a_fork_may_be_asked_again():
    play = saving() >> FORKED >> event(ev.CompactionStarted) << FORKS
    play >> event(ev.CompactionEnded) >> event(ev.CompactionStarted) << ef.BlockCompaction(HELD)
    play << ef.MakeDocument(rotate=False)


def test_the_hook_that_ends_a_compaction_may_be_lost():
    play = (saving() >> event(ev.ConversationStarted, origin=ev.Origin.COMPACT)).skip(ef.InjectHandoff)
    assert play.session.conversation.hold == CompactionHold()


def test_a_fork_is_waited_for_so_long_and_no_longer():
    play = saving()
    play.now += FORK_TIMEOUT_S
    play >> event(ev.CompactionStarted) << ef.MakeDocument(rotate=False)


@pytest.mark.parametrize("tokens", [LITTLE_ROOM, WINDOW - CLAUDE.refusal_margin, WINDOW + 5, None])
def test_for_a_fork_a_context_that_may_be_over_the_limit_is_not_held_either(tokens):
    driven(on_compact="save", tokens=tokens) >> event(ev.CompactionStarted) << ef.MakeDocument(rotate=False)


REFUSES = event(ev.ClientBlocked, reason="Prompt is too long")


def test_a_client_that_refuses_to_continue_after_it_was_held_for_a_fork_is_cleared():
    """Its window is smaller than anything tells: what would have compacted it was put off."""
    play = saving() >> event(ev.TurnFailed, error="invalid_request") >> REFUSES
    play << ef.RecordHandoff(MADE, HandoffState.PENDING) << FORKS << ef.AwaitComposer(0, own=("/clear",))
    assert play.phase is Phase.RESERVED


def test_a_client_that_refuses_before_the_document_is_kept_is_cleared_then():
    play = (asked_to_compact(on_compact="save") << ef.MakeDocument(rotate=False)) >> REFUSES
    play >> event(ev.DocumentKept, handoff=MADE)
    play << ef.RecordHandoff(MADE, HandoffState.PENDING) << FORKS << ef.AwaitComposer(0, own=("/clear",))
    assert play.phase is Phase.RESERVED


def test_a_client_that_refuses_without_having_been_held_waits_for_its_user():
    play = driven(on_compact="save") >> REFUSES
    assert (play.session.status, play.session.rotation) == (Status.BLOCKED, None)


def test_a_context_that_grows_over_the_limit_meanwhile_is_let_go():
    play = saving()
    reading = ContextReading(tokens=WINDOW - 5, projected=WINDOW - 5, source=Source.USAGE, window=WINDOW)
    play >> event(ev.ContextRead, epoch=0, reading=reading, usable=None)
    play >> event(ev.CompactionStarted) << ef.MakeDocument(rotate=False)


@pytest.mark.parametrize("policy", [{"fork": False}, {}])
def test_without_the_plugin_or_where_the_user_switched_it_off_no_fork_is_asked(policy):
    play = working(on_compact="save") if not policy else driven(on_compact="save")
    play >> event(ev.PolicyChanged, policy=Policy(on_compact="save", enabled=False, **policy))
    play >> event(ev.CompactionStarted) << ef.MakeDocument(rotate=False)


def test_a_compaction_of_the_users_own_waits_for_no_fork():
    driven() >> event(ev.CompactionStarted, automatic=False) << ef.MakeDocument(rotate=False)


def test_an_agent_that_is_held_is_forked_at_the_end_of_its_turn():
    play = asked_to_compact() << ef.MakeDocument(rotate=True)
    play >> event(ev.DocumentKept, handoff=MADE, rotate=True) << ef.RecordHandoff(MADE, HandoffState.PENDING)
    play >> event(ev.TurnEnded) << FORKS << ef.AwaitComposer(0, own=("/clear",))


def test_an_agents_own_document_is_not_forked():
    play = driven() >> event(ev.HandoffRequested, handoff=HANDOFF)
    play.skip(ef.RecordHandoff) >> event(ev.CompactionStarted) << ef.BlockCompaction(HELD)
    play >> event(ev.TurnEnded) << ef.AwaitComposer(0, own=("/clear",))


def held_to_the_last():
    play = asked_to_compact() << ef.MakeDocument(rotate=True)
    play >> event(ev.DocumentKept, handoff=MADE, rotate=True) << ef.RecordHandoff(MADE, HandoffState.PENDING)
    for _ in range(MAX_BLOCKS - 1):
        play >> event(ev.CompactionStarted) << ef.BlockCompaction(HELD)
    return play >> event(ev.CompactionStarted) << ef.BlockCompaction(HELD) << FORKS


def test_a_turn_that_does_not_end_is_forked_before_its_client_is_let_go():
    play = held_to_the_last() >> event(ev.CompactionStarted) << ef.BlockCompaction(HELD)
    play >> FORKED >> event(ev.CompactionStarted)
    play << ef.RecordHandoff(MADE, HandoffState.ACTIVE, "the client compacted first") << FORKS
    assert (play.phase, play.session.kept) == (Phase.CANCELLED, MADE)


def test_a_turn_that_ends_while_the_fork_writes_rotates():
    play = held_to_the_last() >> event(ev.TurnEnded) << FORKS << ef.AwaitComposer(0, own=("/clear",))
    assert play.phase is Phase.RESERVED


def test_a_context_with_little_room_left_is_forked_at_once():
    play = asked_to_compact(tokens=LITTLE_ROOM) << ef.MakeDocument(rotate=True)
    play >> event(ev.DocumentKept, handoff=MADE, rotate=True)
    play << ef.RecordHandoff(MADE, HandoffState.PENDING) << FORKS


def test_an_agent_that_is_faster_than_the_fork_continues_from_its_own_document():
    play = asked_to_compact(tokens=LITTLE_ROOM) << ef.MakeDocument(rotate=True)
    play >> event(ev.HandoffRequested, handoff=HANDOFF) << ef.RecordHandoff(HANDOFF, HandoffState.PENDING)
    play >> event(ev.DocumentKept, handoff=MADE, rotate=True)
    play << ef.RecordHandoff(MADE, HandoffState.CLEARED, "the agent's own document waits")


def test_what_a_fork_of_another_document_answers_changes_nothing():
    play = saving() >> event(ev.DocumentForked, handoff="HO-other")
    play >> event(ev.CompactionStarted) << ef.BlockCompaction(HELD)
    play >> event(ev.DocumentKept, handoff=HANDOFF) << ef.RecordHandoff(HANDOFF, HandoffState.ACTIVE)
    play >> FORKED >> event(ev.CompactionStarted) << ef.BlockCompaction(HELD)


def test_another_document_that_is_kept_meanwhile_asks_no_fork():
    play = asked_to_compact(tokens=LITTLE_ROOM) << ef.MakeDocument(rotate=True)
    play = (play >> event(ev.DocumentKept, handoff=MADE, rotate=True)).skip(ef.RecordHandoff) << FORKS
    (play >> event(ev.DocumentKept, handoff=HANDOFF)).skip(ef.RecordHandoff).end()


def test_a_session_without_a_conversation_has_nothing_to_compact():
    session = Session(id="a" * 8, name="x", provider="claude", directory="/p", created=1.0)
    assert Playbook(session) >> event(ev.ServerStarted)


def test_the_next_server_asks_again_for_what_the_fork_has_not_answered_yet():
    play = saving() >> event(ev.ServerStarted) << FORKS
    (play >> FORKED >> event(ev.ServerStarted)).end()
    (asked_to_compact(on_compact="save").skip(ef.MakeDocument) >> event(ev.ServerStarted)).end()
