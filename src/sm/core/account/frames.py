"""What `sm` itself types or runs in a session: never a person's words, never work."""

from __future__ import annotations

import re

OURS = re.compile(
    r"\A\s*(?:\[sm\b|\[Input from: |=== HANDOFF LOADED|Read \S.* and continue from where you left off\.|"
    r"(?:\S*/)?sm\s+handoff\b)"
)


def is_ours(text: str) -> bool:
    return bool(OURS.match(text))
