"""Who may send what to whom: the limits of the queue, and the words of each refusal.

Two agents that answer each other could do so for ever: after so many messages both directions are paused until the
user speaks to one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sm.core.errors import Refused
from sm.core.ids import as_argument
from sm.core.model.message import Mode, SendRequest
from sm.core.model.session import Session, Status

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class SendLimits:
    """The `limits.*` of the configuration that concern messages; `settings.py` has their meaning and defaults."""

    message_bytes: int
    queued: int
    sends_per_minute: int
    exchanges: int


def refusal(request: SendRequest, sender: Session | None, target: Session, limits: SendLimits) -> Refused | None:
    """Return why `target` cannot get it, as far as sender and target show; `sender` is None for the user."""
    unfit = unfit_body(request.body, limits)
    if unfit is not None:
        return unfit
    if target.ended:
        gone = f"Session {target.name} has ended ({target.detail or target.status.value})"
        return Refused("ended", gone, f"sm restore {as_argument(target.name, target.id)} brings it back")
    if sender is not None and sender.id == target.id:
        return Refused("bad_request", "A session cannot send to itself", "name another session: sm list")
    return _mode_refusal(request, sender, target) or _full(target, limits)


def unfit_body(body: str, limits: SendLimits) -> Refused | None:
    """Why no session can get it, whichever it is."""
    if not body:
        return Refused("bad_request", "The message is empty", "write a text")
    size = len(body.encode("utf-8", "replace"))
    if size <= limits.message_bytes:
        return None
    limit = f"{limits.message_bytes:,} bytes (limits.message_bytes)"
    return Refused(
        "too_large", f"The message has {size:,} bytes; at most {limit}", "put it into a file and name the file"
    )


def _mode_refusal(request: SendRequest, sender: Session | None, target: Session) -> Refused | None:
    if request.command:
        return _command_refusal(request.body, sender, target)
    if request.mode is Mode.STEER and target.status not in WORKING:
        idle = f"Session {target.name} is not working ({target.status.value}); --steer needs a running turn"
        return Refused("not_working", idle, "send it without --steer")
    return None


WORKING = frozenset({Status.WORKING, Status.SILENT, Status.WAITING, Status.COMPACTING})


def _command_refusal(body: str, sender: Session | None, target: Session) -> Refused | None:
    if sender is not None and target.parent != sender.id:
        return Refused("forbidden", "--command is for the user, and for a parent to its child", "send it as text")
    if not body.startswith("/") or "\n" in body or not body.isprintable() or len(body) > MAX_COMMAND:
        hint = 'sm send CHILD --command "/compact"'
        return Refused("bad_request", "--command takes one line that begins with /", hint)
    return None


MAX_COMMAND = 400


def _full(target: Session, limits: SendLimits) -> Refused | None:
    if target.outbox.waiting < limits.queued:
        return None
    full = f"{target.outbox.waiting:,} messages wait for {target.name}; at most {limits.queued:,} (limits.queued)"
    return Refused("queue_full", full, f"sm inbox {as_argument(target.name, target.id)} shows them")


def too_fast(sent: Sequence[float], at: float, limits: SendLimits) -> Refused | None:
    """Return why a session that sent at those times, oldest first, may not send again yet."""
    recent = [time for time in sent if at - time < MINUTE_S]
    if len(recent) < limits.sends_per_minute:
        return None
    wait = MINUTE_S - (at - recent[-limits.sends_per_minute])
    fast = f"{len(recent)} messages in the last minute; at most {limits.sends_per_minute} (limits.sends_per_minute)"
    return Refused("too_fast", fast, f"wait {wait:.0f} s, or say it in one message")


def looping(there: int, back: int, names: tuple[str, str], limits: SendLimits) -> Refused | None:
    """Return why two agents are paused: they exchanged so many that the user should look; one-way traffic is none."""
    if 2 * min(there, back) < limits.exchanges:
        return None
    paused = (
        f"{names[0]} and {names[1]} have exchanged {there + back} messages without a word of the user; both directions "
        f"are paused after {limits.exchanges} (limits.exchanges)"
    )
    return Refused("paused", paused, "end your turn; a message of the user to one of you continues it")
