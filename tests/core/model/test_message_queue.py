"""The window of a session's messages, and how one that is in flight is known again."""

from dataclasses import replace

from sm.core.model.message import Channel, Mode, message
from sm.core.model.message_queue import InFlight, Lane, MessageQueue, Refill, refilled
from sm.providers.claude.traits import CLAUDE
from sm.providers.codex.traits import APP

LONG = "word " * 5_000


def in_flight(text, channel):
    return InFlight(message("m1", text), channel, at=1.0, transcript="/t0")


def test_a_command_is_known_by_its_record_and_a_text_by_itself():
    assert in_flight("/compact now", Channel.COMMAND).mark(CLAUDE) == CLAUDE.command_record.format("/compact")
    assert in_flight("look at it", Channel.PASTE).mark(CLAUDE) == "look at it"
    assert in_flight("[Input from: a via sm send] (message m1)\nx", Channel.TOOL).mark(CLAUDE) == "m1"


def test_nothing_need_show_a_command_that_the_client_has_answered():
    assert in_flight("/compact", Channel.COMMAND).mark(APP) is None
    assert in_flight("look at it", Channel.PASTE).mark(APP) == "look at it"


def test_the_late_answer_of_two_about_one_gap_changes_nothing():
    queue = MessageQueue(lanes=(Lane(Mode.SEQUENTIAL, taken=5, known=9, beyond=4),))
    late = Refill(Mode.SEQUENTIAL, after=3, known=9, count=4)
    assert refilled(queue, late, (replace(message("m4", "x"), number=4),), 3) is queue
