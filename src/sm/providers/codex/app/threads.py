"""Threads of an app-server: beginning one, taking one up, and the rights and the model that go from one to the next.

A new thread gets what the last one had when it was left, which the user may have changed in the client's screen: never
more. A thread has no file before its first prompt, and none can be taken up without; its name makes one (0.171.0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from sm.core.ports.provider import ConnectedSession
from sm.providers.codex.app import schema
from sm.providers.codex.app.rpc import NAME, RefusedError, Rpc

SANDBOXES = {
    "readOnly": "read-only",
    "workspaceWrite": "workspace-write",
    "dangerFullAccess": "danger-full-access",
}
"""How a new thread is asked for what a thread tells of its sandbox."""
STRICTEST = "readOnly"
UNKNOWN_THREAD = "no rollout found"
Opened: TypeAlias = schema.ThreadStartResponse | schema.ThreadResumeResponse
"""What the server tells of a thread that has been begun, or taken up."""


@dataclass(slots=True)
class ThreadSettings:
    """None where the user's configuration decides."""

    approval: Any = None
    reviewer: str | None = None
    sandbox: dict[str, Any] | None = None
    """The whole policy, as the client tells it."""
    model: str | None = None
    effort: str | None = None
    _due: bool = False

    def note(self, told: Opened | schema.ThreadSettings) -> None:
        """Take what a thread tells of itself, at its start or after a change."""
        if isinstance(told, schema.ThreadSettings):
            sandbox, self.effort = told.sandbox_policy, told.effort
        else:
            sandbox, self.effort = told.sandbox, told.reasoning_effort
        self.sandbox = sandbox if isinstance(sandbox, dict) else self.sandbox
        self.approval = told.approval_policy if isinstance(told.approval_policy, str | dict) else self.approval
        self.reviewer = told.approvals_reviewer or self.reviewer
        self.model = told.model or self.model

    @property
    def mode(self) -> str:
        """The permission mode in words: its sandbox and when it asks."""
        asks = self.approval if isinstance(self.approval, str) else "granular" if self.approval else ""
        return " ".join(filter(None, (self._sandbox_mode(), asks)))

    def of_new_thread(self, directory: str, source: str) -> schema.ThreadStart:
        """Return the request for a new thread."""
        self._due = self.sandbox is not None
        return schema.ThreadStart(
            approval_policy=self.approval,
            approvals_reviewer=self.reviewer,
            cwd=directory,
            model=self.model,
            sandbox=self._sandbox_mode() or None,
            service_name=NAME,
            session_start_source=source,
        )

    def first_turn(self, thread: str, prompt: list[Any]) -> schema.TurnStart:
        """Return the request for a prompt; a new thread's first has what its start could not be given.

        A start takes a sandbox by its name alone.
        """
        if not self._due:
            return schema.TurnStart(input=prompt, thread_id=thread)
        return schema.TurnStart(input=prompt, thread_id=thread, effort=self.effort, sandbox_policy=self.sandbox)

    def first_turn_begun(self) -> None:
        self._due = False

    def _sandbox_mode(self) -> str:
        if self.sandbox is None:
            return ""
        return SANDBOXES.get(str(self.sandbox.get("type")), SANDBOXES[STRICTEST])


async def started(rpc: Rpc, session: ConnectedSession, settings: ThreadSettings, source: str) -> Opened:
    """Begin a thread that has a file; return what the server tells of it."""
    found = await rpc.call(settings.of_new_thread(session.directory, source))
    await rpc.call(schema.ThreadSetName(name=session.name, thread_id=_identity(found)))
    return found


async def resumed(rpc: Rpc, thread: str) -> Opened | None:
    """Take up a thread, whose notifications then come; None for one that has no file."""
    try:
        found = await rpc.call(schema.ThreadResume(thread_id=thread, exclude_turns=True))
    except RefusedError as problem:
        if UNKNOWN_THREAD in str(problem):
            return None
        raise
    _identity(found)
    return found


def _identity(found: Opened) -> str:
    if not found.thread.id:
        raise RefusedError("the app-server has named no thread")
    return found.thread.id
