"""How text is cut into words for the index, and how a query is read.

SQLite's unicode61 gives the words: letters and digits, so the parts of a path or of a snake_case name are words in
their order, and `sm/archive/search/query.py` or `log_start` is searched as a phrase. The humps of camelCase names are
words as well, and so is each character of a script that is written without blanks.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

TOKENIZER = "unicode61 remove_diacritics 2"
UNSPACED = re.compile("([\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])")
NAME = re.compile(r"[A-Za-z0-9]+")
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
TERM = re.compile(r'"([^"]*)"?|([^\s"]+)')
WORD = re.compile(r"[^\W_]+")
MAX_TERMS = 32
MAX_NAME_CHARS = 100
"""A longer one is a key, a hash or an image."""


def spaced(text: str) -> str:
    """Return the text with blanks around each character of an unspaced script."""
    return text if text.isascii() else UNSPACED.sub(r" \1 ", text)


def humps(text: str) -> str:
    """Return the parts of the text's camelCase names, each name once."""
    names = dict.fromkeys(name for name in NAME.findall(text) if len(name) <= MAX_NAME_CHARS)
    parts = ((name, HUMP.sub(" ", name)) for name in names)
    return " ".join(humped for name, humped in parts if humped != name)


@dataclass(frozen=True, slots=True)
class Term:
    """A word or phrase that must occur."""

    words: tuple[str, ...]
    begins: bool = False
    """The last word may continue: it was given with a `*`."""

    @property
    def expression(self) -> str:
        return f'"{" ".join(self.words)}"{"*" if self.begins else ""}'


def terms_of(query: str) -> tuple[Term, ...]:
    """Parse a query: words that must all occur, "phrases", and `begin*`. Marks alone are ignored."""
    found: dict[Term, None] = {}
    for phrase, word in TERM.findall(query):
        given = phrase or word
        words = tuple(WORD.findall(spaced(unicodedata.normalize("NFC", given))))
        if words:
            found[Term(words, begins=given.endswith("*"))] = None
    return tuple(found)[:MAX_TERMS]


def expression(terms: tuple[Term, ...], scopes: tuple[str, ...] | None) -> str:
    """Return the query in FTS5's syntax; `scopes` are the sessions to look in."""
    wanted = " AND ".join(term.expression for term in terms)
    asked = f"{{text humps}} : ({wanted})"
    if scopes is None:
        return asked
    return f"({asked}) AND scope : ({' OR '.join(scope_word(session, quoted=True) for session in scopes)})"


def scope_word(session: str, *, quoted: bool = False) -> str:
    word = f"session{session}"
    return f'"{word}"' if quoted else word


def folded(text: str) -> str:
    """Return the text as the index compares it, character by character."""
    if text.isascii():
        return text.lower()
    return "".join(unicodedata.normalize("NFD", character)[0].lower()[:1] or character for character in text)


MAX_LINE_CHARS = 240
"""Of a line, shown around a hit."""


@dataclass(frozen=True, slots=True)
class ShownLine:
    line: str
    marks: tuple[tuple[int, int], ...]


def best_line(text: str, terms: tuple[Term, ...]) -> ShownLine:
    """Return the line with most of the terms, cut around its first hit, and where they are in it."""
    patterns = [re.compile(r"[\W_]*".join(re.escape(folded(word)) for word in term.words)) for term in terms]
    best = ""
    marks: list[list[tuple[int, int]]] = []
    for line in text.split("\n"):
        plain = folded(line)
        found = [[match.span() for match in pattern.finditer(plain)] for pattern in patterns]
        if sum(map(bool, found)) > sum(map(bool, marks)) or not best:
            best, marks = line, found
    return _cut(best, _merged([span for spans in marks for span in spans]))


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _cut(line: str, marks: list[tuple[int, int]]) -> ShownLine:
    margin = len(line) - len(line.lstrip())
    first = marks[0][0] if marks else margin
    begin = margin if first - margin < MAX_LINE_CHARS // 2 else first - MAX_LINE_CHARS // 4
    end = min(len(line), begin + MAX_LINE_CHARS)
    head, tail = "…" if begin > margin else "", "…" if end < len(line) else ""
    shift = len(head) - begin
    kept = tuple((start + shift, min(stop, end) + shift) for start, stop in marks if start < end)
    return ShownLine(head + line[begin:end] + tail, kept)
