"""What an app-server tells of a thread, as events, by notifications as Codex 0.171.0 sends them."""

import msgspec
import pytest

from sm.core import events as ev
from sm.core.model.context import ToolWorkKind
from sm.core.model.usage_limit import UsageLimit
from sm.providers.codex.app.rpc import ServerMessage
from sm.providers.codex.app.thread_events import ThreadEvents
from sm.providers.hook_payload import MAX_LAST_LINE_CHARS
from tests.fakes.app_server import said

AT = 1_000.0


class Told:
    """A thread that is followed, with what it has told so far."""

    def __init__(self):
        self.thread = ThreadEvents("t-1", "/codex/r.jsonl", mode="workspace-write on-request")
        self.hooks = []

    def __call__(self, method, **params):
        hook = self.thread.take(said(method, **params), AT)
        if hook is not None:
            self.hooks.append(hook)
        return hook

    def begun(self, kind, number="i-1", **members):
        return self("item/started", threadId="t-1", turnId="u-1", item={"type": kind, "id": number, **members})

    def done(self, kind, number="i-1", turn="u-1", **members):
        return self("item/completed", threadId="t-1", turnId=turn, item={"type": kind, "id": number, **members})

    def turn(self, number="u-1"):
        return self("turn/started", threadId="t-1", turn={"id": number, "status": "inProgress", "items": []})

    def over(self, status="completed", error=None, number="u-1"):
        turn = {"id": number, "status": status, "error": error, "items": []}
        return self("turn/completed", threadId="t-1", turn=turn)

    def limits(self, *windows):
        named = dict(zip(("primary", "secondary"), windows, strict=False))
        return self("account/rateLimits/updated", rateLimits={"limitId": "codex", **named})

    @property
    def events(self):
        return [hook.event for hook in self.hooks]


@pytest.fixture
def told():
    return Told()


def test_a_prompt_is_submitted_in_its_text_parts(told):
    parts = [
        {"type": "text", "text": "look"},
        {"type": "localImage", "path": "/p.png"},
        {"type": "text", "text": "here"},
    ]
    hook = told.done("userMessage", content=parts)
    assert hook.name == "UserPromptSubmit"
    assert (hook.conversation, hook.transcript) == ("t-1", "/codex/r.jsonl")
    assert hook.event == ev.PromptSubmitted(
        at=AT, conversation="t-1", text="look\nhere", mode="workspace-write on-request"
    )


def test_an_image_alone_is_a_prompt_without_text(told):
    assert told.done("userMessage", content=[{"type": "image", "url": "data:"}]).event.text == ""


def test_a_prompt_into_a_running_turn_is_a_prompt_and_ends_no_turn(told):
    told.turn()
    told.done("userMessage", content=[{"type": "text", "text": "work"}])
    told.done("userMessage", "i-2", content=[{"type": "text", "text": "and this"}])
    told.over()
    kinds = [type(event).__name__ for event in told.events]
    assert kinds == ["PromptSubmitted", "PromptSubmitted", "TurnEnded"]


CALLS = [
    ("commandExecution", {"aggregatedOutput": "x" * 40}, "exec_command", ToolWorkKind.BASH, 40),
    ("commandExecution", {"aggregatedOutput": None}, "exec_command", ToolWorkKind.BASH, 0),
    ("fileChange", {"changes": []}, "apply_patch", ToolWorkKind.EDIT, 1),
    ("mcpToolCall", {"server": "sm", "tool": "handoff"}, "mcp__sm__handoff", ToolWorkKind.OTHER, 1),
    ("dynamicToolCall", {"tool": "lookup", "arguments": {}}, "lookup", ToolWorkKind.OTHER, 1),
    ("webSearch", {"query": "q"}, "webSearch", ToolWorkKind.SEARCH, 1),
    ("imageView", {"path": "/p.png"}, "imageView", ToolWorkKind.OTHER, 1),
]


@pytest.mark.parametrize(("kind", "members", "tool", "work", "size"), CALLS)
def test_an_item_that_is_done_is_a_tool_call(told, kind, members, tool, work, size):
    event = told.done(kind, status="completed", **members).event
    assert (event.tool, event.work.kind, event.failed) == (tool, work, False)
    assert event.work.amount == size
    assert event.mode == "workspace-write on-request"


@pytest.mark.parametrize(("status", "failed"), [("completed", False), ("failed", True), ("declined", True)])
def test_a_call_that_failed_or_was_declined_has_failed(told, status, failed):
    assert told.done("commandExecution", status=status).event.failed is failed


def changes(*paths):
    return [{"path": path, "kind": {"type": "update", "move_path": None}, "diff": "@@"} for path in paths]


def test_a_document_written_by_a_patch_is_named_wherever_it_stands_in_it(told):
    event = told.done("fileChange", changes=changes("/p/a.py", "/p/.sm/handoff.md")).event
    assert event.written == event.document == "/p/.sm/handoff.md"


def test_another_file_written_by_a_patch_is_no_document(told):
    event = told.done("fileChange", changes=changes("/p/a.py", "/p/b.py")).event
    assert (event.written, event.document) == ("/p/a.py", "")


@pytest.mark.parametrize(
    "kind", ["reasoning", "plan", "hookPrompt", "agentMessage", "collabAgentToolCall", "subAgentActivity", "tomorrows"]
)
def test_what_is_no_call_tells_nothing(told, kind):
    assert told.done(kind, text="t", summary=[], content=[], fragments=[]) is None


def test_several_turns_each_end_with_their_own_last_words(told):
    for number, words in (("u-1", "First.\nDone one."), ("u-2", "Done two.  \n\n")):
        told.turn(number)
        told.done("agentMessage", text="so far", turn=number)
        told.done("agentMessage", text=words, turn=number)
        assert told.thread.turn == number
        told.over(number=number)
        assert told.thread.turn == ""
    told.turn("u-3")
    told.over(number="u-3")
    assert [event.text for event in told.events] == ["Done one.", "Done two.", ""]


def test_the_last_line_of_a_turn_is_cut(told):
    told.done("agentMessage", text="x" * 5_000)
    assert len(told.over().event.text) == MAX_LAST_LINE_CHARS


def test_an_interrupted_turn_is_no_stop_and_leaves_nothing_under_way(told):
    told.turn()
    told.begun("commandExecution", command="sleep 9")
    assert told.over("interrupted") is None
    assert (told.thread.turn, told.thread.started) == ("", {})


def test_a_compaction_begins_and_ends(told):
    begun, done = told.begun("contextCompaction"), told.done("contextCompaction")
    assert (begun.name, begun.event) == ("PreCompact", ev.CompactionStarted(at=AT, conversation="t-1"))
    assert (done.name, done.event) == ("PostCompact", ev.CompactionEnded(at=AT, conversation="t-1"))


def failed(told, info, words="It went wrong."):
    told.turn()
    return told.over("failed", {"message": words, "codexErrorInfo": info, "additionalDetails": None}).event


@pytest.mark.parametrize(
    "info",
    [
        *(
            "contextWindowExceeded",
            "sessionBudgetExceeded",
            "usageLimitExceeded",
            "flexUnavailable",
        ),
        *("serverOverloaded", "modelNotFound", "policyCapacityUnavailable", "cyberPolicy", "bioPolicy", "unauthorized"),
        *("misalignmentPolicyViolation", "tooManyDenials", "internalServerError", "badRequest", "sandboxError"),
    ],
)
def test_a_failed_turn_is_named_by_the_client(told, info):
    event = failed(told, info)
    assert event.error == info
    assert (event.limit is not None) is (info in {"usageLimitExceeded", "sessionBudgetExceeded"})
    assert event.refusal == ("It went wrong." if info == "contextWindowExceeded" else "")


@pytest.mark.parametrize("info", ["rateLimitExceeded", {"responseTooManyFailedAttempts": {"httpStatusCode": 429}}])
def test_a_rate_limit_is_named_as_the_rules_know_it(told, info):
    event = failed(told, info)
    assert (event.error, event.limit) == ("rate_limit", None)


@pytest.mark.parametrize("info", ["other", None, {"httpConnectionFailed": {"httpStatusCode": 502}}, {}, 5, [1]])
def test_a_failed_turn_without_such_a_name_is_named_by_its_words(told, info):
    event = failed(told, info, "It went wrong. " + "x" * 200)
    assert event.error.startswith("It went wrong.")
    assert len(event.error) == 80
    assert (event.limit, event.refusal) == (None, "")


def test_a_failed_turn_that_says_nothing_is_unknown(told):
    assert told.over("failed", None).event.error == "unknown"


FULL = {"usedPercent": 100, "windowDurationMins": 300, "resetsAt": 5_000}
WEEK = {"usedPercent": 100, "windowDurationMins": 10_080, "resetsAt": 90_000}


def test_a_used_up_limit_resets_when_the_account_says(told):
    told.limits(FULL)
    assert failed(told, "usageLimitExceeded").limit == UsageLimit("five_hour", 5_000.0, since=AT, proven=True)


def test_of_two_used_up_limits_the_later_one_counts(told):
    told.limits(FULL, WEEK)
    assert failed(told, "usageLimitExceeded").limit == UsageLimit("seven_day", 90_000.0, since=AT, proven=True)


def test_a_limit_that_is_not_used_up_any_more_is_forgotten(told):
    told.limits(FULL, WEEK)
    told.limits(FULL, {**WEEK, "usedPercent": 99})
    assert failed(told, "usageLimitExceeded").limit.kind == "five_hour"


def test_an_update_without_a_limit_keeps_what_is_known_of_it(told):
    told.limits(FULL)
    told.limits(None, None)
    told.limits({"usedPercent": 5, "windowDurationMins": 300, "resetsAt": None})
    assert failed(told, "usageLimitExceeded").limit.resets_at == 5_000.0


def test_a_limit_that_has_reset_since_is_none(told):
    told.limits({**FULL, "resetsAt": 900})
    assert failed(told, "usageLimitExceeded").limit == UsageLimit("usage", None, since=AT, proven=True)


def test_a_limit_of_another_length_is_a_limit(told):
    told.limits({**FULL, "windowDurationMins": 60})
    assert failed(told, "usageLimitExceeded").limit == UsageLimit("usage", 5_000.0, since=AT, proven=True)


def test_a_thread_that_begins_names_its_model_and_its_rollout(told):
    hook = told.thread.began(ev.Origin.CLEAR, AT, 7, "mock-model")
    assert hook.name == "SessionStart"
    assert hook.event == ev.ConversationStarted(
        at=AT, conversation="t-1", transcript="/codex/r.jsonl", origin=ev.Origin.CLEAR, pid=7, model="mock-model"
    )


ODD = [
    None,
    5,
    "x",
    [],
    {},
    True,
    [[]],
    {"id": 5},
    {"type": ["x"]},
    {"type": "commandExecution", "aggregatedOutput": 5},
]
METHODS = [
    *("turn/started", "turn/completed", "item/started", "item/completed", "account/rateLimits/updated"),
    *("item/tomorrow", "", "thread/status/changed"),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_an_odd_message_breaks_nothing(told, method, odd):
    for params in ({}, {"item": odd}, {"turn": odd}, {"rateLimits": odd}, {"threadId": odd, "turnId": odd}):
        told(method, **params)
    told.limits(odd, odd)
    told.begun("fileChange", changes=odd)
    told.done("fileChange", changes=odd)
    told.done("userMessage", content=odd)
    told.over("failed", odd)
    assert told.thread.take(ServerMessage(method, msgspec.Raw(b"null")), AT) == told(method)


def test_one_odd_member_leaves_the_others(told):
    event = told.done("commandExecution", aggregatedOutput={"odd": 1}, status="failed", source=None).event
    assert (event.tool, event.failed, event.work.amount) == ("exec_command", True, 0)
