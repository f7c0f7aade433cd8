"""What a running Claude Code client says of itself: `sessions/<pid>.json` and the end of its transcript.

The state file is there once the directory is trusted and gone after an exit; after SIGKILL it stays, so it is believed
only while the process lives. `shell` means idle at the prompt with a background shell (2.1.328).
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from sm.core.events import Activity
from sm.core.model.message import digest
from sm.core.model.usage_limit import UsageLimit, is_recent
from sm.core.ports.provider import ClientState, RunningClient
from sm.processes import RunState, is_same_and_alive, read_small_file, run_state, terminal
from sm.providers.claude import limit_notices
from sm.providers.claude.authorship import SYNTHETIC
from sm.providers.claude.traits import CLAUDE
from sm.providers.jsonl import newest_lines
from sm.providers.lenient import lenient

ACTIVITIES = {
    "idle": Activity.IDLE,
    "shell": Activity.IDLE,
    "busy": Activity.BUSY,
    "waiting": Activity.WAITING,
}
HEADLESS = "sdk-cli"
"""The entrypoint of a client without a screen: it says that it is busy until 25 s after a turn (2.1.328)."""
MAX_RECORDS = 200
"""Records from the end in which a prompt of `sm` is looked for."""
STOPPED = "the client is stopped, as by Ctrl-Z; fg in its own terminal or kill -CONT {pid} continues it"


class _State(msgspec.Struct, rename="camel"):
    session_id: str = ""
    status: str = ""
    waiting_for: str | None = None
    status_updated_at: float = 0.0
    proc_start: str = ""
    tmux: str = ""
    entrypoint: str = ""


def client_state(config: str, pid: int) -> ClientState | None:
    state = _state(f"{config}/sessions/{pid}.json")
    if state is None:
        return None
    match run_state(pid):
        case RunState.GONE:
            return None
        case RunState.STOPPED:
            return ClientState(Activity.STOPPED, STOPPED.format(pid=pid), state.session_id)
    activity = ACTIVITIES.get(state.status, Activity.UNKNOWN)
    lags = state.entrypoint == HEADLESS and activity is Activity.BUSY
    activity = Activity.UNKNOWN if lags else activity
    return ClientState(activity, state.waiting_for or "", state.session_id, state.status_updated_at / 1000, lags)


def _state(path: str) -> _State | None:
    try:
        state = lenient(_State, read_small_file(path))
    except (OSError, ValueError):  # no such client, or a file that is being written
        return None
    return state if state.session_id else None


def running(config: Path, conversation: str) -> RunningClient | None:
    """The client that has the conversation open. After SIGKILL its file stays, and its pid may by now be another's."""
    for path in sorted((config / "sessions").glob("*.json")):
        state = _state(str(path))
        if state is None or state.session_id != conversation or not path.stem.isdecimal():
            continue
        pid = int(path.stem)
        if is_same_and_alive(pid, state.proc_start):
            places = (terminal(pid), f"tmux pane {state.tmux}" if state.tmux else "")
            return RunningClient(pid, ", ".join(filter(None, places)))
    return None


class _Prompt(msgspec.Struct, rename="camel"):
    type: Any = None
    message: dict[str, Any] | None = None
    is_api_error_message: Any = None
    is_sidechain: Any = None


def submitted(transcript: Path, wanted: str, position: int = 0) -> str | None:
    """The text of a prompt with that digest among the newest records behind that many bytes of the file, or None."""
    texts = _newest_texts(transcript, "user", start=position)
    return next((text for text in texts if digest(CLAUDE.as_typed(text)) == wanted), None)


def refusal(transcript: Path) -> str | None:
    """The client's words if its last record says that it will not continue, as at its context limit."""
    return limit_notices.refusal_in(next(iter(_newest_texts(transcript, "assistant", errors_only=True)), "")) or None


def usage_limit(transcript: Path, now: float) -> UsageLimit | None:
    """The usage limit that its last record tells of, unless that was over a day ago."""
    text = next(iter(_newest_texts(transcript, "assistant", errors_only=True)), "")
    found = limit_notices.limit_in(text, now)
    written = min(_written(transcript), now) if found is not None else now
    found = limit_notices.limit_in(text, written)
    return found if found is not None and is_recent(found, now) else None


def answered(transcript: Path) -> bool:
    """Whether its newest reply is the model's, and no error: what was refused before it has been continued."""
    for record in _newest(transcript, "assistant"):
        if record.is_sidechain is True:
            continue
        if record.is_api_error_message or (record.message or {}).get("model") != SYNTHETIC:
            return not record.is_api_error_message
    return False


def awaits_tool(transcript: Path) -> bool:
    """Whether a tool call of its newest reply with such calls has no result: it runs, or its client died during it."""
    results: set[object] = set()
    reply: object = None
    for line in itertools.islice(newest_lines(transcript, (b'"tool_use',)), MAX_RECORDS):
        record = _decoded(line)
        if record is None or record.is_sidechain is True:
            continue
        message = record.message or {}
        blocks = [block for block in _blocks(message) if isinstance(block, dict)]
        results |= {str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"}
        calls = {str(block.get("id")) for block in blocks if block.get("type") == "tool_use"}
        if calls and reply not in {None, message.get("id")}:
            return False
        if calls - results:
            return True
        reply = message.get("id") if calls else reply
    return False


class _Note(msgspec.Struct, rename="camel"):
    subtype: Any = None
    content: Any = None


def wait_cancelled(transcript: Path) -> bool:
    """Whether the user has ended the wait for a limit's end, by the client's newest note."""
    for line in itertools.islice(newest_lines(transcript, (b'"informational"',), longest=1 << 16), MAX_RECORDS):
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
            note = msgspec.json.decode(line, type=_Note)
            if note.subtype == "informational":
                return str(note.content).startswith(limit_notices.WAIT_CANCELLED)
    return False


def _written(transcript: Path) -> float:
    try:
        return transcript.stat().st_mtime
    except OSError:
        return 0.0


def _newest_texts(transcript: Path, kind: str, *, errors_only: bool = False, start: int = 0) -> list[str]:
    texts: list[str] = []
    for record in _newest(transcript, kind, start):
        if errors_only and not record.is_api_error_message:
            break  # a real reply came after whatever was refused
        texts.append(_text(record))
    return texts


def _newest(transcript: Path, kind: str, start: int = 0) -> Iterator[_Prompt]:
    """Yield its newest records of a kind; without a transcript nothing was submitted yet, and nothing refused."""
    lines = newest_lines(transcript, (f'"{kind}"'.encode(),), start=start, longest=1 << 20)
    for line in itertools.islice(lines, MAX_RECORDS):
        record = _decoded(line)
        if record is not None and record.type == kind:
            yield record


def _decoded(line: bytes) -> _Prompt | None:
    try:
        return msgspec.json.decode(line, type=_Prompt)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _text(record: _Prompt) -> str:
    message = record.message or {}
    if isinstance(message.get("content"), str):
        return str(message["content"])
    return "\n".join(str(block.get("text", "")) for block in _blocks(message) if isinstance(block, dict))


def _blocks(message: dict[str, Any]) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else []
