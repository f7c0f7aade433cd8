"""What a dialog of Claude Code asks (PermissionRequest), and the answer in the client's own form (2.1.328).

A bare permission leaves the dialogs of a question and of a plan open: they are answered with the tool's input given
back, the question's with its answers in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from sm.core.model.ask import AskAnswer, AskDetails, AskKind, AskOption, AskRequest, Decision, Question
from sm.providers.lenient import lenient

KINDS = {"AskUserQuestion": AskKind.QUESTION, "ExitPlanMode": AskKind.PLAN}
HELD_HOOK = "PermissionRequest"
DENIED = "The user does not want this."
DESTINATIONS = {
    "userSettings": "for good, everywhere",
    "projectSettings": "for good, in this project, for everybody who works on it",
    "localSettings": "for good, in this project",
    "session": "in this session",
    "cliArg": "in this session",
}
MODES = {
    "default": "asks again before it changes a file or runs a command",
    "acceptEdits": "edits files without asking",
    "plan": "plans only, and changes nothing",
    "bypassPermissions": "does everything without asking",
    "dontAsk": "does what is allowed already, and asks for nothing else",
    "auto": "lets a model decide what is allowed",
}
BEHAVIOURS = {"allow": "uses {} without asking", "deny": "never uses {}", "ask": "asks before each use of {}"}


class _Option(msgspec.Struct):
    label: str = ""
    description: str = ""


class _Question(msgspec.Struct, rename="camel"):
    question: str = ""
    options: list[_Option] = []
    multi_select: bool = False


class _Questions(msgspec.Struct):
    questions: list[_Question] = []


def request_of(tool: str, tool_input: bytes, suggestions: bytes, agent: str) -> AskRequest | None:
    """Return what is asked; None for what cannot be read as a whole, and so is answered in the terminal alone."""
    try:
        given = msgspec.json.decode(tool_input, type=dict[str, Any])
        offered = msgspec.json.decode(suggestions or b"[]", type=list[dict[str, Any]])
    except (ValueError, RecursionError):
        return None
    kind = KINDS.get(tool, AskKind.PERMISSION)
    return AskRequest(kind, tool, _json(given), _json(offered), agent) if tool else None


def details(request: AskRequest) -> AskDetails:
    asked = lenient(_Questions, request.input.encode()).questions if request.kind is AskKind.QUESTION else []
    return AskDetails(
        tuple(
            Question(
                found.question,
                tuple(AskOption(option.label, option.description) for option in found.options),
                found.multi_select,
            )
            for found in asked
        ),
        tuple(_lasting(msgspec.json.decode(request.suggestions, type=list[dict[str, Any]]))),
    )


def _lasting(suggestions: Iterable[dict[str, Any]]) -> Iterable[str]:
    """Yield what each offered permission allows from then on, in words."""
    for offered in suggestions:
        where = DESTINATIONS.get(str(offered.get("destination")), str(offered.get("destination")))
        match offered:
            case {"type": "addRules", "rules": list(rules), "behavior": behaviour}:
                words = BEHAVIOURS.get(str(behaviour), f"{behaviour} {{}}")
                yield f"{words.replace('{}', ', '.join(map(_rule, rules)))}, {where}"
            case {"type": "setMode", "mode": mode}:
                yield f"{MODES.get(str(mode), f'changes to its mode {mode}')}, {where}"
            case {"type": "addDirectories", "directories": list(directories)}:
                yield f"works in {', '.join(map(str, directories))} too, {where}"
            case _:
                yield f"{_json(offered)}"


def _rule(rule: object) -> str:
    match rule:
        case {"toolName": tool, "ruleContent": str(content)}:
            return f"{tool}({content})"
        case {"toolName": tool}:
            return str(tool)
    return _json(rule)


def answered(request: AskRequest, answer: AskAnswer) -> dict[str, object]:
    """Return the reply to the hook."""
    return {"hookSpecificOutput": {"hookEventName": HELD_HOOK, "decision": _decision(request, answer)}}


def _decision(request: AskRequest, answer: AskAnswer) -> dict[str, object]:
    if answer.decision is Decision.DENY:
        return {"behavior": "deny", "message": answer.text or DENIED}
    given = msgspec.json.decode(request.input, type=dict[str, Any])
    if request.kind is AskKind.QUESTION:
        questions = [question.text for question in details(request).questions]
        answers = dict(zip(questions, answer.answers, strict=True))
        return {"behavior": "allow", "updatedInput": {**given, "answers": answers}}
    decision: dict[str, object] = {"behavior": "allow"}
    if request.kind is AskKind.PLAN:
        decision["updatedInput"] = given
    if answer.always:
        decision["updatedPermissions"] = msgspec.json.decode(request.suggestions)
    return decision


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
