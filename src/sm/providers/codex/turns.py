"""How the newest turn of a rollout has ended (Codex 0.171.0).

A turn ends with `task_complete`, which has an `error` where it failed, or with `turn_aborted`. After a usage limit the
client does not wait: the turn has failed, and nothing continues by itself. When the limit ends is in the `rate_limits`
of the `token_count` before, by the headers of the refusal; the error's text has it only in words, in local time.
After an error for a full context the client compacts at the start of the next turn.
"""

from __future__ import annotations

import itertools
import re
from datetime import datetime, timedelta
from pathlib import Path

from sm.core.model.usage_limit import MODEL_LIMIT, UsageLimit, is_recent
from sm.core.rules.rotation import RATE_LIMIT
from sm.providers.codex.records import Json, RolloutRecord, member, newest_records, objects, string

COMPLETE, ABORTED, STARTED = "task_complete", "turn_aborted", "task_started"
ENDS = (b'"task_complete"', b'"turn_aborted"', b'"task_started"')
SPOKEN = (b'"AgentMessage"', b'"Plan"')
USED = b'"token_usage_record"'
COUNTED = b'"token_count"'
LIMIT, FULL = "usage_limit_exceeded", "context_window_exceeded"
HIT = re.compile(r"hit your usage limit( for )?")
"""Other errors have the same code: a plan without the client in it, a bill that is not paid. No time ends those."""
RESETS = re.compile(r"[Tt]ry again at (?:([A-Z][a-z]{2}) (\d{1,2})(?:st|nd|rd|th), (\d{4}) )?(\d{1,2}):(\d{2}) ([AP]M)")
"""Without a date it is the day on which it was written."""
KINDS = {5: "five_hour", 168: "seven_day"}
"""By the hours of the limit's window."""
ANY = "usage"
USED_UP = 100.0
RATE_LIMITED, OTHER, TOO_MANY = "rate_limit_exceeded", "other", 429
MAX_ERROR_CHARS = 80


def finished(rollout: Path) -> bool:
    """Return whether the newest turn in which the agent could reply ended by itself.

    A compaction on request and a command that the user ran are turns too, without a reply and without a last message;
    that of a turn that proposed a plan has the plan alone.
    """
    silent: set[object] = set()
    for record in newest_records(rollout, (*ENDS, *SPOKEN)):
        turn = record.payload.get("turn_id")
        if record.item.get("type") in {"AgentMessage", "Plan"} and turn in silent:
            return True
        if record.event == COMPLETE and "error" not in record.payload:
            if isinstance(record.payload.get("last_agent_message"), str):
                return True
            silent.add(turn)
        elif record.event in {COMPLETE, ABORTED} or (record.event == STARTED and turn not in silent):
            return False
    return False


def answered(rollout: Path) -> bool:
    """Return whether the model has replied since it last refused to."""
    for record in newest_records(rollout, (ENDS[0], USED)):
        if record.type == "token_usage_record":
            return True
        if _error(record):
            return False
    return False


def failure(rollout: Path) -> str:
    """Return the error of the newest turn that has ended; empty if it did not fail. No hook tells of it."""
    failed = _failed(rollout)
    if failed is None:
        return ""
    code = _code(failed)
    words = string(_error(failed), "message")
    attempts = member(_error(failed), "codex_error_info").get("response_too_many_failed_attempts")
    if code == RATE_LIMITED or (isinstance(attempts, dict) and attempts.get("http_status_code") == TOO_MANY):
        return RATE_LIMIT
    return (code if isinstance(code, str) and code != OTHER else words or OTHER)[:MAX_ERROR_CHARS]


def refusal(rollout: Path) -> str | None:
    """Return the client's words if its newest request was refused because its context is full."""
    failed = _failed(rollout)
    return string(_error(failed), "message") or FULL if failed and _code(failed) == FULL else None


def usage_limit(rollout: Path, now: float) -> UsageLimit | None:
    """Return the usage limit that has ended the newest turn, unless that was over a day ago."""
    failed = _failed(rollout)
    if failed is None or _code(failed) != LIMIT:
        return None
    words = string(_error(failed), "message")
    hit = HIT.search(words)
    if hit is None:
        return None
    since = min(failed.at or now, now)
    kind, resets = _used_up(_rate_limits(rollout, failed))
    found = UsageLimit(MODEL_LIMIT if hit[1] else kind, resets or _reset(words, since), since)
    return found if is_recent(found, now) else None


def _failed(rollout: Path) -> RolloutRecord | None:
    """The end of the newest turn that has ended, if that failed and the model has not replied since."""
    for record in newest_records(rollout, (ENDS[0], USED)):
        if record.type == "token_usage_record":
            return None
        if record.event == COMPLETE and _error(record):
            return record
    return None


def _error(record: RolloutRecord) -> Json:
    return member(record.payload, "error") if record.event == COMPLETE else {}


def _code(record: RolloutRecord) -> object:
    return _error(record).get("codex_error_info")


def _rate_limits(rollout: Path, failed: RolloutRecord) -> Json:
    """What the newest count before the end of a turn says of the account's limits."""
    records = newest_records(rollout, (ENDS[0], COUNTED))
    before = itertools.dropwhile(lambda record: record.payload.get("turn_id") != failed.payload.get("turn_id"), records)
    found = next((record for record in itertools.islice(before, 1, None)), None)
    return {} if found is None else member(found.payload, "rate_limits")


def _used_up(limits: Json) -> tuple[str, float | None]:
    """The kind of the limit that is used up, and when it resets: the later one of two."""
    windows = objects([limits.get("primary"), limits.get("secondary")])
    full = [window for window in windows if _number(window, "used_percent") >= USED_UP]
    if not full:
        return ANY, None
    last = max(full, key=lambda window: _number(window, "resets_at"))
    return KINDS.get(round(_number(last, "window_minutes") / 60), ANY), _number(last, "resets_at") or None


def _number(value: Json, name: str) -> float:
    found = value.get(name)
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else 0.0


def _reset(words: str, at: float) -> float | None:
    found = RESETS.search(words)
    if found is None:
        return None
    month, day, year, hour, minute, half = found.groups()
    try:
        clock = datetime.strptime(f"{hour}:{minute} {half}", "%I:%M %p")  # noqa: DTZ007  # a time of the local day
        moment = datetime.fromtimestamp(at).astimezone()
        if month:
            date = datetime.strptime(f"{month} {day} {year}", "%b %d %Y")  # noqa: DTZ007  # a day alone
            moment = moment.replace(year=date.year, month=date.month, day=date.day)
        moment = moment.replace(hour=clock.hour, minute=clock.minute, second=0, microsecond=0)
        return (moment + timedelta(minutes=1)).timestamp()  # the seconds are left out of the words
    except (ValueError, OverflowError, OSError):
        return None
