"""What the rules need to know of Claude Code. Each fact was seen on 2.1.328, where nothing else is said."""

from __future__ import annotations

from sm.core.model.client_traits import ClientTraits

SHELL_TOOL = "Bash"
READ_TOOL = "Read"
WRITE_TOOL = "Write"
FILE_TOOLS = frozenset({READ_TOOL, WRITE_TOOL, "Edit", "MultiEdit"})
"""Tools that take a `file_path`; the last one is gone since 2.0."""
SKILL_TOOL = "Skill"

CLAUDE = ClientTraits(
    clear_command="/clear",
    document_tools="Read, Write or Edit",
    patient_hooks=frozenset({"SessionStart", "PreCompact", "PreToolUse"}),
)
