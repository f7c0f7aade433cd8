"""Git's part: a worktree of its own for each issue, what its branch holds, and how that gets to the user's branch.

The main checkout is only ever moved forwards, to a merge commit that was made and checked elsewhere: it is never in the
middle of a merge. Nothing here adds foreign files or removes what is not committed. Each function may be called again
after an interruption anywhere: it finds what it has done in git itself.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sm.core.errors import error
from sm.runner.git import answer, git, paths
from sm.runner.outcome import Delivered, Refusal, Result, Work, Workplace

WORKTREES = ".worktrees"
BRANCHES = "sm"
TRAILER = "Sm-Issue"
MAX_NAMED = 5
"""Files that a reason names."""
MAX_TITLE = 60


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
    place = Workplace(str(tree), branch, target, str(directory))
    return _made(Path(top), place) or place


def directory_name(issue: str) -> str:
    """Return the issue's id as a name for a directory and a branch: itself wherever that is possible."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", issue).strip("-")[:60]
    return issue if plain == issue else f"{plain or 'issue'}-{hashlib.sha256(issue.encode()).hexdigest()[:6]}"


def _made(top: Path, place: Workplace) -> Refusal | None:
    _keep_out_of_git(top)
    tree = Path(place.worktree)
    if tree.is_symlink() or tree.parent.is_symlink():
        return Refusal(Result.NEEDS_YOU, f"{tree} is, or is in, a symbolic link", "replace it by a directory")
    if tree.exists():
        found = answer(tree, "rev-parse", "--show-toplevel")
        if found is None or Path(found).resolve() != tree.resolve():
            return Refusal(Result.NEEDS_YOU, f"{tree} exists and is not a worktree", "move it away")
        return None  # what is checked out there is looked at when the attempt has ended
    git(top, "worktree", "prune")  # forgets those whose directory is gone
    known = answer(top, "rev-parse", "--verify", "-q", f"refs/heads/{place.branch}") is not None
    new = () if known else ("-b", place.branch)
    options = ("--", str(tree), place.branch) if known else ("--", str(tree), "HEAD")
    git(top, "worktree", "add", "-q", *new, *options)
    return None


def _keep_out_of_git(top: Path) -> None:
    """List the worktrees in the repository's own exclude file, which is not tracked."""
    exclude = Path(top, git(top, "rev-parse", "--git-path", "info/exclude").strip())
    known = exclude.read_text(encoding="utf-8", errors="surrogateescape") if exclude.exists() else ""
    if f"/{WORKTREES}/" not in known.splitlines():
        exclude.parent.mkdir(exist_ok=True)
        with exclude.open("a", encoding="utf-8") as file:
            file.write(("" if not known or known.endswith("\n") else "\n") + f"/{WORKTREES}/\n")


# --- what an attempt has left --------------------------------------------------------------------------------------


def work(place: Workplace, protected: Collection[str]) -> Work | Refusal:
    """Return what is committed on the branch; a refusal where that is not all, or is not the issue's to change."""
    if answer(place.worktree, "symbolic-ref", "--short", "-q", "HEAD") != place.branch:
        hint = f"git -C {place.worktree} switch {place.branch}"
        return Refusal(Result.NEEDS_YOU, f"the worktree is not on {place.branch} any more", hint)
    hidden = _hidden(place)
    if hidden:
        reason = f"git was made to overlook changes of {_named(hidden)}"
        return Refusal(Result.NEEDS_YOU, reason, f"git -C {place.worktree} update-index --really-refresh")
    left = paths(place.worktree, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal")
    if left:
        return Refusal(Result.NEEDS_YOU, f"not committed: {_named([entry[3:] for entry in left])}", _look(place))
    head = git(place.worktree, "rev-parse", "HEAD").strip()
    commits = int(git(place.worktree, "rev-list", "--count", f"refs/heads/{place.target}..{head}"))
    if not commits:
        return Refusal(Result.NEEDS_YOU, "nothing was committed", _look(place))
    foreign = changed_by(place, head, protected)
    if foreign:
        reason = f"it changes what is not its own to change: {_named(foreign)}"
        return Refusal(Result.NEEDS_YOU, reason, f"git diff {place.target}...{place.branch}")
    return Work(head, commits)


def _hidden(place: Workplace) -> list[str]:
    """Return tracked files of which git does not look for changes, though they are there."""
    listed = paths(place.worktree, "ls-files", "-v", "-z")
    return [path for entry in listed if (path := entry[2:]) and _is_overlooked(place, entry[0], path)]


def _is_overlooked(place: Workplace, mark: str, path: str) -> bool:
    """Whether a letter of `git ls-files -v` says so: a small one, or S for a file that no sparse checkout left out."""
    return mark.islower() or (mark == "S" and Path(place.worktree, path).exists())


def changed_by(place: Workplace, head: str, protected: Collection[str]) -> list[str]:
    """Return the protected files that differ between a commit and what it began from."""
    base = git(place.worktree, "merge-base", f"refs/heads/{place.target}", head).strip()
    found = paths(place.worktree, "diff", "-z", "--name-only", "--no-renames", "--no-ext-diff", base, head)
    return [path for path in found if is_protected(path, protected)]


def is_protected(path: str, protected: Collection[str]) -> bool:
    """Whether a path is, or is in, one of those; in any case of letters, as for a file system that has no cases."""
    parts = PurePosixPath(path.casefold()).parts
    return any(parts[: len(own)] == own for own in (PurePosixPath(name.casefold()).parts for name in protected))


def brought_up_to_date(place: Workplace, head: str) -> Work | Refusal:
    """Merge the target into the branch, where it has moved on; a refusal that names what conflicts.

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
    return Work(now, int(git(place.worktree, "rev-list", "--count", "--no-merges", f"{target}..{now}")))


def _is_ancestor(place: Workplace, commit: str, other: str) -> bool:
    return answer(place.worktree, "merge-base", "--is-ancestor", commit, other) is not None


def _not_merged(place: Workplace, target: str) -> Refusal:
    conflicts = paths(place.worktree, "diff", "-z", "--name-only", "--diff-filter=U")
    if answer(place.worktree, "rev-parse", "-q", "--verify", "MERGE_HEAD"):
        git(place.worktree, "merge", "--abort")
    hint = f"git -C {place.worktree} merge {place.target}"
    if not conflicts:
        return Refusal(Result.NEEDS_YOU, f"{target[:12]} could not be merged into {place.branch}", hint)
    return Refusal(Result.NEEDS_YOU, f"conflicts with {place.target} in {_named(conflicts)}", hint)


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
    dirty = paths(top, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=no")
    foreign = [entry[3:] for entry in dirty if not is_protected(entry[3:], protected)]
    busy = _begun(top)
    if busy:
        return Refusal(Result.NEEDS_YOU, f"the checkout is in the middle of a {busy[0]}", f"git merge {place.branch}")
    if foreign:
        reason = f"the checkout has changes of its own: {_named(foreign)}"
        return Refusal(Result.NEEDS_YOU, reason, f"commit or stash them, then git merge {place.branch}")
    return None


STATES = {"MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert", "REBASE_HEAD": "rebase"}


def _begun(top: Path) -> list[str]:
    """Return what the user has begun there and not ended."""
    return [word for name, word in STATES.items() if answer(top, "rev-parse", "-q", "--verify", name)]


def tidied(top: Path, place: Workplace, head: str) -> tuple[str, ...]:
    """Remove the worktree and the branch of a delivered issue; return what was kept, and why."""
    if Path(place.worktree).exists() and answer(top, "worktree", "remove", "--", place.worktree) is None:
        return (f"kept {place.worktree}: it holds files that are not committed",)
    known = answer(top, "rev-parse", "--verify", "-q", f"refs/heads/{place.branch}")
    if known and (known != head or answer(top, "branch", "-q", "-d", "--", place.branch) is None):
        return (f"kept the branch {place.branch}: git does not know it as merged into {place.target}",)
    return ()


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


def _named(files: Collection[str]) -> str:
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
