"""Text queued for an agent: what may be typed, and how it is recognised when the client has taken it."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum


class MessageState(StrEnum):
    QUEUED = "queued"
    DELIVERED = "delivered"
    """Text and Enter went out; the client has not shown yet that it took them."""
    CONFIRMED = "confirmed"
    UNCONFIRMED = "unconfirmed"
    EXPIRED = "expired"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    text: str
    """As it will be typed: at most TYPED_LIMIT characters, a longer body is a file that this names."""
    digest: str
    """Of `text`: see `digest`."""
    sender: str = ""
    """Session id, or empty for a person or `sm` itself."""


TYPED_LIMIT = 800
TYPED_LINES = 3
"""More than this and the client folds it into a paste the agent is told to distrust (2.1.328)."""


def message(message_id: str, text: str, sender: str = "") -> Message:
    return Message(message_id, text, digest(text), sender)


def fits_composer(text: str) -> bool:
    """False for what must go through a file, or would be a command: `!` runs a shell, `/` a command of the client."""
    lines = text.count("\n") + 1
    plain = not text.startswith(("!", "/", "#")) and not text.endswith("\\") and text == text.strip()
    return (
        plain
        and len(text) <= TYPED_LIMIT
        and lines <= TYPED_LINES
        and bool(text)
        and survives_composer(text.replace("\n", ""))
    )


def survives_composer(line: str) -> bool:
    """False for a line the client would not submit as it is: it composes letters and drops invisible characters."""
    return line.isprintable() and unicodedata.is_normalized("NFC", line)


def digest(text: str) -> str:
    """Fingerprint that survives what a composer does to text: line ends and the blanks around it."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").strip().split("\n")]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()


_PASTED = re.compile(r'<pasted_content id="[^"]*">\n(.*?)\n</pasted_content id="[^"]*">', re.DOTALL)


def as_typed(prompt: str) -> str:
    """Return a submitted prompt as it was typed: the client wraps what it took for a paste (over 800 characters)."""
    return _PASTED.sub(r"\1", prompt)
