"""What an app-server asks its user, and the answer in its own form (Codex 0.171.0).

Its screen shows the same question, and whoever answers first wins. A denied command leaves the turn going; the reason
goes beside the answer, which has no room for it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sm.core.model.ask import AskAnswer, AskDetails, AskKind, AskOption, AskRequest, Decision, Question
from sm.providers.codex.app import schema
from sm.providers.codex.app.rpc import ServerMessage
from sm.providers.codex.app.thread_events import tool_of
from sm.providers.codex.traits import PATCH_TOOL, SHELL_TOOL

COMMAND = "item/commandExecution/requestApproval"
PATCH = "item/fileChange/requestApproval"
RIGHTS = "item/permissions/requestApproval"
QUESTIONS = "item/tool/requestUserInput"
FORM = "mcpServer/elicitation/request"
ANSWERED = frozenset({COMMAND, PATCH, RIGHTS, QUESTIONS, FORM})
"""What may be answered through sm; anything else is for the client's own screen."""
SHOWN = {name: name for name in ("command", "cwd", "message", "permissions", "reason")} | {"server_name": "serverName"}
"""Of what it says, by its name in the types."""


class Asked(schema.FromServer, frozen=True):
    """What says which question it is, whatever it asks."""

    item_id: str = ""
    approval_id: str | None = None


FOR_SESSION = "acceptForSession"


def request_of(message: ServerMessage, started: dict[str, schema.ThreadItem]) -> AskRequest | None:
    """Return what is asked; `started` are the items under way, by id. None for what only the client's screen asks."""
    item = started.get(message.read(Asked).item_id, schema.ThreadItem())
    match message.method:
        case "item/commandExecution/requestApproval":
            command = message.read(schema.CommandExecutionRequestApprovalParams)
            lasting = _lasting_decision(command.available_decisions or [])
            return AskRequest(AskKind.PERMISSION, SHELL_TOOL, _shown(command), _json([lasting]))
        case "item/fileChange/requestApproval":
            changes = {"changes": item.changes, "reason": message.read(schema.FileChangeRequestApprovalParams).reason}
            return AskRequest(AskKind.PERMISSION, PATCH_TOOL, _json(changes), _json([FOR_SESSION]))
        case "item/permissions/requestApproval":
            rights = message.read(schema.PermissionsRequestApprovalParams)
            return AskRequest(AskKind.PERMISSION, "request_permissions", _shown(rights), _json(["session"]))
        case "item/tool/requestUserInput":
            questions = message.read(schema.ToolRequestUserInputParams).questions
            return AskRequest(AskKind.QUESTION, "request_user_input", _json({"questions": questions}))
        case "mcpServer/elicitation/request":
            return _form(message.read(schema.McpServerElicitationRequestParams), item)
    return None


def _form(form: schema.McpServerElicitationRequestParams, item: schema.ThreadItem) -> AskRequest | None:
    tool = tool_of(item) if item.type else f"mcp__{form.server_name}"
    return AskRequest(AskKind.PERMISSION, tool, _shown(form)) if _is_yes_or_no(form) else None


def _is_yes_or_no(form: schema.McpServerElicitationRequestParams) -> bool:
    """Whether an answer has nothing to fill in, no page to open, no one to identify: those are for the screen."""
    wanted = form.requested_schema if isinstance(form.requested_schema, dict) else {}
    return form.mode in {"", "form"} and not wanted.get("required")


def details(request: AskRequest) -> AskDetails:
    questions = tuple(
        Question(found.question, tuple(AskOption(option.label, option.description) for option in found.options or ()))
        for found in _questions(request)
    )
    return AskDetails(questions, tuple(_lasting(msgspec.json.decode(request.suggestions, type=list[Any]))))


def _questions(request: AskRequest) -> list[schema.ToolRequestUserInputQuestion]:
    if request.kind is not AskKind.QUESTION:
        return []
    return msgspec.json.decode(request.input, type=schema.ToolRequestUserInputParams).questions


def _lasting(offered: list[Any]) -> list[str]:
    """What each offered permission allows from then on, in words."""
    words = []
    for one in offered:
        match one:
            case "acceptForSession":
                words.append("does the same without asking, in this session")
            case "session":
                words.append("keeps these rights, in this session")
            case {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": list(command)}}:
                words.append(f"runs commands that begin with {' '.join(command)} without asking, for good, everywhere")
    return words


def answered(message: ServerMessage, request: AskRequest, answer: AskAnswer) -> schema.ToServer:
    """Return the reply to what the server asked."""
    allowed = answer.decision is not Decision.DENY
    decision = _lasting_of(request) if allowed and answer.always else "accept" if allowed else "decline"
    match message.method:
        case "item/permissions/requestApproval":
            asked = message.read(schema.PermissionsRequestApprovalParams).permissions
            scope = "session" if answer.always else "turn"
            return schema.PermissionsRequestApprovalResponse(permissions=asked if allowed else {}, scope=scope)
        case "item/tool/requestUserInput":
            pairs = zip(_questions(request), answer.answers, strict=False) if allowed else ()
            answers = {question.id: schema.ToolRequestUserInputAnswer(answers=[words]) for question, words in pairs}
            return schema.ToolRequestUserInputResponse(answers=answers)
        case "mcpServer/elicitation/request":
            if allowed:
                return schema.McpServerElicitationRequestResponse(action="accept", content={})
            return schema.McpServerElicitationRequestResponse(action="decline")
        case "item/fileChange/requestApproval":
            return schema.FileChangeRequestApprovalResponse(decision=decision)
    return schema.CommandExecutionRequestApprovalResponse(decision=decision)


def _lasting_decision(offered: list[Any]) -> object:
    """The lasting permission that the client offers for this command; for the session alone where it offers none."""
    for one in offered:
        match one:
            case {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": list(command)}} if _is_text(command):
                return {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": command}}
    return FOR_SESSION


def _lasting_of(request: AskRequest) -> object:
    return next(iter(msgspec.json.decode(request.suggestions, type=list[Any])), "accept")


def _is_text(command: list[Any]) -> bool:
    return all(isinstance(word, str) for word in command)


def _shown(asked: schema.FromServer) -> str:
    found = {called: getattr(asked, name, None) for name, called in SHOWN.items()}
    return _json({called: value for called, value in found.items() if value})


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
