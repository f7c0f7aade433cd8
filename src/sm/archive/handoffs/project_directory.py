"""Keeps the documents under a project's `.sm/` out of git.

They are listed in the repository's own `info/exclude`, which is not tracked; `.gitignore` belongs to the project.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sm.core.errors import SmError, error
from sm.files import is_git_entry, read_regular
from sm.paths import PRIVATE_FILE, write_failed

EXCLUDED_DOCUMENTS = ("**/.sm/handoff.md", "**/.sm/handoff-*.md", "**/.sm/continue-prompt.md")
CONTINUATION_PROMPTS = (".sm/continue-prompt.md", ".ll/ll-continue-prompt.md")
"""The last is another tool's."""
FOUND_IN_PROJECT = (".sm/handoff.md", *CONTINUATION_PROMPTS)
"""Where the user or an agent may have left a document."""
GITDIR_PREFIX = "gitdir: "
MAX_TRACKED_LISTED = 1000
GIT_TIMEOUT_S = 2.0
MAX_GIT_FILE_BYTES = 1 << 20
SAFE_OPTIONS = ("-c", "core.fsmonitor=false", "--no-optional-locks")
"""A repository may name a program as its fsmonitor, which would be run."""


def keep_out_of_git(directory: Path) -> None:
    """List the documents in the exclude file of the repository around the directory, if any. OSError if it can't."""
    repository = git_directory(directory)
    if repository is None:
        return
    exclude = repository / "info" / "exclude"
    known = text_of(exclude) if os.path.lexists(exclude) else ""
    missing = [pattern for pattern in EXCLUDED_DOCUMENTS if pattern not in known.splitlines()]
    if not missing:
        return
    exclude.parent.mkdir(exist_ok=True)
    separator = "" if not known or known.endswith("\n") else "\n"
    with exclude.open("a", encoding="utf-8") as file:
        file.write(separator + "".join(f"{pattern}\n" for pattern in missing))


def write_in_project(directory: Path, name: str, content: bytes) -> Path:
    """Put a document into the project's `.sm`; SmError where that is a link, which could lead out of the project."""
    path = directory / name
    temporary = f".tmp-{os.urandom(8).hex()}"
    try:
        with contextlib.suppress(FileExistsError):
            path.parent.mkdir()
        place = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as problem:
        raise _not_written(path, problem) from problem
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE, dir_fd=place)
        with open(descriptor, "wb") as file:  # noqa: PTH123  # a descriptor, no path
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path.name, src_dir_fd=place, dst_dir_fd=place)  # within a descriptor
    except OSError as problem:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=place)  # likewise
        raise _not_written(path, problem) from problem
    finally:
        os.close(place)
    return path


def _not_written(path: Path, problem: OSError) -> SmError:
    if path.parent.is_symlink():
        hint = f"replace {path.parent} by a directory"
        return error("write_failed", f"Cannot write {path}: {path.parent} is a symbolic link", hint)
    return write_failed(path, problem)


def is_tracked(path: Path) -> bool:
    """Whether git tracks a file. False where git cannot tell; never called on the event loop."""
    return path in _tracked(path.parent, [path])


def tracked_documents(directory: Path) -> list[Path]:
    """Return documents that came with the project: git tracks them, and no session here wrote them."""
    folder = directory / ".sm"
    found = sorted(itertools.islice(folder.glob("handoff-*.md"), MAX_TRACKED_LISTED))
    return _tracked(folder, found) if found else []


def _tracked(folder: Path, paths: Sequence[Path]) -> list[Path]:
    """Return those of a directory's files that git tracks."""
    if git_directory(folder) is None:
        return []
    command = ["git", *SAFE_OPTIONS, "--literal-pathspecs", "ls-files", "-z", "--", *(path.name for path in paths)]
    try:
        asked = subprocess.run(  # noqa: TID251  # in a thread
            command, cwd=folder, capture_output=True, timeout=GIT_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    names = {os.fsdecode(name) for name in asked.stdout.split(b"\0")}
    return [path for path in paths if path.name in names]


def git_directory(directory: Path) -> Path | None:
    """Return the repository's common directory, where git reads `info/exclude`: for a worktree that of the main one."""
    entry = git_entry(directory)
    return None if entry is None else _repository(entry)


def git_entry(directory: Path) -> Path | None:
    """Return the `.git` that git would use in the directory."""
    place = Path(os.path.realpath(directory))
    return next((folder / ".git" for folder in (place, *place.parents) if is_git_entry(folder / ".git")), None)


def _repository(entry: Path) -> Path | None:
    """Return the common directory that a `.git` names; None for a file that names none."""
    try:
        own = own_directory(entry)
        common = own / "commondir"
        found = own / text_of(common).strip() if own != entry and common.exists() else own
        return found if own == entry or (found / "HEAD").exists() else None
    except OSError:
        return None


def own_directory(entry: Path) -> Path:
    """Return the directory that a `.git` is or names: a worktree's part of the repository. OSError if it names none."""
    if entry.is_dir():
        return entry
    text = text_of(entry).strip()
    if not text.startswith(GITDIR_PREFIX):
        raise OSError(errno.EINVAL, "Names no repository", str(entry))
    return entry.parent / text.removeprefix(GITDIR_PREFIX)


def text_of(path: Path) -> str:
    return read_regular(path, MAX_GIT_FILE_BYTES)[0].decode("utf-8", "surrogateescape")
