"""`sm handoff FILE` of an agent without the command parser: the last call of a turn should cost no more than it must.

Takes exactly the plain form, and only its good end: anything with an option, every mistake and every refusal goes to
`sm.cli.handing_off`, which says what is wrong. `_json` is the accelerator inside `json`, without the 5 ms around it.
"""

from __future__ import annotations

import os
from _json import encode_basestring_ascii

from sm import hook
from sm.cli.output import show

NAMES = ("CLAUDE_SESSION_MANAGER_ID", "SM_URL", "SM_SESSION_TOKEN")
TIMEOUT = 30.0
SCHEDULED = "Handoff scheduled — will execute after current turn completes"
"""Words that agents read; `core.handoff` has them too, and costs 10 ms."""
HTTP_OK = 200


def handles(arguments: list[str]) -> bool:
    plain = len(arguments) == 1 and not arguments[0].startswith("-")
    known = all(os.environ.get(name) for name in NAMES) and os.environ[NAMES[0]].isalnum()
    return plain and known and os.path.lexists(arguments[0])


def handoff(file: str) -> int:
    session, url, token = (os.environ[name] for name in NAMES)
    path = os.path.abspath(file)  # noqa: PTH100  # pathlib costs 10 ms
    try:
        request = hook.request_bytes("POST", f"/sessions/{session}/handoff", token, body(session, path))
        status, content = hook.exchange(url, request, TIMEOUT)
    except (OSError, ValueError) as problem:
        return explained(problem)
    if status != HTTP_OK:
        return explained((status, content))
    show(SCHEDULED)
    return 0


def body(session: str, path: str) -> bytes:
    path.encode()  # UnicodeEncodeError, a ValueError, for a name that no JSON can hold
    requester, file = encode_basestring_ascii(session), encode_basestring_ascii(path)
    return f'{{"requester_session_id":{requester},"file_path":{file}}}'.encode()


def explained(outcome: OSError | ValueError | tuple[int, bytes]) -> int:
    from sm.cli import handing_off  # noqa: PLC0415  # only what went wrong needs words

    return handing_off.explained(outcome)
