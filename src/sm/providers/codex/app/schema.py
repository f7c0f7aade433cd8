"""What is sent to Codex's app-server and read of it (0.171.0): its own types, with the members that are used.

Generated from the schema of the installed client by `scripts/codex_schema.py`; edit the tables there. Below a member
are the words that it may hold. What is read has a default for each member, since another version may leave it out.
"""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

import msgspec

Result = TypeVar("Result", bound=msgspec.Struct)


class FromServer(msgspec.Struct, frozen=True, rename="camel"):
    """What the server says; it decodes from an object that has other members as well."""


class ToServer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Part of what is sent; None is left out."""


class AppRequest(msgspec.Struct, Generic[Result], frozen=True, rename="camel", omit_defaults=True):
    """What the server is asked for; None is left out."""

    method: ClassVar[str]
    result: ClassVar[type[msgspec.Struct]]


class Nothing(FromServer, frozen=True):
    """Of the result nothing is read."""


class RateLimitWindow(FromServer, frozen=True):
    resets_at: int | None = None
    used_percent: int = 0
    window_duration_mins: int | None = None


class RateLimitSnapshot(FromServer, frozen=True):
    primary: RateLimitWindow | None = None
    secondary: RateLimitWindow | None = None


class AccountRateLimitsUpdatedNotification(FromServer, frozen=True):
    rate_limits: RateLimitSnapshot = RateLimitSnapshot()


class FileUpdateChange(FromServer, frozen=True):
    diff: str = ""
    kind: msgspec.Raw = msgspec.Raw(b"{}")
    path: str = ""


class UserInput(FromServer, frozen=True):
    text: str = ""
    type: str = ""
    """text"""


class ThreadItem(FromServer, frozen=True):
    aggregated_output: str | None = None
    changes: list[FileUpdateChange] = []
    content: list[UserInput] = []
    id: str = ""
    server: str = ""
    status: str = ""
    """completed, declined, failed, inProgress"""
    text: str = ""
    tool: str = ""
    type: str = ""
    """agentMessage, commandExecution, contextCompaction, dynamicToolCall, fileChange, imageView, mcpToolCall,
    userMessage, webSearch"""


class ItemCompletedNotification(FromServer, frozen=True):
    item: ThreadItem = ThreadItem()
    thread_id: str = ""
    turn_id: str = ""


class ItemStartedNotification(FromServer, frozen=True):
    item: ThreadItem = ThreadItem()
    thread_id: str = ""
    turn_id: str = ""


class ServerRequestResolvedNotification(FromServer, frozen=True):
    request_id: Any = None


class ThreadSettings(FromServer, frozen=True):
    approval_policy: Any = None
    approvals_reviewer: str = ""
    """auto_review, guardian_subagent, user"""
    effort: str | None = None
    model: str = ""
    sandbox_policy: Any = None


class ThreadSettingsUpdatedNotification(FromServer, frozen=True):
    thread_id: str = ""
    thread_settings: ThreadSettings = ThreadSettings()


class ThreadStatus(FromServer, frozen=True):
    active_flags: list[str] = []
    type: str = ""
    """active, idle, notLoaded, systemError"""


class Thread(FromServer, frozen=True):
    agent_role: str | None = None
    ephemeral: bool = False
    id: str = ""
    originator: str | None = None
    parent_thread_id: str | None = None
    path: str | None = None
    status: ThreadStatus = ThreadStatus()


class ThreadStartedNotification(FromServer, frozen=True):
    thread: Thread = Thread()


class ThreadStatusChangedNotification(FromServer, frozen=True):
    status: ThreadStatus = ThreadStatus()
    thread_id: str = ""


class TokenUsageBreakdown(FromServer, frozen=True):
    input_tokens: int = 0


class ThreadTokenUsage(FromServer, frozen=True):
    last: TokenUsageBreakdown = TokenUsageBreakdown()
    model_context_window: int | None = None


class ThreadTokenUsageUpdatedNotification(FromServer, frozen=True):
    thread_id: str = ""
    token_usage: ThreadTokenUsage = ThreadTokenUsage()


class TurnError(FromServer, frozen=True):
    codex_error_info: Any = None
    message: str = ""


class Turn(FromServer, frozen=True):
    error: TurnError | None = None
    id: str = ""
    status: str = ""
    """completed, failed, inProgress, interrupted"""


class TurnCompletedNotification(FromServer, frozen=True):
    thread_id: str = ""
    turn: Turn = Turn()


class TurnStartedNotification(FromServer, frozen=True):
    thread_id: str = ""
    turn: Turn = Turn()


class CommandExecutionRequestApprovalParams(FromServer, frozen=True):
    approval_id: str | None = None
    available_decisions: list[Any] | None = None
    command: str | None = None
    cwd: str | None = None
    item_id: str = ""
    reason: str | None = None
    thread_id: str = ""


class CommandExecutionRequestApprovalResponse(ToServer, frozen=True, kw_only=True):
    decision: Any


class FileChangeRequestApprovalParams(FromServer, frozen=True):
    item_id: str = ""
    reason: str | None = None
    thread_id: str = ""


class FileChangeRequestApprovalResponse(ToServer, frozen=True, kw_only=True):
    decision: Any


class PermissionsRequestApprovalParams(FromServer, frozen=True):
    cwd: str = ""
    item_id: str = ""
    permissions: msgspec.Raw = msgspec.Raw(b"{}")
    reason: str | None = None
    thread_id: str = ""


class PermissionsRequestApprovalResponse(ToServer, frozen=True, kw_only=True):
    permissions: Any
    scope: str | None = None
    """session, turn"""


class ToolRequestUserInputOption(FromServer, frozen=True):
    description: str = ""
    label: str = ""


class ToolRequestUserInputQuestion(FromServer, frozen=True):
    id: str = ""
    options: list[ToolRequestUserInputOption] | None = None
    question: str = ""


class ToolRequestUserInputParams(FromServer, frozen=True):
    item_id: str = ""
    questions: list[ToolRequestUserInputQuestion] = []
    thread_id: str = ""


class ToolRequestUserInputAnswer(ToServer, frozen=True, kw_only=True):
    answers: list[str]


class ToolRequestUserInputResponse(ToServer, frozen=True, kw_only=True):
    answers: dict[str, ToolRequestUserInputAnswer]


class McpServerElicitationRequestParams(FromServer, frozen=True):
    message: str = ""
    mode: str = ""
    """form, openai/form, openai/userVerification, openaiForm, url"""
    requested_schema: Any = None
    server_name: str = ""
    thread_id: str = ""


class McpServerElicitationRequestResponse(ToServer, frozen=True, kw_only=True):
    action: str
    """accept, cancel, decline"""
    content: Any = None


class ClientInfo(ToServer, frozen=True, kw_only=True):
    name: str
    version: str
    title: str | None = None


class InitializeCapabilities(ToServer, frozen=True, kw_only=True):
    experimental_api: bool | None = None
    opt_out_notification_methods: list[str] | None = None


class Initialize(AppRequest[Nothing], frozen=True, kw_only=True):
    method: ClassVar[str] = "initialize"
    result: ClassVar[type[msgspec.Struct]] = Nothing
    client_info: ClientInfo
    capabilities: InitializeCapabilities | None = None


class ThreadStartResponse(FromServer, frozen=True):
    approval_policy: Any = None
    approvals_reviewer: str = ""
    """auto_review, guardian_subagent, user"""
    model: str = ""
    reasoning_effort: str | None = None
    sandbox: Any = None
    thread: Thread = Thread()


class ThreadStart(AppRequest[ThreadStartResponse], frozen=True, kw_only=True):
    method: ClassVar[str] = "thread/start"
    result: ClassVar[type[msgspec.Struct]] = ThreadStartResponse
    approval_policy: Any = None
    approvals_reviewer: str | None = None
    """auto_review, guardian_subagent, user"""
    cwd: str | None = None
    model: str | None = None
    sandbox: str | None = None
    """danger-full-access, read-only, workspace-write"""
    service_name: str | None = None
    session_start_source: str | None = None
    """clear, startup"""


class ThreadLoadedListResponse(FromServer, frozen=True):
    data: list[str] = []
    next_cursor: str | None = None


class ThreadLoadedList(AppRequest[ThreadLoadedListResponse], frozen=True, kw_only=True):
    method: ClassVar[str] = "thread/loaded/list"
    result: ClassVar[type[msgspec.Struct]] = ThreadLoadedListResponse
    cursor: str | None = None


class ThreadSetName(AppRequest[Nothing], frozen=True, kw_only=True):
    method: ClassVar[str] = "thread/name/set"
    result: ClassVar[type[msgspec.Struct]] = Nothing
    name: str
    thread_id: str


class ThreadReadResponse(FromServer, frozen=True):
    thread: Thread = Thread()


class ThreadRead(AppRequest[ThreadReadResponse], frozen=True, kw_only=True):
    method: ClassVar[str] = "thread/read"
    result: ClassVar[type[msgspec.Struct]] = ThreadReadResponse
    thread_id: str


class ThreadResumeResponse(FromServer, frozen=True):
    approval_policy: Any = None
    approvals_reviewer: str = ""
    """auto_review, guardian_subagent, user"""
    model: str = ""
    reasoning_effort: str | None = None
    sandbox: Any = None
    thread: Thread = Thread()


class ThreadResume(AppRequest[ThreadResumeResponse], frozen=True, kw_only=True):
    method: ClassVar[str] = "thread/resume"
    result: ClassVar[type[msgspec.Struct]] = ThreadResumeResponse
    thread_id: str
    exclude_turns: bool | None = None


class ThreadUnsubscribe(AppRequest[Nothing], frozen=True, kw_only=True):
    method: ClassVar[str] = "thread/unsubscribe"
    result: ClassVar[type[msgspec.Struct]] = Nothing
    thread_id: str


class ThreadCompactStart(AppRequest[Nothing], frozen=True, kw_only=True):
    method: ClassVar[str] = "thread/compact/start"
    result: ClassVar[type[msgspec.Struct]] = Nothing
    thread_id: str


class ThreadGoal(FromServer, frozen=True):
    objective: str = ""
    status: str = ""
    """active, blocked, budgetLimited, complete, paused, usageLimited"""
    token_budget: int | None = None


class ThreadGoalGetResponse(FromServer, frozen=True):
    goal: ThreadGoal | None = None


class ThreadGoalGet(AppRequest[ThreadGoalGetResponse], frozen=True, kw_only=True):
    method: ClassVar[str] = "thread/goal/get"
    result: ClassVar[type[msgspec.Struct]] = ThreadGoalGetResponse
    thread_id: str


class ThreadGoalSet(AppRequest[Nothing], frozen=True, kw_only=True):
    method: ClassVar[str] = "thread/goal/set"
    result: ClassVar[type[msgspec.Struct]] = Nothing
    thread_id: str
    objective: str | None = None
    status: str | None = None
    """active, blocked, budgetLimited, complete, paused, usageLimited"""
    token_budget: int | None = None


class ThreadInjectItems(AppRequest[Nothing], frozen=True, kw_only=True):
    method: ClassVar[str] = "thread/inject_items"
    result: ClassVar[type[msgspec.Struct]] = Nothing
    items: list[Any]
    thread_id: str


class TurnStart(AppRequest[Nothing], frozen=True, kw_only=True):
    method: ClassVar[str] = "turn/start"
    result: ClassVar[type[msgspec.Struct]] = Nothing
    input: list[Any]
    thread_id: str
    effort: str | None = None
    sandbox_policy: Any = None


class TurnInterrupt(AppRequest[Nothing], frozen=True, kw_only=True):
    method: ClassVar[str] = "turn/interrupt"
    result: ClassVar[type[msgspec.Struct]] = Nothing
    thread_id: str
    turn_id: str
