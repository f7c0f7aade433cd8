"""What the API answers and `--json` prints, built from core values in one place; `api/bodies.py` is what it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sm.core.model.context import Level, level
from sm.core.model.handoff import Entry
from sm.core.model.handoff_offer import Offer
from sm.core.model.history import Artefact, Hit
from sm.core.model.message import MessageState
from sm.core.model.reminder import Kind, Reminder
from sm.core.model.report import Report
from sm.core.model.rotation import Rotation
from sm.core.model.session import Session, Status
from sm.core.model.usage_limit import UsageLimit


def artefact_view(artefact: Artefact) -> dict[str, Any]:
    return {
        "session": artefact.session,
        "contexts": list(artefact.contexts),
        "kind": artefact.kind,
        "path": artefact.path,
        "size": artefact.size,
        "at": artefact.at,
    }


def hit_view(hit: Hit, name: str | None) -> dict[str, Any]:
    return {
        "at": hit.at,
        "session": hit.session,
        "name": name,
        "context": hit.context,
        "kind": hit.kind,
        "path": hit.path,
        "line": hit.line,
        "marks": [list(mark) for mark in hit.marks],
    }


def context_view(session: Session) -> dict[str, Any]:
    """`sm context`: null where nothing is known."""
    current = session.conversation
    if current is None:
        return {"tokens": None, "projected": None, "source": "unknown", "level": Level.UNKNOWN.value}
    monitor = current.monitor
    reading = monitor.reading
    proved_wrong = monitor.exceeds_window
    return {
        "tokens": reading.tokens,
        "projected": monitor.projected,
        "source": monitor.source.value,
        "level": level(monitor, session.policy).value,
        "exact": reading.exact,
        "stale": monitor.stale,
        "lower_bound": reading.lower_bound or monitor.estimated,
        "compactions": reading.compactions,
        "malformed": reading.malformed,
        "model": reading.model or session.model,
        "window": None if proved_wrong else reading.window,
        "window_assumed": reading.assumed and not proved_wrong,
        "usable": None if proved_wrong else monitor.usable,
        "percent": monitor.percent,
        "messages": reading.messages,
        "output_tokens": reading.output_tokens,
        "breakdown": dict(monitor.breakdown),
        "tool_calls": monitor.tool_calls,
        "crossed_at": {one.value: at for one, at in monitor.crossed},
        "handoffs_too_late": session.too_late,
        "limit": limit_view(session.limit),
        "conversation": current.id,
        "transcript": current.transcript,
    }


BRIEF = ("tokens", "projected", "usable", "percent", "level", "source", "stale", "window_assumed", "crossed_at")


def limit_view(limit: UsageLimit | None) -> dict[str, Any] | None:
    """A usage limit that the session has met; null where none is known."""
    return None if limit is None else {"kind": limit.kind, "resets_at": limit.resets_at, "since": limit.since}


def handoff_view(rotation: Rotation | None) -> dict[str, Any]:
    if rotation is None:
        return {"phase": None, "path": None}
    handoff = rotation.handoff
    return {
        "phase": rotation.phase.value,
        "path": handoff.path if handoff else None,
        "id": handoff.id if handoff else None,
        "copy": handoff.copy if handoff else None,
        "since": rotation.since,
        "note": rotation.note,
        "attempts": rotation.attempts,
        "snapshot": rotation.snapshot,
        "stopped": rotation.stopped,
        "finished": rotation.finished,
    }


def entry_view(entry: Entry, who: Callable[[str], str]) -> dict[str, Any]:
    """A handoff; `holder` is name and id of the session that has it."""
    kept = entry.handoff
    return {
        "id": kept.id,
        "state": entry.state.value,
        "held_by": entry.holder or None,
        "holder": who(entry.holder) if entry.holder else None,
        "session": kept.session,
        "conversation": kept.conversation,
        "channel": kept.channel,
        "dir": kept.directory,
        "branch": kept.branch or None,
        "type": kept.type.value,
        "created": kept.created,
        "changed": entry.changed,
        "consumed": entry.consumed,
        "path": kept.path,
        "copy": kept.copy,
        "reason": entry.reason,
    }


def offer_view(offer: Offer | None) -> dict[str, Any] | None:
    """What lies in the project of a session that has just begun; null where nothing does."""
    if not offer:
        return None
    waiting = offer.waiting
    return {
        "handoff": None if waiting is None else {"id": waiting.id, "path": waiting.copy, "created": waiting.created},
        "prompt": None if offer.prompt is None else {"path": offer.prompt.path, "written": offer.prompt.written},
        "foreign": [{"path": one.path, "written": one.written, "tracked": one.tracked} for one in offer.foreign],
    }


def session_view(session: Session) -> dict[str, Any]:
    current = session.conversation
    brief = context_view(session)
    return {
        "id": session.id,
        "name": session.name,
        "provider": session.provider,
        "status": session.shown_status.value,
        "detail": session.detail,
        "limit": limit_view(session.limit),
        "adopted": session.adopted,
        "dir": session.directory,
        "pid": session.pid,
        "pane": session.pane,
        "foreground": session.foreground is not None,
        "parent": session.parent,
        "model": session.model,
        "mode": session.mode or None,
        "report": report_view(session.report),
        "conversation": current.id if current else None,
        "transcript": current.transcript if current else None,
        "past_conversations": list(session.past),
        "context": {name: brief.get(name) for name in BRIEF},
        "handoff": handoff_view(session.rotation),
        "offer": offer_view(session.offer),
        "rotations": session.rotations,
        "handoffs_too_late": session.too_late,
        "queued": session.outbox.waiting,
        "created": session.created,
        "last_activity": session.last_activity,
    }


def report_view(report: Report | None) -> dict[str, Any] | None:
    return None if report is None else {"text": report.text, "at": report.at, "done": report.done}


def message_view(row: dict[str, Any], who: Callable[[str], str], waits: str = "") -> dict[str, Any]:
    """A message's receipt; `from` is how the line above it names its sender, null for `sm` itself.

    `waits` is why its target takes none now: the reason of one that is queued.
    """
    shown = {name: value for name, value in row.items() if name != "frame"}
    reason = row["reason"] or (waits if row["state"] == MessageState.QUEUED.value else "")
    return {**shown, "reason": reason, "from": row["frame"] or None, "to": who(row["target"])}


def why_it_waits(session: Session, *, whole: bool) -> str:
    """Why the session takes no message now; `whole` with what only its owner may see."""
    if session.ended:
        return f"{session.name} has ended"
    note = session.outbox.note if session.status is Status.IDLE else session.detail
    shown = "" if session.status is Status.IDLE else f"{session.name} is {session.shown_status.value}"
    return ": ".join(part for part in (shown, note if whole else "") if part)


def public_view(session: Session) -> dict[str, Any]:
    """What another session may see of this one."""
    return {
        "id": session.id,
        "name": session.name,
        "status": session.shown_status.value,
        "parent": session.parent,
        "report": report_view(session.report),
    }


def reminder_view(reminder: Reminder, who: Callable[[str], str]) -> dict[str, Any]:
    return {
        "id": reminder.id,
        "kind": reminder.kind.value,
        "owner": reminder.owner,
        "target": reminder.target,
        "about": who(reminder.target),
        "created": reminder.created,
        "due": reminder.due,
        "every": reminder.every or None,
        "deadline": reminder.deadline,
        "text": reminder.text if reminder.kind in {Kind.ONCE, Kind.EVERY} else None,
    }
