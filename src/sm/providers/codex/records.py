"""The records of a rollout (Codex 0.171.0): a JSON object on each line, `{timestamp, ordinal, type, payload}`.

A `response_item` is what the model has read, said or called, the client's own additions among it. What a user would
see is an `event_msg` of type `item_completed`: only its `UserMessage` is a prompt, also one that was submitted while a
turn ran, and only its `AgentMessage` is a reply, since a summary made for a compaction is a `response_item` as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from sm.clock import parse_iso
from sm.providers.jsonl import decoded, newest_lines, well_formed

MAX_RECORDS = 200
"""Records from the end that are looked at for what is new."""
MAX_RECORD_BYTES = 1 << 20

Json = dict[str, Any]


class RolloutRecord(msgspec.Struct):
    type: Any = None
    timestamp: Any = None
    payload: Json = msgspec.field(default_factory=dict)

    @property
    def event(self) -> object:
        """The type of an event; None for another record."""
        return self.payload.get("type") if self.type == "event_msg" else None

    @property
    def item(self) -> Json:
        """What a turn has shown the user; empty for another record."""
        return member(self.payload, "item") if self.event == "item_completed" else {}

    @property
    def response(self) -> object:
        """The type of what the model has read, said or called; None for another record."""
        return self.payload.get("type") if self.type == "response_item" else None

    @property
    def at(self) -> float | None:
        try:
            return parse_iso(self.timestamp) if isinstance(self.timestamp, str) else None
        except ValueError:
            return None


_RECORD = msgspec.json.Decoder(RolloutRecord)
_SHAPE: Json = {"payload": {}}


def rollout_record(line: bytes) -> RolloutRecord | None:
    return decoded(_RECORD, line, _SHAPE)


def newest_records(
    rollout: Path, words: tuple[bytes, ...], *, start: int = 0, most: int = MAX_RECORDS
) -> Iterator[RolloutRecord]:
    """Yield its newest records with one of the words, newest first; none if it cannot be read."""
    lines = newest_lines(rollout, words, start=start, longest=MAX_RECORD_BYTES)
    return filter(None, map(rollout_record, itertools.islice(lines, most)))


def member(value: Json, name: str) -> Json:
    """Return an object's member that is an object too; an empty one for anything else."""
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def string(value: Json, name: str) -> str:
    found = value.get(name)
    return well_formed(found) if isinstance(found, str) else ""


def objects(value: object) -> list[Json]:
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def text(content: object) -> str:
    """Return the words of a text or of parts, of which images have none."""
    if isinstance(content, str):
        return well_formed(content)
    return "\n".join(filter(None, (string(part, "text") for part in objects(content))))


def prompt(record: RolloutRecord) -> str:
    """Return the words of a prompt; empty for another record."""
    return text(record.item.get("content")) if record.item.get("type") == "UserMessage" else ""
