"""The commands that agents call most, without the command parser, which costs 36 ms: handoff, send, status, context.

Handles exactly the plain form, and only its success: anything with an option, every mistake and every refusal goes to
the commands themselves, which report it. `_json` is the accelerator inside `json`, without the 5 ms around it.
"""

from __future__ import annotations

import os
from _json import encode_basestring_ascii

from sm import hook
from sm.cli.format import encodable, show

TYPE_CHECKING = False  # `typing` costs 3 ms
if TYPE_CHECKING:
    from typing import Any

SESSION_VARIABLES = ("CLAUDE_SESSION_MANAGER_ID", "SM_URL", "SM_SESSION_TOKEN")
TIMEOUT_S = 30.0
SCHEDULED = "Handoff scheduled — will execute after current turn completes"
"""Read by agents; `core.model.handoff` has it too, and costs 10 ms."""
HTTP_OK = 200
CREATED = 201
ONE_MESSAGE = b'[{"id":"'
"""The beginning of the answer about one message."""


def is_plain_handoff(arguments: list[str]) -> bool:
    plain = len(arguments) == 1 and not arguments[0].startswith("-")
    return plain and inside_session() and os.path.lexists(arguments[0])


def inside_session() -> bool:
    return all(os.environ.get(name) for name in SESSION_VARIABLES) and os.environ[SESSION_VARIABLES[0]].isalnum()


def printed(command: str) -> bool:
    """Print the caller's own `status` or `context`; False if only the command itself can."""
    from sm.cli.descriptions import context_line, status_lines  # noqa: PLC0415  # not needed for a handoff

    session, url, token = (os.environ[name] for name in SESSION_VARIABLES)
    suffix = "/context" if command == "context" else ""
    try:
        status, content = hook.exchange(
            url, hook.request_bytes("GET", f"/sessions/{session}{suffix}", token, b""), TIMEOUT_S
        )
        view = json_value(content)
    except (OSError, ValueError):
        return False
    if status != HTTP_OK:
        return False
    show(context_line(view) if command == "context" else status_lines(view))
    return True


def is_plain_send(arguments: list[str]) -> bool:
    """Whether the arguments are a target and a text, and nothing else."""
    plain = len(arguments) > 1 and not any(word.startswith("-") for word in arguments)
    words = "".join(arguments)
    return plain and inside_session() and bool("".join(arguments[1:]).strip()) and encodable(words)


def send(target: str, words: list[str]) -> int:
    _, url, token = (os.environ[name] for name in SESSION_VARIABLES)
    try:
        request = hook.request_bytes("POST", "/messages", token, message_body(target, " ".join(words)))
        status, content = hook.exchange(url, request, TIMEOUT_S)
    except (OSError, ValueError) as problem:
        return report_failure(problem)
    if status != CREATED:
        return report_failure((status, content))
    head, _, rest = content.partition(b'","state":"')
    if head.startswith(ONE_MESSAGE) and b'},{"' not in content:
        state = rest.partition(b'"')[0]
        show(f"{head[len(ONE_MESSAGE) :].decode()} {state.decode()}")
        return 0
    from sm.cli.messages import show_sent  # noqa: PLC0415  # for several targets

    return show_sent(json_list(content))


def message_body(target: str, text: str) -> bytes:
    return f'{{"to":{encode_basestring_ascii(target)},"text":{encode_basestring_ascii(text)}}}'.encode()


def json_list(content: bytes) -> list[dict[str, Any]]:
    import json  # noqa: PLC0415  # as above

    found: list[dict[str, Any]] = json.loads(content)
    return found


def json_value(content: bytes) -> dict[str, Any]:
    import json  # noqa: PLC0415  # 5 ms, not needed for a handoff

    view = json.loads(content)
    if not isinstance(view, dict):
        raise ValueError("no JSON object")  # noqa: TRY004  # as json's own error
    return view


def handoff(file: str) -> int:
    session, url, token = (os.environ[name] for name in SESSION_VARIABLES)
    path = os.path.abspath(file)  # noqa: PTH100  # pathlib costs 10 ms
    try:
        extra = f"X-SM-Pid: {os.getpid()}\r\n"  # saves the server a search through every process
        request = hook.request_bytes("POST", f"/sessions/{session}/handoff", token, handoff_body(session, path), extra)
        status, content = hook.exchange(url, request, TIMEOUT_S)
    except (OSError, ValueError) as problem:
        return report_failure(problem)
    if status != HTTP_OK:
        return report_failure((status, content))
    show(SCHEDULED)
    return 0


def handoff_body(session: str, path: str) -> bytes:
    path.encode()  # UnicodeEncodeError, a ValueError, for a name that no JSON can hold
    requester, file = encode_basestring_ascii(session), encode_basestring_ascii(path)
    return f'{{"requester_session_id":{requester},"file_path":{file}}}'.encode()


def report_failure(outcome: OSError | ValueError | tuple[int, bytes]) -> int:
    from sm.cli import handoff  # noqa: PLC0415  # for a failure only

    return handoff.report_failure(outcome)
