"""Reads from a shell command's text what it does to files and to the repository."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from sm.digest.transcript_events import Change

HEREDOC = re.compile(
    r"(?<!<)<<(?!<)-?[ \t]*(['\"]?)(\w++)\1([^\n]*)(?:\n.*?(?:^[ \t]*\2[ \t]*$|\Z)|\Z)", re.DOTALL | re.MULTILINE
)
"""The end of the text ends one as well, as in a shell."""
SEPARATORS = re.compile(r"&&|\|\||;|\||\n")
SHELL_SYNTAX = re.compile(r"[*?$`{}<>|&]")
COMMIT_LINE = re.compile(r"^\[(\S+)(?: \([^)]*\))? ([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)
QUERY = re.compile(
    r"^(?:which|type|command -v|test|\[|ls|stat|file|grep|rg|egrep|ag|find|cat|head|tail|wc|curl|wget|ping|pgrep|pidof|"
    r"lsof|diff|cmp|git (?:show|diff|log|status|grep|rev-parse|ls-files|merge-base|cat-file|check-ignore))\b"
)
"""Commands that only ask; the failure of one is an answer."""


TOKEN = re.compile(r"""(&&|\|\||[;|\n&])|((?:[^\s"'\\;|&]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+)""", re.DOTALL)
REDIRECTED = re.compile(r"(?:\s\d?>>?\s?(?:&\d|[^\s;|&]+)|\s&>>?\s?[^\s;|&]+)")
ASSIGNED = re.compile(r"\A\w+=")
SETUP_PROGRAMS = frozenset(
    {"cd", "export", "set", "source", ".", "sleep", "echo", "mkdir", "git", "true", "pushd", "unset"}
)
"""Programs that are rarely the purpose of a command line."""
RUNNERS = frozenset(
    {
        "sudo",
        "time",
        "env",
        "npx",
        "bunx",
        "uv",
        "poetry",
        "pipenv",
        "bundle",
        "exec",
        "run",
        "nice",
        "python",
        "python3",
    }
)
"""Programs that run another program."""
FILTERS = frozenset({"head", "tail", "grep", "egrep", "tee", "less", "cat", "sed", "awk", "sort", "wc", "cut", "tr"})


@dataclass(frozen=True, slots=True)
class Invocation:
    """One program of a command line, and what it is run on."""

    program: str
    targets: frozenset[str]
    options: frozenset[str]

    def covers(self, other: Invocation) -> bool:
        """Whether its success implies that of `other`: the same program on the same targets or on more."""
        if self.program != other.program or not {option for option in self.options if len(option) > 2} <= other.options:  # noqa: PLR2004  # -q, -v
            return False
        if not self.targets:
            return all(map(_names_a_place, other.targets))
        met = all(any(_contains(mine, target) for mine in self.targets) for target in other.targets)
        return met and all(map(_names_a_place, self.targets - other.targets))


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
    for part in SEPARATORS.split(HEREDOC.sub(r"<<\2\3", command)):
        words = _words(part)
        if words:
            yield from _changes(words)


def commits(output: str) -> Iterator[Commit]:
    """Return the commits that the output of `git commit` names."""
    for found in COMMIT_LINE.finditer(output):
        yield Commit(found[1], found[2], found[3].strip())


def is_query(command: str) -> bool:
    return bool(QUERY.match(core_command(command)))


def core_command(command: str) -> str:
    """Return the command line without leading `cd` and without filters of its output."""
    invocations = [[" ".join(words) for words in pipe] for pipe in _pipes(command)]
    first = next(
        (at for at, pipe in enumerate(invocations) if pipe[0].split(maxsplit=1)[0] not in {"cd", "export", "source"}), 0
    )
    return " && ".join(
        " | ".join([pipe[0], *(command for command in pipe[1:] if not _filters(command))])
        for pipe in invocations[first:]
    )


def invocations(command: str) -> list[Invocation]:
    """Return the programs that are the purpose of a command line."""
    found = [_step(words) for pipe in _pipes(command) for words in pipe[:1]]
    return [step for step in found if step.program and step.program not in SETUP_PROGRAMS]


def _filters(step: str) -> bool:
    return step.split(maxsplit=1)[0] in FILTERS


def _pipes(command: str) -> list[list[list[str]]]:
    """Return the words of each program, grouped by pipe."""
    pipes: list[list[list[str]]] = [[[]]]
    for joint, word in TOKEN.findall(REDIRECTED.sub("", HEREDOC.sub(r"<<\2\3", command))):
        if word:
            pipes[-1][-1].append(word)
        elif joint == "|":
            pipes[-1].append([])
        else:
            pipes.append([[]])
    return [[words for words in pipe if words] for pipe in pipes if any(pipe)]


def _step(words: list[str]) -> Invocation:
    words = [word.strip("\"'") for word in words if not ASSIGNED.match(word)]
    while words and (words[0].rpartition("/")[2] in RUNNERS or words[0] == "-m"):
        words = words[1:]
    plain = [word for word in words[1:] if not word.startswith("-") and not word.isdigit()]
    options = (word for word in words[1:] if word.startswith("-") and word != "-")
    program = words[0].rpartition("/")[2] if words else ""
    return Invocation(program, frozenset(plain), frozenset(options))


def _names_a_place(target: str) -> bool:
    return any(mark in target for mark in "/.:")


def _contains(whole: str, part: str) -> bool:
    return part == whole or (part.startswith(whole) and part[len(whole)] in "/:#[") or whole in {".", "./..."}


def _words(part: str) -> list[str]:
    try:
        return shlex.split(part, comments=True)
    except ValueError:  # quotes that contain a separator
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
    return bool(word) and not SHELL_SYNTAX.search(word) and not word.startswith(("/dev/", "/tmp/", "/proc/"))  # noqa: S108  # nothing is opened
