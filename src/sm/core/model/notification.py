"""What a user who is away is notified of: an episode of one session, and the words in which it is said.

An episode is either something that lasts, as an open dialog, or something that has happened, as a crash. Words of
agents and tools in it are quoted: one line, bounded, with nothing that a terminal, a chat service or a reader acts on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sm.core.model.framing import cleaned
from sm.core.model.notify_rules import NotificationKind
from sm.core.model.report import one_line, quoted
from sm.core.values import replace

LASTING = frozenset({
    NotificationKind.ASK,
    NotificationKind.BLOCKED,
    NotificationKind.ROTATION_FAILED,
    NotificationKind.LIMITED,
    NotificationKind.BUDGET,
})  # fmt: skip
"""What ends by itself. Anything else has happened, and is over once it is sent."""
BY_ACCOUNT = frozenset({NotificationKind.LIMITED, NotificationKind.RESUMED})
"""What concerns every session of an account, and is sent once for all of them."""
MAX_RAW_CHARS = 4_000
"""Characters of an agent's or a tool's words that are looked at."""
MAX_KEPT_CHARS = 300
MAX_TEXT_CHARS = 2_000
"""Of a whole notification."""
MAX_NAME_CHARS = 60
MAX_NAMES = 3
"""Sessions of an account that are named."""


@dataclass(frozen=True, slots=True)
class Episode:
    """One thing to be sent, once; a row until it is over."""

    id: str
    kind: NotificationKind
    session: str
    """Empty for what concerns none, as the end of a run."""
    name: str
    """Of the session, at its beginning; of the project for a run."""
    since: float
    """UTC, seconds since the epoch."""
    said: str = ""
    """More of it, in words of `sm` or of the client."""
    quoted: str = ""
    """Words of an agent or a tool."""
    account: str = ""
    """The client's configuration directory: which account, for what concerns all of its sessions."""
    sent: bool = False
    """It was handed to the channels, or its user has seen it: nothing begins it again."""
    subject: str = ""
    """Which one it is, where a session may have several of a kind at a time: the id of what its client asks."""
    pending: tuple[str, ...] = ()
    """Channels that could not tell it yet."""
    tries: int = 0
    retry_at: float = 0.0
    """When those are tried again, UTC seconds."""


@dataclass(frozen=True, slots=True)
class UserNotification:
    """What a channel sends. All of it is plain text, already bounded and without control characters."""

    title: str
    text: str
    episodes: tuple[Episode, ...] = ()


def kept(episode: Episode, redact: Callable[[str], str]) -> Episode:
    """Return the episode without secrets, as it may be stored and sent.

    Control characters leave first, so that none of them hides a secret, and the text is cut last, so that none is cut.
    """

    def harmless(text: str) -> str:
        return one_line(redact(cleaned(text[:MAX_RAW_CHARS])), MAX_KEPT_CHARS)

    return replace(episode, name=harmless(episode.name), said=harmless(episode.said), quoted=harmless(episode.quoted))


def run_ended(run: str, project: str, words: str, at: float) -> Episode:
    """Return the episode of a run's end: the same however often it is reported."""
    kind = NotificationKind.RUN_ENDED
    return Episode(f"{kind.value}-{run}", kind, "", project, at, words)


def ended_run(episode: Episode) -> str:
    """Return the run whose end an episode is; empty for any other one."""
    kind = NotificationKind.RUN_ENDED
    return episode.id.removeprefix(f"{kind.value}-") if episode.kind is kind else ""


def plain_words(text: str) -> str:
    """Return the words of a JSON text, without its names and marks, as a tool's input reads to people."""
    try:
        return " / ".join(_texts(json.loads(text)))
    except (ValueError, RecursionError):
        return ""


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(item)


_DEFUSED = str.maketrans({
    "@": "\N{FULLWIDTH COMMERCIAL AT}",
    "<": "(",
    ">": ")",
    "[": "(",
    "]": ")",
    "`": "'",
    "\\": "/",
})  # fmt: skip
"""Mentions of chat services, their tags and links."""


def defused(text: str) -> str:
    """Return a text that calls no one and links to nothing, whichever service shows it."""
    return text.translate(_DEFUSED).replace("://", ":/ /")


TITLES = {
    NotificationKind.ASK: "{} waits for you",
    NotificationKind.BLOCKED: "{} is blocked",
    NotificationKind.ROTATION_FAILED: "{} needs you for a handoff",
    NotificationKind.TOO_LATE: "{} was compacted before it handed off",
    NotificationKind.LIMITED: "usage limit reached by {}",
    NotificationKind.RESUMED: "usage limit over for {}",
    NotificationKind.BUDGET: "budget of {}",
    NotificationKind.DIED: "{} has ended unexpectedly",
    NotificationKind.FINISHED: "{} reports its task as complete",
    NotificationKind.UNDELIVERED: "{} did not get a message",
    NotificationKind.RUN_ENDED: "run in {} has ended",
}


def notification(episodes: Sequence[Episode]) -> UserNotification:
    """Return what is sent of episodes that belong together: of one kind, in one session or one account."""
    first = episodes[0]
    names = list(dict.fromkeys(_name(episode) for episode in episodes))
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    title = TITLES[first.kind].format(", ".join(names[:MAX_NAMES]) + more)
    sent = (_words(episode) for episode in episodes)
    lines = [line for line in dict.fromkeys(sent) if line]
    return UserNotification(f"sm: {title}", _bounded("\n".join(lines)), tuple(episodes))


def digest(notifications: Sequence[UserNotification]) -> UserNotification:
    """Return one notification in the place of several."""
    lines = [
        f"{sent.title.removeprefix('sm: ')}" + (f": {sent.text.partition(chr(10))[0]}" if sent.text else "")
        for sent in notifications
    ]
    episodes = tuple(episode for sent in notifications for episode in sent.episodes)
    return UserNotification(f"sm: {len(notifications)} notifications", _bounded("\n".join(lines)), episodes)


def _name(episode: Episode) -> str:
    return defused(one_line(episode.name, MAX_NAME_CHARS))


def _words(episode: Episode) -> str:
    said = defused(episode.said)
    words = defused(quoted(episode.quoted)) if episode.quoted else ""
    return ": ".join(part for part in (said, words) if part)


def _bounded(text: str) -> str:
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[: MAX_TEXT_CHARS - 1]}…"


TEST = UserNotification("sm: test", "This is a test of a notification channel. A real one names a session.")
