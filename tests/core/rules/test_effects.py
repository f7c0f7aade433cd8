"""Each effect is reached by an event, and the engine has a function for each that is not only a record."""

from dataclasses import replace

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.ask import AskKind, AskRequest
from sm.core.model.context import ContextReading, Policy, Source
from sm.core.model.foreground import Foreground
from sm.core.model.message import Mode, StoredMessage, message
from sm.core.model.message_queue import WINDOW
from sm.core.model.reminder import Kind, Reminder
from sm.core.model.rotation import Switch
from sm.core.rules import notifications, reminders, sent_episodes
from sm.engine import effect_runner, pane_queue
from tests.core.playbook import HANDOFF, WAKE, advance, event, idle_session, result

READING = ContextReading(tokens=160_000, projected=160_000, source=Source.USAGE, exact=True, window=200_000)
WORKING = event(ev.PromptSubmitted, text="work")
CRITICAL = event(ev.ContextRead, epoch=0, reading=READING, usable=167_000)
COMPACTS = event(ev.CompactionStarted, automatic=True)
COMPACTED = replace(READING, boundary=(160_000, 9_000), tokens=9_000, projected=9_000, automatic=True)
TOOL = event(ev.ToolUsed, tool="Bash")
REQUEST = AskRequest(AskKind.PERMISSION, "Bash")
ASKS = event(ev.AskOpened, ask="a1", kind=REQUEST.kind, tool="Bash", request=REQUEST)
PENDING = (WORKING, event(ev.HandoffRequested, handoff=HANDOFF))
IN_SNAPSHOT = (*PENDING, event(ev.TurnEnded), result(ev.ComposerReady))
CLEARING = (*IN_SNAPSHOT, result(ev.SnapshotTaken, path="/dump"))
CLEARED = (*CLEARING, event(ev.ConversationStarted, conversation="c1", transcript="/t1", origin=ev.Origin.CLEAR))
PROMPTING = (*CLEARED, result(ev.ComposerReady))
GATED, ROTATING = Policy(gate=True), Policy(on_compact="rotate")
IN_USERS_TERMINAL = {"foreground": Foreground(wrapper=7, limit=3), "pane": None}
TIRED = {"foreground": Foreground(wrapper=7, limit=1, restarts=(9.0,)), "pane": None}


def sent(mode, number=1):
    queued = replace(message(f"m{number}", "hello"), mode=mode, number=number)
    return event(ev.MessageQueued, message=queued, stored=StoredMessage(queued.id, "a" * 8, "hello"))


EXAMPLES = {
    ef.AddContext: ({}, WORKING, CRITICAL, TOOL),
    ef.InjectHandoff: ({}, *CLEARED),
    ef.BlockPrompt: ({}, *PROMPTING, event(ev.PromptSubmitted, conversation="c1", text=f"a draft {WAKE}")),
    ef.DenyTool: ({"policy": GATED}, WORKING, CRITICAL, event(ev.ToolAsked, tool="Bash", permitted=False)),
    ef.BlockCompaction: ({"policy": ROTATING}, WORKING, CRITICAL, COMPACTS),
    ef.TellUser: (TIRED, *PENDING[1:]),
    ef.AwaitComposer: ({}, *PENDING, event(ev.TurnEnded)),
    ef.AwaitBox: ({}, WORKING, sent(Mode.URGENT)),
    ef.TakeSnapshot: ({}, *IN_SNAPSHOT),
    ef.ClearContext: ({}, *CLEARING),
    ef.SwitchClient: ({}, WORKING, event(ev.HandoffRequested, handoff=HANDOFF, switch=Switch("codex")), *CLEARING[2:]),
    ef.TypeText: ({}, *PROMPTING),
    ef.RestartClient: (IN_USERS_TERMINAL, *PENDING, event(ev.TurnEnded), result(ev.ComposerReady)),
    ef.FindPrompt: ({}, *PROMPTING, event(ev.ServerStarted)),
    ef.LeavePane: ({}, *IN_SNAPSHOT, TOOL),
    ef.ReadContext: ({}, WORKING, TOOL),
    ef.RefreshDocument: ({}, *PENDING, event(ev.TurnEnded)),
    ef.KeepDocument: ({"adopted": True}, WORKING, replace(TOOL, document="/p/.sm/continue-prompt.md")),
    ef.MakeDocument: ({}, WORKING, COMPACTS),
    ef.RecordHandoff: ({}, *PENDING),
    ef.KeepMessage: ({}, sent(Mode.SEQUENTIAL)),
    ef.RecordMessage: ({}, WORKING, sent(Mode.IMPORTANT), TOOL),
    ef.RecordContext: ({}, *CLEARED),
    ef.RecordAsk: ({}, WORKING, ASKS),
    ef.FetchMessages: ({}, WORKING, *(sent(Mode.IMPORTANT, number) for number in range(1, WINDOW + 3)), TOOL),
    ef.FindMessages: ({}, WORKING, sent(Mode.IMPORTANT), TOOL, event(ev.AlarmRang)),
    ef.TellParent: ({}, WORKING, CRITICAL, replace(CRITICAL, reading=COMPACTED)),
    ef.EndClient: ({}, event(ev.SessionKilled)),
}
REMINDER = Reminder("r1", Kind.TRACK, owner="b" * 8, target="a" * 8, created=1.0, every=60.0)
OF_REMINDERS = {
    ef.RecordReminder: event(ev.StatusReported, text="half done"),
    ef.DropReminder: event(ev.TaskCompleted, text="done"),
    ef.QueueNotice: event(ev.TaskCompleted, text="done"),
}
OF_EPISODES = {
    ef.OpenEpisode: (WORKING, ASKS),
    ef.RecordEpisode: (WORKING, ASKS),
    ef.DropEpisode: (WORKING, event(ev.TaskCompleted, text="done")),
}
"""The last of the events begins an episode; the engine tells it, and what is written then is of the rules too."""


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_each_effect_is_reached(kind):
    changes, *events = EXAMPLES[kind]
    assert kind in {type(effect) for effect in play(replace(idle_session(), **changes), events)}


@pytest.mark.parametrize("kind", OF_REMINDERS, ids=lambda kind: kind.__name__)
def test_each_record_of_a_reminder_is_reached(kind):
    session = replace(idle_session(), parent="b" * 8)
    change = reminders.session_change(session, session, replace(OF_REMINDERS[kind], at=20.0), ())
    assert kind in {type(record) for record in reminders.follow([REMINDER], change)}


@pytest.mark.parametrize("kind", OF_EPISODES, ids=lambda kind: kind.__name__)
def test_each_record_of_an_episode_is_reached(kind):
    *first, last = OF_EPISODES[kind]
    before, _ = played(idle_session(), first)
    after, effects = played(before, [last])
    begun = notifications.follow((), before, after, last, effects)
    settled = [sent_episodes.settled(replace(found.episode, sent=True), ()) for found in begun]
    assert kind in {type(record) for record in (*begun, *settled)}


def test_no_effect_is_without_an_example():
    kinds = {kind for kind in vars(ef).values() if isinstance(kind, type) and issubclass(kind, ef.Effect)}
    assert EXAMPLES.keys() | OF_REMINDERS.keys() | OF_EPISODES.keys() == kinds - {ef.Effect, ef.PaneCommand}


def test_the_engine_has_a_function_for_each_effect_that_is_not_only_a_record():
    functions = effect_runner.FUNCTIONS.keys() | pane_queue.FUNCTIONS.keys()
    only_written = {kind for kind in EXAMPLES if issubclass(kind, ef.Record)}
    assert functions == EXAMPLES.keys() - only_written | {ef.RecordHandoff}


def play(session, events):
    """What the last of the events leads to."""
    return played(session, events)[1]


def played(session, events):
    """Return the session after the events, and what the last of them leads to."""
    now, effects = 10.0, ()
    for happened in events:
        now += 1.0
        step = {"step": session.step} if isinstance(happened, ev.StepResult) else {}
        session, effects = advance(session, replace(happened, at=now, **step))
    return session, effects
