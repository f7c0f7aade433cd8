"""What an agent reads of the issue that it works on: words of `sm`, with the issue framed as data in them."""

from __future__ import annotations

import shlex
from collections.abc import Collection

from sm.core.model.client_traits import ClientTraits
from sm.core.model.framing import cleaned, defused
from sm.core.model.handoff_signal import signal_line
from sm.core.model.issue_frame import framed_issue
from sm.runner.issues.issue import Issue

MAX_SCOPE = 3_500
"""Characters that each further context gets of it: the first one has had all."""
MAX_CONFLICTS = 10
"""Files that are named; git shows them all."""
MAX_TITLE, MAX_CHECK = 200, 500
"""Characters that are repeated of each."""
CUT = "\n[cut here: the document that follows continues the work on all of it]"


def first_prompt(run: str, issue: Issue, check: str, traits: ClientTraits) -> str:
    """Return the prompt that an attempt begins with."""
    framed = framed_issue(issue.id, issue.place, issue.title, issue.text, traits)
    return f"{_head(run, issue)}\n\n{framed}\n\n{_rules(run, check, traits)}"


def with_conflict(prompt: str, target: str, files: Collection[str], traits: ClientTraits) -> str:
    """Return the prompt of an attempt whose work is done but for a conflict with what others have done."""
    shown = "\n".join(f"- {defused(cleaned(path), traits)[:MAX_TITLE]}" for path in sorted(files)[:MAX_CONFLICTS])
    more = f"\n- and {len(files) - MAX_CONFLICTS} more" if len(files) > MAX_CONFLICTS else ""
    return (
        f"{prompt}\n\n"
        f"The work is committed on this branch already, and {target} has changed since, so that these files conflict:\n"
        f"{shown}{more}\n"
        f"Run `git merge {shlex.quote(target)}` here, for this once, and resolve the conflicts so that both sides keep "
        "what they have gained: what the branch takes back of the other side is not delivered. Then commit the merge."
    )


def scope(run: str, issue: Issue, check: str, traits: ClientTraits) -> str:
    """Return what each further context of the attempt is given: the same work, and no other."""
    title, size = issue.title[:MAX_TITLE], MAX_SCOPE
    while True:
        text = issue.text if len(issue.text) <= size else issue.text[:size] + CUT
        framed = framed_issue(issue.id, issue.place, title, text, traits)
        found = f"{_head(run, issue)} The context before this one has begun it.\n{framed}\n{_rules(run, check, traits)}"
        if len(found) <= MAX_SCOPE or not size:
            return found
        size //= 2  # bars and marks make the lines longer


def _head(run: str, issue: Issue) -> str:
    return f"[sm run {run}] Work on this one issue, {issue.id}, in this worktree, and on nothing else."


def _rules(run: str, check: str, traits: ClientTraits) -> str:
    shown = defused(" ".join(cleaned(check).split()), traits)
    shown = shown if len(shown) <= MAX_CHECK else f"{shown[:MAX_CHECK]}… (cut here)"
    return (
        "How this ends:\n"
        f"- It is done when everything is committed on the branch of this worktree and this command succeeds: {shown}\n"
        "- The user does not read along: decide what you can. Where only they can decide, write what you need to know "
        "as your last message and end your turn.\n"
        "- Where your context gets full before that, hand off as sm tells you. This as a line of its own in your last "
        f"message begins a fresh context as well: {signal_line(run)}\n"
        "- An attempt before this one may have left work here: look at git status and git log first.\n"
        "- Leave .issues, .sprints and the checklist as they are; do not push, merge or switch branches."
    )
