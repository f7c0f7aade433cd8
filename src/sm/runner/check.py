"""Runs the command that says whether an issue is done: the user's own, through their shell, with an end in any case."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import BinaryIO, Final

from sm.runner.git import git
from sm.runner.outcome import Checked

MAX_OUTPUT = 4_000
"""Bytes of the end of its output that are kept."""
GRACE_S = 5.0
"""For its processes to end by themselves."""
POLL_INTERVAL_S = 0.05
NO_MORE: Final[Mapping[str, str]] = {}
INHERITED = ("CLAUDECODE", "CLAUDE_", "SM_", "GIT_")
"""Variables that belong to whoever has started `sm`, and say nothing to a build."""


def checked(directory: str, command: str, limit: float, environment: Mapping[str, str] = NO_MORE) -> Checked:
    """Run it in `directory`, with these variables on top; what it has started ends with it, if still in its group."""
    head = git(directory, "rev-parse", "HEAD").strip()
    begin = time.monotonic()
    with tempfile.TemporaryFile() as output:  # a pipe would be held open by whatever the command leaves running
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=directory,
            env={name: value for name, value in os.environ.items() if not name.startswith(INHERITED)} | {**environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process)
        return Checked(head, code, round(time.monotonic() - begin, 2), _end_of(output))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the whole process group, politely first."""
    for number, patience in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GRACE_S)):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
            if _gone(process, patience):
                break
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)


def _gone(process: subprocess.Popen[bytes], patience: float) -> bool:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        process.poll()
        try:
            os.killpg(process.pid, 0)
        except (ProcessLookupError, PermissionError):
            return True
        time.sleep(POLL_INTERVAL_S)
    return False


def _end_of(output: BinaryIO) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - MAX_OUTPUT))
    return output.read().decode("utf-8", "replace")
