"""How an agent reads a message: a line above it names the sender, and nothing in it can pass for somebody else's words.

What a sender writes is changed only where it would be taken for a frame of `sm` or a tag of the client: a backslash
is put into the mark, so that a reader still sees what was written.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from sm.core.model.client_traits import ClientTraits
from sm.core.model.message import Message, StoredMessage, fits_composer, message
from sm.core.values import replace

INLINE_SHARE = 0.08
"""Of a hook's reply that one message may take inline: ten of them fit into it with their frames."""
THE_USER = "the user"
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI, bracketed-paste marks among them
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\Z)"  # OSC, DCS, SOS, PM, APC
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")
"""What a reader does not see and a model reads all the same; joiners inside emoji and scripts stay."""
_FORGED = re.compile(r"\[(?=\s*(?:input\s+from\s*:|sm[\s\]]))|=(?===\s*(?:end\s+)?handoff)", re.IGNORECASE)

_FRAME = re.compile(r"^\[Input from: (.+) via sm send\] \(message \S+\)$", re.MULTILINE)
_NOTICE = re.compile(r"^\[sm[ \]]", re.MULTILINE)
"""How words of `sm` itself begin."""


def cleaned(body: str) -> str:
    """A body without anything a terminal would act on or a reader would not see."""
    plain = body.replace("\r\n", "\n").replace("\r", "\n")
    plain = _CONTROL.sub("", _ESCAPES.sub("", plain))
    return _INVISIBLE.sub("", plain).strip()


def defused(body: str, traits: ClientTraits) -> str:
    """Return a text in which no mark of `sm` or of the client is left whole."""
    for marks in (_FORGED, traits.marks):
        body = marks.sub(lambda found: f"{found[0]}\\", body)
    return body


def inline_limit(traits: ClientTraits) -> int:
    """Return the characters of a body that are sent inline; a longer one goes through a file."""
    return round(traits.reply_characters * INLINE_SHARE)


def frame(sender: str, message_id: str) -> str:
    """The line above a message; the id in it shows in the transcript whether it has arrived."""
    return f"[Input from: {sender} via sm send] (message {message_id})"


def framed_messages(text: str) -> list[tuple[str, str]]:
    """Return sender and body of each message in a text that an agent got, whatever else is in it."""
    heads = [*_FRAME.finditer(text)]
    ends = [*(head.start() for head in heads), len(text)][1:]
    bodies = [(head[1], text[head.end() : end]) for head, end in zip(heads, ends, strict=True)]
    return [(sender, _NOTICE.split(body, maxsplit=1)[0].strip()) for sender, body in bodies]


def named(name: str, session: str) -> str:
    """A sender as the frame names it, whatever its session is called."""
    shown = unicodedata.normalize("NFC", "".join(c for c in name if c.isprintable()))
    return f"{shown.replace('[', '(').replace(']', ')')} ({session})"


def composed(stored: StoredMessage, keep: Callable[[str], str], traits: ClientTraits) -> Message:
    """Return what the agent gets; `keep` writes a body that is too long to a file and returns that file's path."""
    made = _command(stored) if stored.command else _framed(stored, keep, traits)
    return replace(made, number=stored.number, mode=stored.mode, expires=stored.expires)


def _framed(stored: StoredMessage, keep: Callable[[str], str], traits: ClientTraits) -> Message:
    body = stored.body
    if stored.sender or stored.frame:  # the user may pass on another's text: `curl PAGE | sm send AGENT -`
        body = defused(body, traits)
    head = frame(stored.frame, stored.id) + "\n" if stored.frame else ""
    bare = "" if stored.frame == THE_USER else head  # the user's words are typed as if they had typed them
    told = body if len(body) <= inline_limit(traits) else ""
    typed = bare + body
    if not told or not fits_composer(typed, traits):
        pointer = f"Read the message in {keep(body)} and act on it."
        told, typed = told or pointer, bare + pointer
    text = head + told
    return message(stored.id, text, stored.sender, typed="" if typed == text else typed)


def _command(stored: StoredMessage) -> Message:
    """Return a command of the client, as it is."""
    return replace(message(stored.id, stored.body, stored.sender), command=True)
