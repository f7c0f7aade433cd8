"""What a list of this machine's runs says of each, as the process that reads them passes it on (`reader.py`)."""

from __future__ import annotations

import re

import msgspec

RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""Of a run that is listed, and has a page; another one is not ours."""


class KnownIssue(msgspec.Struct, frozen=True):
    issue: str
    mark: str
    """What its sessions have it by, behind which they have the number of the attempt."""
    state: str
    """`waits`, `works`, `failed` or `left_out`, and once it has ended how (`Result`)."""
    title: str = ""
    """Empty until it is worked on."""
    step: str = ""
    session: str = ""
    attempts: int = 0
    """0 until it has ended: its sessions say which one it is at."""
    spent: str = ""
    """In words; empty where it is not known."""
    usd: float | None = None
    reason: str = ""
    hint: str = ""


class KnownRun(msgspec.Struct, frozen=True):
    run: str
    project: str
    """The name of its repository's directory."""
    state: str
    """`waits`, `works`, `ended`, `failed`, or `interrupted` where no process works on it any more."""
    begun: float
    """Unix time."""
    issues: tuple[KnownIssue, ...]
    spent: str = ""


class ReadRequest(msgspec.Struct):
    run: str = ""
    """With its report; empty for the newest runs."""


class ReadAnswer(msgspec.Struct):
    runs: tuple[KnownRun, ...] | None = None
    """Newest first; null where all reads as in the answer before."""
    report: str = ""
    """Markdown, of the one run that was asked for, once it has ended."""
    problem: str = ""
    """Why some runs, or all, are missing."""
