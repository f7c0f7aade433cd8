"""The worktree that an issue is worked on in: made once, found again by later runs, removed once it is delivered."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import msgspec

from sm.runner import submodules
from sm.runner.git import answer, git, paths
from sm.runner.included import include
from sm.runner.outcome import Refusal, Result, Workplace

WORKTREES = ".worktrees"
BRANCHES = "sm"
ADDING = "locked initializing"
"""What git says of a worktree that is being added."""


def workplace(project: Path, issue: str) -> Workplace | Refusal:
    """Return the issue's worktree on its branch, made where it is missing; both may be left by an earlier run."""
    top = answer(project, "rev-parse", "--show-toplevel")
    if top is None:
        return Refusal(Result.NEEDS_YOU, f"{project} is in no git repository", "git init, and a first commit")
    target = answer(top, "symbolic-ref", "--short", "-q", "HEAD")
    if not target or answer(top, "rev-parse", "--verify", "-q", "HEAD^{commit}") is None:
        return Refusal(Result.NEEDS_YOU, "the checkout is on no branch with a commit", "git switch BRANCH")
    if not answer(top, "var", "GIT_COMMITTER_IDENT"):
        return Refusal(Result.NEEDS_YOU, "git does not know who commits", "git config user.name and user.email")
    name = directory_name(issue)
    tree, branch = Path(top, WORKTREES, name), f"{BRANCHES}/{name}"
    directory = tree / project.resolve().relative_to(Path(top).resolve())
    place = Workplace(str(tree), branch, target, str(directory), "")
    return _made(Path(top), place) or _with_base(place)


def directory_name(issue: str) -> str:
    """Return the issue's id as a name for a directory and a branch: itself wherever that is possible."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", issue).strip("-")[:60]
    return issue if plain == issue else f"{plain or 'issue'}-{hashlib.sha256(issue.encode()).hexdigest()[:6]}"


def _made(top: Path, place: Workplace) -> Refusal | None:
    _keep_out_of_git(top)
    tree = Path(place.worktree)
    if tree.is_symlink() or tree.parent.is_symlink():
        return Refusal(Result.NEEDS_YOU, f"{tree} is, or is in, a symbolic link", "replace it by a directory")
    _forget_interrupted(top, tree)
    if not tree.exists():
        _add(top, place)
    elif not _is_worktree(tree):
        return Refusal(Result.NEEDS_YOU, f"{tree} exists and is not a worktree", "move it away")
    _check_out(tree)
    submodules.fill(tree)
    include(top, tree)
    return None  # what an earlier run has left there is looked at when the attempt has ended


def _is_worktree(tree: Path) -> bool:
    found = answer(tree, "rev-parse", "--show-toplevel")
    return found is not None and Path(found).resolve() == tree.resolve()


def _forget_interrupted(top: Path, tree: Path) -> None:
    """Let go of what an addition has left that ended with its machine: a mark in git, and a directory without files."""
    listed = git(top, "worktree", "list", "--porcelain", "-z").split("\0\0")
    marked = any({f"worktree {tree}", ADDING} <= set(entry.split("\0")) for entry in listed)
    if marked:
        answer(top, "worktree", "unlock", "--", str(tree))
    link = tree / ".git"
    if tree.is_dir() and {*tree.iterdir()} <= {link} and not link.is_dir() and (marked or not _is_worktree(tree)):
        link.unlink(missing_ok=True)
        tree.rmdir()


def _add(top: Path, place: Workplace) -> None:
    """Make it without files: that takes no time in which it could be interrupted."""
    git(top, "worktree", "prune")  # forgets those whose directory is gone
    known = answer(top, "rev-parse", "--verify", "-q", f"refs/heads/{place.branch}") is not None
    new = () if known else ("-b", place.branch)
    git(top, "worktree", "add", "-q", "--no-checkout", *new, "--", place.worktree, place.branch if known else "HEAD")


def _check_out(tree: Path) -> None:
    """Fill it where that was not done to its end: git writes the index last."""
    if not Path(tree, git(tree, "rev-parse", "--git-path", "index").strip()).exists():
        git(tree, "checkout", "-q", "-f", "HEAD", "--")


def _with_base(place: Workplace) -> Workplace | Refusal:
    base = answer(place.worktree, "merge-base", f"refs/heads/{place.target}", "HEAD")
    if base is None:
        hint = f"git log {place.branch}"
        return Refusal(Result.NEEDS_YOU, f"{place.branch} has no commit in common with {place.target}", hint)
    return msgspec.structs.replace(place, base=base)


def _keep_out_of_git(top: Path) -> None:
    """List the worktrees in the repository's own exclude file, which is not tracked."""
    exclude = Path(top, git(top, "rev-parse", "--git-path", "info/exclude").strip())
    known = exclude.read_text(encoding="utf-8", errors="surrogateescape") if exclude.exists() else ""
    if f"/{WORKTREES}/" not in known.splitlines():
        exclude.parent.mkdir(exist_ok=True)
        with exclude.open("a", encoding="utf-8") as file:
            file.write(("" if not known or known.endswith("\n") else "\n") + f"/{WORKTREES}/\n")


def tidied(top: Path, place: Workplace, head: str, *, keeps_branch: bool = False) -> tuple[str, ...]:
    """Remove the worktree of a delivered issue, and its branch if it is merged; return what was kept, and why."""
    if Path(place.worktree).exists() and not _removed(top, Path(place.worktree)):
        return (f"kept {place.worktree}: it holds files that are not committed",)
    known = answer(top, "rev-parse", "--verify", "-q", f"refs/heads/{place.branch}")
    if known and not keeps_branch and (known != head or answer(top, "branch", "-q", "-d", "--", place.branch) is None):
        return (f"kept the branch {place.branch}: git does not know it as merged into {place.target}",)
    return ()


def _removed(top: Path, tree: Path) -> bool:
    """Whether it could be removed: git wants force for one with submodules, so that here is looked what is in it."""
    force: tuple[str, ...] = ()
    if submodules.are_filled(tree):
        if paths(tree, "status", "--porcelain=v1", "-z", "--ignore-submodules=none", "--untracked-files=normal"):
            return False
        force = ("--force",)
    return answer(top, "worktree", "remove", *force, "--", str(tree)) is not None
