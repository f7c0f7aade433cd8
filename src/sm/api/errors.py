"""Error codes: what each means, and its HTTP status. Every error is JSON: `{"error", "code", "hint"}`.

Scripts branch on a code, so a code keeps its meaning. The table is also their reference text, those included that only
the command line gives.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from sm.core.errors import Refused
from sm.wire import error_answer

REFUSED = 409
"""The request was understood and is refused in the state things are in."""

CODES: dict[str, tuple[int, str]] = {
    "adopted": (REFUSED, "The user started that client in a terminal of their own: sm only watches it."),
    "alive": (REFUSED, "The session to be restored has not ended."),
    "ambiguous": (REFUSED, "Several sessions have an id that begins so; the message names them."),
    "already_running": (REFUSED, "Another server uses this SM_HOME."),
    "ask_over": (REFUSED, "What the client asks was answered already, or is answered in its terminal only."),
    "bad_branch": (400, "The text is not a name for a branch."),
    "attempt_taken": (REFUSED, "Another session works on that attempt."),
    "bad_config": (REFUSED, "A configuration file or variable has a value that is not accepted."),
    "bad_delay": (400, "A delay is too short or too long."),
    "bad_id": (400, "The text is not a valid id for a path."),
    "bad_issue": (REFUSED, "The issue cannot be used; the message says where and why."),
    "bad_method": (405, "The route exists, but not with this method."),
    "bad_migration": (500, "The installed database scripts are incomplete."),
    "bad_name": (
        400,
        "The name is not allowed for a session; the message says which rule it breaks.",
    ),
    "bad_path": (400, "A variable that names a directory must hold an absolute path."),
    "bad_payload": (400, "A hook's payload does not come from this provider."),
    "bad_request": (400, "The body or a parameter is not what the route takes."),
    "bad_settings": (REFUSED, "The client's settings file is not valid JSON, or not in the client's form."),
    "bad_sprint": (REFUSED, "The sprint does not exist or cannot be used; the message says why."),
    "bad_token": (REFUSED, "The token's file is missing, unreadable, open to others, or not the server's."),
    "bad_type": (415, "The body is not application/json."),
    "client_gone": (503, "The session has no pane, or its pane does not answer."),
    "client_not_found": (REFUSED, "The client's executable is not on the caller's PATH."),
    "config_untrusted": (REFUSED, "A project's configuration sets what needs `sm trust`."),
    "database_busy": (503, "Another program has locked the database."),
    "database_closed": (503, "The server is stopping."),
    "database_corrupt": (503, "The database file is damaged; the message says how."),
    "database_foreign": (REFUSED, "The database file was not written by sm."),
    "database_newer": (REFUSED, "The database was written by a newer sm."),
    "database_unwritable": (503, "The database cannot be written; the message says why."),
    "database_unusable": (503, "The database cannot be opened or written; the message says why."),
    "disk_full": (507, "The file system of the database has no room left."),
    "ended": (REFUSED, "The session has ended."),
    "file_not_found": (404, "The document to hand off does not exist."),
    "file_old": (REFUSED, "The document to hand off is older than the conversation."),
    "file_unfit": (
        REFUSED,
        "The document must be a plain, readable, non-empty file of the user within the size limit.",
    ),
    "file_unusable": (REFUSED, "A file or directory cannot be used; the message says why."),
    "forbidden": (403, "A session's token, or the user's, may not do this."),
    "foreign_host": (403, "The Host header is not a loopback name."),
    "foreign_origin": (403, "The request comes from another origin."),
    "foreign_server": (502, "Something else than sm answers at the server's address."),
    "gh_failed": (REFUSED, "The GitHub CLI is missing or has failed; the message says how."),
    "handoff_closed": (REFUSED, "The handoff was consumed, cleared or cannot be used; the message says which."),
    "handoff_gone": (410, "The document of the handoff cannot be read."),
    "handoff_mismatch": (REFUSED, "The document of the handoff names another id in its head lines."),
    "handoff_taken": (REFUSED, "Another session has the handoff; the message says which."),
    "handoff_unknown": (404, "No such handoff."),
    "home_unusable": (REFUSED, "SM_HOME cannot be used: not a directory, or another user's."),
    "hooks_disabled": (REFUSED, "The client's settings switch all hooks off."),
    "in_foreground": (REFUSED, "The session runs in the user's terminal (`sm run`) and has no pane."),
    "incomplete": (REFUSED, "The demo ended before every step was confirmed."),
    "inside_session": (REFUSED, "The command is for users and was called inside a session."),
    "internal": (500, "An internal error; the server's log or SM_DEBUG=1 shows where."),
    "issue_over": (REFUSED, "The issue is done or closed."),
    "issues_busy": (REFUSED, "Another process keeps the issues locked, or keeps writing the file."),
    "launch_failed": (502, "The client could not be started."),
    "migration_failed": (500, "A database script failed; the database is as it was before."),
    "name_taken": (REFUSED, "A living session has that name."),
    "no_channel": (REFUSED, "No notification channel is configured."),
    "no_conversation": (REFUSED, "The session has no conversation yet."),
    "no_directory": (REFUSED, "The directory for a session does not exist."),
    "no_handoff": (REFUSED, "No handoff is in the state that the command needs."),
    "no_context": (404, "The session has no context of that number."),
    "no_issue": (404, "The project has no such issue."),
    "no_order": (REFUSED, "The session is not one of `sm run`: it has a pane, or its client has ended."),
    "no_prompt": (REFUSED, "The project has neither an open handoff nor a continuation prompt."),
    "no_repository": (REFUSED, "The directory is not in a git repository, or git is missing."),
    "no_route": (404, "No such route."),
    "no_source": (REFUSED, "The directory is in no project with issues."),
    "no_terminal": (REFUSED, "The command needs a terminal."),
    "no_service": (REFUSED, "The server's service cannot be installed, started or removed; the message says why."),
    "not_answering": (503, "A server uses this SM_HOME but does not answer. Exit code 2."),
    "not_found": (404, "No such session, message or ask."),
    "not_in_session": (REFUSED, "The command is for agents and CLAUDE_SESSION_MANAGER_ID is not set. Exit code 2."),
    "not_limited": (REFUSED, "The session waits for no usage limit."),
    "not_reset": (REFUSED, "The usage limit has not reset yet; the message says when it does."),
    "client_continues": (REFUSED, "The client may still continue by itself after a usage limit: that would be twice."),
    "not_running": (REFUSED, "No server runs."),
    "not_working": (REFUSED, "The message is for a running turn, and the session is idle."),
    "not_client": (403, "Only the session's own client may do this."),
    "no_session": (404, "The server knows no session of this client yet; it reports what its hooks say first."),
    "not_self": (403, "A session may do this for itself only."),
    "not_stopping": (REFUSED, "The server did not stop in time."),
    "outside": (403, "The caller has a session's token, but the session's client has not started it."),
    "nothing_to_do": (REFUSED, "Of the chosen issues none can be worked now."),
    "paused": (429, "Two agents have exchanged too many messages; the user should look first."),
    "port_taken": (REFUSED, "Another process listens on the server's port."),
    "queue_full": (429, "The session's queue is full."),
    "reserved_argument": (REFUSED, "sm sets this client argument itself."),
    "restart_loop": (REFUSED, "The session's client has ended again and again without finishing a turn."),
    "rotating": (REFUSED, "The session is in the middle of a rotation."),
    "too_soon": (REFUSED, "The context has begun from a handoff and has hardly grown since."),
    "rotation_paused": (REFUSED, "Handoffs lead nowhere: the session waits for its user."),
    "running_elsewhere": (REFUSED, "Another client has the conversation open; the message says where."),
    "settings_changed": (REFUSED, "The client's settings file was changed while the command ran."),
    "setup_conflict": (
        REFUSED,
        "The client's settings already have an entry of the name or kind that setup would add.",
    ),
    "stale_order": (REFUSED, "The restart of `sm run` was cancelled, or was for another client."),
    "start_failed": (503, "The server could not be started. Exit code 2."),
    "too_deep": (REFUSED, "Too many generations of children: `limits.depth`."),
    "still_ending": (503, "The session's client has not ended yet; sm keeps trying."),
    "tmux_unusable": (503, "tmux cannot be started or does not answer; the message says why."),
    "too_fast": (429, "The session sends too many messages a minute."),
    "too_large": (413, "The body is larger than the route takes."),
    "too_late": (REFUSED, "The handoff, or the message, can no longer be cancelled."),
    "too_many": (REFUSED, "The session has too many children or reminders."),
    "unauthorized": (401, "No valid bearer token."),
    "unavailable": (503, "No server answers. Exit code 2."),
    "unknown_key": (REFUSED, "A configuration file names a key that does not exist."),
    "unknown_provider": (REFUSED, "No such client program."),
    "unreadable": (REFUSED, "The transcript cannot be read."),
    "usage": (400, "The command was called in a wrong way. Exit code 2."),
    "write_failed": (507, "A file of sm's could not be written; the message says why."),
}


def error_response(refused: Refused, headers: Mapping[str, str] | None = None) -> Response:
    status = CODES.get(refused.code, (REFUSED, ""))[0]
    return Response(msgspec.json.encode(error_answer(refused)), status, headers, "application/json")
