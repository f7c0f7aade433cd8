"""A pull request in the place of a merge: only where it is asked for by name, and through the user's own `gh`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from sm.core.errors import error
from sm.runner.git import answer, git
from sm.runner.issues.gh import gh
from sm.runner.merges import one_line
from sm.runner.outcome import Delivered, Prepared, Refusal, Result, Work


def pull_request(top: Path, run: str, prepared: Prepared, work: Work) -> Delivered | Refusal:
    """Push the branch and open a pull request with it; one that is open is left as it is. Nothing is forced."""
    place = prepared.place
    remote, base = _followed(top, place.target)
    if not remote:
        hint = f"git branch --set-upstream-to=REMOTE/BRANCH {place.target}"
        return Refusal(Result.NEEDS_YOU, f"{place.target} follows no branch of a remote", hint)
    if answer(top, "push", "-q", "--", remote, f"{work.head}:refs/heads/{place.branch}") is None:
        return Refusal(
            Result.NEEDS_YOU, f"{place.branch} cannot be pushed to {remote}", f"git push {remote} {place.branch}"
        )
    ends = ("--head", place.branch, "--base", base)
    found = _listed(gh(top, os.environ, "pr", "list", *ends, "--state", "open", "--json", "url"))
    if found:
        return Delivered("", found[0])
    title = one_line(f"{prepared.id}: {prepared.title}")
    text = f"By sm in run {run}. At {work.head} this check succeeded:\n\n    {one_line(prepared.check)}\n"
    printed = gh(top, os.environ, "pr", "create", *ends, "--title", title, "--body-file", "-", given=text)
    return Delivered("", printed.strip().rpartition("\n")[2] or place.branch)


def _followed(top: Path, target: str) -> tuple[str, str]:
    """Return the remote, and the branch in it, that the user's branch follows; of one remote alone the same name."""
    remote = answer(top, "config", f"branch.{target}.remote") or ""
    merge = answer(top, "config", f"branch.{target}.merge") or ""
    if remote and remote != ".":
        return remote, merge.removeprefix("refs/heads/") or target
    remotes = git(top, "remote").split()
    return (remotes[0], target) if len(remotes) == 1 else ("", "")


def _listed(text: str) -> list[str]:
    try:
        found: list[dict[str, Any]] = json.loads(text)
        return [str(each["url"]) for each in found]
    except (ValueError, KeyError, TypeError) as problem:
        raise error("gh_failed", "gh pr list printed something else than asked for", "update gh") from problem
