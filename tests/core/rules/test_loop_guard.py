"""A session does not rotate without end: its context grows first, and its rotations lead somewhere."""

from dataclasses import replace

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.context import ContextReading, Policy, Source
from sm.core.model.handoff import HandoffType
from sm.core.model.loop_guard import LoopGuard
from sm.core.model.message import StoredMessage, message
from sm.core.model.rotation import Phase
from sm.core.rules.loop_guard import FIRST_READING_S, may_not_resume, needed_tokens, paused, too_soon
from tests.core.playbook import HANDOFF, WAKE, Playbook, event, idle_session, result

WINDOW = 1_000_000
MADE = replace(HANDOFF, type=HandoffType.COMPACTION)
SAID = event(ev.PromptSubmitted, text="and now the tests")


def read(tokens, conversation="c1", window=WINDOW, epoch=0):
    found = ContextReading(tokens=tokens, projected=tokens, source=Source.USAGE, window=window)
    return event(ev.ContextRead, conversation=conversation, epoch=epoch, reading=found, usable=None)


def silently(play, *events):
    for happened in events:
        play = play >> happened
        play.left = []
    return play


def wakes(conversation):
    return (
        event(ev.ConversationStarted, conversation=conversation, transcript="/t", origin=ev.Origin.CLEAR),
        result(ev.ComposerReady),
        event(ev.PromptSubmitted, conversation=conversation, text=WAKE),
    )


def hands_off(conversation, *, progress=False):
    given = replace(HANDOFF, conversation=conversation)
    return event(ev.HandoffRequested, handoff=given, progress=progress)


def rotates(conversation, into, *, progress=False):
    return (
        hands_off(conversation, progress=progress),
        event(ev.TurnEnded, conversation=conversation),
        result(ev.ComposerReady),
        result(ev.SnapshotTaken, path=None),
        *wakes(into),
    )


def begun(tokens=60_000, **policy):
    """A context that a handoff has begun, with its first request."""
    play = Playbook(idle_session(policy=Policy(enabled=False, **policy)))
    return silently(play, SAID, *rotates("c0", "c1"), read(tokens))


# --- growth ----------------------------------------------------------------------------------------------------------


def test_the_first_context_of_a_session_may_be_handed_off_at_once():
    play = silently(Playbook(), SAID, read(20_000, "c0"))
    assert (too_soon(play.session, play.now), needed_tokens(play.session)) == (None, None)


def test_a_context_that_a_handoff_began_has_to_grow_first():
    play = begun(60_000)
    assert needed_tokens(play.session) == 100_000
    refused = too_soon(play.session, play.now)
    assert (refused.code, "from 100,000 tokens on" in refused.message) == ("too_soon", True)
    assert too_soon(silently(play, read(99_999)).session, play.now)
    assert too_soon(silently(play, read(100_000)).session, play.now) is None


@pytest.mark.parametrize(("window", "needed"), [(100_000, 80_000), (200_000, 100_000), (None, 100_000)])
def test_it_grows_by_a_fifth_of_a_small_window(window, needed):
    play = silently(begun(), read(59_000, window=window), read(60_000, window=window))
    assert needed_tokens(play.session) == needed - 1_000


@pytest.mark.parametrize("policy", [{"min_growth": 0}, {"min_growth": 10}])
def test_the_user_sets_by_how_much(policy):
    assert needed_tokens(silently(begun(**policy), read(60_010)).session) is None


def test_what_the_user_says_in_the_context_ends_the_wait():
    play = silently(begun(), replace(SAID, conversation="c1"))
    assert too_soon(play.session, play.now) is None


def test_a_size_that_is_not_known_yet_holds_for_a_minute():
    play = silently(Playbook(), SAID, *rotates("c0", "c1"))
    assert "handed off later" in too_soon(play.session, play.now).message
    assert too_soon(play.session, play.now + FIRST_READING_S) is None
    spoke = silently(play, replace(SAID, conversation="c1"))
    assert too_soon(spoke.session, play.now) is None


def test_a_compaction_begins_the_context_again():
    play = silently(begun(160_000), event(ev.ConversationStarted, conversation="c1", origin=ev.Origin.COMPACT))
    assert needed_tokens(silently(play, read(30_000, epoch=1)).session) == 70_000


def test_a_cleared_context_may_be_handed_off_at_once():
    cleared = event(ev.ConversationStarted, conversation="c2", origin=ev.Origin.CLEAR)
    ended = event(ev.TurnEnded, conversation="c1")
    play = silently(begun(), ended, event(ev.ClearRequested), cleared, read(20_000, "c2"))
    assert play.phase is Phase.DONE
    assert (play.session.guard, too_soon(play.session, play.now)) == (LoopGuard(), None)


def test_an_agent_that_may_not_hand_off_yet_is_neither_warned_nor_kept_from_its_tools():
    watches = Policy(gate=True)
    play = silently(begun(190_000), event(ev.PolicyChanged, policy=watches), read(191_000, window=200_000))
    monitor = play.session.conversation.monitor
    assert (monitor.owed, monitor.crossed) == ((), ())
    play >> event(ev.ToolAsked, conversation="c1", tool="Bash", permitted=False)
    assert play.end()
    grown = play >> read(235_000, window=1_000_000)
    assert grown.skip(ef.AddContext).session.conversation.monitor.crossed


def test_a_client_whose_agent_may_not_hand_off_yet_compacts():
    play = begun(60_000, on_compact="rotate") >> event(ev.CompactionStarted, conversation="c1")
    play << ef.MakeDocument(rotate=False)


# --- progress --------------------------------------------------------------------------------------------------------


def in_vain(times=3, **policy):
    """A session that has rotated so often and shown nothing for it."""
    policy = {"min_growth": 0, "enabled": False, **policy}
    play = Playbook(idle_session(policy=Policy(**policy)))
    play = silently(play, SAID, *rotates("c0", "c1"))
    for number in range(1, times + 1):
        play = silently(play, *rotates(f"c{number}", f"c{number + 1}"))
    return play, f"c{times + 1}"


def waiting(**policy):
    play, last = in_vain(**policy)
    return silently(play, hands_off(last), event(ev.TurnEnded, conversation=last)), last


def test_after_three_rotations_in_vain_the_next_one_waits_for_the_user():
    play, last = in_vain()
    assert play.session.guard.without_progress == 3
    play = silently(play, hands_off(last)) >> event(ev.TurnEnded, conversation=last)
    reason = paused(play.session, changed=False)
    assert "paused: 3 handoffs in a row" in reason
    play << ef.TellUser(f"sm: {reason}") << ef.TellParent(f"[sm handoff] {reason}") << ef.LeavePane(0)
    current = play.session.rotation
    assert (current.phase, current.paused, current.note, current.deadline) == (Phase.PENDING, True, reason, None)
    assert play.session.shown_detail == reason


def test_one_that_comes_when_the_turn_is_over_waits_as_well():
    play, last = in_vain()
    play = silently(play, event(ev.TurnEnded, conversation=last)) >> hands_off(last)
    play.skip(ef.RecordHandoff, ef.TellUser, ef.TellParent).end()
    assert (play.phase, play.session.rotation.paused) == (Phase.PENDING, True)


@pytest.mark.parametrize("policy", [{"max_without_progress": 0}, {"max_without_progress": 4}])
def test_the_user_sets_how_many(policy):
    assert waiting(**policy)[0].phase is Phase.RESERVED


def test_a_change_in_the_context_is_progress_and_counts_from_the_start():
    play, last = in_vain()
    play = silently(play, *rotates(last, "c9", progress=True))
    assert (play.phase, play.session.guard.without_progress) == (Phase.DONE, 0)


def stored(sender="b" * 8, frame="b"):
    return event(
        ev.MessageQueued, message=message("m1", "hello"), stored=StoredMessage("m1", "a" * 8, "hello", sender, frame)
    )


@pytest.mark.parametrize("happened", [stored(), stored("", "the user")], ids=["an agent", "the user"])
def test_a_message_is_progress_also_for_one_that_waits(happened):
    play, _ = waiting()
    play = (play >> happened).skip(ef.KeepMessage, ef.RefreshDocument) << ef.AwaitComposer(0, own=("/clear",))
    assert (play.phase, play.session.rotation.paused) == (Phase.RESERVED, False)


@pytest.mark.parametrize("happened", [stored("a" * 8), stored("", "")], ids=["its own", "a notice of sm"])
def test_what_it_has_sent_itself_is_none(happened):
    play, _ = waiting()
    play = silently(play, happened)
    assert (play.phase, play.session.rotation.paused) == (Phase.PENDING, True)


def test_the_users_word_is_progress_and_its_turn_comes_first():
    play, last = waiting()
    play = silently(play, replace(SAID, conversation=last))
    assert (play.phase, play.session.rotation.paused) == (Phase.PENDING, False)
    play = silently(play, event(ev.TurnEnded, conversation=last))
    assert (play.phase, play.session.rotation.said) == (Phase.RESERVED, ("and now the tests",))


WORDS = ["[sm context] Context high", "[Input from: b via sm send] (message m1)", "<task-note>"]


@pytest.mark.parametrize("text", WORDS)
def test_words_of_sm_and_of_the_client_are_none(text):
    play, last = waiting()
    said = event(ev.PromptSubmitted, conversation=last, text=text)
    play = silently(play, said, event(ev.TurnEnded, conversation=last))
    assert (play.phase, play.session.rotation.paused) == (Phase.PENDING, True)


def test_the_user_may_let_it_continue_and_its_agent_may_not():
    play, _ = waiting()
    assert may_not_resume(play.session).code == "rotation_paused"
    play = silently(play, event(ev.HandoffRetried))
    assert (play.phase, may_not_resume(play.session)) == (Phase.RESERVED, None)
    busy, _ = waiting()
    busy = silently(busy, event(ev.ActivityChanged, activity=ev.Activity.BUSY), event(ev.HandoffRetried))
    assert (busy.phase, busy.session.rotation.paused) == (Phase.PENDING, False)


def test_a_setting_that_allows_more_lets_it_continue():
    play, _ = waiting()
    allows = Policy(enabled=False, max_without_progress=0)
    assert silently(play, event(ev.PolicyChanged, policy=allows)).phase is Phase.RESERVED


def test_what_the_user_hands_off_does_not_wait():
    play, last = in_vain()
    play = silently(play, hands_off(last, progress=True), event(ev.TurnEnded, conversation=last))
    assert play.phase is Phase.RESERVED


def test_a_document_made_for_the_session_waits_as_well_and_its_client_compacts():
    play, last = in_vain(on_compact="rotate")
    made = event(ev.DocumentKept, handoff=replace(MADE, conversation=last), rotate=True, progress=False)
    play = silently(play, event(ev.TurnEnded, conversation=last), made)
    assert play.session.rotation.paused
    play = silently(play, read(60_000, last)) >> event(ev.CompactionStarted, conversation=last)
    assert ef.MakeDocument(rotate=False) in play.left
