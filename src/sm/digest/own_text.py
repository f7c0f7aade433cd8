"""Recognises what `sm` itself types or runs in a session: it is neither the user's words nor work."""

from __future__ import annotations

import re

OURS = re.compile(r"\A\s*(?:\[sm\b|\[Input from: |=== HANDOFF LOADED|Read \S.* and continue from where you left off\.)")
LOADED = re.compile(
    r"=== HANDOFF LOADED \(ID: ([^)\n]{1,80})\) ===\n(?:(?:Channel|Previous Session|Type|Directory): .*\n)*"
    r"((?s:.*?))(?:\n=== END HANDOFF ===|\Z)"
)
"""What a new context is given: the handoff's id and its document."""
OUR_COMMAND = re.compile(r"(?:\A|[\n;&|(])[ \t]*(?:\w+=[^\s;&|]*[ \t]+)*(?:[^\s;&|=(]*/)?sm[ \t]+handoff\b")
"""Also after `cd x &&`: so agents run commands in another directory."""


def is_ours(text: str) -> bool:
    return bool(OURS.match(text))


def is_our_command(command: str) -> bool:
    return bool(OUR_COMMAND.search(command))
