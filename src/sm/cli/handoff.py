"""`sm handoff` with what the fast path does not handle: options, standard input, and the reason of a refusal."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sm.archive.handoffs.project_directory import write_in_project
from sm.cli.fastpath import SCHEDULED
from sm.cli.format import emit_json, encodable, run_reporting, show
from sm.client import UnavailableError, answered, inside_session, session_client, session_path
from sm.core.errors import SmError, error
from sm.core.model.context_warnings import handoff_file
from sm.paths import atomic_write

NOT_INSIDE = "Error: CLAUDE_SESSION_MANAGER_ID not set. sm handoff can only be called from within a session."
MAX_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class NextClient:
    """Which client continues."""

    to: str = ""
    """Its provider; empty for the session's own."""
    arguments: tuple[str, ...] = ()

    @property
    def body(self) -> dict[str, Any]:
        """Its part of the request."""
        return {"to": self.to, "arguments": self.arguments} if self.to or self.arguments else {}


OWN = NextClient()


def schedule(file: str, reason: str, *, following: NextClient = OWN, as_json: bool) -> int:
    return run_reporting(lambda: _schedule(file, reason, following, as_json=as_json), as_json=as_json)


def report_failure(outcome: OSError | ValueError | tuple[int, bytes]) -> int:
    """Print the failure of a request that the fast path has sent; return the exit code."""

    def explain() -> None:
        if isinstance(outcome, UnicodeEncodeError):
            raise unnamable(str(outcome.object))
        if not isinstance(outcome, tuple):
            raise UnavailableError(str(outcome)) from outcome
        answered(os.environ["SM_URL"], *outcome)

    return run_reporting(explain, as_json=False)


def _schedule(file: str, reason: str, following: NextClient, *, as_json: bool) -> None:
    session = inside_session()
    if session is None:
        raise error("not_in_session", NOT_INSIDE)
    session_client()
    path = str(_document_from_stdin(session)) if file == "-" else document_path(file)
    order_handoff(session, path, reason, "agent", following, as_json=as_json)


def document_path(file: str) -> str:
    path = os.path.abspath(file)  # noqa: PTH100  # resolves `..`, keeps links
    if not os.path.lexists(path):
        raise error("file_not_found", f"Error: File not found: {path}", "write the handoff document first")
    if not encodable(path):
        raise unnamable(path)
    return path


def order_handoff(
    session: str, path: str, reason: str, kind: str, following: NextClient = OWN, *, as_json: bool
) -> None:
    """Tell the server to schedule the session's own rotation from the document at `path`."""
    body = {"requester_session_id": session, "file_path": path, "reason": reason, "type": kind, **following.body}
    answer = session_client().call("POST", session_path(session, "/handoff"), body)
    if as_json:
        emit_json(answer)
    else:
        show(SCHEDULED)


def unnamable(path: str) -> SmError:
    return error("file_unfit", f"Cannot hand off {path}: its name is not UTF-8", "give it another name")


def standard_input() -> bytes:
    if sys.stdin is None or sys.stdin.isatty():
        raise error("usage", "`sm handoff -` reads the document from standard input", "sm handoff - <<'EOF' … EOF")
    content = sys.stdin.buffer.read(MAX_BYTES + 1)
    if not content.strip():
        raise error("file_unfit", "The document on standard input is empty", "write what the next context must know")
    if len(content) > MAX_BYTES:
        raise error("file_unfit", f"The document on standard input is larger than {MAX_BYTES:,} bytes", "shorten it")
    return content


def _document_from_stdin(session: str) -> Path:
    """Write the document to the path that every warning names: in plan mode an agent cannot write files itself."""
    content = standard_input()
    directory = session_client().call("GET", session_path(session))["dir"]
    return write_in_project(Path(directory), handoff_file(session), content)


def write_document(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as problem:
        raise error(
            "write_failed", f"Cannot write {path}: {problem.strerror}", "name a file you can write"
        ) from problem
    atomic_write(path, content)
