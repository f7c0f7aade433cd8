"""What the branch of an issue holds, and how that gets to the user's branch.

The main checkout is only ever moved forwards, to a merge commit that was made and checked elsewhere: it is never in the
middle of a merge. Nothing here adds foreign files or removes what is not committed. Each function may be called again
after an interruption anywhere: it finds what it has done in git itself.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sm.core.errors import error
from sm.runner import submodules
from sm.runner.git import answer, git, paths
from sm.runner.kept_hunks import dropped
from sm.runner.outcome import Conflict, Delivered, Refusal, Result, Work, Workplace

TRAILER = "Sm-Issue"
MAX_NAMED = 5
"""Files that a reason names."""
MAX_TITLE = 60


# --- what an attempt has left --------------------------------------------------------------------------------------


def work(place: Workplace, protected: Collection[str]) -> Work | Refusal:
    """Return what is committed on the branch; a refusal where that is not all, or is not the issue's to change."""
    if answer(place.worktree, "symbolic-ref", "--short", "-q", "HEAD") != place.branch:
        hint = f"git -C {place.worktree} switch {place.branch}"
        return Refusal(Result.NEEDS_YOU, f"the worktree is not on {place.branch} any more", hint)
    hidden = _hidden(place)
    if hidden:
        reason = f"git was made to overlook changes of {named(hidden)}"
        return Refusal(Result.NEEDS_YOU, reason, f"git -C {place.worktree} update-index --really-refresh")
    left = paths(place.worktree, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal")
    if left:
        return Refusal(Result.NEEDS_YOU, f"not committed: {named([entry[3:] for entry in left])}", _look(place))
    head = git(place.worktree, "rev-parse", "HEAD").strip()
    commits = int(git(place.worktree, "rev-list", "--count", f"refs/heads/{place.target}..{head}"))
    if not commits:
        return Refusal(Result.NEEDS_YOU, "nothing was committed", _look(place))
    return _not_its_own(place, head, protected) or Work(head, commits)


def _not_its_own(place: Workplace, head: str, protected: Collection[str]) -> Refusal | None:
    foreign = changed_by(place, head, protected)
    if foreign:
        reason = f"it changes what is not its own to change: {named(foreign)}"
        return Refusal(Result.NEEDS_YOU, reason, f"git diff {place.target}...{place.branch}")
    moved = submodules.changed(place.worktree, base_of(place, head), head)
    if moved:
        reason = f"it changes submodules, whose new commits are in its worktree alone: {named(moved)}"
        return Refusal(Result.NEEDS_YOU, reason, f"push them, then git merge {place.branch}")
    return None


def _hidden(place: Workplace) -> list[str]:
    """Return tracked files of which git does not look for changes, though they are there."""
    listed = paths(place.worktree, "ls-files", "-v", "-z")
    return [path for entry in listed if (path := entry[2:]) and _is_overlooked(place, entry[0], path)]


def _is_overlooked(place: Workplace, mark: str, path: str) -> bool:
    """Whether a letter of `git ls-files -v` says so: a small one, or S for a file that no sparse checkout left out."""
    return mark.islower() or (mark == "S" and Path(place.worktree, path).exists())


def base_of(place: Workplace, head: str) -> str:
    """Return the newest commit of the target that a commit of the branch has."""
    return git(place.worktree, "merge-base", f"refs/heads/{place.target}", head).strip()


def changed_by(place: Workplace, head: str, protected: Collection[str]) -> list[str]:
    """Return the protected files that differ between a commit and what it began from."""
    base = base_of(place, head)
    found = paths(place.worktree, "diff", "-z", "--name-only", "--no-renames", "--no-ext-diff", base, head)
    return [path for path in found if is_protected(path, protected)]


def is_protected(path: str, protected: Collection[str]) -> bool:
    """Whether a path is, or is in, one of those; in any case of letters, as for a file system that has no cases."""
    parts = PurePosixPath(path.casefold()).parts
    return any(parts[: len(own)] == own for own in (PurePosixPath(name.casefold()).parts for name in protected))


def brought_up_to_date(place: Workplace, head: str) -> Work | Conflict | Refusal:
    """Merge the target into the branch, where it has moved on, and make sure that the branch takes nothing from it.

    So what is checked is exactly what the target will be.
    """
    if answer(place.worktree, "rev-parse", "-q", "--verify", "MERGE_HEAD"):
        git(place.worktree, "merge", "--abort")  # of this very function: an attempt that leaves one is refused before
    target = git(place.worktree, "rev-parse", f"refs/heads/{place.target}").strip()
    now, *parents = git(place.worktree, "log", "-1", "--format=%H %P").split()
    if head not in {now, *parents[:1]} or (head != now and not _is_ancestor(place, parents[-1], target)):
        return Refusal(Result.NEEDS_YOU, f"{place.branch} has changed since its attempt ended", _look(place))
    if not _is_ancestor(place, target, now):
        message = f"Merge {place.target} into {place.branch}"
        if answer(place.worktree, "merge", "--no-ff", "--no-edit", "-q", "-m", message, target) is None:
            return _not_merged(place, target)
        now = git(place.worktree, "rev-parse", "HEAD").strip()
    lacks = dropped(place.worktree, place.base, target, now)
    if lacks:
        reason = f"it takes back what {place.target} has gained since it began, in {named(lacks)}"
        return Refusal(Result.NEEDS_YOU, reason, f"git diff {place.target} {place.branch}")
    return Work(now, int(git(place.worktree, "rev-list", "--count", "--no-merges", f"{target}..{now}")))


def _is_ancestor(place: Workplace, commit: str, other: str) -> bool:
    return answer(place.worktree, "merge-base", "--is-ancestor", commit, other) is not None


def _not_merged(place: Workplace, target: str) -> Conflict | Refusal:
    conflicts = paths(place.worktree, "diff", "-z", "--name-only", "--diff-filter=U")
    if answer(place.worktree, "rev-parse", "-q", "--verify", "MERGE_HEAD"):
        git(place.worktree, "merge", "--abort")
    if conflicts:
        return Conflict(place.target, conflicts)
    reason, hint = f"{target[:12]} could not be merged into {place.branch}", f"git -C {place.worktree} merge {target}"
    return Refusal(Result.NEEDS_YOU, reason, hint)


def conflict_left(place: Workplace, found: Conflict) -> Refusal:
    """Return what the user is asked for where an agent has not resolved it."""
    hint = f"git -C {place.worktree} merge {found.target}"
    return Refusal(Result.NEEDS_YOU, f"conflicts with {found.target} in {named(found.files)}", hint)


# --- delivery --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Delivery:
    top: Path
    """The main checkout."""
    place: Workplace
    mark: str
    """RUN/ISSUE, kept in the merge commit as a trailer."""
    title: str
    protected: tuple[str, ...]
    """The issues' own files: their states may be uncommitted."""


def delivered(delivery: Delivery, head: str) -> Delivered | Refusal:
    """Move the target to a merge of exactly that commit; nothing is done where it has it already."""
    top, place, mark = delivery.top, delivery.place, delivery.mark
    found = merge_of(top, place, head, mark)
    if found:
        return Delivered(found)
    refused = _not_ready(top, place, delivery.protected)
    if refused is not None:
        return refused
    target = git(top, "rev-parse", "HEAD").strip()
    if not _is_ancestor(place, target, head):
        return Delivered("")
    subject = f"Merge {place.branch}: {one_line(delivery.title)}"
    tree = git(top, "rev-parse", f"{head}^{{tree}}").strip()  # head has all of the target: the merge is its tree
    message = ("-m", subject, "-m", f"{TRAILER}: {mark}")
    merge = git(top, "commit-tree", tree, "-p", target, "-p", head, *message).strip()
    if answer(top, "merge", "--ff-only", "-q", merge) is None:
        if git(top, "rev-parse", "HEAD").strip() != target:
            return Delivered("")
        hint = f"git merge {place.branch} says which file"
        return Refusal(Result.NEEDS_YOU, f"files of the checkout are in the way of {place.branch}", hint)
    return Delivered(merge)


def merge_of(top: Path, place: Workplace, head: str, mark: str) -> str:
    """Return the merge commit of that very commit on the target's own line with that mark; empty if it has none.

    A trailer alone proves nothing: whoever commits on the branch can write one.
    """
    wanted = f"--format=%H %P%x00%(trailers:key={TRAILER},valueonly,unfold,separator=%x2C)"
    for line in git(
        top, "log", "--first-parent", "--merges", wanted, f"{head}..refs/heads/{place.target}"
    ).splitlines():
        commits, _, marks = line.partition("\0")
        merge, *parents = commits.split()
        if parents[1:] == [head] and marks == mark:
            return merge
    return ""


def _not_ready(top: Path, place: Workplace, protected: Collection[str]) -> Refusal | None:
    """Return why the main checkout takes no delivery now; changed states of its issues are allowed."""
    if answer(top, "symbolic-ref", "--short", "-q", "HEAD") != place.target:
        reason, hint = f"the checkout is not on {place.target} any more", f"git merge {place.branch}"
        return Refusal(Result.NEEDS_YOU, reason, hint)
    foreign = foreign_changes(top, protected)
    busy = _begun(top)
    if busy:
        return Refusal(Result.NEEDS_YOU, f"the checkout is in the middle of a {busy[0]}", f"git merge {place.branch}")
    if foreign:
        reason = f"the checkout has changes of its own: {named(foreign)}"
        return Refusal(Result.NEEDS_YOU, reason, f"commit or stash them, then git merge {place.branch}")
    return None


def foreign_changes(top: Path, protected: Collection[str]) -> list[str]:
    """Return the tracked files of the main checkout that have changes of the user."""
    dirty = paths(top, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=no")
    return [entry[3:] for entry in dirty if not is_protected(entry[3:], protected)]


STATES = {"MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert", "REBASE_HEAD": "rebase"}


def _begun(top: Path) -> list[str]:
    """Return what the user has begun there and not ended."""
    return [word for name, word in STATES.items() if answer(top, "rev-parse", "-q", "--verify", name)]


def committed_status(top: Path, path: str, subject: str, mark: str) -> str:
    """Commit what was written into an issue's own file, and nothing else; return why not, empty where it is done."""
    if not answer(top, "ls-files", "--", path) or not paths(top, "status", "--porcelain=v1", "-z", "--", path):
        return ""
    done = answer(top, "commit", "-q", "--only", "-m", subject, "-m", f"{TRAILER}: {mark}", "--", path)
    return "" if done is not None else f"the status in {path} is not committed: git commit says why"


def one_line(text: str) -> str:
    """Return a title that can be part of a commit's first line, and of nothing else in it."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return plain if len(plain) <= MAX_TITLE else f"{plain[:MAX_TITLE]}…"


def named(files: Collection[str]) -> str:
    """Return the first of some paths, in words that a terminal can show."""
    shown = [ascii(path)[1:-1] if not path.isprintable() else path for path in sorted(files)[:MAX_NAMED]]
    return ", ".join(shown) + (f" and {len(files) - MAX_NAMED} more" if len(files) > MAX_NAMED else "")


def _look(place: Workplace) -> str:
    return f"git -C {place.worktree} status"


def top_of_repository(project: Path) -> Path:
    """Return the main checkout's directory; SmError outside of any."""
    found = answer(project, "rev-parse", "--show-toplevel")
    if found is None:
        raise error("no_repository", f"{project} is in no git repository", "git init, and a first commit")
    return Path(os.path.realpath(found))
