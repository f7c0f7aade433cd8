"""A conversation for a reader: the records of its transcript, newest page first, without secrets.

The file is read by offsets, so that a page costs what it shows: backward from where an older page ended, forward from
where the newest one did. What an entry holds is the provider's; here it is cut, redacted and joined with its result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sm.core.ports.provider import PartKind, TranscriptPart
from sm.providers import jsonl

Parts = Callable[[bytes], tuple[TranscriptPart, ...]]
Redact = Callable[[str], str]
WINDOW_BYTES = 1 << 18
MAX_WINDOW_BYTES = 1 << 24
"""A longer record is left out, as an image or the like."""
MAX_READ_BYTES = 1 << 25
"""For one page: of a file without a word for a reader no more is looked at."""
PAGE_ENTRIES = 60
MAX_TEXT_CHARS = 20_000
MAX_RESULT_CHARS = 6_000


@dataclass(slots=True)
class Entry:
    """One thing that was said or done; a call has its result, if that is on the same page."""

    kind: str
    text: str
    at: float | None = None
    tool: str = ""
    brief: str = ""
    """The beginning of a call, in one line."""
    result: str | None = None
    failed: bool = False


@dataclass(slots=True)
class TranscriptPage:
    entries: list[Entry] = field(default_factory=list)
    start: int = 0
    """Where the page begins in the file: an older one ends there. 0 with nothing before it."""
    end: int = 0
    """Where the file ended: what is new begins there."""
    problem: str = ""


def newest(path: str, parts: Parts, redact: Redact, before: int | None = None) -> TranscriptPage:
    """Return the last entries of the file, or the last ones before an offset of it."""
    try:
        with jsonl.opened(Path(path)) as fd:
            end = jsonl.after_last_line(fd)
            stop = end if before is None else min(before, end)
            found: list[list[TranscriptPart]] = []
            start = _backward(fd, stop, parts, found)
    except (OSError, ValueError) as problem:
        return TranscriptPage(problem=_unreadable(problem))
    return TranscriptPage(_entries([part for record in reversed(found) for part in record], redact), start, end)


def since(path: str, parts: Parts, redact: Redact, after: int) -> TranscriptPage:
    """Return what was added behind an offset; from the end again where the file is another one by now."""
    try:
        with jsonl.opened(Path(path)) as fd:
            end = jsonl.after_last_line(fd)
            if after > end or end - after > MAX_WINDOW_BYTES:
                return newest(path, parts, redact)
            lines = os.pread(fd, end - after, after).split(b"\n")
    except (OSError, ValueError) as problem:
        return TranscriptPage([], after, after, _unreadable(problem))
    return TranscriptPage(_entries([part for line in lines for part in parts(line)], redact), after, end)


def _unreadable(problem: Exception) -> str:
    return f"The transcript cannot be read: {getattr(problem, 'strerror', None) or problem}."


def _backward(fd: int, stop: int, parts: Parts, found: list[list[TranscriptPart]]) -> int:
    """Add the parts of each record that ends before `stop`, newest first; return where the oldest of them begins."""
    count, read = 0, 0
    for line, begin in _lines_backward(fd, stop):
        read += stop - begin
        record = parts(line)
        if record:
            found.append(list(record))
            count += len(record)
        stop = begin
        if count >= PAGE_ENTRIES or read >= MAX_READ_BYTES:
            break
    return stop


def _lines_backward(fd: int, stop: int) -> Iterator[tuple[bytes, int]]:
    """Each line with the offset at which it begins; one that is too long comes empty."""
    while stop > 0:
        begin = max(0, stop - WINDOW_BYTES)
        window = os.pread(fd, stop - begin, begin)
        first = 0 if begin == 0 else window.find(b"\n", 0, len(window) - 1) + 1
        if begin and not first:
            begin = max(0, jsonl.last_of((b"\n",), fd, 0, stop - 1) + 1)
            yield (os.pread(fd, stop - begin, begin) if stop - begin <= MAX_WINDOW_BYTES else b""), begin
            stop = begin
            continue
        while len(window) > first:
            cut = window.rfind(b"\n", first, len(window) - 1) + 1
            cut = max(cut, first)
            yield window[cut:], begin + cut
            window = window[:cut]
        stop = begin + first


def _entries(parts: list[TranscriptPart], redact: Redact) -> list[Entry]:
    found: list[Entry] = []
    calls: dict[str, Entry] = {}
    for part in parts:
        if part.kind is PartKind.RESULT:
            text = shown(part.text, redact, MAX_RESULT_CHARS)
            call = calls.pop(part.call, None)
            if call is not None:
                call.result, call.failed = text, part.failed
            else:
                found.append(Entry(part.kind.value, "", part.at, "result", "", text, part.failed))
            continue
        entry = Entry(part.kind.value, shown(part.text, redact, MAX_TEXT_CHARS), part.at, part.tool)
        if part.kind is PartKind.CALL:
            entry.brief = _brief(entry.text)
            calls[part.call] = entry
        found.append(entry)
    return found


def shown(text: str, redact: Redact, most: int) -> str:
    """Return the text without secrets; of a long one its beginning, and how much is left out."""
    clean = redact(text[: 2 * most])
    left = max(0, len(text) - most)
    return f"{clean[:most]}\n… {left:,} more characters" if left else clean


def _brief(given: str) -> str:
    line = given.strip().split("\n", 1)[0]
    name, separator, value = line.partition(": ")
    line = value if separator and name.isidentifier() else line
    return line if len(line) <= 120 else f"{line[:119]}…"  # noqa: PLR2004  # columns of a line
