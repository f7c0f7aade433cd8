"""Threads of an app-server: beginning one, taking one up, and the rights and the model that go from one to the next.

A new thread gets what the last one had when it was left, which the user may have changed in the client's screen: never
more. A thread has no file before its first prompt, and none can be taken up without; its name makes one (0.171.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sm.core.ports.provider import ConnectedSession
from sm.providers.codex.app.rpc import RefusedError, Rpc

SANDBOXES = {
    "readOnly": "read-only",
    "workspaceWrite": "workspace-write",
    "dangerFullAccess": "danger-full-access",
}
"""How a new thread is asked for what a thread tells of its sandbox."""
STRICTEST = "readOnly"
UNKNOWN_THREAD = "no rollout found"


@dataclass(slots=True)
class ThreadSettings:
    """None where the user's configuration decides."""

    approval: Any = None
    reviewer: Any = None
    sandbox: dict[str, Any] | None = None
    """The whole policy, as the client tells it."""
    model: str | None = None
    effort: str | None = None
    _due: bool = False

    def note(self, told: Mapping[str, Any]) -> None:
        """Take what a thread tells of itself, at its start or after a change."""
        sandbox = told.get("sandboxPolicy", told.get("sandbox"))
        self.sandbox = sandbox if isinstance(sandbox, dict) else self.sandbox
        self.approval = told.get("approvalPolicy", self.approval)
        self.reviewer = told.get("approvalsReviewer", self.reviewer)
        self.model = told.get("model") or self.model
        self.effort = told.get("effort", told.get("reasoningEffort", self.effort))

    @property
    def mode(self) -> str:
        """The permission mode in words: its sandbox and when it asks."""
        asks = self.approval if isinstance(self.approval, str) else "granular" if self.approval else ""
        return " ".join(filter(None, (self._sandbox_mode(), asks)))

    def of_new_thread(self) -> dict[str, Any]:
        """Return what `thread/start` is given."""
        self._due = self.sandbox is not None
        found = {
            "approvalPolicy": self.approval,
            "approvalsReviewer": self.reviewer,
            "sandbox": self._sandbox_mode() or None,
            "model": self.model,
        }
        return {name: value for name, value in found.items() if value is not None}

    def first_turn(self) -> dict[str, Any]:
        """Return what the first turn of a new thread is given beside: a start takes a sandbox by its name alone."""
        if not self._due:
            return {}
        self._due = False
        effort = {} if self.effort is None else {"effort": self.effort}
        return {"sandboxPolicy": self.sandbox, **effort}

    def _sandbox_mode(self) -> str:
        if self.sandbox is None:
            return ""
        return SANDBOXES.get(str(self.sandbox.get("type")), SANDBOXES[STRICTEST])


async def started(rpc: Rpc, session: ConnectedSession, settings: ThreadSettings, source: str) -> dict[str, Any]:
    """Begin a thread that has a file; return what the server tells of it."""
    asked = settings.of_new_thread()
    result: dict[str, Any] = await rpc.call(
        "thread/start", cwd=session.directory, sessionStartSource=source, serviceName="sm", **asked
    )
    await rpc.call("thread/name/set", threadId=result["thread"]["id"], name=session.name)
    return result


async def resumed(rpc: Rpc, thread: str) -> dict[str, Any] | None:
    """Take up a thread, whose notifications then come; None for one that has no file."""
    try:
        result: dict[str, Any] = await rpc.call("thread/resume", threadId=thread, excludeTurns=True)
    except RefusedError as problem:
        if UNKNOWN_THREAD in str(problem):
            return None
        raise
    return result
