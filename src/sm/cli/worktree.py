"""`sm new --worktree BRANCH`: a checkout of its own for an agent, and who else works in the one that it starts in."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sm.archive.handoffs.channels import work_tree
from sm.cli.format import say
from sm.core.errors import error
from sm.fleet import ENDED_STATUSES
from sm.plain_text import plain

HEADS = "refs/heads/"
GIT_TIMEOUT_S = 300.0
"""A checkout of a large repository takes its time."""


def checkout(directory: Path, branch: str) -> Path:
    """Return the directory's place in the worktree that has the branch; made next to the repository if none has.

    A branch that does not exist begins at what is checked out in `directory`.
    """
    if branch.startswith("-") or _git(directory, "check-ref-format", HEADS + branch) is None:
        raise error("bad_branch", f"Not a name for a branch: {branch!r}", "git check-ref-format says what is allowed")
    listed = _git(directory, "worktree", "list", "--porcelain")
    if listed is None:
        raise error("no_repository", f"{directory} is not in a git repository", "sm new without --worktree starts here")
    trees = dict(_worktrees(listed))
    found = next((path for path, checked_out in trees.items() if checked_out == HEADS + branch), None)
    if found is None:
        found = _added(directory, next(iter(trees)), branch)
        say(f"made a worktree for {plain(branch)}: {plain(str(found))}")
    elif not found.is_dir():
        raise error("no_directory", f"The worktree of {branch} is gone: {found}", "git worktree prune, then try again")
    elif found == next(iter(trees)):
        say(f"{plain(branch)} is checked out in the repository itself: {plain(str(found))}; it starts there")
    return _same_place(directory, found)


def _worktrees(listed: str) -> Iterator[tuple[Path, str]]:
    """Return each worktree with its branch, the repository's own first."""
    for block in listed.strip("\n").split("\n\n"):
        members = dict(line.partition(" ")[::2] for line in block.splitlines())
        yield Path(members["worktree"]), members.get("branch", "")


def _added(directory: Path, repository: Path, branch: str) -> Path:
    place = repository.parent / f"{repository.name.removesuffix('.git') or 'repository'}-{branch.replace('/', '-')}"
    if place.exists():
        hint = f"git worktree add ELSEWHERE {branch}, then sm new ELSEWHERE"
        raise error("file_unusable", f"The worktree would be {place}, which exists", hint)
    known = _git(directory, "for-each-ref", f"{HEADS}{branch}", f"refs/remotes/*/{branch}")
    new = () if known else ("-b", branch)
    options = ("worktree", "add", *new, "--", str(place), *(() if new else (branch,)))
    if _git(directory, *options) is None:
        raise error(
            "file_unusable", f"git did not make the worktree {place}", f"{shlex.join(('git', *options))} says why"
        )
    return place


def _same_place(directory: Path, tree: Path) -> Path:
    """Return the part of a worktree that `directory` is of its own one, if it is there too."""
    top = work_tree(str(directory))
    below = tree / directory.resolve().relative_to(top) if top and directory.resolve().is_relative_to(top) else tree
    return below if below.is_dir() else tree


def _git(directory: Path, *question: str) -> str | None:
    """Return the output; None if git fails. It is the user's own command, with their configuration and hooks."""
    git = shutil.which("git")
    if git is None:
        raise error("no_repository", "git is not on PATH", "install git")
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(  # noqa: TID251  # no loop runs here
        [git, "-C", str(directory), *question],
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=GIT_TIMEOUT_S,
    )
    return None if done.returncode else os.fsdecode(done.stdout)


def say_neighbours(session: dict[str, Any], sessions: list[dict[str, Any]]) -> None:
    """Say which other agents change the same files as a new one."""
    own = _place_of(session)
    names = [
        plain(other["name"])
        for other in sessions
        if other["id"] != session["id"] and other["status"] not in ENDED_STATUSES and _place_of(other) == own
    ]
    if names:
        verb = "works" if len(names) == 1 else "work"
        say(f"{', '.join(names)} {verb} in this checkout too: sm new --worktree NEW-BRANCH gives an agent its own")


def _place_of(session: dict[str, Any]) -> str:
    return work_tree(session["dir"]) or str(session["dir"])
