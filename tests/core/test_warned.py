"""C36: that an agent was warned, and that a compaction came before its handoff, are events of their own."""

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.context import ContextReading, Source
from sm.core.model.session import Status
from sm.core.rules.session.context import derived_events
from tests.core.playbook import HANDOFF, Playbook, advance, event


def reading(tokens, **values):
    found = ContextReading(tokens=tokens, projected=tokens, source=Source.USAGE, exact=True, window=200_000, **values)
    return event(ev.ContextRead, epoch=0, reading=found, usable=167_000)


def at_work():
    return Playbook() >> event(ev.PromptSubmitted, text="do it")


def news(play, event):
    at = play.now + 100
    after, _ = advance(play.session, type(event)(**{**fields(event), "at": at}))
    return derived_events(play.session, after, event)


def fields(event):
    return {name: getattr(event, name) for name in event.__dataclass_fields__}


@pytest.mark.parametrize(("tokens", "level"), [(110_000, "warning"), (140_000, "critical")])
def test_a_warning_is_an_event(tokens, level):
    [warned] = news(at_work(), reading(tokens))
    assert isinstance(warned, ev.AgentWarned)
    assert (warned.level, warned.tokens, warned.repeated) == (level, tokens, False)


def test_a_repeat_says_that_it_is_one():
    play = at_work() >> reading(140_000) >> event(ev.ToolUsed, tool="Bash")
    [warned] = news(play.skip(ef.AddContext), reading(141_000))
    assert (warned.level, warned.repeated) == ("critical", True)


def test_an_agent_that_waits_for_its_user_is_not_warned_again():
    told = (at_work() >> reading(140_000) >> event(ev.ToolUsed, tool="Bash")).skip(ef.AddContext)
    play = told >> event(ev.TurnEnded)
    assert play.session.status is Status.IDLE
    assert news(play, reading(141_000)) == ()
    assert news(play, event(ev.ServerStarted)) == ()
    [warned] = news(play >> event(ev.PromptSubmitted, text="and now"), reading(141_000))
    assert (warned.level, warned.repeated) == ("critical", True)


def test_without_a_warning_there_is_none():
    assert news(at_work(), reading(50_000)) == ()
    handed = (at_work() >> event(ev.HandoffRequested, handoff=HANDOFF)).skip(ef.RecordHandoff)
    assert news(handed, reading(140_000)) == ()


def test_a_compaction_before_the_handoff_is_an_event():
    play = at_work() >> reading(90_000)
    [late] = news(play, reading(3_000, boundary=(168_000, 3_000), automatic=True))
    assert isinstance(late, ev.CompactedTooLate)
    assert (late.before, late.after) == (168_000, 3_000)


def test_neither_changes_the_session():
    play = at_work()
    after, effects = advance(play.session, ev.AgentWarned(at=play.now, conversation="c0", level="warning"))
    assert (after, [effect for effect in effects if not isinstance(effect, ef.ReadContext)]) == (play.session, [])
