"""Finds secrets in text and replaces them.

Secrets are recognised by their form, our own tokens also by their hash. A terminal wraps, so each text is searched
twice: as it is, and with its lines joined.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

import msgspec

from sm.archive.redaction.assignment_patterns import ASSIGNMENT_PATTERNS
from sm.archive.redaction.patterns import GENERAL_PATTERNS, PatternIndex, SecretPattern, secret_of
from sm.archive.redaction.vendor_patterns import VENDOR_PATTERNS
from sm.core.ids import token_hash

IsOwnToken = Callable[[str], bool]
"""Whether a text of 43 characters is one of our own tokens."""
Span = tuple[int, int, str]
"""Start, end, and the kind of secret."""

ALL_PATTERNS = PatternIndex.of(*GENERAL_PATTERNS, *VENDOR_PATTERNS, *ASSIGNMENT_PATTERNS)
WRAPPABLE_PATTERNS = PatternIndex.of(*GENERAL_PATTERNS, *VENDOR_PATTERNS)
"""What may continue on the next line: where words give a value, the line's end is its end too."""
OWN_TOKEN = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])", re.ASCII)
"""What `secrets.token_urlsafe(32)` returns."""
OWN_TOKEN_CHARS = 43
TOKEN_RUN = re.compile(r"[A-Za-z0-9_-]{43,}", re.ASCII)
TOKEN_CHARACTER = re.compile(r"[A-Za-z0-9_-]")
"""May not be just before a secret that has a START."""
LINE_JOINT = re.compile(r"(?<=[\w+/=.:-])[ \t│|]*\n[ \t│⎿|>]*(?=[\w+/=.@-])", re.ASCII)
"""Where a terminal may have wrapped a word: the end of a line and the margin of the next one."""
LINE_END = re.compile(r"[ \t│|]*\n")
LINE_START = re.compile(r"[ \t│⎿|>]*")
PRIVATE_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
PRIVATE_KEY_LINE = re.compile(r"[\s│⎿|>]*[A-Za-z0-9+/=]{1,120}[\s│|]*")
MIN_RANDOM_CHARS = 24
"""Characters from which a text of one case and without digits is no word."""
MIN_WRAP_COLUMNS = 50
"""Columns that a line which a terminal wrapped has at least."""


def no_own_tokens(_: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class OwnTokens:
    """Recognises this server's tokens by their hashes; the tokens themselves are not here."""

    user: str
    sessions: Callable[[], Collection[str]]

    @property
    def hashes(self) -> list[str]:
        return [self.user, *self.sessions()]

    def __call__(self, text: str) -> bool:
        digest = token_hash(text)
        return digest == self.user or digest in self.sessions()


def redacted(text: str, is_own_token: IsOwnToken = no_own_tokens) -> str:
    """Return the text with `[REDACTED:kind]` in the place of each secret; its lines stay lines."""
    spans = _all_spans(text, is_own_token)
    return _replaced(text, spans) if spans else text


def redacted_json(text: str, is_own_token: IsOwnToken = no_own_tokens) -> str:
    """Redact a JSON text, which stays one: a quotation mark after a secret does not end its string."""
    if redacted(text, is_own_token) == text:
        return text
    return msgspec.json.encode(_redacted_value(msgspec.json.decode(text), is_own_token)).decode()


def _redacted_value(value: object, is_own_token: IsOwnToken) -> object:
    if isinstance(value, str):
        return redacted(value, is_own_token)
    if isinstance(value, dict):
        return {redacted(name, is_own_token): _redacted_value(item, is_own_token) for name, item in value.items()}
    return [_redacted_value(item, is_own_token) for item in value] if isinstance(value, list) else value


def _all_spans(text: str, is_own_token: IsOwnToken) -> list[Span]:
    return [*_secrets(text, is_own_token), *_cut_private_keys(text), *_wrapped_secrets(text, is_own_token)]


def _secrets(text: str, is_own_token: IsOwnToken) -> Iterator[Span]:
    for pattern in ALL_PATTERNS.occurring(text):
        for match in pattern.pattern.finditer(text):
            start, end = secret_of(match)
            if pattern.accepts is None or pattern.accepts(text[start:end]):
                yield start, end, pattern.name
    for match in OWN_TOKEN.finditer(text):
        if is_own_token(match[0]):
            yield (*match.span(), "sm-token")


def _cut_private_keys(text: str) -> Iterator[Span]:
    """Find the end of a private key whose beginning is not in this text."""
    if "PRIVATE KEY" not in text:
        return
    for match in PRIVATE_KEY_END.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
        while start > 0:
            line = text.rfind("\n", 0, start - 1) + 1
            if not PRIVATE_KEY_LINE.fullmatch(text, line, start):
                break
            start = line
        yield min(start, match.start()), match.end(), "private-key"


@dataclass(frozen=True, slots=True)
class _Joined:
    """A text with its lines joined, and how to map a position back."""

    text: str
    joined: str
    offsets: list[int]
    """Where each line begins in the joined text."""
    shifts: list[int]
    """What to add to a position of the line to get its position in the text."""

    @classmethod
    def of(cls, text: str) -> _Joined:
        joints = [match.span() for match in LINE_JOINT.finditer(text)]
        starts = [0, *(end for _, end in joints)]
        ends = [*(start for start, _ in joints), len(text)]
        lines = [text[start:end] for start, end in zip(starts, ends, strict=True)]
        offsets = [0, *accumulate(map(len, lines))]
        shifts = [start - offset for start, offset in zip(starts, offsets, strict=False)]
        return cls(text, "".join(lines), offsets, shifts)

    def line(self, position: int) -> int:
        return bisect_right(self.offsets, position) - 1

    def spans(self, start: int, end: int, name: str) -> Iterator[Span]:
        """Return the spans of the text that make up a span of the joined one."""
        for number in range(self.line(start), self.line(end - 1) + 1):
            shift = self.shifts[number]
            yield max(start, self.offsets[number]) + shift, min(end, self.offsets[number + 1]) + shift, name

    def before(self, start: int) -> str:
        """Return the character before a position, in the text itself."""
        position = start + self.shifts[self.line(start)]
        return self.text[position - 1 : position]

    def after(self, end: int) -> str:
        position = end + self.shifts[self.line(end - 1)]
        return self.text[position : position + 1]


def _wrapped_secrets(text: str, is_own_token: IsOwnToken) -> Iterator[Span]:
    """Find secrets that continue on the next line."""
    joined = _Joined.of(text)
    if joined.joined == text:
        return
    for pattern in WRAPPABLE_PATTERNS.occurring(joined.joined):
        for match in pattern.unbounded.finditer(joined.joined):
            yield from _wrapped_match(joined, pattern, match)
    for run in TOKEN_RUN.finditer(joined.joined):
        first, last = joined.line(run.start()), joined.line(run.end() - 1)
        for start in (run.start(), *joined.offsets[first + 1 : last]) if last > first else ():
            end = start + OWN_TOKEN_CHARS
            if is_own_token(joined.joined[start:end]) and not TOKEN_CHARACTER.match(joined.after(end)):
                yield from joined.spans(start, end, "sm-token")


def _wrapped_match(joined: _Joined, pattern: SecretPattern, match: re.Match[str]) -> Iterator[Span]:
    start, end = secret_of(match)
    if pattern.accepts is not None and not pattern.accepts(joined.joined[start:end]):
        return
    first, last = joined.line(start), joined.line(end - 1)
    while last > first:
        line_start = joined.offsets[last]
        shorter = pattern.unbounded.match(joined.joined, match.start(), line_start)
        if shorter is None or secret_of(shorter) != (start, line_start) or _continues(joined, last, end):
            break
        end, last = line_start, last - 1
    inside = pattern.has_start and TOKEN_CHARACTER.match(joined.before(start))
    runs_on = pattern.has_end and TOKEN_CHARACTER.match(joined.after(end))
    if last > first and not inside and not runs_on:
        yield from joined.spans(start, end, pattern.name)


def _continues(joined: _Joined, line: int, end: int) -> bool:
    """Whether a secret that could end with its line continues on this one: its line is full, and this is no word.

    A single letter counts as a word: a secret's last letter alone on its line gives nothing away.
    """
    start = joined.offsets[line]
    line_end = start + joined.shifts[line - 1]
    width = line_end - (joined.text.rfind("\n", 0, line_end) + 1)
    rest = joined.joined[start:end]
    random = any(c.isdigit() for c in rest) or rest[1:] != rest[1:].lower() or len(rest) >= MIN_RANDOM_CHARS
    return width >= MIN_WRAP_COLUMNS and random


def _replaced(text: str, spans: list[Span]) -> str:
    parts, done = [], 0
    for start, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
        if end <= done:
            continue
        if start >= done:
            parts += [text[done:start], f"[REDACTED:{name}]"]
        done = end
    return "".join([*parts, text[done:]])


def without_secrets(text: str, is_own_token: IsOwnToken = no_own_tokens) -> str:
    """Redact a long text in blocks, between which other threads can run."""
    redactor = LineRedactor(is_own_token)
    lines = text.split("\n")
    kept = [
        line
        for start in range(0, len(lines), BLOCK_LINES)
        for line in redactor.take(lines[start : start + BLOCK_LINES])
    ]
    return "\n".join([*kept, *redactor.end()])


BLOCK_LINES = 200
"""Lines that are searched together."""
MAX_BLOCK_LINES = 400
"""Held at most where no line is empty."""
OVERLAP_LINES = 4
"""Held back of such a block: a secret may continue in what comes."""


@dataclass(slots=True)
class LineRedactor:
    """Redacts lines that come one after the other; holds them until no secret can continue in what follows."""

    is_own_token: IsOwnToken = no_own_tokens
    held: list[str] = field(default_factory=list)

    def take(self, lines: list[str]) -> list[str]:
        self.held += lines
        return self._released(self._safe_cut()) if len(self.held) >= BLOCK_LINES else []

    def end(self) -> list[str]:
        return self._released(len(self.held))

    def _safe_cut(self) -> int:
        """Return where no secret crosses: at an empty line, or in a text without one the last gap between secrets."""
        for number in range(len(self.held) - 1, 0, -1):
            if not self.held[number].strip():
                return number
        return self._between_secrets() if len(self.held) >= MAX_BLOCK_LINES else 0

    def _between_secrets(self) -> int:
        text = "\n".join(self.held)
        spans = _all_spans(text, self.is_own_token)
        ends = {match.end() - 1 for _, end, _ in spans if (match := LINE_END.match(text, end))}
        lines = {begin: text.rfind("\n", 0, begin) for begin, _, _ in spans}
        begins = {line for begin, line in lines.items() if LINE_START.fullmatch(text, line + 1, begin)}
        last = len(self.held) - OVERLAP_LINES
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
        return redacted("\n".join(block), self.is_own_token).split("\n") if block else []
