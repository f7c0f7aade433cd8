"""What a check is given, what it finds, and how it runs other programs."""

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
    """What to do about it."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where `sm doctor` was called."""

    environ: Mapping[str, str]
    directory: Path
    home: SmHome
    settings: Settings | None
    """None where the configuration cannot be used; a check of its own says why."""
    client: str
    """The executable sessions would start."""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    code: int
    output: str
    errors: str


def ran(
    command: Sequence[str], environ: Mapping[str, str], *, stdin: bytes = b"", seconds: float = 10.0
) -> ProgramResult | Finding:
    """What a program did; a finding if it could not be run or did not come back."""
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


def listed(items: Sequence[str], most: int = 3) -> str:
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more
