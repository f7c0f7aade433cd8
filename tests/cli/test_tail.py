"""What `sm tail` prints of events and transcripts. It has C36's warnings, and no class names."""

import json
from datetime import UTC, datetime

import pytest

from sm.cli.event_lines import EVENT_WORDS, INTERNAL_EVENTS, EventLines
from sm.core import events as ev
from sm.store.events import SIZES

AT = 1_750_000_000.0


def stamp(at):
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def user(text, at, **more):
    return {"type": "user", "timestamp": stamp(at), "message": {"role": "user", "content": text}, **more}


def call(tool, at, **given):
    block = {"type": "tool_use", "id": f"toolu_{at}", "name": tool, "input": given}
    return {"type": "assistant", "timestamp": stamp(at), "message": {"content": [block]}}


@pytest.fixture
def transcript(tmp_path):
    path = tmp_path / "t.jsonl"

    def write(*records):
        with path.open("a") as file:
            file.writelines(f"{json.dumps(record)}\n" for record in records)
        return str(path)

    return write


def line(lines, kind, at=AT, **data):
    return lines.line({"kind": kind, "at": at, "data": data})


def test_a_prompt_and_a_tool_are_shown_with_what_they_say(transcript):
    path = transcript(user("Add  the\nlimiter", AT), call("Bash", AT + 1, command="make test", description="x"))
    lines = EventLines({path})
    assert line(lines, "PromptSubmitted", text_size=15) == "prompt     Add the limiter"
    assert line(lines, "ToolUsed", AT + 2, tool="Bash", failed=True) == "tool       Bash  make test (failed)"


def test_what_comes_later_is_read_when_it_has_come(transcript):
    lines = EventLines({transcript(user("one", AT))})
    assert line(lines, "PromptSubmitted") == "prompt     one"
    transcript(call("Read", AT + 5, file_path="/a.py"))
    assert line(lines, "ToolUsed", AT + 6, tool="Read") == "tool       Read  /a.py"


def test_a_prompt_that_is_written_after_its_hook_is_waited_for(transcript):
    asked = []

    def written_at_the_second_look(at):
        asked.append(at)
        if len(asked) == 2:
            transcript(user("Add the limiter", AT + 0.2))
        return len(asked) < 9

    lines = EventLines({transcript(call("Bash", AT - 5))}, wait_for_prompt=written_at_the_second_look)
    assert line(lines, "PromptSubmitted", text_size=15) == "prompt     Add the limiter"
    assert asked == [AT, AT]
    assert line(lines, "PromptSubmitted", AT + 60, text_size=15) == "prompt     (15 characters)"
    assert len(asked) == 9


def test_prompts_that_follow_each_other_at_once_are_each_shown_with_their_own_words(transcript):
    path = transcript(user("two", AT + 0.05), user("six", AT + 0.55), user("seven", AT + 1.0))
    lines = EventLines({path})
    shown = [line(lines, "PromptSubmitted", AT + at) for at in (0, 0.5, 1.1)]
    assert shown == ["prompt     two", "prompt     six", "prompt     seven"]


def test_the_prompt_before_is_not_shown_for_one_that_is_not_written_yet(transcript):
    def written_at_the_first_look(_):
        transcript(user("six", AT + 0.6))
        return True

    lines = EventLines({transcript(user("two", AT))}, wait_for_prompt=written_at_the_first_look)
    assert line(lines, "PromptSubmitted", AT) == "prompt     two"
    assert line(lines, "PromptSubmitted", AT + 0.5) == "prompt     six"


def test_each_of_several_calls_is_shown_once(transcript):
    path = transcript(*(call("Bash", AT + at, command=f"c{at}") for at in range(3)))
    lines = EventLines({path})
    seen = [line(lines, "ToolUsed", AT + at + 0.5, tool="Bash") for at in range(3)]
    assert seen == [f"tool       Bash  c{at}" for at in range(3)]


def test_without_a_transcript_sizes_and_names_are_shown():
    lines = EventLines({"/nowhere", "\0"})
    assert line(lines, "PromptSubmitted", text_size=15) == "prompt     (15 characters)"
    assert line(lines, "ToolUsed", tool="Bash", failed=False) == "tool       Bash"


def test_secrets_are_not_shown(transcript):
    secret = "ghp_" + "a1B2" * 9
    lines = EventLines({transcript(call("Bash", AT, command=f"curl -H 'Authorization: Bearer {secret}'"))})
    shown = line(lines, "ToolUsed", AT + 1, tool="Bash")
    assert secret not in shown
    assert "REDACTED" in shown


def test_what_is_no_prompt_is_not_taken_for_one(transcript):
    result = [{"type": "tool_result", "tool_use_id": "x", "content": "secret output"}]
    lines = EventLines(
        {transcript(user(result, AT), user("caveat", AT, isMeta=True), {"timestamp": 5}, {"type": "user"})}
    )
    assert line(lines, "PromptSubmitted", text_size=3) == "prompt     (3 characters)"


def test_readings_are_shown_when_they_have_changed_much():
    lines = EventLines()
    shown = [
        line(lines, "ContextRead", reading={"projected": size, "tokens": size}, usable=100_000)
        for size in (10_000, 11_000, 20_000, 5_000)
    ]
    assert shown == ["context    10% full, 10,000 tokens", None, "context    20% full, 20,000 tokens",
                     "context    5% full, 5,000 tokens"]  # fmt: skip
    assert line(lines, "ContextReported", tokens=30_000, window=200_000, usable=100_000) == (
        "context    30% full, 30,000 tokens"
    )
    assert line(lines, "ContextRead", reading={"projected": None, "tokens": None}, usable=100_000) is None


def test_a_question_is_no_permission():
    assert line(EventLines(), "PermissionAsked", tool="AskUserQuestion") == "waiting    asks a question"
    assert line(EventLines(), "PermissionAsked", tool="ExitPlanMode") == "waiting    asks to approve a plan"
    assert line(EventLines(), "PermissionAsked", tool="Bash") == "waiting    asks for permission: Bash"


def test_steps_inside_sm_are_left_out_and_what_is_new_is_shown_in_words():
    assert line(EventLines(), "Typed", step=5) is None
    assert line(EventLines(), "MoonRisen", phase="full") == "moon risen phase=full"


def test_a_warning_says_at_what_size():  # C36
    warned = line(EventLines(), "AgentWarned", level="critical", tokens=136_000, percent=81.4, repeated=True)
    assert warned == "warned     again, critical: 136,000 tokens (~81%)"
    assert line(EventLines(), "AgentWarned", level="unknown", tokens=None, percent=None) == "warned     unknown"


class Read(dict):
    """Notes which members are asked for."""

    def __missing__(self, name):
        self[name] = value = {"path": "x"}
        return value

    def get(self, name, default=None):
        self[name] = None
        return default


def test_no_line_reads_what_an_event_is_stored_without():
    for kind, (_, words) in EVENT_WORDS.items():
        words(read := Read())
        kind_class = getattr(ev, kind)
        stored = {SIZES.get(field, field) for field in kind_class.__dataclass_fields__}
        assert read.keys() <= stored, kind


def test_a_report_is_shown_with_its_size():
    assert line(EventLines(), "StatusReported", text_size=12) == "report     (12 characters)"
    assert line(EventLines(), "TaskCompleted", text_size=0) == "done"
    assert line(EventLines(), "MessageQueued", message_size=300, letter_size=80) == "message    queued"


def test_what_is_named_here_are_events():
    known = {name for name, kind in vars(ev).items() if isinstance(kind, type) and issubclass(kind, ev.Event)}
    assert known >= INTERNAL_EVENTS | EVENT_WORDS.keys()
