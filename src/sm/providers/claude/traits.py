"""What the rules need to know of Claude Code. Each fact was seen on 2.1.328, most in a test on the client itself.

A fact that a newer client changes is changed here and nowhere else.
"""

from __future__ import annotations

import re

from sm.core.model.client_traits import ClientTraits
from sm.providers.claude.limit_notices import CONTINUATIONS

SHELL_TOOL = "Bash"
READ_TOOL = "Read"
WRITE_TOOL = "Write"
FILE_TOOLS = frozenset({READ_TOOL, WRITE_TOOL, "Edit", "MultiEdit"})
"""Tools that take a `file_path`."""
SKILL_TOOL = "Skill"
HANDOFF_TOOL = "mcp__sm__handoff"
"""Of our plugin in the client, which needs no permission (2.1.290)."""
REPLY_CHARACTERS = 10_000
"""Of a longer reply the client keeps a preview of 2 KB; 9,997 characters passed."""

CLAUDE = ClientTraits(
    clear_command="/clear",
    exit_command="/exit",
    command_record="<command-name>{}</command-name>",
    # The client's own list, which `tests/e2e/test_messages.py` reads out of its program.
    exit_words=frozenset({"exit", "quit", ":q", ":q!", ":wq", ":wq!"}),
    special_prefixes=("!", "/", "#"),  # `!` runs a shell, `/` a command of the client
    continuations=CONTINUATIONS,
    own_prompt_prefix="<",  # as `<task-notification>`
    typed_characters=800,  # 801 of them, or a fourth line, and the prompt is a paste
    typed_lines=3,
    reply_characters=REPLY_CHARACTERS,
    continued_turns=7,  # the client ends a turn that a Stop hook has continued seven times
    refusal_margin=13_000,
    marks=re.compile(
        r"\[(?=\s*request\s+interrupted\s+by)"
        r"|<(?=\s*/?\s*(?:system[-_]|task[-_]|command[-_]|local[-_]command|bash[-_]|pasted[-_]|persisted[-_]|"
        r"user[-_]|function_|antml|tool[-_](?:use|call|result)|cross[-_]session|agent[-_]message|non[-_]user|cc[-_]|"
        r"mcp[-_](?:server|resource)|coordinator[-_]|subagent[-_]|sandbox[-_]|new[-_]diagnostics|total_tokens|"
        r"memory_))",
        re.IGNORECASE,
    ),
    paste=re.compile(r'<pasted_content id="[^"]*">\n(.*?)(?:\n</pasted_content id="[^"]*">|\Z)', re.DOTALL),
    startup_question='Claude Code asks something at its start (such as "trust this folder?"); attach and answer it',
    plugin_unanswered=(
        "the plugin in the client did not answer: its settings forbid plugin code (disableAllHooks, --bare, "
        "--safe-mode, managed settings), or the client is too old"
    ),
    handoff_tool=HANDOFF_TOOL,
    document_tools="Read, Write or Edit",
    # The start carries the document, the compaction its reason, a gated call its refusal.
    patient_hooks=frozenset({"SessionStart", "PreCompact", "PreToolUse"}),
)
