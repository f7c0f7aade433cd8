"""`sm handoff … --to PROVIDER --session S`: the user has another client continue a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sm.cli.connection import user_client
from sm.cli.format import emit_json, say
from sm.cli.handoff import NextClient, document_path, standard_input
from sm.client import session_path
from sm.core.errors import error
from sm.plain_text import plain


def hand_over(file: str | None, session: str, following: NextClient, reason: str, *, auto: bool, as_json: bool) -> None:
    """Schedule it from FILE, from standard input, or, with `auto`, from a document that `sm` makes."""
    client = user_client()
    view = client.call("GET", session_path(session))
    body: dict[str, Any] = {"requester_session_id": view["id"], **following.body}
    if auto:
        body |= {"document": _made(view)}
    elif file is None:
        raise error("usage", "FILE is missing", "name a document, or let sm make one: --auto")
    elif file == "-":
        body |= {"document": standard_input().decode("utf-8", "replace")}
    else:
        body |= {"file_path": document_path(file), "reason": reason}
    answer = client.call("POST", session_path(view["id"], "/handoff"), body)
    emit_json(answer) if as_json else say(
        f"{plain(view['name'])} continues with {following.to} once its turn has ended"
    )


def _made(view: dict[str, Any]) -> str:
    from sm.cli.auto_handoff import document_of  # noqa: PLC0415  # reads a whole transcript

    if not view.get("transcript"):
        raise error("no_conversation", f"Session {view['id']} has no transcript yet", "name a document")
    return document_of(Path(view["transcript"]), view["dir"])
