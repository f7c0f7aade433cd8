"""What `sm handoff` does, whichever way it was parsed."""

from __future__ import annotations

import os
import sys

from sm.cli.output import emit_json, reported, show
from sm.client import inside_session, session_client
from sm.core.errors import error

NOT_INSIDE = "Error: CLAUDE_SESSION_MANAGER_ID not set. sm handoff can only be called from within a session."
SCHEDULED = "Handoff scheduled — will execute after current turn completes"
STDIN_DOCUMENT = ".sm/handoff.md"
MAX_BYTES = 1024 * 1024


def schedule(file: str, reason: str, *, as_json: bool) -> int:
    return reported(lambda: _schedule(file, reason, as_json=as_json), as_json=as_json)


def _schedule(file: str, reason: str, *, as_json: bool) -> None:
    session = inside_session()
    if session is None:
        raise error("not_in_session", NOT_INSIDE)
    path = _document_from_stdin() if file == "-" else os.path.abspath(file)  # noqa: PTH100  # pathlib costs 10 ms here
    if file != "-" and not os.path.lexists(path):
        raise error("file_not_found", f"Error: File not found: {path}", "write the handoff document first")
    body = {"requester_session_id": session, "file_path": path, "reason": reason}
    answer = session_client().call("POST", f"/sessions/{session}/handoff", body)
    if as_json:
        emit_json(answer)
    else:
        show(SCHEDULED)


def _document_from_stdin() -> str:
    """Keep the document where every warning says it should be: in plan mode an agent can write no file itself."""
    if sys.stdin.isatty():
        raise error("usage", "`sm handoff -` reads the document from standard input", "sm handoff - <<'EOF' … EOF")
    content = sys.stdin.buffer.read(MAX_BYTES + 1)
    if not content.strip():
        raise error("file_unfit", "The document on standard input is empty", "write what the next context must know")
    path = os.path.abspath(STDIN_DOCUMENT)  # noqa: PTH100
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
    with open(path, "wb") as target:  # noqa: PTH123
        target.write(content)
    return path
