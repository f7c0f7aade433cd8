"""Which of our commands belong to an agent: those it may run without asking anybody.

None of them names a program, or a file outside the session's directory; `tests/e2e/test_allowed.py` tries each with
each of its options on the real client.
"""

from __future__ import annotations

AGENT = (
    "handoff",
    "send",
    "status",
    "context",
    "inbox",
    "message",
    "remind",
    "wait",
    "spawn",
    "children",
    "kill",
    "clear",
    "done",
    "search",
)
