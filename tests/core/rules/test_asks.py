"""What a client asks its user: its states by their table, and which answer fits."""

from dataclasses import replace

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.errors import Refused
from sm.core.model.ask import (
    Ask,
    AskAnswer,
    AskDetails,
    AskKind,
    AskOption,
    AskRequest,
    AskState,
    Decision,
    Question,
    StoredAsk,
)
from sm.core.model.session import DIALOG_DELAY_S, Status
from sm.core.rules.asks import over, recorded_answer, resolved, too_long, unfit
from sm.core.rules.session.asks import ASK_AFTER, IN_TERMINAL, REASONS, AskVerdict, ask_news, follow_asks
from sm.providers.claude.traits import CLAUDE
from tests.core.playbook import Playbook, advance, event, idle_session

OPEN, EXPIRED, ANSWERED, WITHDRAWN = AskState.OPEN, AskState.EXPIRED, AskState.ANSWERED, AskState.WITHDRAWN
REQUEST = AskRequest(AskKind.PERMISSION, "Bash", '{"command":"make"}')
OPENED = event(ev.AskOpened, ask="a1", kind=AskKind.PERMISSION, tool="Bash", request=REQUEST)
ALLOWED = event(ev.AskAnswered, ask="a1", decision=Decision.ALLOW)
GONE = event(ev.ActivityChanged, activity=ev.Activity.BUSY)
ASK = Ask("a1", AskKind.PERMISSION, "Bash", 100.0)
HAPPENS = {
    ev.AskOpened: OPENED,
    ev.AskAnswered: ALLOWED,
    ev.AskExpired: event(ev.AskExpired, ask="a1", reason="the hook ran out"),
    ev.AskWithdrawn: event(ev.AskWithdrawn, ask="a1", reason=IN_TERMINAL),
    ev.ServerStarted: event(ev.ServerStarted),
    ev.ActivityChanged: GONE,
    ev.TurnEnded: event(ev.TurnEnded),
    ev.TurnFailed: event(ev.TurnFailed),
    ev.PromptSubmitted: event(ev.PromptSubmitted, text="go"),
    ev.ConversationStarted: event(ev.ConversationStarted, conversation="c1", origin=ev.Origin.CLEAR),
    ev.ClientExited: event(ev.ClientExited, signal=9),
    ev.SessionKilled: event(ev.SessionKilled),
    ev.SessionLaunched: event(ev.SessionLaunched, pid=2, conversation="c1"),
    ev.LaunchFailed: event(ev.LaunchFailed, reason="no program"),
}
"""An event for each row."""


def asked(play=None):
    return (
        (play or Playbook())
        >> OPENED
        << ef.RecordAsk(Ask("a1", AskKind.PERMISSION, "Bash", 11.0, changed=11.0), REQUEST)
    )


def after(happened, **changes):
    """What becomes of an ask of a session by itself: the state, and why."""
    session = replace(idle_session(), asks=(replace(ASK, **changes),))
    session, effects = follow_asks(session, replace(happened, at=200.0), CLAUDE)
    [record] = effects or [ef.RecordAsk(session.asks[0])]
    assert (record.ask in session.asks) is (record.ask.state in {OPEN, EXPIRED})
    return record.ask.state, record.ask.reason


@pytest.mark.parametrize("row", ASK_AFTER, ids=str)
def test_each_row_of_the_table_is_reached(row):
    state, kind = row[:2]
    found, reason = after(HAPPENS[kind], state=state)
    assert found is ASK_AFTER[row]
    assert bool(reason) is (found in {EXPIRED, WITHDRAWN})


@pytest.mark.parametrize("kind", HAPPENS, ids=lambda kind: kind.__name__)
def test_an_ask_without_a_row_stays(kind):
    for state in (OPEN, EXPIRED):
        rows = {row for row in ASK_AFTER if row[:2] == (state, kind)}
        assert rows or after(HAPPENS[kind], state=state)[0] is state


def test_each_event_that_ends_an_ask_by_itself_has_words_for_it():
    named = {ev.AskOpened, ev.AskAnswered, ev.AskExpired, ev.AskWithdrawn}
    assert {row[1] for row in ASK_AFTER} - named == set(REASONS)


@pytest.mark.parametrize("kind", HAPPENS, ids=lambda kind: kind.__name__)
def test_what_ends_an_ask_beside_its_own_events_is_followed_by_one_that_says_so(kind):
    before = replace(idle_session(), asks=(ASK, replace(ASK, id="b2")))
    happened = replace(HAPPENS[kind], at=200.0)
    after, _ = advance(before, happened)
    news = ask_news(before, after, happened)
    named = {ev.AskOpened, ev.AskAnswered, ev.AskExpired, ev.AskWithdrawn}
    expected = ev.AskExpired if kind is ev.ServerStarted else ev.AskWithdrawn
    assert [(type(found), found.ask) for found in news] == (
        [] if kind in named else [(expected, "a1"), (expected, "b2")]
    )
    for found in news:
        assert advance(after, found)[0] == after


def test_what_ends_the_main_agents_ask_is_not_said_of_a_subagents():
    before = replace(idle_session(), asks=(ASK, replace(ASK, id="b2", agent="sub1")))
    happened = replace(HAPPENS[ev.TurnEnded], at=200.0)
    after, _ = advance(before, happened)
    assert [found.ask for found in ask_news(before, after, happened)] == ["a1"]


def test_an_ask_of_another_id_stays():
    for kind in (ev.AskAnswered, ev.AskExpired, ev.AskWithdrawn):
        assert after(replace(HAPPENS[kind], ask="b2"))[0] is OPEN


@pytest.mark.parametrize("kind", [row[1] for row in ASK_AFTER if AskVerdict.OWN_TURN_OVER in row])
def test_a_subagents_ask_outlives_the_turn_and_the_context_of_the_main_agent(kind):
    assert after(HAPPENS[kind], agent="sub1")[0] is OPEN


def test_a_dialog_that_does_not_show_yet_is_not_taken_for_answered():
    session = replace(idle_session(), asks=(ASK,))
    for later, gone in ((DIALOG_DELAY_S - 0.1, False), (DIALOG_DELAY_S, True)):
        happened = replace(GONE, at=ASK.asked + later)
        assert (follow_asks(session, happened, CLAUDE)[0].asks == ()) is gone
    for activity in (ev.Activity.WAITING, ev.Activity.STOPPED, ev.Activity.UNKNOWN):
        assert after(event(ev.ActivityChanged, activity=activity))[0] is OPEN


SUB = replace(ASK, agent="sub1")
SHOWS = event(ev.ActivityChanged, activity=ev.Activity.WAITING)


def then(session, happened, at):
    return follow_asks(session, replace(happened, at=at), CLAUDE)[0]


def test_what_a_subagent_asks_without_a_dialog_is_not_taken_for_answered():
    session = replace(idle_session(), asks=(SUB,))
    assert then(session, GONE, 1000.0).asks == (SUB,)
    shown = then(session, SHOWS, 1001.0)
    assert [ask.unseen for ask in shown.asks] == [False]
    assert then(shown, GONE, 1002.0).asks == ()


def test_a_dialog_beside_the_main_agents_is_not_known_to_be_a_subagents():
    both = replace(idle_session(), asks=(ASK, SUB))
    assert then(both, SHOWS, 101.0).asks == both.asks
    beside = then(replace(idle_session(), asks=(ASK,)), replace(OPENED, ask="b2", agent="sub1"), 102.0)
    assert [ask.unseen for ask in beside.asks] == [False, False]


def test_a_dialog_that_opens_once_sm_lets_go_is_gone_only_after_it_could_be_seen():
    session = then(replace(idle_session(), asks=(SUB,)), replace(HAPPENS[ev.AskExpired]), 500.0)
    assert len(then(session, GONE, 500.0 + DIALOG_DELAY_S - 0.1).asks) == 1
    assert then(session, GONE, 500.0 + DIALOG_DELAY_S).asks == ()


def test_a_session_waits_while_a_subagent_asks_whatever_it_does_beside():
    session = replace(idle_session(), asks=(SUB,))
    assert (session.shown_status, session.shown_detail) == (Status.WAITING, "a subagent asks for permission: Bash")
    for changes in ({"asks": ()}, {"asks": (replace(SUB, seen=True),)}, {"asks": (replace(SUB, state=EXPIRED),)}):
        assert replace(session, **changes).shown_status is Status.IDLE


def test_a_session_whose_client_asks_waits_and_continues_after_the_answer():
    play = asked()
    assert (play.session.status, play.session.detail) == (Status.WAITING, "asks for permission: Bash")
    answered = Ask("a1", AskKind.PERMISSION, "Bash", 11.0, state=ANSWERED, changed=12.0, decision=Decision.ALLOW)
    play >> replace(ALLOWED, text="") << ef.RecordAsk(answered)
    assert play.session.asks == ()
    assert (play >> event(ev.ToolUsed, tool="Bash")).session.status is Status.WORKING


@pytest.mark.parametrize(
    ("kind", "words"), [(AskKind.QUESTION, "asks a question"), (AskKind.PLAN, "asks to approve a plan")]
)
def test_a_question_and_a_plan_are_said_in_the_status(kind, words):
    play = Playbook() >> replace(OPENED, kind=kind)
    assert play.skip(ef.RecordAsk).session.detail == words


def test_only_the_first_answer_is_recorded():
    play = (asked() >> ALLOWED).skip(ef.RecordAsk)
    (play >> replace(ALLOWED, decision=Decision.DENY)).end()


def test_a_client_that_asks_again_after_a_restart_of_the_server_opens_its_ask_again():
    play = (asked() >> event(ev.ServerStarted)).skip(ef.RecordAsk)
    assert play.session.asks[0].state is EXPIRED
    play = (play >> OPENED).skip(ef.RecordAsk)
    assert (play.session.asks[0].state, play.session.asks[0].asked) == (OPEN, 11.0)


def test_an_ask_that_is_open_again_says_why():
    play = (asked() >> ALLOWED).skip(ef.RecordAsk)
    play = (play >> replace(OPENED, reason="lost")).skip(ef.RecordAsk)
    assert [(ask.state, ask.reason) for ask in play.session.asks] == [(OPEN, "lost")]


def test_the_words_of_an_answer_are_recorded_one_by_one():
    answered = replace(ALLOWED, decision=Decision.ANSWER, text="Red; all", answers=("Red", "all"))
    [record] = follow_asks(replace(idle_session(), asks=(ASK,)), answered, CLAUDE)[1]
    assert (record.answer, record.answers) == ("Red; all", ("Red", "all"))


COLOUR = Question("Which colour?", (AskOption("Red"), AskOption("Blue")))
PARTS = Question("Which parts?", (AskOption("A"), AskOption("B"), AskOption("C")), several=True)


@pytest.mark.parametrize(
    ("questions", "replies", "answers"),
    [
        ([COLOUR], ["my own"], ("my own",)),
        ([COLOUR], [2], ("Blue",)),
        ([COLOUR], [[1]], ("Red",)),
        ([PARTS], [[1, 3]], ("A, C",)),
        ([COLOUR, PARTS], [1, "none of them"], ("Red", "none of them")),
    ],
)
def test_an_answer_is_the_label_of_the_option_or_own_words(questions, replies, answers):
    assert resolved(ASK, questions, replies) == answers


@pytest.mark.parametrize(
    ("questions", "replies"),
    [([COLOUR], [3]), ([COLOUR], [0]), ([COLOUR], [[1, 2]]), ([COLOUR], [" "]), ([COLOUR], [[]]), ([COLOUR], []),
     ([COLOUR], [1, 1]), ([COLOUR, PARTS], [1])],
)  # fmt: skip
def test_an_answer_that_fits_no_question_is_refused(questions, replies):
    assert isinstance(resolved(ASK, questions, replies), Refused)


def test_own_words_are_held_to_the_bytes_of_a_message_all_together():
    assert too_long(ASK, ["é", "ab"], 4) is None
    refused = too_long(ASK, ["é", "abc"], 4)
    assert refused.code == "too_large"
    assert "has 5 bytes; at most 4 bytes" in refused.message


def test_what_is_kept_of_an_answer_is_its_words():
    assert AskAnswer(Decision.DENY, "use make").words == "use make"
    assert AskAnswer(Decision.ANSWER, answers=("Red", "all")).words == "Red; all"


@pytest.mark.parametrize(
    ("changes", "kept", "answer"),
    [
        ({"decision": Decision.ALLOW, "always": True}, (), AskAnswer(Decision.ALLOW, "said", always=True)),
        ({"decision": Decision.DENY}, (), AskAnswer(Decision.DENY, "said")),
        ({"decision": Decision.ANSWER}, ("Red",), AskAnswer(Decision.ANSWER, answers=("Red",))),
        ({"decision": Decision.ANSWER}, (), None),
        ({"decision": Decision.ANSWER}, ("Red", "all"), None),
        ({"state": WITHDRAWN}, (), None),
    ],
)
def test_the_record_gives_an_answer_again_where_it_has_it_word_for_word(changes, kept, answer):
    stored = StoredAsk(replace(ASK, **changes), "s1", REQUEST, "said", kept)
    assert recorded_answer(stored, AskDetails((COLOUR,))) == answer


LASTING = AskDetails(always=("allow Bash(make:*) in this project",))


@pytest.mark.parametrize(
    ("kind", "details", "answer", "fits"),
    [
        (AskKind.PERMISSION, LASTING, AskAnswer(Decision.ALLOW, always=True), True),
        (AskKind.PERMISSION, AskDetails(), AskAnswer(Decision.ALLOW, always=True), False),
        (AskKind.PERMISSION, LASTING, AskAnswer(Decision.DENY, always=True), False),
        (AskKind.PERMISSION, LASTING, AskAnswer(Decision.ANSWER), False),
        (AskKind.PLAN, AskDetails(), AskAnswer(Decision.ALLOW), True),
        (AskKind.PLAN, AskDetails(), AskAnswer(Decision.ANSWER), False),
        (AskKind.QUESTION, AskDetails(), AskAnswer(Decision.ALLOW), False),
        (AskKind.QUESTION, AskDetails(), AskAnswer(Decision.ANSWER), True),
        *[(kind, AskDetails(), AskAnswer(Decision.DENY), True) for kind in AskKind],
    ],
)
def test_what_is_asked_decides_which_answer_fits(kind, details, answer, fits):
    refused = unfit(replace(ASK, kind=kind), details, answer)
    assert (refused is None) is fits


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"state": ANSWERED, "decision": Decision.ALLOW}, "Ask a1 was allowed already"),
        ({"state": ANSWERED, "decision": Decision.DENY, "by": "beef"}, "Ask a1 was denied already by a session"),
        ({"state": ANSWERED, "decision": Decision.ANSWER}, "Ask a1 was answered already"),
        ({"state": WITHDRAWN, "reason": IN_TERMINAL}, f"Ask a1 is over: {IN_TERMINAL}"),
        ({"state": EXPIRED, "reason": "x"}, "The client no longer waits for an answer to ask a1: x"),
    ],
)
def test_a_late_answer_is_told_what_became_of_the_ask(changes, message):
    assert over(replace(ASK, **changes), "me").message == message
