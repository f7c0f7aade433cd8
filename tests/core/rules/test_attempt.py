"""An attempt continues in a fresh context where its agent signals it, or its client refuses to continue."""

from dataclasses import replace

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.handoff import HandoffState, HandoffType
from sm.core.model.handoff_signal import signal_line, signalled_run
from sm.core.model.notices import started_again
from sm.core.model.rotation import Phase
from sm.core.model.session import Status
from sm.core.rules.reminders import has_nothing_ahead
from tests.core.playbook import HANDOFF, Playbook, event, idle_session

RUN = "R-20261129-190000-ab12"
MADE = replace(HANDOFF, id="HO-20260202-064600-c0", path="/home/made.md", copy="/home/made.md", type=HandoffType.AUTO)
MAKES = ef.MakeDocument(rotate=True, kind=HandoffType.AUTO)
REFUSES = event(ev.ClientBlocked, reason="Prompt is too long")
SIGNALS = event(ev.TurnEnded, signal=RUN)
FAILS = event(ev.TurnFailed, error="invalid_request", refusal="Prompt is too long")
"""The same, where the model's API was asked."""
KEPT = event(ev.DocumentKept, handoff=MADE, rotate=True)


def attempt(name=f"{RUN}/FEAT-012/1"):
    return Playbook(idle_session(attempt=name)) >> event(ev.PromptSubmitted, text="do it")


@pytest.mark.parametrize("ends", [REFUSES, FAILS, SIGNALS])
def test_a_document_is_made_and_the_context_cleared_for_it(ends):
    play = attempt() >> ends << MAKES
    assert not has_nothing_ahead(play.session)
    play >> KEPT << ef.RecordHandoff(MADE, HandoffState.PENDING) << ef.AwaitComposer(0, own=("/clear",))
    assert play.phase is Phase.RESERVED
    assert not play.session.wants_context


@pytest.mark.parametrize("ends", [REFUSES, FAILS, SIGNALS])
def test_of_another_session_nothing_is_made(ends):
    assert not (attempt("") >> ends).end().session.wants_context


@pytest.mark.parametrize("told", [(REFUSES, FAILS), (FAILS, REFUSES)])
def test_a_refusal_that_is_told_by_its_hook_and_seen_in_the_transcript_makes_one_document(told):
    first, second = told
    play = (attempt() >> first << MAKES) >> second
    assert play.end().session.status is Status.BLOCKED


def test_the_signal_of_another_run_is_none():
    play = (attempt() >> event(ev.TurnEnded, signal="R-1")).end()
    assert has_nothing_ahead(play.session)


def test_a_handoff_of_the_agents_own_comes_first():
    play = attempt() >> event(ev.HandoffRequested, handoff=HANDOFF)
    play = play.skip(ef.RecordHandoff) >> SIGNALS << ef.AwaitComposer(0, own=("/clear",))
    assert play.end().session.rotation.handoff == HANDOFF


def test_a_server_that_ended_before_the_document_was_there_has_it_made_again():
    play = attempt() >> SIGNALS << MAKES
    play >> event(ev.ServerStarted) << MAKES
    assert not (attempt() >> event(ev.ServerStarted)).end().session.wants_context


def test_another_prompt_is_worked_on_first():
    play = attempt() >> SIGNALS << MAKES
    assert not (play >> event(ev.PromptSubmitted, text="wait")).session.wants_context


def test_an_agent_whose_client_was_started_again_reads_first_what_its_work_is():
    assert started_again("Scope.").startswith("Scope.\n[sm run] Your client ended in the middle of this work")


@pytest.mark.parametrize(
    "message",
    [
        signal_line(RUN),
        f"All is committed.\n\n{signal_line(RUN)}\n",
        f"CONTEXT_HANDOFF: Ready for fresh session {RUN}",
        f"```\nmake test\n```\n{signal_line(RUN)}  \nThat is all.",
    ],
)
def test_a_line_of_its_own_in_the_final_message_is_a_signal(message):
    assert signalled_run(message) == RUN


@pytest.mark.parametrize(
    "message",
    [
        "",
        "CONTEXT_HANDOFF: Ready for fresh session",
        "CONTEXT_HANDOFF:",
        f"> {signal_line(RUN)}",
        f"`{signal_line(RUN)}`",
        f"  {signal_line(RUN)}",
        f"I end with {signal_line(RUN)}",
        f"{signal_line(RUN)} is what I would print",
        f"The skill says:\n```text\n{signal_line(RUN)}\n```",
        f"The skill says:\n~~~\n```\n{signal_line(RUN)}\n~~~",
    ],
)
def test_a_signal_that_is_quoted_or_told_of_is_text(message):
    assert signalled_run(message) == ""
