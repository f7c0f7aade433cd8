"""The input of a check, its result, and how it runs other programs."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sm.paths import SmHome
from sm.settings import Settings

OK = "ok"
WARN = "warn"
FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    level: str
    message: str
    hint: str = ""
    """What the user can do."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where `sm doctor` was called."""

    environ: Mapping[str, str]
    directory: Path
    home: SmHome
    settings: Settings | None
    """None for an invalid configuration, which has a check of its own."""
    client: str
    """The executable that sessions start."""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    code: int
    output: str
    errors: str


def run_program(
    command: Sequence[str], environ: Mapping[str, str], *, stdin: bytes = b"", seconds: float = 10.0
) -> ProgramResult | Finding:
    """Run a program; return its result, or a finding if it cannot be run or does not end in time."""
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, env=environ, timeout=seconds, check=False)  # noqa: TID251  # no loop here
    except subprocess.TimeoutExpired:
        return Finding(FAIL, f"{command[0]} did not come back within {seconds:.0f} s", f"run it: {' '.join(command)}")
    except OSError as problem:
        return Finding(
            FAIL, f"{command[0]} cannot be run: {problem.strerror}", "correct its permissions, or reinstall it"
        )
    return ProgramResult(
        done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    )


def short_list(items: Sequence[str], max_items: int = 3) -> str:
    more = f" and {len(items) - max_items} more" if len(items) > max_items else ""
    return ", ".join(items[:max_items]) + more
