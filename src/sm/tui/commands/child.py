"""How a command of `sm` is started from the screen: this very `sm`, without a terminal, its output as plain text."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Sequence
from contextlib import suppress

KILL_TIMEOUT_S = 2.0


def argv(arguments: Sequence[str]) -> list[str]:
    """Return the command line; a directory called sm in the working directory is not loaded (-P)."""
    return [sys.executable, "-P", "-m", "sm", *arguments]


async def started(arguments: Sequence[str], columns: int, *, apart: bool = False) -> Process:
    """Start it; with `apart` its notes are on a stream of their own, else among its output."""
    env = {**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}
    return await asyncio.create_subprocess_exec(
        *argv(arguments), stdin=DEVNULL, stdout=PIPE, stderr=PIPE if apart else STDOUT, env=env
    )


async def finished(arguments: Sequence[str]) -> tuple[int, str, str]:
    """Run a command to its end; return its exit code, its output and its notes."""
    process = await started(arguments, 200, apart=True)
    try:
        out, err = await process.communicate()
    except asyncio.CancelledError:
        await end(process)
        raise
    return process.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace").strip()


async def end(process: Process) -> None:
    """End a command that may still run."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(KILL_TIMEOUT_S):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
