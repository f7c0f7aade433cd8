"""Which stretches of text are secrets, and what stands there instead.

Secrets are known by their shape, our own tokens also by their hash. A terminal wraps, so each text is looked at twice:
as it is, and with its lines joined.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

import msgspec

from sm.archive.redaction.assignment_patterns import GIVEN
from sm.archive.redaction.patterns import SHAPES, Catalogue, Shape, secret_of
from sm.archive.redaction.vendor_patterns import VENDORS
from sm.core.ids import token_hash

Known = Callable[[str], bool]
"""Whether a text of 43 characters is one of our own tokens."""
Span = tuple[int, int, str]
"""From, to, and what kind of secret it is."""

ALL = Catalogue.of(*SHAPES, *VENDORS, *GIVEN)
WRAPPED = Catalogue.of(*SHAPES, *VENDORS)
"""What may go over the end of a line: where words give a value, the line's end is its end too."""
OWN = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])", re.ASCII)
"""What `secrets.token_urlsafe(32)` gives."""
OWN_LENGTH = 43
RUN = re.compile(r"[A-Za-z0-9_-]{43,}", re.ASCII)
INSIDE = re.compile(r"[A-Za-z0-9_-]")
"""What may not stand before a secret, if there is a START."""
JOINT = re.compile(r"(?<=[\w+/=.:-])[ \t│|]*\n[ \t│⎿|>]*(?=[\w+/=.@-])", re.ASCII)
"""Where a terminal may have wrapped a word: the end of a line and the margin of the next one."""
LINE_END = re.compile(r"[ \t│|]*\n")
LINE_BEGIN = re.compile(r"[ \t│⎿|>]*")
KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
KEY_LINE = re.compile(r"[\s│⎿|>]*[A-Za-z0-9+/=]{1,120}[\s│|]*")
RANDOM = 24
"""Characters of one case and no digit from which a text is no word any more."""
NARROWEST = 50
"""Columns a line has at least where a terminal had to wrap it."""


def nothing_known(_: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class OwnTokens:
    """Knows this server's tokens, which it does not have itself, by their hashes."""

    user: str
    sessions: Callable[[], Collection[str]]

    @property
    def hashes(self) -> list[str]:
        return [self.user, *self.sessions()]

    def __call__(self, text: str) -> bool:
        digest = token_hash(text)
        return digest == self.user or digest in self.sessions()


def redacted(text: str, known: Known = nothing_known) -> str:
    """The text with `[REDACTED:kind]` in the place of each secret; its lines stay lines."""
    spans = _all_spans(text, known)
    return _replaced(text, spans) if spans else text


def redacted_json(text: str, known: Known = nothing_known) -> str:
    """The same for a JSON text, which stays one: a quotation mark behind a secret is not the end of its string."""
    if redacted(text, known) == text:
        return text
    return msgspec.json.encode(_redacted_value(msgspec.json.decode(text), known)).decode()


def _redacted_value(value: object, known: Known) -> object:
    if isinstance(value, str):
        return redacted(value, known)
    if isinstance(value, dict):
        return {redacted(name, known): _redacted_value(one, known) for name, one in value.items()}
    return [_redacted_value(one, known) for one in value] if isinstance(value, list) else value


def _all_spans(text: str, known: Known) -> list[Span]:
    return [*_secrets(text, known), *_cut_keys(text), *_wrapped(text, known)]


def _secrets(text: str, known: Known) -> Iterator[Span]:
    for shape in ALL.occurring(text):
        for match in shape.pattern.finditer(text):
            start, end = secret_of(match)
            if shape.accepts is None or shape.accepts(text[start:end]):
                yield start, end, shape.name
    for match in OWN.finditer(text):
        if known(match[0]):
            yield (*match.span(), "sm-token")


def _cut_keys(text: str) -> Iterator[Span]:
    """The end of a private key whose beginning is not in this text."""
    if "PRIVATE KEY" not in text:
        return
    for match in KEY_END.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
        while start > 0:
            line = text.rfind("\n", 0, start - 1) + 1
            if not KEY_LINE.fullmatch(text, line, start):
                break
            start = line
        yield min(start, match.start()), match.end(), "private-key"


@dataclass(frozen=True, slots=True)
class _Joined:
    """A text with its lines joined, and how to get back."""

    text: str
    joined: str
    places: list[int]
    """Where each piece begins in the joined text."""
    shifts: list[int]
    """What is to be added to a place of the piece to get its place in the text."""

    @classmethod
    def of(cls, text: str) -> _Joined:
        joints = [match.span() for match in JOINT.finditer(text)]
        starts = [0, *(end for _, end in joints)]
        ends = [*(start for start, _ in joints), len(text)]
        pieces = [text[start:end] for start, end in zip(starts, ends, strict=True)]
        places = [0, *accumulate(map(len, pieces))]
        return cls(text, "".join(pieces), places, [start - place for start, place in zip(starts, places, strict=False)])

    def piece(self, place: int) -> int:
        return bisect_right(self.places, place) - 1

    def spans(self, start: int, end: int, name: str) -> Iterator[Span]:
        """The stretches of the text that a stretch of the joined one is made of."""
        for number in range(self.piece(start), self.piece(end - 1) + 1):
            shift = self.shifts[number]
            yield max(start, self.places[number]) + shift, min(end, self.places[number + 1]) + shift, name

    def before(self, start: int) -> str:
        """The character that stands before a place in the text itself."""
        place = start + self.shifts[self.piece(start)]
        return self.text[place - 1 : place]

    def after(self, end: int) -> str:
        place = end + self.shifts[self.piece(end - 1)]
        return self.text[place : place + 1]


def _wrapped(text: str, known: Known) -> Iterator[Span]:
    """Secrets that go over the end of a line."""
    joined = _Joined.of(text)
    if joined.joined == text:
        return
    for shape in WRAPPED.occurring(joined.joined):
        for match in shape.unbounded.finditer(joined.joined):
            yield from _wrapped_shape(joined, shape, match)
    for run in RUN.finditer(joined.joined):
        first, last = joined.piece(run.start()), joined.piece(run.end() - 1)
        for start in (run.start(), *joined.places[first + 1 : last]) if last > first else ():
            end = start + OWN_LENGTH
            if known(joined.joined[start:end]) and not INSIDE.match(joined.after(end)):
                yield from joined.spans(start, end, "sm-token")


def _wrapped_shape(joined: _Joined, shape: Shape, match: re.Match[str]) -> Iterator[Span]:
    start, end = secret_of(match)
    if shape.accepts is not None and not shape.accepts(joined.joined[start:end]):
        return
    first, last = joined.piece(start), joined.piece(end - 1)
    while last > first:
        place = joined.places[last]
        shorter = shape.unbounded.match(joined.joined, match.start(), place)
        if shorter is None or secret_of(shorter) != (start, place) or _is_cut(joined, last, end):
            break
        end, last = place, last - 1
    inside = shape.has_start and INSIDE.match(joined.before(start))
    goes_on = shape.has_end and INSIDE.match(joined.after(end))
    if last > first and not inside and not goes_on:
        yield from joined.spans(start, end, shape.name)


def _is_cut(joined: _Joined, piece: int, end: int) -> bool:
    """Whether a secret that could end with its line goes on in this piece: the line is full, and this is no word.

    A single letter may be one: of a secret's last letter alone on its line nobody can make anything.
    """
    place = joined.places[piece]
    line_end = place + joined.shifts[piece - 1]
    width = line_end - (joined.text.rfind("\n", 0, line_end) + 1)
    rest = joined.joined[place:end]
    random = any(c.isdigit() for c in rest) or rest[1:] != rest[1:].lower() or len(rest) >= RANDOM
    return width >= NARROWEST and random


def _replaced(text: str, spans: list[Span]) -> str:
    parts, done = [], 0
    for start, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
        if end <= done:
            continue
        if start >= done:
            parts += [text[done:start], f"[REDACTED:{name}]"]
        done = end
    return "".join([*parts, text[done:]])


def without_secrets(text: str, known: Known = nothing_known) -> str:
    """The same for long texts, in blocks: other threads get their turn in between."""
    redactor = LineRedactor(known)
    lines = text.split("\n")
    kept = [line for start in range(0, len(lines), BLOCK) for line in redactor.take(lines[start : start + BLOCK])]
    return "\n".join([*kept, *redactor.end()])


BLOCK = 200
"""Lines that are looked at together."""
LONGEST_BLOCK = 400
OVERLAP = 4


@dataclass(slots=True)
class LineRedactor:
    """The same for lines that come one after the other: they are held until what may belong to them has come."""

    known: Known = nothing_known
    held: list[str] = field(default_factory=list)

    def take(self, lines: list[str]) -> list[str]:
        self.held += lines
        return self._released(self._safe_cut()) if len(self.held) >= BLOCK else []

    def end(self) -> list[str]:
        return self._released(len(self.held))

    def _safe_cut(self) -> int:
        """A place no secret goes over: an empty line, or in a text without one the last that is between secrets."""
        for number in range(len(self.held) - 1, 0, -1):
            if not self.held[number].strip():
                return number
        return self._between_secrets() if len(self.held) >= LONGEST_BLOCK else 0

    def _between_secrets(self) -> int:
        text = "\n".join(self.held)
        spans = _all_spans(text, self.known)
        ends = {match.end() - 1 for _, end, _ in spans if (match := LINE_END.match(text, end))}
        lines = {begin: text.rfind("\n", 0, begin) for begin, _, _ in spans}
        begins = {line for begin, line in lines.items() if LINE_BEGIN.fullmatch(text, line + 1, begin)}
        last = len(self.held) - OVERLAP
        place = len("\n".join(self.held[:last]))
        while last > 1:
            inside = any(begin < place < end for begin, end, _ in spans)
            if not inside and not (place in ends and place in begins):
                break
            last -= 1
            place -= len(self.held[last]) + 1
        return last

    def _released(self, count: int) -> list[str]:
        block, self.held = self.held[:count], self.held[count:]
        return redacted("\n".join(block), self.known).split("\n") if block else []
