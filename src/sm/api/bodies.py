"""What the routes take: the JSON bodies of requests. A field that is not here is refused."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from sm.core.model.message import Mode

ATTEMPT = r"^(?:[^/\x00-\x1f]{1,100}/[^/\x00-\x1f]{1,100}/(?:review-)?[1-9]\d{0,3})?$"
RUN = r"^[^/\x00-\x1f]{1,100}$"
MAX_SCOPE = 4_000
"""Characters: they leave the room to the document."""


class ForegroundBody(msgspec.Struct, forbid_unknown_fields=True):
    """Of `sm run`, which starts the client itself."""

    wrapper: int
    max_restarts: int | None = None
    on_compact: str = "rotate"


class NewSessionBody(msgspec.Struct, forbid_unknown_fields=True):
    dir: str
    env: dict[str, str] = {}
    provider: str = "claude"
    name: str | None = None
    model: str | None = None
    prompt: str | None = None
    arguments: list[str] = []
    command: str | None = None
    handoff: str | None = None
    foreground: ForegroundBody | None = None
    attempt: Annotated[str, msgspec.Meta(pattern=ATTEMPT)] = ""
    """As RUN/ISSUE/NUMBER, or RUN/ISSUE/review-NUMBER: the session that has it is answered with, and started only if
    there is none. The prompt is then one of `sm` itself."""
    scope: Annotated[str, msgspec.Meta(max_length=MAX_SCOPE)] = ""
    """Shown to each new context of it, with the document that it begins from."""
    headless: bool = False
    """Of an attempt: its client shows no screen, and is driven by its plugin alone."""
    handoff_threshold: Annotated[float, msgspec.Meta(ge=1, le=100)] | None = None
    """Percent of the usable context at which its agent hands off, over what is configured."""


class RunEndedBody(msgspec.Struct, forbid_unknown_fields=True):
    run: Annotated[str, msgspec.Meta(pattern=RUN)]
    project: Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]
    """The name of its directory."""
    text: Annotated[str, msgspec.Meta(max_length=4_096)]


class LaunchBody(msgspec.Struct, forbid_unknown_fields=True):
    """How a client is started, or was."""

    argv: list[str]
    conversation: str
    config: str
    asked: list[tuple[str, str]] | None = None
    auto_compact: int | None = None
    """In the place of `asked` from an `sm run` that is older than the server: one outlives an upgrade."""
    farewell: list[str] = []
    plugin: bool = False
    no_plugin: str = ""


class ClientBody(msgspec.Struct, forbid_unknown_fields=True):
    launch: LaunchBody
    pid: int
    born: str


class ExitBody(msgspec.Struct, forbid_unknown_fields=True):
    pid: int
    code: int | None = None
    signal: int | None = None


class DoneBody(msgspec.Struct):
    """The result of an order; further members depend on its kind."""

    id: int
    problem: str = ""
    dropped: str = ""
    text: str = ""
    """What the agent's model has answered."""


class ContextBody(msgspec.Struct):
    conversation: str
    tokens: Annotated[int, msgspec.Meta(ge=0)]
    """Prompt side of the last request."""
    window: Annotated[int, msgspec.Meta(gt=0)]


class AskBody(msgspec.Struct):
    number: int
    """The same whenever the plugin asks again."""
    hook: msgspec.Raw
    """What the client asks its user, as its hook has it."""


class ShareBody(msgspec.Struct):
    """How much of a usage limit the account has used."""

    kind: Annotated[str, msgspec.Meta(max_length=40)]
    percent: Annotated[float, msgspec.Meta(ge=0, le=1_000)]
    resets_at: Annotated[float, msgspec.Meta(gt=0, le=1 << 40)] | None = None


class LinkBody(msgspec.Struct):
    """Of the plugin in a client; a newer one may say more."""

    generation: str
    hold: Annotated[float, msgspec.Meta(ge=0, le=25)] = 0
    done: list[DoneBody] = []
    context: ContextBody | None = None
    """How full the context is, after a reply of the turn that runs."""
    limits: Annotated[list[ShareBody], msgspec.Meta(max_length=20)] = []
    """The account's usage limits, as the client was last told them."""
    handoff: str | None = None
    """A document that the agent hands off."""
    ask: AskBody | None = None
    """What the client asks its user: answer with the user's answer, or after `hold` seconds."""
    started: bool = False
    """A context begins: answer with the document of which the hook's reply had a part."""


class OwnLinkBody(LinkBody):
    """Of the plugin in a client that the user has started."""

    hook: msgspec.Raw = msgspec.Raw(b"")
    """What a hook of the client says, as the client has it."""
    declined: bool = False
    """The user does not want their context to be cleared."""


class OrderBody(msgspec.Struct, forbid_unknown_fields=True):
    session: str
    step: int
    pid: int
    born: str
    env: dict[str, str] = {}


class HandoffBody(msgspec.Struct, forbid_unknown_fields=True):
    requester_session_id: str
    file_path: str = ""
    document: str = ""
    """Instead of a file."""
    reason: str = ""
    """Kept with a file."""
    type: Literal["agent", "auto"] = "agent"
    """`auto`: made without a model."""
    to: str = ""
    """The provider whose client continues from it; empty for the session's own."""
    arguments: list[str] = []
    """The user only: of that client."""


class RestoreBody(msgspec.Struct, forbid_unknown_fields=True):
    env: dict[str, str] = {}
    force: bool = False
    """The user only: start it though its client has ended again and again."""


class RenameBody(msgspec.Struct, forbid_unknown_fields=True):
    name: str


Seconds = Annotated[float, msgspec.Meta(gt=0, le=366 * 86_400.0)]


class MessageBody(msgspec.Struct, forbid_unknown_fields=True):
    text: str
    mode: Mode = Mode.SEQUENTIAL
    expires: Seconds | None = None
    notify_on_stop: bool = False
    wait: Annotated[float, msgspec.Meta(ge=0, le=366 * 86_400.0)] | None = None
    command: bool = False


class AddressedMessageBody(MessageBody, kw_only=True):
    to: str


class ChildBody(msgspec.Struct, forbid_unknown_fields=True):
    dir: str
    prompt: str
    env: dict[str, str] = {}
    provider: str | None = None
    name: str | None = None
    model: str | None = None
    track: float | None = None
    """Seconds between two requests to report; None for none."""
    notify: bool = True
    """Tell the parent when the task has ended."""


class ClearBody(msgspec.Struct, forbid_unknown_fields=True):
    prompt: str | None = None
    notify: bool = True


class ReportBody(msgspec.Struct, forbid_unknown_fields=True):
    text: str = ""
    done: bool = False


class ReminderBody(msgspec.Struct, forbid_unknown_fields=True):
    delay: float
    text: str
    every: bool = False


class WaitBody(msgspec.Struct, forbid_unknown_fields=True):
    target: str
    seconds: float


class AskAnswerBody(msgspec.Struct, forbid_unknown_fields=True):
    decision: Literal["allow", "deny", "answer"]
    text: str = ""
    """deny: what the agent reads."""
    always: bool = False
    """allow: with the lasting permission that the client offers."""
    answers: list[str | int | list[int]] = []
    """answer: one for each question, own words or the number of an option."""


class PruneBody(msgspec.Struct, forbid_unknown_fields=True):
    dry_run: bool = False


class PushKeys(msgspec.Struct, forbid_unknown_fields=True):
    p256dh: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{87}\Z")]
    """A point of the curve P-256, 65 bytes, in base64 as URLs have it."""
    auth: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{22}\Z")]
    """16 bytes, likewise."""


class PushBody(msgspec.Struct, forbid_unknown_fields=True):
    """A browser's PushSubscription, without when it expires."""

    endpoint: Annotated[str, msgspec.Meta(max_length=1_024)]
    keys: PushKeys


class WebLinkBody(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(max_length=40)] = ""
    """Of the device; empty for what its browser is called."""
    read_only: bool = False
