"""What an app-server asks its user, and each answer in its own form (Codex 0.171.0)."""

import json

import msgspec
import pytest

from sm.core.model.ask import AskAnswer, AskDetails, AskKind, AskOption, AskRequest, Decision, Question
from sm.providers.codex.app import asks, schema
from sm.providers.codex.app.rpc import ServerMessage
from tests.fakes.app_server import said

ALLOW, DENY = AskAnswer(Decision.ALLOW), AskAnswer(Decision.DENY, text="not on this machine")
ALWAYS = AskAnswer(Decision.ALLOW, always=True)
AMENDMENT = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["git", "push"]}}
RIGHTS = {"fileSystem": {"write": ["/srv"], "read": None}, "network": None}
CHANGES = [{"path": "/p/a.py", "kind": {"type": "update", "move_path": "/p/b.py"}, "diff": "@@ -1 +1 @@"}]


def command(**params):
    shared = {"threadId": "t-1", "turnId": "u-1", "itemId": "i-1", "startedAtMs": 1}
    return said(asks.COMMAND, 0, **{**shared, "command": "git push", "cwd": "/p", "reason": "to publish", **params})


def patch(**params):
    return said(asks.PATCH, 1, threadId="t-1", itemId="i-1", reason=None, **params)


def rights(**params):
    return said(asks.RIGHTS, 2, **{"threadId": "t-1", "itemId": "i-1", "cwd": "/p", "permissions": RIGHTS, **params})


def question(*questions):
    return said(asks.QUESTIONS, 3, threadId="t-1", itemId="i-1", isBlocking=True, questions=list(questions))


def form(**params):
    shown = {"serverName": "files", "mode": "form", "message": "Delete it?", "requestedSchema": {}, **params}
    return said(asks.FORM, 4, threadId="t-1", **shown)


COLOUR = {
    "id": "q-colour",
    "header": "Colour",
    "question": "Which colour?",
    "options": [{"label": "red", "description": "as before"}, {"label": "blue", "description": ""}],
}
NAME = {"id": "q-name", "header": "Name", "question": "Which name?", "options": None}


def replied(message, answer, started=()):
    request = asks.request_of(message, dict(started))
    return json.loads(msgspec.json.encode(asks.answered(message, request, answer)))


def test_a_command_is_shown_as_it_would_run():
    request = asks.request_of(command(), {})
    assert (request.kind, request.tool) == (AskKind.PERMISSION, "exec_command")
    assert json.loads(request.input) == {"command": "git push", "cwd": "/p", "reason": "to publish"}


def test_a_command_that_says_little_is_shown_with_that():
    assert json.loads(asks.request_of(command(cwd=None, reason=None), {}).input) == {"command": "git push"}


@pytest.mark.parametrize(
    ("answer", "decision"), [(ALLOW, "accept"), (DENY, "decline"), (ALWAYS, "acceptForSession")], ids=str
)
def test_a_command_is_answered_with_a_decision(answer, decision):
    assert replied(command(), answer) == {"decision": decision}


def test_a_denial_is_never_a_lasting_permission():
    denied = AskAnswer(Decision.DENY, always=True)
    assert replied(command(availableDecisions=["accept", AMENDMENT]), denied) == {"decision": "decline"}


def test_the_lasting_permission_that_the_client_offers_is_the_one_that_is_given():
    message = command(availableDecisions=["accept", AMENDMENT, "decline", "cancel"])
    (always,) = asks.details(asks.request_of(message, {})).always
    assert "begin with git push without asking, for good" in always
    assert replied(message, ALWAYS) == {"decision": AMENDMENT}
    assert replied(message, ALLOW) == {"decision": "accept"}


@pytest.mark.parametrize(
    "odd",
    [
        *(None, [], {}, "x", 5, [None], [5], [{}], [{"acceptWithExecpolicyAmendment": None}]),
        *([{"acceptWithExecpolicyAmendment": {"execpolicy_amendment": odd}}] for odd in (None, "git", [5], [["x"]])),
        [{"applyNetworkPolicyAmendment": {"network_policy_amendment": {"host": "h", "action": "allow"}}}],
    ],
    ids=repr,
)
def test_odd_offers_are_no_lasting_permission(odd):
    message = command(availableDecisions=odd)
    (always,) = asks.details(asks.request_of(message, {})).always
    assert "in this session" in always
    assert replied(message, ALWAYS) == {"decision": "acceptForSession"}


def test_a_patch_is_shown_with_what_it_changes():
    item = msgspec.json.decode(json.dumps({"type": "fileChange", "changes": CHANGES}), type=schema.ThreadItem)
    request = asks.request_of(patch(), {"i-1": item})
    assert request.tool == "apply_patch"
    assert json.loads(request.input) == {"changes": CHANGES, "reason": None}


def test_a_patch_that_began_before_the_connection_is_asked_about_all_the_same():
    assert json.loads(asks.request_of(patch(), {}).input)["changes"] == []


@pytest.mark.parametrize(
    ("answer", "decision"), [(ALLOW, "accept"), (DENY, "decline"), (ALWAYS, "acceptForSession")], ids=str
)
def test_a_patch_is_answered_with_a_decision(answer, decision):
    assert replied(patch(), answer) == {"decision": decision}


def test_rights_are_given_as_they_were_asked_for_and_never_more():
    request = asks.request_of(rights(reason="to write"), {})
    assert json.loads(request.input) == {"permissions": RIGHTS, "cwd": "/p", "reason": "to write"}
    assert replied(rights(), ALLOW) == {"permissions": RIGHTS, "scope": "turn"}
    assert replied(rights(), ALWAYS) == {"permissions": RIGHTS, "scope": "session"}
    assert replied(rights(), DENY) == {"permissions": {}, "scope": "turn"}


def test_questions_are_asked_with_their_options_and_answered_by_their_ids():
    message = question(COLOUR, NAME)
    request = asks.request_of(message, {})
    assert request.kind is AskKind.QUESTION
    assert asks.details(request) == AskDetails(
        (Question("Which colour?", (AskOption("red", "as before"), AskOption("blue", ""))), Question("Which name?"))
    )
    answer = AskAnswer(Decision.ANSWER, answers=("blue", "ada"))
    assert replied(message, answer) == {"answers": {"q-colour": {"answers": ["blue"]}, "q-name": {"answers": ["ada"]}}}


def test_denied_questions_are_answered_with_nothing():
    assert replied(question(COLOUR), DENY) == {"answers": {}}


def test_a_form_of_a_tool_server_is_accepted_or_declined():
    request = asks.request_of(form(), {})
    assert request.tool == "mcp__files"
    assert json.loads(request.input) == {"message": "Delete it?", "serverName": "files"}
    assert asks.details(request).always == ()
    assert replied(form(), ALLOW) == {"action": "accept", "content": {}}
    assert replied(form(), DENY) == {"action": "decline"}
    assert replied(form(), ALWAYS) == {"action": "accept", "content": {}}


@pytest.mark.parametrize(
    "asked",
    [
        {"mode": "url", "url": "http://files.example/sign-in", "elicitationId": "e-1"},
        {"mode": "openai/userVerification", "challenge": "c"},
        {"mode": "form", "requestedSchema": {"type": "object", "required": ["name"]}},
    ],
)
def test_what_needs_more_than_yes_or_no_is_for_the_screen(asked):
    assert asks.request_of(form(**asked), {}) is None


@pytest.mark.parametrize("method", ["item/tool/call", "account/chatgptAuthTokens/refresh", "tomorrow/ask", ""])
def test_anything_else_is_for_the_clients_own_screen(method):
    assert method not in asks.ANSWERED
    assert asks.request_of(said(method, 9, threadId="t-1"), {}) is None


DEEP = "[" * 100_000 + "]" * 100_000
ODD = [None, 5, "x", [], {}, [5], [[]], [None], {"a": {}}, 1e300]


@pytest.mark.parametrize("answer", [ALLOW, DENY, ALWAYS, AskAnswer(Decision.ANSWER, answers=("a", "b"))], ids=str)
@pytest.mark.parametrize("method", sorted(asks.ANSWERED))
def test_odd_params_break_nothing(method, answer):
    messages = [said(method, 0, **dict.fromkeys(MEMBERS, odd)) for odd in ODD]
    messages += [ServerMessage(method, msgspec.Raw(raw), 0) for raw in (b"null", b"[]", b"5", b'"x"', b"{}")]
    messages += [ServerMessage(method, msgspec.Raw(f'{{"{name}":{DEEP}}}'.encode()), 0) for name in MEMBERS]
    for message in messages:
        request = asks.request_of(message, {})
        assert asks.details(request) is not None
        assert replied(message, answer)


MEMBERS = (
    *("command", "cwd", "reason", "itemId", "approvalId", "availableDecisions", "permissions", "questions"),
    *("serverName", "message"),
)


def test_a_request_whose_input_was_not_kept_has_no_questions():
    assert asks.details(AskRequest(AskKind.QUESTION, "request_user_input")) == AskDetails()
