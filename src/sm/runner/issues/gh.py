"""Runs the GitHub CLI, which has the user's own login."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from sm.core.errors import error
from sm.core.model.framing import cleaned

TIMEOUT_S = 120.0
MAX_ERROR_CHARACTERS = 500
"""Of what `gh` says: of several lines the first may be the reason, or the last."""


def gh(directory: Path, environ: Mapping[str, str], *arguments: str, given: str = "") -> str:
    """Return what it prints; SmError with its own words if it fails."""
    program = shutil.which("gh", path=environ.get("PATH"))
    if program is None:
        raise error("gh_failed", "gh is not on PATH", "install the GitHub CLI, then gh auth login")
    what = f"gh {' '.join(arguments[:2])}"
    try:
        done = subprocess.run(  # noqa: TID251  # no loop runs here
            [program, *arguments],
            cwd=directory,
            env=environ,
            input=given.encode(),
            capture_output=True,
            check=False,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise error("gh_failed", f"{what} did not end within {TIMEOUT_S:.0f} s", "gh auth status") from None
    if done.returncode:
        words = "; ".join(cleaned(done.stderr.decode("utf-8", "replace")).splitlines()) or "it says nothing"
        raise error("gh_failed", f"{what} failed: {words[:MAX_ERROR_CHARACTERS]}", "gh auth status says who you are")
    return done.stdout.decode("utf-8", "replace")
