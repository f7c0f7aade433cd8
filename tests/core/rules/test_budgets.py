"""A session whose budget is used is left alone until its user sends it a message; nothing else releases it."""

from dataclasses import replace

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.budget import HELD_REASON, Budget, BudgetLevel, Budgets, BudgetShare
from sm.core.model.cost import Spending, TokenCount
from sm.core.model.message import StoredMessage, message
from sm.core.model.rotation import Phase
from sm.core.model.session import Status
from sm.core.model.session_cost import SessionCost
from sm.core.model.usage_limit import UsageLimit
from sm.core.rules.budgets import is_news, readings
from sm.core.rules.notifications import concerns, follow
from sm.core.rules.pane_line import pane_line, waits_for_user
from sm.core.rules.session.compaction import _rotates
from tests.core.playbook import HANDOFF, Playbook, event, idle_session, result


def share(used, *unpriced):
    return BudgetShare(used, f"${used * 5:.2f} of $5.00", unpriced)


def own(used, *unpriced, **values):
    return event(ev.BudgetRead, own=share(used, *unpriced), **values)


def paused(play=None):
    return ((play or Playbook()) >> own(1.0)).end()


def sent(sender="", frame="the user", identity="m1"):
    stored = StoredMessage(identity, "a" * 8, "hello", sender, frame)
    return event(ev.MessageQueued, message=message(identity, "hello", sender), stored=stored)


@pytest.mark.parametrize(
    ("used", "unpriced", "level", "words"),
    [
        (0.79, (), BudgetLevel.NONE, ""),
        (0.8, (), BudgetLevel.WARNED, "budget nearly used: $4.00 of $5.00"),
        (
            1.0,
            (),
            BudgetLevel.PAUSED,
            "budget used: $5.00 of $5.00; nothing is sent to it until you continue it: sm send",
        ),
        (
            0.5,
            ("m1", "m2"),
            BudgetLevel.UNKNOWN,
            "budget cannot be followed, and pauses nothing: the price of m1, m2 is unknown (cost.prices)",
        ),
        (
            1.2,
            ("m1",),
            BudgetLevel.PAUSED,
            "budget used: $6.00 of $5.00; nothing is sent to it until you continue it: sm send",
        ),
    ],
)
def test_the_level_of_a_budget(used, unpriced, level, words):
    session = (Playbook() >> own(used, *unpriced)).end().session
    assert (session.budget.level, session.budget.words, session.shown_detail) == (level, words, words)
    assert waits_for_user(session) is session.budget.paused is (level is BudgetLevel.PAUSED)
    assert ("budget used" in pane_line(session, ())) is session.budget.paused


def test_the_budget_of_the_tree_counts_beside_its_own():
    session = (Playbook() >> own(0.9, tree=share(1.0))).end().session
    assert session.budget.words.startswith("budget with its children used: $5.00 of $5.00")


def test_nothing_is_sent_and_the_users_message_continues_with_as_much_again():
    play = (paused() >> sent("b" * 8, "boss")).skip(ef.KeepMessage).end()
    play = (play >> event(ev.MessageQueued, message=message("n1", "a notice"))).end()
    play = (play >> sent("", "", "n2")).skip(ef.KeepMessage).end()
    assert play.session.budget.paused
    play = (play >> sent(identity="m2")).skip(ef.KeepMessage)
    assert isinstance(play.left.pop(0), ef.AwaitComposer)
    assert not play.session.budget.paused
    play.end()
    assert (play >> own(1.7)).end().session.budget.level is BudgetLevel.NONE
    assert (play >> own(1.8)).end().session.budget.level is BudgetLevel.WARNED
    play = play >> own(2.0)
    assert play.session.budget.paused
    assert isinstance(play.left.pop(0), ef.LeavePane)
    play.end()


def test_a_message_to_a_session_that_is_not_paused_grants_nothing():
    play = Playbook() >> own(0.9)
    play = play >> sent()
    assert play.session.budget.own_granted == 0


def test_what_is_typed_already_is_not_taken_back():
    play = Playbook() >> sent()
    play.left = []
    play = play >> result(ev.ComposerReady)
    play.left = []
    play = (play >> result(ev.Typed)).end()
    assert (play >> own(1.0)).end().session.outbox.queue


def test_a_running_turn_is_not_interrupted():
    play = Playbook() >> event(ev.PromptSubmitted, text="work")
    assert (play >> own(1.0)).end().session.status is Status.WORKING


@pytest.mark.parametrize("lifted", [sent(), event(ev.BudgetRead), own(0.4)])
def test_a_handoff_waits_and_begins_with_the_users_word(lifted):
    play = Playbook() >> event(ev.PromptSubmitted, text="work")
    play = play >> event(ev.HandoffRequested, handoff=HANDOFF)
    play.left = []
    play = paused(play) >> event(ev.TurnEnded)
    play = (play >> event(ev.HandoffRetried)).skip(ef.RecordHandoff).end()
    assert (play.phase, play.session.rotation.note) == (Phase.PENDING, HELD_REASON)
    play = play >> lifted
    assert play.phase is Phase.RESERVED


def test_a_handoff_that_is_wanted_meanwhile_waits():
    play = paused() >> event(ev.HandoffRequested, handoff=HANDOFF)
    assert (play.phase, play.session.rotation.note) == (Phase.PENDING, HELD_REASON)


@pytest.mark.parametrize("steps", [0, 1])
def test_a_handoff_that_has_not_cleared_yet_waits(steps):
    play = Playbook() >> event(ev.HandoffRequested, handoff=HANDOFF)
    play.left = []
    for happened in (result(ev.ComposerReady),)[:steps]:
        play = play >> happened
        play.left = []
    play = play >> own(1.0)
    assert (play.phase, play.session.rotation.note) == (Phase.PENDING, HELD_REASON)


def test_a_cleared_context_is_woken_once_the_user_says_so():
    play = Playbook() >> event(ev.HandoffRequested, handoff=HANDOFF)
    for happened in (
        result(ev.ComposerReady),
        result(ev.SnapshotTaken, path=None),
        event(ev.ConversationStarted, conversation="c1", transcript="/t", origin=ev.Origin.CLEAR),
    ):
        play.left = []
        play = play >> happened
    play.left = []
    play = play >> own(1.0)
    assert (play.phase, play.session.rotation.note) == (Phase.EMPTY, HELD_REASON)
    play.left = []
    play = play >> sent()
    assert play.phase is Phase.EMPTY
    assert any(isinstance(effect, ef.AwaitComposer) for effect in play.left)


def test_a_usage_limit_and_a_budget_hold_each_for_itself():
    play = paused() >> event(ev.LimitShared, limit=UsageLimit("five_hour", 5_000.0, 100.0))
    play = ((play >> sent()).skip(ef.KeepMessage) >> own(2.0)).end()
    play = (play >> event(ev.LimitEnded)).end()
    assert play.session.left_alone == HELD_REASON


def test_no_compaction_is_put_off_for_a_handoff_that_cannot_begin():
    play = Playbook() >> event(ev.PromptSubmitted, text="work")
    play = play >> event(ev.HandoffRequested, handoff=HANDOFF)
    assert _rotates(play.session)
    play.left = []
    assert not _rotates(paused(play).session)


def test_the_user_is_notified_once_of_each_level():
    before = idle_session()
    told = []
    for reading in (own(0.8), own(0.9), own(1.0), own(1.1)):
        after = (Playbook(before) >> reading).end().session
        assert concerns(before, after, reading, ())
        for record in follow(told, before, after, reading, ()):
            told = [*told, record.episode] if isinstance(record, ef.OpenEpisode) else told[1:]
        before = after
        assert [episode.subject for episode in told] == ["warned" if after.budget.own < 1 else "paused"]
    assert told[0].said.startswith("budget used: $5.00 of $5.00")


# --- what is told to whom ------------------------------------------------------------------------------------------


def spent(usd, *unpriced):
    return Spending(TokenCount(output=2_000), usd, unpriced)


def family_cost(**changes):
    boss = replace(idle_session(), id="boss", **changes)
    kid = replace(idle_session(), id="kid", parent="boss")
    orphan = replace(idle_session(), id="orphan", parent="removed")
    gone = replace(idle_session(), id="gone", status=Status.EXITED)
    own_and_tree = ((boss, spent(1.0), spent(5.0)), (kid, spent(4.0), spent(4.0)), (orphan, spent(0), spent(0)))
    costs = [SessionCost(session, mine, (), tree) for session, mine, tree in own_and_tree]
    return [*costs, SessionCost(gone, spent(9.0), (), spent(9.0))]


def told(costs, budgets):
    return {session.id: reading for session, reading in readings(costs, budgets, 1.0)}


def test_a_tree_is_warned_at_its_top_and_paused_whole():
    near = told(family_cost(), Budgets(tree=Budget(6.0, in_usd=True)))
    assert (near["boss"].tree.words, near["kid"].tree) == ("$5.00 of $6.00", None)
    full = told(family_cost(), Budgets(tree=Budget(5.0, in_usd=True)))
    assert (full["boss"].tree.used, full["kid"].tree.used, full["orphan"].tree.used) == (1.0, 1.0, 0.0)
    assert set(full) == {"boss", "kid", "orphan"}


def test_what_the_top_is_granted_counts_for_its_children():
    use = replace(idle_session().budget, tree_granted=1.0)
    found = told(family_cost(budget=use), Budgets(tree=Budget(5.0, in_usd=True)))
    assert (found["kid"].tree, found["kid"].tree_granted) == (None, 1.0)


def test_a_budget_of_tokens_needs_no_prices():
    found = told(family_cost(), Budgets(session=Budget(4_000.0, in_usd=False)))["boss"]
    assert (found.own, found.tree) == (BudgetShare(0.5, "2,000 of 4,000 tokens"), None)


def test_what_changes_nothing_is_no_event():
    session = idle_session()
    assert not is_news(session, event(ev.BudgetRead))
    assert not is_news(session, own(0.0))
    assert is_news(session, own(0.0, "m1"))
    assert is_news(session, own(0.1))
    assert not is_news((Playbook() >> own(0.1)).session, own(0.1))
    assert is_news(session, event(ev.BudgetRead, tree_granted=1.0))
