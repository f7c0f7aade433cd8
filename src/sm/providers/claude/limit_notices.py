"""The client's words for a limit that stops it (2.1.328), of the account or of a context, in hook and transcript.

"You've hit your 5-hour limit · resets 4:58pm (UTC)": the time has no date, so it is the next one of that name, unless
that is further off than such a limit lasts.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from sm.core.model.usage_limit import CLOCK_SLACK_S, MODEL_LIMIT, UsageLimit, length_of

HIT = re.compile(r"\b(?:hit|reached) your (?:[A-Za-z' ]{0,20}?)([A-Za-z0-9-]{1,20}) limit\b|\b[Uu]sage limit reached\b")
KINDS = {
    "5-hour": "five_hour",
    "session": "five_hour",
    "weekly": "seven_day",
    "7-day": "seven_day",
    **dict.fromkeys(("opus", "sonnet", "haiku"), MODEL_LIMIT),
}
ANY = "usage"
RESETS = re.compile(
    r"\b(?:resets|continuing automatically) (?:at )?(?:([A-Z][a-z]{2}) (\d{1,2}),? (?:at )?)?"
    r"(\d{1,2})(?::(\d{2}))? ?([ap]m)(?: \(([A-Za-z0-9_+/-]{1,40})\))?"
)
EPOCH = re.compile(r"limit reached\|(\d{10})\b")
"""Older clients' words."""
MAX_NOTICE_CHARS = 500
UNREADABLE = (ValueError, OverflowError, LookupError, OSError)
"""What dates and zones raise that there are not: a zone is a file, or a directory."""
WAIT_CANCELLED = "Automatic continue cancelled · /rate-limit-options"
"""How its note begins that the user has ended its wait, with Escape."""
CONTINUATIONS = ("Your claude.ai usage limit has reset.", "Your claude.ai usage is available again before")
"""How the prompts begin with which the client continues by itself: after the reset, or where the limit is lifted."""


CONTEXT_FULL = ("Prompt is too long", "Context limit reached")
"""The first is what hook and transcript have of a refusal that the screen shows as the second."""
MAX_REFUSAL_CHARS = 200


def refusal_in(text: str) -> str:
    """Return the words of a message in which the client says that its context is full; empty if it does not."""
    return text[:MAX_REFUSAL_CHARS] if any(words in text for words in CONTEXT_FULL) else ""


def limit_in(text: str, at: float) -> UsageLimit | None:
    """The limit that a message of the client tells of, which it wrote at that time."""
    text = text[:MAX_NOTICE_CHARS]
    found = HIT.search(text)
    if found is None:
        return None
    epoch, kind = EPOCH.search(text), KINDS.get((found[1] or "").lower(), ANY)
    return UsageLimit(kind, float(epoch[1]) if epoch else _reset(text, kind, at), at)


def _reset(text: str, kind: str, at: float) -> float | None:
    """When it resets; None if the words say no time, or one that there is not, as Feb 29 or a zone of their own."""
    found = RESETS.search(text)
    if found is None:
        return None
    month, day, hour, minute, half, zone = found.groups()
    try:
        now = datetime.fromtimestamp(at, ZoneInfo(zone) if zone else UTC)
        now = now if zone else now.astimezone()  # the client's own clock is ours
        moment = now.replace(
            hour=int(hour) % 12 + 12 * (half == "pm"), minute=int(minute or 0), second=0, microsecond=0
        )
        if month:
            moment = moment.replace(month=datetime.strptime(month, "%b").month, day=int(day))  # noqa: DTZ007  # a name
        if moment >= now - timedelta(minutes=1):
            return moment.timestamp()
        just_past = moment >= now - timedelta(seconds=CLOCK_SLACK_S)
        coming = moment.replace(year=moment.year + 1) if month else moment + timedelta(days=1)
    except UNREADABLE:
        return None
    return at if just_past or coming.timestamp() > at + length_of(kind) else coming.timestamp()
