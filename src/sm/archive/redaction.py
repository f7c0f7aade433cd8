"""Which stretches of text are secrets, and what stands there instead.

Secrets are known by their shape, our own tokens also by their hash. A terminal wraps, so each text is looked at twice:
as it is, and with its lines joined. Hashes, UUIDs and words are no secrets. Each expression takes linear time; it is
run only where one of its literals occurs.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from sm.core.ids import token_hash

Known = Callable[[str], bool]
"""Whether a text of 43 characters is one of our own tokens."""
Span = tuple[int, int, str]
"""From, to, and what kind of secret it is."""


@dataclass(frozen=True, slots=True)
class Shape:
    name: str
    literals: tuple[str, ...]
    """One of them is in every text with such a secret; in lower case if `folded`."""
    pattern: re.Pattern[str]
    """Its group `secret`, or else all of it, is replaced."""
    folded: bool = False


def _shape(name: str, literals: str, pattern: str, *, folded: bool = False) -> Shape:
    flags = re.ASCII | (re.IGNORECASE if folded else 0)
    return Shape(name, tuple(literals.split("|")), re.compile(pattern, flags), folded)


START = r"(?<![A-Za-z0-9_-])"
NO_VALUE = r"(?!\$|<|\{|\(|\[|\.\.\.|\*\*\*|os\.|process\.|None\b|null\b|true\b|false\b|REDACTED)"
"""What stands for a value, as a variable or a placeholder, is none."""
SEPARATORS = r"[\s│⎿|>]"

SHAPES = (
    _shape("anthropic-key", "sk-ant-", START + r"sk-ant-[A-Za-z0-9_-]{16,}"),
    _shape("api-key", "sk-", START + r"sk-(?=[A-Za-z0-9_-]{0,200}[A-Z0-9])(?!ant-)[A-Za-z0-9_-]{20,}"),
    _shape("stripe-key", "k_live_|k_test_", START + r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _shape("github-token", "ghp_|gho_|ghu_|ghs_|ghr_", START + r"gh[pousr]_[A-Za-z0-9]{36,}"),
    _shape("github-token", "github_pat_", START + r"github_pat_[A-Za-z0-9_]{22,}"),
    _shape("gitlab-token", "glpat-", START + r"glpat-[A-Za-z0-9_-]{20,}"),
    _shape("aws-key", "AKIA|ASIA", START + r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _shape("slack-token", "xox", START + r"xox[a-z]-[A-Za-z0-9-]{10,}"),
    _shape("slack-token", "xapp-", START + r"xapp-[A-Za-z0-9-]{20,}"),
    _shape("google-key", "AIza", START + r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _shape("google-token", "ya29.", START + r"ya29\.[A-Za-z0-9_-]{20,}"),
    _shape("npm-token", "npm_", START + r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    _shape("pypi-token", "pypi-", START + r"pypi-[A-Za-z0-9_-]{50,}"),
    _shape("huggingface-token", "hf_", START + r"hf_[A-Za-z0-9]{30,}"),
    _shape("jwt", "eyJ", START + r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    _shape(
        "private-key",
        "PRIVATE KEY",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        rf"(?:(?:\\n|{SEPARATORS})*(?:[A-Za-z0-9+/=]{{20,}}|(?:Proc-Type|DEK-Info|Version|Comment): [^\n]{{1,200}}))*"
        rf"(?:(?:\\n|{SEPARATORS})*[A-Za-z0-9+/=]{{1,19}}(?=(?:\\n|{SEPARATORS})*-----END))?"
        rf"(?:(?:\\n|{SEPARATORS})*-----END [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    _shape("authorization", "bearer", r"\bbearer\s+(?P<secret>(?=[^\s\"']{0,200}\d)[\w.~+/=-]{16,})", folded=True),
    _shape(
        "authorization",
        "authorization",
        r"\bauthorization[\"']?\s*[:=]\s*[\"']?basic\s+(?P<secret>[\w+/=-]{8,})",
        folded=True,
    ),
    _shape("password", "://", r"://[^\s/:@\"']{0,200}:" + NO_VALUE + r"(?P<secret>[^\s/@\"']{1,200})@"),
    _shape(
        "password",
        "password=|passwd=|pwd=|token=|secret=|key=",
        r"[?&;](?:password|passwd|pwd|token|access_token|auth_token|secret|client_secret|api_?key|key)="
        + NO_VALUE
        + r"(?P<secret>[^\s&#\"'`<>]{4,})",
        folded=True,
    ),
    _shape(
        "assigned",
        "TOKEN|SECRET|PASSWORD|PASSWD|_KEY|APIKEY",
        r"\b[A-Z0-9_]{0,80}(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE_KEY)[\"']?\s?[=:]\s?[\"']?"
        + NO_VALUE
        + r"(?P<secret>[^\s\"'`,;(){}<>]{8,})",
    ),
    _shape(
        "aws-secret",
        "secret_access_key",
        r"secret_access_key[\"']?\s*[=:]\s*[\"']?(?P<secret>[A-Za-z0-9/+]{40})",
        folded=True,
    ),
    _shape(
        "assigned",
        "password|passwd|secret|api_key|api-key|apikey|token",
        r"[\"']?\b\w{0,40}(?:password|passwd|secret|api[_-]?key|token)[\"']?\s?[=:]\s?(?P<quote>[\"'])"
        + NO_VALUE
        + r"(?P<secret>[^\s\"']{8,200})(?P=quote)",
        folded=True,
    ),
)
OWN = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])", re.ASCII)
"""What `secrets.token_urlsafe(32)` gives."""
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
MARGIN = 100
"""Characters before a secret by which it is known."""


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


def _all_spans(text: str, known: Known) -> list[Span]:
    return [*_secrets(text, known), *_cut_keys(text), *_wrapped(text, known)]


def _secrets(text: str, known: Known) -> Iterator[Span]:
    folded = text.lower()
    for shape in SHAPES:
        if any(literal in (folded if shape.folded else text) for literal in shape.literals):
            for match in shape.pattern.finditer(text):
                yield (*match.span("secret" if "secret" in shape.pattern.groupindex else 0), shape.name)
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


def _wrapped(text: str, known: Known) -> Iterator[Span]:
    """Secrets that go over the end of a line."""
    joints = [match.span() for match in JOINT.finditer(text)]
    if not joints:
        return
    starts = [0, *(end for _, end in joints)]
    ends = [*(start for start, _ in joints), len(text)]
    pieces = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    places = [0, *accumulate(map(len, pieces))]  # where each begins in the joined text
    joined = "".join(pieces)
    for start, stop, name in _secrets(joined, known):
        end = stop
        first, last = bisect_right(places, start) - 1, bisect_right(places, end - 1) - 1
        while last > first and not (
            _is_cut(text, joints[last - 1][0], joined[places[last] : end])
            or not _whole(joined, (start, places[last], name), known)
        ):
            end = places[last]
            last -= 1
        for number in range(first, last + 1) if last > first else ():
            shift = starts[number] - places[number]
            yield max(start, places[number]) + shift, min(end, places[number + 1]) + shift, name


def _is_cut(text: str, joint: int, rest: str) -> bool:
    """Whether a secret that could end with its line goes on in the next: the line is full, and `rest` is no word.

    A single letter may be one: of a secret's last letter alone on its line nobody can make anything.
    """
    line = joint - (text.rfind("\n", 0, joint) + 1)
    random = any(c.isdigit() for c in rest) or rest[1:] != rest[1:].lower() or len(rest) >= RANDOM
    return line >= NARROWEST and random


def _whole(joined: str, span: Span, known: Known) -> bool:
    """Whether the secret is one without what follows the joint."""
    start, end, name = span
    margin = max(0, start - MARGIN)
    return any((at + margin, kind) == (start, name) for at, _, kind in _secrets(joined[margin:end], known))


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
