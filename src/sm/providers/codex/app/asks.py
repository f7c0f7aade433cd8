"""What an app-server asks its user, and the answer in its own form (Codex 0.171.0).

Its screen shows the same question, and whoever answers first wins. A denied command leaves the turn going; the reason
goes beside the answer, which has no room for it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sm.core.model.ask import AskAnswer, AskDetails, AskKind, AskOption, AskRequest, Decision, Question
from sm.providers.codex.app.thread_events import tool_of
from sm.providers.codex.traits import PATCH_TOOL, SHELL_TOOL

COMMAND = "item/commandExecution/requestApproval"
PATCH = "item/fileChange/requestApproval"
RIGHTS = "item/permissions/requestApproval"
QUESTIONS = "item/tool/requestUserInput"
FORM = "mcpServer/elicitation/request"
ANSWERED = frozenset({COMMAND, PATCH, RIGHTS, QUESTIONS, FORM})
"""What may be answered through sm; anything else is for the client's own screen."""
FOR_SESSION = "acceptForSession"
AMENDED = "acceptWithExecpolicyAmendment"


def request_of(method: str, params: dict[str, Any], started: dict[str, dict[str, Any]]) -> AskRequest | None:
    """Return what is asked; `started` are the items under way, by id. None for what only the client's screen asks."""
    item = started.get(str(params.get("itemId", "")), {})
    match method:
        case "item/commandExecution/requestApproval":
            shown = {name: params.get(name) for name in ("command", "cwd", "reason") if params.get(name)}
            return AskRequest(AskKind.PERMISSION, SHELL_TOOL, _json(shown), _json([_lasting_decision(params)]))
        case "item/fileChange/requestApproval":
            changes = {"changes": item.get("changes", []), "reason": params.get("reason")}
            return AskRequest(AskKind.PERMISSION, PATCH_TOOL, _json(changes), _json([FOR_SESSION]))
        case "item/permissions/requestApproval":
            shown = {name: params.get(name) for name in ("permissions", "cwd", "reason") if params.get(name)}
            return AskRequest(AskKind.PERMISSION, "request_permissions", _json(shown), _json(["session"]))
        case "item/tool/requestUserInput":
            return AskRequest(AskKind.QUESTION, "request_user_input", _json({"questions": params.get("questions")}))
        case "mcpServer/elicitation/request":
            tool = tool_of(item) if item else f"mcp__{params.get('serverName')}"
            shown = {name: params.get(name) for name in ("serverName", "message") if params.get(name)}
            return AskRequest(AskKind.PERMISSION, tool, _json(shown))
    return None


class _Option(msgspec.Struct):
    label: str = ""
    description: str = ""


class _Question(msgspec.Struct):
    id: str = ""
    question: str = ""
    options: list[_Option] | None = None


class _Questions(msgspec.Struct):
    questions: list[_Question] = []


def details(request: AskRequest) -> AskDetails:
    questions = tuple(
        Question(found.question, tuple(AskOption(option.label, option.description) for option in found.options or ()))
        for found in _questions(request)
    )
    return AskDetails(questions, tuple(_lasting(msgspec.json.decode(request.suggestions, type=list[Any]))))


def _questions(request: AskRequest) -> list[_Question]:
    if request.kind is not AskKind.QUESTION:
        return []
    return msgspec.json.decode(request.input, type=_Questions, strict=False).questions


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
                words.append(f"runs commands that begin with {_shown(command)} without asking, for good, everywhere")
    return words


def _shown(command: list[Any]) -> str:
    return " ".join(map(str, command))


def answered(method: str, params: dict[str, Any], request: AskRequest, answer: AskAnswer) -> dict[str, object]:
    """Return the reply to what the server asked."""
    allowed = answer.decision is not Decision.DENY
    match method:
        case "item/permissions/requestApproval":
            scope = "session" if answer.always else "turn"
            return {"permissions": params.get("permissions", {}) if allowed else {}, "scope": scope}
        case "item/tool/requestUserInput":
            pairs = zip(_questions(request), answer.answers, strict=False) if allowed else ()
            return {"answers": {question.id: {"answers": [words]} for question, words in pairs}}
        case "mcpServer/elicitation/request":
            return {"action": "accept" if allowed else "decline", "content": {} if allowed else None}
    if not allowed:
        return {"decision": "decline"}
    return {"decision": msgspec.json.decode(request.suggestions)[0] if answer.always else "accept"}


def _lasting_decision(params: dict[str, Any]) -> object:
    """The lasting permission that the client offers for this command; for the session alone where it offers none."""
    offered = params.get("availableDecisions") or []
    return next((one for one in offered if isinstance(one, dict) and AMENDED in one), FOR_SESSION)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
