"""A usage limit of the account of a session: until it resets, every request of every client of that account is refused.

The client waits by itself and may continue after the reset, while its state file says that it is idle. What is
submitted before meets the limit again, so nothing is typed, cleared or started in any session of the account.
"""

from __future__ import annotations

from dataclasses import dataclass

from sm.core.model.report import quoted

UNKNOWN_RESET_RETRY_S = 3_600.0
"""A limit whose end is unknown is tried again after it."""
LENGTHS_S = {"five_hour": 5 * 3_600.0}
MAX_LENGTH_S = 7 * 86_400.0
"""Of every other kind: no limit lasts longer, so a later reset is a mistake or made up."""
CLOCK_SLACK_S = 600.0
"""By how much clocks may differ."""
MAX_NOTICE_AGE_S = 86_400.0
"""After its reset: a session that has waited longer for its user is left alone."""
LIMIT_NAMES = {"five_hour": "5-hour limit", "seven_day": "weekly limit", "model": "limit of the model"}
MODEL_LIMIT = "model"
HELD_REASON = "waits for the end of the usage limit"
"""Why a rotation does not begin."""
MAX_TASK_CHARS = 400
"""Of the task that the agent is given again: the prompt stays short enough to be typed in one go."""
RESUME_WORDS = "[sm limits] Continue the task that a usage limit has interrupted"
"""How the prompt begins that continues the work."""


@dataclass(frozen=True, slots=True)
class UsageLimit:
    kind: str
    """`five_hour`, `seven_day`, `model`, or `usage` where the client does not say which."""
    resets_at: float | None = None
    """UTC seconds; None where the client does not say."""
    since: float = 0.0
    interrupted: bool = True
    """It ended a turn of this session, which is to be continued; False where another session of the account met it."""
    tried: bool = False
    """A prompt was submitted since: the client's next tool call, or the turn's end, shows that the limit is over."""
    asks: bool = False
    """It is over, and the user decides whether the work continues."""
    transcript: str = ""
    """Of the conversation whose turn it ended."""
    left: bool = False
    """The client that met it has been replaced: the new one does not continue by itself."""
    proven: bool = False
    """By the client itself, or by its transcript: an agent, who has a token too, has not made it up."""

    def ends_at(self, now: float) -> float:
        """When it is over, as far as is known now, UTC seconds: long ago if it was met while the clock was ahead."""
        since = self.since if self.since <= now + CLOCK_SLACK_S else 0.0
        reset = believed_reset(self.kind, self.resets_at, now)
        return since + UNKNOWN_RESET_RETRY_S if reset is None else max(reset, since)

    @property
    def words(self) -> str:
        name = LIMIT_NAMES.get(self.kind, "usage limit")
        if self.asks:
            return f"{name} over; the work that it interrupted waits for you: sm limits --resume"
        where = "" if self.interrupted else " by another session of the account"
        return f"{name} reached{where}; messages wait until it resets"


def length_of(kind: str) -> float:
    """How long a limit of that kind may last, in seconds."""
    return LENGTHS_S.get(kind, MAX_LENGTH_S)


def believed_reset(kind: str, resets_at: float | None, now: float) -> float | None:
    """Return when it resets; None, which is unknown, if no limit of that kind lasts that long."""
    return resets_at if resets_at is not None and resets_at <= now + length_of(kind) + CLOCK_SLACK_S else None


def is_recent(limit: UsageLimit, now: float) -> bool:
    """Return whether a limit that a transcript tells of may still be what the session waits for."""
    return limit.ends_at(now) + MAX_NOTICE_AGE_S > now


@dataclass(frozen=True, slots=True)
class ResumeRules:
    """The `limits.*` of the configuration that concern usage limits; `settings.py` has their meaning and defaults."""

    resume: str = "auto"
    patience: float = 180.0
    stagger: float = 20.0


@dataclass(frozen=True, slots=True)
class UsedShare:
    """How much of one limit an account has used, as one of its clients has reported."""

    kind: str
    percent: float
    resets_at: float | None = None
    """UTC seconds."""


def resume_prompt(task: str) -> str:
    """Return the prompt that continues the work which a limit has interrupted; `task` is what it was begun with."""
    text = f"{RESUME_WORDS}, and do not repeat what is done already."
    return f"{text} The task began with: {quoted(task, MAX_TASK_CHARS)}" if task.strip() else text
