"""What an agent reads of the issue that it works on: words of `sm`, with the issue framed as data in them."""

from __future__ import annotations

from sm.core.model.client_traits import ClientTraits
from sm.core.model.framing import cleaned, defused
from sm.core.model.issue_frame import framed_issue
from sm.runner.issues.issue import Issue

MAX_SCOPE_TEXT = 2_500
"""Characters of an issue's text that each further context gets: the first one has had all of it."""
CUT = "\n[cut here: the document that follows continues the work on all of it]"


def first_prompt(run: str, issue: Issue, check: str, traits: ClientTraits) -> str:
    """Return the prompt that an attempt begins with."""
    framed = framed_issue(issue.id, issue.place, issue.title, issue.text, traits)
    return f"{_head(run, issue)}\n\n{framed}\n\n{_rules(check, traits)}"


def scope(run: str, issue: Issue, check: str, traits: ClientTraits) -> str:
    """Return what each further context of the attempt is given: the same work, and no other."""
    text = issue.text if len(issue.text) <= MAX_SCOPE_TEXT else issue.text[:MAX_SCOPE_TEXT] + CUT
    framed = framed_issue(issue.id, issue.place, issue.title, text, traits)
    return f"{_head(run, issue)} The context before this one has begun it.\n{framed}\n{_rules(check, traits)}"


def _head(run: str, issue: Issue) -> str:
    return f"[sm run {run}] Work on this one issue, {issue.id}, in this worktree, and on nothing else."


def _rules(check: str, traits: ClientTraits) -> str:
    shown = defused(" ".join(cleaned(check).split()), traits)
    return (
        "How this ends:\n"
        f"- It is done when everything is committed on the branch of this worktree and this command succeeds: {shown}\n"
        "- The user does not read along: decide what you can. Where only they can decide, write what you need to know "
        "as your last message and end your turn.\n"
        "- Leave .issues, .sprints and the checklist as they are; do not push, merge or switch branches."
    )
