"""The handoff document: its identity, and every sentence an agent reads about it.

Wordings follow the contract and are kept as they are. Nothing here touches a file: a document's text is given.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from sm.core.model.channel import Location
from sm.core.model.client_traits import ClientTraits
from sm.core.model.excerpt import excerpt
from sm.core.model.framing import defused
from sm.core.model.message import survives_composer
from sm.core.values import replace

REPLY_MARGIN = 100
"""Characters of a hook's reply that a document leaves free."""
MAX_BYTES = 1024 * 1024
MAX_TYPED_PATH_CHARS = 500
"""Characters of a path that still leave room in a typed line."""
SCHEDULED = "Handoff scheduled — will execute after current turn completes"


LATE_AFTER_S = 180.0
"""Seconds of work after a document's last change from which a note above it says so (case A64)."""


class HandoffState(StrEnum):
    PENDING = "pending"
    """Scheduled: the session that wrote it is about to start with an empty one from it."""
    ACTIVE = "active"
    """Waits for a session to take it up, or is held by the one that does."""
    CONSUMED = "consumed"
    """A client has taken it: its first prompt was submitted."""
    EXPIRED = "expired"
    CLEARED = "cleared"
    """Taken back, or replaced by a newer one."""
    FAILED = "failed"
    """The context is gone and the new one has not begun, or the document cannot be used."""


OPEN = frozenset({HandoffState.PENDING, HandoffState.ACTIVE})
"""What a session may still begin from, without being asked for by its id."""


class HandoffType(StrEnum):
    AGENT = "agent"
    AUTO = "auto"
    COMPACTION = "compaction"
    CRASH = "crash"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class Handoff:
    id: str
    path: str
    """The agent's own file."""
    copy: str
    """The copy taken at scheduling: what the next context gets, whatever happens to the agent's file."""
    conversation: str
    channel: str
    directory: str
    created: float
    type: HandoffType = HandoffType.AGENT
    reason: str = ""
    readable: bool = True
    """False once the agent's own file no longer holds this document: then the agent is given `copy` to read."""
    session: str = ""
    """The session it was written in."""
    branch: str = ""
    """What was checked out in its directory; empty where nothing was, or nothing says."""

    @property
    def location(self) -> Location:
        return Location(self.directory, self.branch)

    @property
    def shown_path(self) -> str:
        """The path that an agent is given: its own if the file is there and the path can be typed in one line."""
        plain = len(self.path) <= MAX_TYPED_PATH_CHARS and survives_composer(self.path)
        return self.path if self.readable and plain else self.copy


@dataclass(frozen=True, slots=True)
class StoredHandoff:
    """What the store holds of a handoff."""

    handoff: Handoff
    state: HandoffState
    changed: float
    reason: str = ""
    holder: str = ""
    """The session that begins from it, or is to; empty while there is none."""
    counted: float = 0.0
    """From when its age counts: from its creation, or, where the clock was set back since, from when that was seen."""
    created_pid: int | None = None
    consumed: float | None = None
    consumed_pid: int | None = None


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def handoff_id(at: float, conversation: str) -> str:
    """Return `HO-YYYYMMDD-HHMMSS-<8>`; the caller advances `at` by a second while the id exists.

    It becomes the name of a file, and the conversation's id is the client's: what else than a letter or digit is in it
    is left out.
    """
    plain = re.sub(r"[^A-Za-z0-9]", "", conversation)[:8] or "unknown"
    return f"HO-{datetime.fromtimestamp(at, UTC):%Y%m%d-%H%M%S}-{plain}"


_HEAD = re.compile(r"<!-- HANDOFF-ID: (\S+) -->\n(?:<!-- [A-Z-]+: .* -->\n)*\n?")


def split_head(text: str) -> tuple[str | None, str]:
    """The id that a document's head lines name, if it has any, and the document without them."""
    found = _HEAD.match(text)
    return (found[1], text[found.end() :]) if found else (None, text)


def head_field(text: str, name: str) -> str:
    """What one of the head lines of a kept document says; empty for any other document."""
    found = _HEAD.match(text)
    line = re.search(rf"^<!-- {name}: (.*) -->$", found[0], re.MULTILINE) if found else None
    return line[1] if line else ""


def head_lines(handoff: Handoff) -> str:
    """The comment lines at the top of the document as `sm` keeps it."""
    fields = {
        "HANDOFF-ID": handoff.id,
        "SESSION": handoff.conversation,
        "CHANNEL": handoff.channel,
        "CREATED": stamp(handoff.created),
        "TYPE": handoff.type.value,
        "WORKING-DIR": handoff.directory,
    }
    return "".join(f"<!-- {name}: {_one_line(value)} -->\n" for name, value in fields.items())


def _one_line(value: str) -> str:
    """Keep a value inside its comment: one line, and nothing that would end the comment."""
    return "".join(c if c.isprintable() else "?" for c in value).replace("-->", "-- >")


def wake_prompt(
    handoff: Handoff, background: tuple[str, ...] = (), scheduled: tuple[str, ...] = (), *, is_loaded: bool = False
) -> str:
    """The one prompt typed into the new context, with the tasks and the scheduled jobs that survived the clear.

    With `is_loaded` it names no file: the context begins with the whole document, and to read one outside of the
    project the agent would have to ask.
    """
    prompt = f"Read {handoff.shown_path} and continue from where you left off."
    if is_loaded:
        prompt = f"Continue from where you left off: handoff {handoff.id}, loaded at session start, says where that is."
    if background:
        prompt += f"\nStill running in the background: {_names(background)}"
    if scheduled:
        prompt += f"\nStill scheduled in this client: {_names(scheduled)}"
    return prompt


def _names(several: tuple[str, ...]) -> str:
    names = unicodedata.normalize("NFC", ", ".join(name[:60] for name in several[:3]))
    return "".join(c if c.isprintable() else " " for c in names).rstrip("\\ ")  # a backslash would swallow the Enter


@dataclass(frozen=True, slots=True)
class Artefacts:
    """What the archive holds of the context that was cleared."""

    log: str = ""
    """Of its terminal; empty where none was kept, as of a client in the user's own terminal."""
    snapshot: str | None = None
    whole: bool = True
    """The log's file holds all of it; False once older parts were packed away."""
    session: str = ""
    """Whose words `sm search` finds."""


def artefact_lines(artefacts: Artefacts) -> str:
    lines = []
    if artefacts.log:
        covers = "Full session log (complete since start" if artefacts.whole else "Session log (its newest part"
        lines += [
            f"{covers}, raw bytes): {artefacts.log}",
            f'Don\'t read this file — search it only if you need a specific detail: grep -a "keyword" {artefacts.log}',
        ]
    if artefacts.session:
        lines.append(f"To find a phrase, or an older part: sm search WORDS --session {artefacts.session}")
    if artefacts.snapshot is not None:
        lines += [
            f"Recent terminal transcript (readable): {artefacts.snapshot}",
            "Don't read this proactively — grep it if needed.",
        ]
    return "\n".join(lines)


MAX_PROJECT_CHARS = 1_000
"""Characters of a project's instructions: they leave the room to the document."""


def project_instructions(text: str) -> str:
    """What a project's own file adds to a document, labelled: it may have come with a clone."""
    shown = text if len(text) <= MAX_PROJECT_CHARS else f"{text[:MAX_PROJECT_CHARS]}…"
    quoted = "\n".join(f"> {line}" for line in shown.splitlines())
    return f"The project's .sm/config.toml adds this; the user did not write it:\n{quoted}"


@dataclass(frozen=True, slots=True)
class LoadedHandoff:
    """A handoff on its way into a new context."""

    handoff: Handoff
    document: str
    artefacts: Artefacts
    instructions: str = ""
    """`handoff.instructions`: the user's, or a project's, which then says so."""
    late: float = 0.0
    """Seconds of work that came after the document's last change."""
    here: Location | None = None
    """Of the session that reads it."""
    said: tuple[str, ...] = ()
    """Prompts that came after the document."""
    scope: str = ""
    """What the session works on, in words of `sm`."""


SAID = "After this document the context before was given these prompts, oldest first; it may have acted on them:\n"


def _span(seconds: float) -> str:
    """A time of some minutes at least, in the largest unit of which there are two or more."""
    for unit, size in (("days", 86_400), ("hours", 3_600)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 60:.0f} minutes"


def document_limit(traits: ClientTraits) -> int:
    """Return how many characters of a document the first reply to a new context carries."""
    return traits.reply_characters - REPLY_MARGIN


def loaded_block(loaded: LoadedHandoff, traits: ClientTraits) -> str:
    """Return the first reply to a new context, at most `document_limit` characters: the whole document if it fits.

    Of a longer document the most useful parts are given and the block says so; its first 1,500 characters then hold id,
    channel and the path with the order to read it, since that is what the client's own preview would keep.
    """
    handoff = loaded.handoff
    document = defused(loaded.document, traits)
    head = (
        f"=== HANDOFF LOADED (ID: {handoff.id}) ===\n"
        f"Channel: {_one_line(handoff.channel)}\n"
        f"Previous Session: {_one_line(handoff.conversation) or 'unknown'}\nType: {handoff.type.value}\n"
    )
    if loaded.here is not None and loaded.here.differs(handoff.location):
        head += f"Directory: {_one_line(handoff.location.said)}; you are in {_one_line(loaded.here.said)}\n"
    if loaded.late > LATE_AFTER_S and handoff.type is HandoffType.MANUAL:  # whether anybody worked since is not known
        head += f"Note: this document was last written {_span(loaded.late)} before it was picked up.\n"
    elif loaded.late > LATE_AFTER_S:
        head += f"Note: {_span(loaded.late)} of work came after this document was last written.\n"
    if loaded.said:
        head += SAID + "".join(f"> {line}\n" for text in loaded.said for line in defused(text, traits).splitlines())
    head += f"{loaded.scope}\n" if loaded.scope else ""
    tail = f"\n=== END HANDOFF ===\n{artefact_lines(loaded.artefacts)}".rstrip("\n")
    if loaded.instructions:
        tail = f"\n{defused(loaded.instructions, traits)}{tail}"
    room = document_limit(traits) - len(head) - len(tail)
    if room < 0:  # instructions first, then the oldest prompts, are too long for a reply
        less = {"instructions": ""} if loaded.instructions else {"said": loaded.said[1:]}
        return loaded_block(replace(loaded, **less), traits)
    if len(document) <= room:
        return head + document.rstrip("\n") + tail
    notice = f"This document is longer than fits here. Read the whole of it first: {handoff.shown_path}\n\n"
    note = "\n[cut here: the rest is in the file]"
    return head + notice + excerpt(document, room - len(notice) - len(note)) + note + tail
