"""What `sm` itself types or runs in a session: never a person's words, never work."""

from __future__ import annotations

import re

OURS = re.compile(r"\A\s*(?:\[sm\b|\[Input from: |=== HANDOFF LOADED|Read \S.* and continue from where you left off\.)")
OUR_COMMAND = re.compile(r"(?:\A|[\n;&|(])[ \t]*(?:\w+=[^\s;&|]*[ \t]+)*(?:[^\s;&|=(]*/)?sm[ \t]+handoff\b")
"""Also behind `cd x &&`, since that is how agents run what they run elsewhere."""


def is_ours(text: str) -> bool:
    return bool(OURS.match(text))


def is_our_command(command: str) -> bool:
    return bool(OUR_COMMAND.search(command))
