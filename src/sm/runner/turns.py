"""Takes turns in one repository: by locks of the kernel, which are free once their process has ended."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from sm.core.errors import error
from sm.paths import PRIVATE_FILE
from sm.runner.git import answer

Turn = Literal["git", "delivery"]
"""`git`: a few commands that change what all worktrees share. `delivery`: from the last update of a branch until its
merge is recorded, the check in between. Whoever has that one takes the other too, and never the other way round."""


@contextmanager
def turn(top: Path, kind: Turn) -> Iterator[None]:
    """Wait until no other has that turn. Nothing of it is kept: after an interruption it is waited for again."""
    common = answer(top, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if common is None:
        raise error("no_repository", f"{top} is in no git repository", "git init, and a first commit")
    descriptor = os.open(Path(common, f"sm-{kind}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        with suppress(OSError):  # a file system without locks, as some over a network: git has its own for each command
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
