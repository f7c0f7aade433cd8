"""Where the state of a project's runs is kept: a file of its own, or one PostgreSQL that several workers share."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from sm.core.errors import error
from sm.paths import PRIVATE_FILE, make_private
from sm.runner.executors import Executor, LocalExecutor, SharedExecutor
from sm.runner.git import answer, git

APPLICATION = "sm-runs"
SCHEMES = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class RunDatabase:
    url: str
    application: str
    """Names a project's runs in the database."""
    directory: Path
    """Of the reports."""
    file: Path | None = None
    """Where it is a file of this machine alone."""

    def made(self) -> None:
        """Make the directory and the file, which are their user's alone."""
        make_private(self.directory)
        if self.file is not None:
            os.close(os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE))

    def executor(self) -> Executor:
        return SharedExecutor(self.url, self.application) if self.file is None else LocalExecutor(self.file)


def local_database(file: Path) -> RunDatabase:
    return RunDatabase(f"sqlite:///{file}", APPLICATION, file.parent, file)


def run_database(url: str, directory: Path, project: Path, top: Path) -> RunDatabase:
    """Return where the runs of the project in that repository are kept: in PostgreSQL where its URL is given."""
    if not url:
        return local_database(directory / f"{_file_name(top)}.sqlite")
    if not url.startswith(SCHEMES):
        raise error("no_run_database", "Not the URL of a PostgreSQL", "write postgresql://USER@HOST/NAME")
    return RunDatabase(url, _shared_name(project, top), directory)


def _file_name(top: Path) -> str:
    slug = re.sub(r"[^A-Za-z0-9_.-]+", "-", top.name).strip(".-")[:40] or "project"
    return f"{slug}-{hashlib.sha256(os.fsencode(top)).hexdigest()[:8]}"


def _shared_name(project: Path, top: Path) -> str:
    """Return a name that every clone of the repository has: of its first commits, and of where the project is in it."""
    if answer(top, "rev-parse", "--is-shallow-repository") == "true":
        raise error("no_run_database", f"{top} is a shallow clone, whose name is not known", "git fetch --unshallow")
    roots = " ".join(sorted(git(top, "rev-list", "--max-parents=0", "HEAD").split()))
    place = project.resolve().relative_to(top).as_posix()
    return f"{APPLICATION}-{hashlib.sha256(f'{roots} {place}'.encode()).hexdigest()[:16]}"
