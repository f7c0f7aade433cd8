"""Each row of the transition tables is reached by a scenario, and none does without its row."""

from dataclasses import replace

import pytest

from sm.core import events as ev
from sm.core.model.ask import AskKind, AskRequest
from sm.core.model.foreground import Foreground
from sm.core.model.rotation import AFTER_CLEAR, BEFORE_CLEAR, CANCELLABLE, Phase, Rotation, Switch
from sm.core.model.session import SILENCE_TIMEOUT_S, Status
from sm.core.model.usage_limit import HELD_REASON, UsageLimit
from sm.core.rules import foreground_rotation, rotation
from sm.core.rules.rotation import MAX_RETRIES, OWED, Verdict
from sm.core.rules.session.advance import situation
from sm.core.rules.session.status import STATUS_AFTER, StatusVerdict, follow_status
from sm.providers.claude.traits import CLAUDE
from tests.core.playbook import HANDOFF, WAKE, event, idle_session, result

AT, SINCE = 200.0, 100.0
SITUATION = replace(situation(idle_session(), CLAUDE), foreground=Foreground(wrapper=7, limit=1))
BUSY = {"idle": False}
TRIED = {"attempts": MAX_RETRIES}
NEXT = {"next": "c1"}
PAUSED = {"paused": "no progress"}
CLEARED = {"cleared": True, "began": "c0"}
OVER = {"turn_over": True}
UNDRIVEN = {"takes_prompts": False}
TIRED = {**UNDRIVEN, "foreground": Foreground(wrapper=7, limit=1, restarts=(SINCE,))}


def in_phase(phase, **changes):
    """A rotation as it is in `phase`, its deadline over."""
    cleared = phase in AFTER_CLEAR or phase in {Phase.FAILED, Phase.CANCELLED}
    return replace(Rotation(HANDOFF, phase, since=SINCE, deadline=AT, cleared=cleared), **changes)


def cases(phases, happened, to, verdict=None, *, rotation=None, situation=None):
    """A scenario for the row of each of `phases`: the event, the phase it leads to, and what else it takes."""
    row = (type(happened),) if verdict is None else (type(happened), verdict)
    for phase in sorted(phases):
        yield (phase, *row), (replace(happened, at=AT), to, rotation or {}, situation or {})


def started(**values):
    return event(ev.ConversationStarted, **{"conversation": "c1", "origin": ev.Origin.CLEAR, **values})


def prompt(text):
    return event(ev.PromptSubmitted, text=text)


TURN_ENDED, TURN_FAILED = event(ev.TurnEnded), event(ev.TurnFailed)
TOOL_USED, ASKED = event(ev.ToolUsed, tool="Bash"), event(ev.PermissionAsked)
REQUEST = AskRequest(AskKind.PERMISSION, "Bash")
OPENED = event(ev.AskOpened, ask="a1", kind=REQUEST.kind, tool="Bash", request=REQUEST)
BLOCKED, EXITED = event(ev.ClientBlocked, reason="full"), event(ev.ClientExited, signal=9)
READY, SNAPSHOT = result(ev.ComposerReady), result(ev.SnapshotTaken, path="/dump")
REFUSED, MISSING = result(ev.TypingRefused, reason="not shown"), result(ev.PromptMissing)
RANG, SERVER, RETRIED = event(ev.AlarmRang), event(ev.ServerStarted), event(ev.HandoffRetried)
CANCELLED, KILLED = event(ev.HandoffCancelled), event(ev.SessionKilled)
WITHDRAWN = event(ev.HandoffWithdrawn, handoff=HANDOFF.id, reason="another session has it")
LAUNCHED = event(ev.SessionLaunched, pid=2, conversation="c1")
SHARED = event(ev.LimitShared, limit=UsageLimit("five_hour", 900.0, 100.0))
LIMIT_ENDED = event(ev.LimitEnded)
DRIVER = event(ev.DriverChanged, driver=ev.DrivenBy.KEYS, reason="the plugin does not answer")
NOT_STARTED = event(ev.SwitchFailed, handoff=HANDOFF.id, reason="not found")
SWITCHING = {"switch": Switch("codex", left="claude")}
TURNED_BACK = {"switch": Switch("claude", left="codex", back=True)}

PENDING, RESERVED, EMPTY = [Phase.PENDING], [Phase.RESERVED], [Phase.EMPTY]
CLEARING, PROMPTING, FAILED, DONE = [Phase.CLEARING], [Phase.PROMPTING], [Phase.FAILED], [Phase.DONE]

TYPED = dict([
    *cases(PENDING, TURN_ENDED, Phase.RESERVED),
    *cases(PENDING, TURN_FAILED, Phase.RESERVED),
    *cases(PENDING, BLOCKED, Phase.RESERVED),
    *cases(PENDING, RETRIED, Phase.RESERVED),
    *cases(PENDING, RANG, Phase.RESERVED),
    *cases(PENDING, TURN_ENDED, Phase.PENDING, Verdict.PAUSED, situation=PAUSED),
    *cases(PENDING, TURN_FAILED, Phase.PENDING, Verdict.PAUSED, situation=PAUSED),
    *cases(PENDING, BLOCKED, Phase.PENDING, Verdict.PAUSED, situation=PAUSED),
    *cases(PENDING, RETRIED, Phase.PENDING, Verdict.PAUSED, situation=PAUSED),
    *cases(PENDING, RANG, Phase.PENDING, Verdict.PAUSED, situation=PAUSED),
    *cases(PENDING, DRIVER, Phase.PENDING, Verdict.PAUSED, situation={**PAUSED, **OVER}),
    *cases(RESERVED, READY, Phase.SNAPSHOT),
    *cases([Phase.SNAPSHOT], SNAPSHOT, Phase.CLEARING),
    *cases([Phase.SNAPSHOT], SNAPSHOT, Phase.RESERVED, Verdict.BUSY, situation=BUSY),
    *cases(OWED, started(), Phase.EMPTY),
    *cases(OWED, started(), Phase.DONE, Verdict.WITHOUT_DOCUMENT, rotation={"handoff": None}),
    *cases(EMPTY, READY, Phase.PROMPTING),
    *cases(AFTER_CLEAR, prompt(WAKE), Phase.DONE, Verdict.OURS),
    *cases(CLEARING, prompt(f"half a draft{CLAUDE.clear_command}"), Phase.RESERVED, Verdict.MIXED),
    *cases(PROMPTING, prompt(f"half a draft {WAKE}"), Phase.EMPTY, Verdict.MIXED),
    *cases(BEFORE_CLEAR, prompt("wait"), Phase.PENDING, Verdict.OTHER),
    *cases(PROMPTING, prompt("wait"), Phase.EMPTY, Verdict.OTHER),
    *cases(BEFORE_CLEAR, TOOL_USED, Phase.PENDING),
    *cases(CLEARING, REFUSED, Phase.RESERVED),
    *cases(CLEARING, REFUSED, Phase.PENDING, Verdict.GIVEN_UP, rotation=TRIED),
    *cases(PROMPTING, REFUSED, Phase.EMPTY),
    *cases(PROMPTING, REFUSED, Phase.FAILED, Verdict.GIVEN_UP, rotation=TRIED),
    *cases(PROMPTING, MISSING, Phase.EMPTY),
    *cases(PROMPTING, MISSING, Phase.FAILED, Verdict.GIVEN_UP, rotation=TRIED),
    *cases([Phase.RESERVED, Phase.SNAPSHOT], ASKED, Phase.RESERVED),
    *cases([Phase.RESERVED, Phase.SNAPSHOT], OPENED, Phase.RESERVED),
    *cases(EMPTY, ASKED, Phase.EMPTY),
    *cases(EMPTY, OPENED, Phase.EMPTY),
    *cases(BEFORE_CLEAR, SERVER, Phase.RESERVED),
    *cases(EMPTY, SERVER, Phase.EMPTY),
    *cases([Phase.RESERVED, Phase.SNAPSHOT], SHARED, Phase.PENDING),
    *cases(EMPTY, SHARED, Phase.EMPTY),
    *cases(EMPTY, LIMIT_ENDED, Phase.EMPTY, rotation={"note": HELD_REASON}),
    *cases(PROMPTING, SERVER, Phase.PROMPTING, Verdict.LOOKS),
    *cases([Phase.PENDING, *BEFORE_CLEAR], DRIVER, Phase.RESERVED, situation=OVER),
    *cases(EMPTY, DRIVER, Phase.EMPTY),
    *cases(BEFORE_CLEAR, EXITED, Phase.PENDING),
    *cases(AFTER_CLEAR, EXITED, Phase.FAILED),
    *cases(BEFORE_CLEAR, RANG, Phase.PENDING),
    *cases(AFTER_CLEAR, RANG, Phase.FAILED, rotation=TRIED),
    *cases(PROMPTING, RANG, Phase.PROMPTING, Verdict.LOOKS),
    *cases(DONE, EXITED, Phase.FAILED, Verdict.UNANSWERED),
    *cases(DONE, LAUNCHED, Phase.FAILED, Verdict.LOST, rotation={"woken_in": "c0"}, situation={"before": "c0"}),
    *cases(CANCELLABLE, CANCELLED, Phase.CANCELLED),
    *cases(OWED, WITHDRAWN, Phase.CANCELLED, Verdict.WITHDRAWN),
    *cases([Phase.PENDING, *BEFORE_CLEAR, *AFTER_CLEAR], KILLED, Phase.CANCELLED),
    *cases(FAILED, RETRIED, Phase.EMPTY),
    *cases([Phase.SNAPSHOT], SNAPSHOT, Phase.CLEARING, Verdict.SWITCHES, rotation={"switch": Switch("codex")}),
    *cases(CLEARING, replace(NOT_STARTED, ended=False), Phase.RESERVED, rotation=SWITCHING),
    *cases([Phase.CLEARING, *AFTER_CLEAR], NOT_STARTED, Phase.CLEARING, Verdict.SWITCHES, rotation=SWITCHING),
    *cases(CLEARING, RANG, Phase.CLEARING, Verdict.SWITCHES, rotation=SWITCHING),
    *cases(CLEARING, SERVER, Phase.CLEARING, Verdict.SWITCHES, rotation=TURNED_BACK),
])  # fmt: skip
IN_FOREGROUND = dict([
    *cases(RESERVED, READY, Phase.CLEARING),
    *cases(CLEARING, REFUSED, Phase.PENDING),
    *cases(CLEARING, RANG, Phase.RESERVED),
    *cases([Phase.PENDING, Phase.RESERVED, Phase.CLEARING], LAUNCHED, Phase.EMPTY, Verdict.OURS, rotation=NEXT),
    *cases(foreground_rotation.OWED, started(), Phase.PROMPTING, Verdict.OURS, rotation=NEXT),
    *cases(foreground_rotation.OWED, started(), Phase.EMPTY, Verdict.BY_USER),
    *cases([*AFTER_CLEAR, Phase.FAILED], prompt("wait"), Phase.DONE),
    *cases(AFTER_CLEAR, TOOL_USED, Phase.DONE),
    *cases(AFTER_CLEAR, TURN_ENDED, Phase.DONE),
    *cases(AFTER_CLEAR, TURN_FAILED, Phase.DONE),
    *cases(AFTER_CLEAR, ASKED, Phase.DONE),
    *cases([Phase.EMPTY], RANG, Phase.EMPTY, Verdict.LOOKS),
    *cases(PROMPTING, RANG, Phase.PROMPTING, Verdict.LOOKS),
    *cases(FAILED, RETRIED, Phase.RESERVED, rotation={"cleared": False}),
    *cases(FAILED, RETRIED, Phase.PENDING, Verdict.BUSY, rotation={"cleared": False}, situation=BUSY),
    *cases(PENDING, TURN_ENDED, Phase.FAILED, Verdict.HELD_BACK, situation=TIRED),
    *cases(PENDING, TURN_FAILED, Phase.FAILED, Verdict.HELD_BACK, situation=TIRED),
    *cases(PENDING, BLOCKED, Phase.FAILED, Verdict.HELD_BACK, situation=TIRED),
    *cases(PENDING, RANG, Phase.FAILED, Verdict.HELD_BACK, situation=TIRED),
    *cases(PENDING, DRIVER, Phase.FAILED, Verdict.HELD_BACK, situation={**TIRED, **OVER}),
    *cases(AFTER_CLEAR, DRIVER, Phase.EMPTY, Verdict.UNDRIVEN),
    *cases(EMPTY, READY, Phase.CLEARING),
    *cases(foreground_rotation.BEFORE_RESTART, prompt("wait"), Phase.DONE, Verdict.OTHER, rotation=CLEARED),
    *cases(FAILED, RETRIED, Phase.EMPTY, Verdict.UNDRIVEN),
])  # fmt: skip
RULES = [*((rotation, row, *case) for row, case in TYPED.items())]
RULES += [
    (foreground_rotation, row, happened, to, changes, {**UNDRIVEN, **seen})
    for row, (happened, to, changes, seen) in IN_FOREGROUND.items()
]


def named(rules, row):
    words = (part.__name__ if isinstance(part, type) else part.name for part in row)
    return " ".join((rules.__name__.rpartition(".")[2], *words))


each_row = pytest.mark.parametrize(
    ("rules", "row", "happened", "to", "changes", "seen"), RULES, ids=[named(*case[:2]) for case in RULES]
)


@each_row
def test_a_row_leads_to_its_phase(rules, row, happened, to, changes, seen):
    after, _ = rules.advance(in_phase(row[0], **changes), happened, replace(SITUATION, **seen))
    assert (after.phase, after.since) == (to, AT)


@each_row
def test_without_its_row_the_phase_stays(monkeypatch, rules, row, happened, to, changes, seen):
    monkeypatch.delitem(rules.TRANSITIONS, row)
    before = in_phase(row[0], **changes)
    after, _ = rules.advance(before, happened, replace(SITUATION, **seen))
    assert (after.phase, after.since) == (before.phase, SINCE)


def test_each_row_has_its_scenario():
    assert TYPED.keys() == rotation.TRANSITIONS.keys()
    assert IN_FOREGROUND.keys() == foreground_rotation.TRANSITIONS.keys()


def test_a_verdict_is_no_phase():
    """Both are keys of the tables that say how long a phase waits and what is done when it is entered."""
    assert not {*Phase} & {*Verdict}


# --- a session's status ----------------------------------------------------------------------------------------------


def shown(activity):
    return event(ev.ActivityChanged, activity=activity)


IDLE, WORKING = {"status": Status.IDLE}, {"status": Status.WORKING}
STATUS = {
    ev.SessionLaunched: (LAUNCHED, Status.STARTING, {"status": Status.EXITED}),
    ev.LaunchFailed: (event(ev.LaunchFailed, reason="no such program"), Status.CRASHED, IDLE),
    ev.PromptSubmitted: (prompt("do it"), Status.WORKING, IDLE),
    ev.ToolUsed: (TOOL_USED, Status.WORKING, IDLE),
    ev.PermissionAsked: (ASKED, Status.WAITING, WORKING),
    ev.AskOpened: (OPENED, Status.WAITING, WORKING),
    ev.TurnEnded: (TURN_ENDED, Status.IDLE, WORKING),
    ev.TurnFailed: (TURN_FAILED, Status.IDLE, WORKING),
    (ev.TurnFailed, StatusVerdict.REFUSED): (event(ev.TurnFailed, refusal="too long"), Status.BLOCKED, WORKING),
    ev.CompactionStarted: (event(ev.CompactionStarted), Status.COMPACTING, WORKING),
    ev.CompactionEnded: (event(ev.CompactionEnded), Status.WORKING, {"status": Status.COMPACTING}),
    ev.ComposerReady: (READY, Status.IDLE, WORKING),
    ev.ClientBlocked: (BLOCKED, Status.BLOCKED, WORKING),
    ev.ClientExited: (event(ev.ClientExited, code=0), Status.EXITED, IDLE),
    (ev.ClientExited, StatusVerdict.CRASHED): (EXITED, Status.CRASHED, IDLE),
    ev.SessionKilled: (KILLED, Status.EXITED, IDLE),
    ev.ServerStarted: (SERVER, Status.UNKNOWN, IDLE),
    (ev.AlarmRang, StatusVerdict.SILENT): (RANG, Status.SILENT, {**WORKING, "last_activity": AT - SILENCE_TIMEOUT_S}),
    ev.Activity.IDLE: (shown(ev.Activity.IDLE), Status.IDLE, WORKING),
    ev.Activity.BUSY: (shown(ev.Activity.BUSY), Status.WORKING, IDLE),
    ev.Activity.WAITING: (shown(ev.Activity.WAITING), Status.WAITING, IDLE),
    ev.Activity.STOPPED: (shown(ev.Activity.STOPPED), Status.WAITING, IDLE),
    ev.Activity.UNKNOWN: (shown(ev.Activity.UNKNOWN), Status.UNKNOWN, IDLE),
}
KEPT = [
    (Status.BLOCKED, ev.Activity.IDLE),
    (Status.BLOCKED, ev.Activity.UNKNOWN),
    (Status.COMPACTING, ev.Activity.BUSY),
    (Status.COMPACTING, ev.Activity.UNKNOWN),
    (Status.STARTING, ev.Activity.UNKNOWN),
]


def status_after(happened, changes):
    return follow_status(replace(idle_session(), **changes), replace(happened, at=AT), CLAUDE)[0].status


@pytest.mark.parametrize("row", STATUS, ids=str)
def test_an_event_leads_to_its_status_and_without_its_row_to_none(monkeypatch, row):
    happened, to, before = STATUS[row]
    assert to is not before["status"]
    assert status_after(happened, before) is to
    monkeypatch.delitem(STATUS_AFTER, row)
    assert status_after(happened, before) is before["status"]


@pytest.mark.parametrize("row", KEPT, ids=" ".join)
def test_a_status_that_the_client_does_not_show_is_kept_and_without_its_row_lost(monkeypatch, row):
    before = {"status": row[0], "detail": "why"}
    after, _ = follow_status(replace(idle_session(), **before), replace(shown(row[1]), at=AT), CLAUDE)
    assert (after.status, after.detail) == (row[0], "why")
    monkeypatch.delitem(STATUS_AFTER, row)
    assert status_after(shown(row[1]), before) is STATUS_AFTER[row[1]]


def test_each_status_row_has_its_scenario():
    assert {*STATUS, *KEPT} == STATUS_AFTER.keys()
