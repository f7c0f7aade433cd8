"""One attempt is one session of `sm`: begun, looked at and ended through the server, which knows whose it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sm.client import Client, ask_path, session_path
from sm.core.errors import SmError
from sm.core.model.ask import AskState, Decision
from sm.core.model.budget import BudgetLevel
from sm.core.model.session import Status
from sm.runner.outcome import Prepared, SessionLook
from sm.runner.worktrees import directory_name

END_TIMEOUT_S = 60.0
NOTHING_TO_END = frozenset({"ended", "not_found"})
NOTHING_TO_DENY = frozenset({"ask_over", "not_found"})
AT_WORK = frozenset({Status.STARTING, Status.WORKING, Status.SILENT, Status.COMPACTING, Status.UNKNOWN})
"""What a client may say of itself that has stopped working."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How the sessions of a run are started."""

    environ: Mapping[str, str]
    command: str | None = None
    model: str | None = None
    arguments: tuple[str, ...] = ()
    headless: bool = False
    """Without a screen."""
    handoff_threshold: int | None = None
    """Percent of the usable context; None as configured."""


def mark(run: str, issue: str) -> str:
    """Return what names the work on an issue in a run: the server, the engine and git have it by that."""
    return f"{run}/{directory_name(issue)}"


def attempt_name(run: str, issue: str, number: int) -> str:
    return f"{mark(run, issue)}/{number}"


@dataclass(frozen=True, slots=True)
class Transcripts:
    """What the client's own files say that the server does not."""

    awaits_tool: Callable[[Path], bool]
    """Whether a command of the agent runs."""
    last_message: Callable[[Path], str | None]


@dataclass(frozen=True, slots=True)
class AgentSessions:
    connect: Callable[[], Client]
    """Returns a client of the server as it is now, started if none runs: its address changes with a restart."""
    options: SessionOptions
    transcripts: Transcripts

    def ensured(self, attempt: str, prepared: Prepared) -> str:
        """Return the id of the attempt's session: the one that the server has, or a new one."""
        options = self.options
        body = {
            "dir": prepared.place.directory,
            "env": {**options.environ, **prepared.environment},
            "command": options.command,
            "model": options.model,
            "arguments": list(options.arguments),
            "prompt": prepared.prompt,
            "attempt": attempt,
            "scope": prepared.scope,
            "headless": options.headless,
            "handoff_threshold": options.handoff_threshold,
        }
        return str(self.connect().call("POST", "/sessions", body)["id"])

    def look(self, session: str) -> SessionLook:
        client = self.connect()
        view: dict[str, Any] = client.call("GET", session_path(session))
        budget = view["budget"]
        asks = client.call("GET", "/asks")
        transcript = Path(view["transcript"] or "")
        written = transcript.stat().st_mtime if transcript.is_file() else 0.0
        return SessionLook(
            id=view["id"],
            status=view["status"],
            detail=view["detail"],
            at_rest=view["at_rest"],
            rotations=view["rotations"],
            last_activity=max(view["last_activity"], written),
            lost_at=view["lost_at"],
            in_request=view["status"] in AT_WORK and not self.transcripts.awaits_tool(transcript),
            asks=tuple(ask["id"] for ask in asks if ask["session"] == view["id"] and ask["state"] == AskState.OPEN),
            document=view["handoff"].get("copy") or "",
            paused=view["loop_guard"]["paused"],
            held=budget["text"] if budget is not None and budget["level"] == BudgetLevel.PAUSED else "",
        )

    def costs(self, run: str) -> list[dict[str, Any]]:
        """Return what each session of the run has used, as the server counts it."""
        found: list[dict[str, Any]] = self.connect().call("GET", f"/cost?run={quote(run)}")
        return found

    def run_ended(self, run: str, project: str, words: str) -> None:
        """Have the server notify the user."""
        self.connect().call("POST", "/notifications/run-ended", {"run": run, "project": project, "text": words})

    def last_message(self, session: str) -> str:
        """Return what its agent has said last; empty where a turn has not ended with words."""
        view: dict[str, Any] = self.connect().call("GET", session_path(session))
        return self.transcripts.last_message(Path(view["transcript"] or "")) or ""

    def deny(self, asks: Iterable[str], reason: str) -> None:
        """Deny what its client asks; what is over by now stays as it is."""
        client = self.connect()
        for ask in asks:
            try:
                client.call("POST", ask_path(ask), {"decision": Decision.DENY, "text": reason})
            except SmError as problem:
                if problem.refused.code not in NOTHING_TO_DENY:
                    raise

    def end(self, session: str) -> None:
        """End its client, and what it has started; one that has ended already stays as it is."""
        try:
            self.connect().call("DELETE", session_path(session), timeout=END_TIMEOUT_S)
        except SmError as problem:
            if problem.refused.code not in NOTHING_TO_END:
                raise
