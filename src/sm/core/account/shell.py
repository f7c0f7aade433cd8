"""What a shell command does to files and to the repository, as far as its text tells."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from sm.core.account.happenings import Change

HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?^\s*\2\s*$", re.DOTALL | re.MULTILINE)
JOINTS = re.compile(r"&&|\|\||;|\||\n")
PATTERN = re.compile(r"[*?$`{}<>|&]")
COMMITTED = re.compile(r"^\[(\S+)(?: \([^)]*\))? ([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)
LOOKING = re.compile(
    r"^(?:which|type|command -v|test|\[|ls|stat|file|grep|rg|egrep|ag|find|cat|head|tail|wc|curl|wget|ping|pgrep|pidof|"
    r"lsof|diff|cmp|git (?:show|diff|log|status|grep|rev-parse|ls-files|merge-base|cat-file|check-ignore))\b"
)
"""Commands that ask; when one fails, that is an answer."""


@dataclass(frozen=True, slots=True)
class FileChange:
    path: str
    change: Change
    source: str | None = None
    """What a renamed file was called before."""


@dataclass(frozen=True, slots=True)
class Commit:
    branch: str
    hash: str
    subject: str


def file_changes(command: str) -> Iterator[FileChange]:
    for part in JOINTS.split(HEREDOC.sub(r"<<\2\3", command)):
        words = _words(part)
        if words:
            yield from _changes(words)


def commits(output: str) -> Iterator[Commit]:
    """The commits that git tells of in the output of `git commit`."""
    for found in COMMITTED.finditer(output):
        yield Commit(found[1], found[2], found[3].strip())


def is_question(command: str) -> bool:
    return bool(LOOKING.match(command.strip()))


def _words(part: str) -> list[str]:
    try:
        return shlex.split(part, comments=True)
    except ValueError:  # quotes that go over the joints
        return []


def _changes(words: list[str]) -> Iterator[FileChange]:
    if words[0] == "git" and len(words) > 1 and words[1] in {"rm", "mv"}:
        words = words[1:]
    program, plain = words[0], [word for word in words[1:] if not word.startswith("-")]
    if program == "rm" and "--cached" not in words:
        yield from (FileChange(path, Change.DELETED) for path in plain if _is_path(path))
    elif program == "mv" and len(plain) == 2 and all(map(_is_path, plain)):  # noqa: PLR2004  # from and to
        yield FileChange(plain[1], Change.RENAMED, source=plain[0])
    elif program in {"cat", "echo", "printf", "tee"}:
        yield from _written(program, words, plain)
    elif program == "sed" and any(word.startswith("-i") for word in words):
        yield from (FileChange(path, Change.EDITED) for path in plain[1:] if _is_path(path))


def _written(program: str, words: list[str], plain: list[str]) -> Iterator[FileChange]:
    targets = plain if program == "tee" else []
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word in {">", ">>"}:
            targets = [*targets, following]
        elif word.startswith(">") and len(word.lstrip(">")) > 1:
            targets = [*targets, word.lstrip(">")]
    yield from (FileChange(path, Change.CREATED) for path in targets if _is_path(path))


def _is_path(word: str) -> bool:
    return bool(word) and not PATTERN.search(word) and not word.startswith(("/dev/", "/tmp/", "/proc/"))  # noqa: S108  # nothing is opened
