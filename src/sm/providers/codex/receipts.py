"""Whether a message has reached the agent, by the newest records of its rollout (Codex 0.171.0).

What a hook adds is a message of role `developer`, on disk before the result of the call that it was added to; what was
typed, and what a hook at a turn's end replies, is one of role `user`. What the app-server is given for the thread is
one of role `developer` too, on disk at once: the agent has it with the next request, as a reply behind it shows. The
agent's own words and calls and what they returned do not count: `sm inbox` prints the same ids.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from sm.providers.codex.records import MAX_RECORD_BYTES, RolloutRecord, member, rollout_record, text
from sm.providers.jsonl import after_last_line, lines_backward, opened

MAX_RECORDS = 2_000
"""Records from the end that are looked at."""
MAX_BYTES = 16 << 20
"""Bytes of them."""
READ_BY_THE_AGENT = frozenset({"developer", "user"})
ROLES = (b'"developer"', b'"user"', b'"token_usage_record"')
BY_A_HOOK = "hooks.additional_context"


def shown(rollout: Path, marks: Mapping[str, int]) -> frozenset[str] | None:
    """Return the marks that the agent has received; None if the file cannot be read.

    Each mark has the size of the file when it was handed over: what is before that offset belongs to another message.
    """
    try:
        return frozenset(_searched(rollout, marks)[0])
    except FileNotFoundError:
        return frozenset()  # the client begins it with the first prompt
    except (OSError, ValueError):
        return None


def kept(rollout: Path, marks: Mapping[str, int]) -> frozenset[str]:
    """Return the marks of what the thread was given and no request has carried yet."""
    try:
        found, waiting = _searched(rollout, marks)
    except (OSError, ValueError):
        return frozenset()
    return frozenset(waiting - found)


def _searched(rollout: Path, marks: Mapping[str, int]) -> tuple[set[str], set[str]]:
    """Return the marks that the agent has received, and those that it is to read with the next request."""
    found: set[str] = set()
    waiting: set[str] = set()
    with opened(rollout) as descriptor:
        stop = after_last_line(descriptor)
        start = max(0, os.fstat(descriptor).st_size - MAX_BYTES)
        for position in sorted(set(marks.values()), reverse=True):
            wanted = [mark for mark in marks if marks[mark] == position]
            _search(descriptor, wanted, (max(start, position), stop), found, waiting)
    return found, waiting


def _search(descriptor: int, wanted: Sequence[str], span: tuple[int, int], found: set[str], waiting: set[str]) -> None:
    answered = False
    lines = lines_backward(ROLES, descriptor, *span, longest=MAX_RECORD_BYTES)
    for record in filter(None, map(rollout_record, itertools.islice(lines, MAX_RECORDS))):
        answered = answered or record.type == "token_usage_record"
        said = _told(record)
        received = answered or not _given_to_the_thread(record)
        (found if received else waiting).update(mark for mark in wanted if mark in said)
        if found.issuperset(wanted):
            break


def _given_to_the_thread(record: RolloutRecord) -> bool:
    """Whether a request may not have carried it yet."""
    kinds = member(record.payload, "internal_chat_message_metadata_passthrough").get("content_item_kinds")
    is_hooks = isinstance(kinds, list) and BY_A_HOOK in kinds
    return record.payload.get("role") == "developer" and not is_hooks


def _told(record: RolloutRecord) -> str:
    is_told = record.response == "message" and record.payload.get("role") in READ_BY_THE_AGENT
    return text(record.payload.get("content")) if is_told else ""
