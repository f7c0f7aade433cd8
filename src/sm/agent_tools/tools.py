"""The two tools: what the agent reads about them, and what a call of one does.

They run outside the sandbox that the agent's shell is in, with the session's token, and take what a model writes. Which
arguments are passed on is decided in `core/model/agent_arguments.py`. The one file that is read for an agent is a
document in `.sm` of the session's directory, opened without following a link: anything else could be a file that the
sandbox keeps from it. It reaches the server as text, since the agent could put another file into its place.
"""

from __future__ import annotations

import os
import time

from sm.core.model.agent_arguments import COMMANDS, ArgumentError, command_line, understood

TYPE_CHECKING = False  # `typing` costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sm.agent_tools.command import Command

NEEDED = ("CLAUDE_SESSION_MANAGER_ID", "SM_URL", "SM_SESSION_TOKEN")
MAX_BYTES = 1024 * 1024
"""Of a document; the command line has the same limit on standard input."""
FOLDER = ".sm"
SUFFIX = ".md"
MTIME_TOLERANCE_S = 2.0
STARTED = time.time()  # noqa: TID251  # compared with the time of a file
"""When this thread of the client began, or was continued."""
TURN_ENDS = ". End your turn now."
DOCUMENT = (
    "Markdown: the goal, what is done, what is not, decisions and constraints with their reasons, files changed, "
    "and the exact next step."
)
HANDOFF_TOOL = {
    "name": "handoff",
    "description": (
        "Hand your work over to a fresh context of yourself, when a notice of sm says that your context fills up or "
        "the user asks for it. Call it as the last action of your turn, then end the turn: the context is cleared, "
        "and the next one begins with your document, which is all that it will know."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {"document": {"type": "string", "description": DOCUMENT}},
        "required": ["document"],
        "additionalProperties": False,
    },
}
COMMAND_WORDS = (
    "Run a command of sm, which manages this session, and return what it prints. Use this instead of `sm` in a shell, "
    "which a sandbox keeps from reaching sm. --help after a command explains it. Commands:"
)
COMMAND_LINES = [f"- {name} {usage}: {words}".replace(" :", ":") for name, (usage, words, _) in COMMANDS.items()]
COMMAND_TOOL = {
    "name": "sm",
    "description": "\n".join([COMMAND_WORDS, *COMMAND_LINES]),
    "inputSchema": {
        "type": "object",
        "properties": {
            "arguments": {
                "type": "array",
                "items": {"type": "string"},
                "description": 'The command and what follows, as ["send", "parent", "The tests pass"]; no shell.',
            },
            "input": {"type": "string", "description": "Standard input, for a command whose text is `-`."},
        },
        "required": ["arguments"],
        "additionalProperties": False,
    },
}
TOOLS: list[dict[str, Any]] = [HANDOFF_TOOL, COMMAND_TOOL]


def called(command: Command, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a call, or its refusal."""
    try:
        return _result(*_called(command, params))
    except ArgumentError as refused:
        return _result(f"Error: {refused}\nhint: {refused.hint}" if refused.hint else f"Error: {refused}", 1)
    except Exception as problem:  # noqa: BLE001  # each call gets an answer
        words = getattr(problem, "strerror", None) or problem
        return _result(f"Error: sm was not run: {words}\nhint: give a long text as `input`, in UTF-8", 1)


def _result(text: str, code: int) -> dict[str, Any]:
    shown = text.rstrip("\n") + (f"\n(exit code {code})" if code else "")
    return {"content": [{"type": "text", "text": shown}], "isError": bool(code)}


def _called(command: Command, params: dict[str, Any]) -> tuple[str, int]:
    missing = [name for name in NEEDED if not os.environ.get(name)]
    if missing:
        raise ArgumentError(f"Not in a session of sm: {missing[0]} is not set", "ask the user to run sm new")
    arguments, given = _given(params)
    name, options, words = understood(arguments)
    if name == "handoff" and "--status" not in options and _is_helper(params):
        raise ArgumentError("Only the main agent hands off", "report to it instead")
    if name == "handoff" and words:
        text = given.decode() if words == ["-"] else document_at(*words)
        to = next((option.removeprefix("--to=") for option in options if option.startswith("--to=")), "")
        return hand_off(text, to), 0
    text, code = command.run(command_line(name, options, words), given)
    return (f"{text}\nError: sm {name} took too long and was ended" if command.timed_out else text), code


def hand_off(document: str, to: str = "") -> str:
    """Schedule the rotation of the session; return what its agent reads."""
    from sm.client import session_client, session_path  # noqa: PLC0415  # 15 ms with the others, for a handoff only
    from sm.core.errors import SmError, for_agent  # noqa: PLC0415  # as above
    from sm.core.model.handoff import SCHEDULED, split_head  # noqa: PLC0415  # as above

    session = os.environ["CLAUDE_SESSION_MANAGER_ID"]
    body = {"requester_session_id": session, "document": split_head(document)[1], **({"to": to} if to else {})}
    try:
        session_client().call("POST", session_path(session, "/handoff"), body)
    except SmError as problem:
        refused = for_agent(problem.refused)
        raise ArgumentError(refused.message.removeprefix("Error: "), refused.hint) from problem
    return SCHEDULED + TURN_ENDS


def _given(params: dict[str, Any]) -> tuple[Sequence[str], bytes]:
    """Return the arguments of `sm` and its standard input."""
    given = params.get("arguments")
    given = given if isinstance(given, dict) else {}
    if params["name"] == HANDOFF_TOOL["name"]:
        return ("handoff", "-"), _text(given, "document")
    arguments = given.get("arguments")
    if not isinstance(arguments, list) or not all(isinstance(argument, str) for argument in arguments):
        raise ArgumentError("`arguments` is not a list of strings", 'as ["send", "parent", "The tests pass"]')
    return arguments, _text(given, "input") if "input" in given else b""


def _text(given: dict[str, Any], member: str) -> bytes:
    text = given.get(member)
    if not isinstance(text, str):
        raise ArgumentError(f"`{member}` is not a string", "give the text itself")
    return text.encode()


def _is_helper(params: dict[str, Any]) -> bool:
    """Whether a helper of the agent calls: the client says so beside the arguments (Codex 0.171.0)."""
    meta = params.get("_meta")
    turn = meta.get("x-codex-turn-metadata") if isinstance(meta, dict) else None
    return isinstance(turn, dict) and turn.get("thread_source") == "subagent"


def document_at(name: str, *more: str) -> str:
    """Return the document that the agent has written to a file; ArgumentError for any other file."""
    from pathlib import Path  # noqa: PLC0415  # 10 ms, for a file only

    from sm.files import read_in_place  # noqa: PLC0415  # as above

    if more:
        raise ArgumentError("sm handoff takes one document", "write one that says all")
    directory = os.getcwd()  # noqa: PTH109  # the client starts us in the thread's directory
    folder, last = os.path.split(os.path.normpath(os.path.join(directory, name)))  # noqa: PTH118  # keeps links
    if os.path.realpath(folder) != os.path.join(directory, FOLDER) or not last.endswith(SUFFIX):  # noqa: PTH118
        raise _unfit(name, f"only a document {FOLDER}/NAME{SUFFIX} in {directory} can be handed off")
    try:
        content, found = read_in_place(Path(directory, FOLDER, last), MAX_BYTES)
    except FileNotFoundError:
        raise _unfit(name, "it does not exist") from None
    except OSError as problem:
        raise _unfit(name, f"it cannot be read ({problem.strerror})") from None
    if found.st_uid != os.getuid() or found.st_nlink != 1:
        raise _unfit(name, "it is not a file of the agent's own")
    if found.st_mtime + MTIME_TOLERANCE_S < STARTED:
        raise _unfit(name, "it was written before this conversation began")
    return content.decode("utf-8", "replace")


def _unfit(name: str, reason: str) -> ArgumentError:
    return ArgumentError(f"Cannot hand off {name}: {reason}", "give the document to the tool handoff")
