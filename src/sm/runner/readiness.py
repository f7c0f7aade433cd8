"""Whether an issue can be worked at all: looked at before anything is spent on it."""

from __future__ import annotations

import re
import subprocess

from sm.runner.issues.issue import Issue
from sm.runner.outcome import Refusal, Result

MAX_TEXT = 100_000
"""Characters of an issue: more does not describe one piece of work."""
MAX_TASKS = 30
"""Open items of a list in it: so many are several issues."""
OPEN_TASK = re.compile(r"^[ \t]*[-*+] \[ \] ", re.MULTILINE)
SHELL_TIMEOUT_S = 10.0


def not_ready(issue: Issue, check: str) -> Refusal | None:
    """Return why nothing is spent on the issue yet."""
    reason, hint = _scope(issue) or _check(check) or ("", "")
    return Refusal(Result.NEEDS_YOU, reason, hint) if reason else None


def _scope(issue: Issue) -> tuple[str, str] | None:
    if len(issue.text) > MAX_TEXT:
        return f"its text has {len(issue.text):,} characters, more than {MAX_TEXT:,}", "write it as several issues"
    tasks = len(OPEN_TASK.findall(issue.text))
    if tasks > MAX_TASKS:
        return f"it lists {tasks} open tasks, more than {MAX_TASKS}", "write it as several issues"
    return None


def _check(check: str) -> tuple[str, str] | None:
    command = check.strip()
    if not command:
        return "no command says whether it is done", "write `check: COMMAND` into its front matter, or set runner.check"
    problem = _syntax_error(command)
    return (f"/bin/sh cannot read its check: {problem}", "correct it") if problem else None


def _syntax_error(command: str) -> str:
    """Return what the shell that will run it says of it, without running it."""
    if "\0" in command:
        return "it has a zero byte"
    ran = subprocess.run(  # noqa: TID251  # no loop runs here
        ["/bin/sh", "-n", "-c", command], capture_output=True, text=True, timeout=SHELL_TIMEOUT_S, check=False
    )
    return ran.stderr.strip() or f"exit code {ran.returncode}" if ran.returncode else ""
