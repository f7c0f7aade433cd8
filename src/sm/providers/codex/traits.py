"""What the rules need to know of Codex. Each fact was seen on 0.171.0."""

from __future__ import annotations

import re
from dataclasses import replace

from sm.core.model.client_traits import ClientTraits

SERVER = "sm"
"""The name of our tools' server in the client's configuration."""
HANDOFF_TOOL = f"mcp__{SERVER}__handoff"
SHELL_TOOL = "exec_command"
PATCH_TOOL = "apply_patch"

CODEX = ClientTraits(
    clear_command="/new",
    exit_command="/quit",
    command_record="",  # no record shows a command of the client
    exit_words=frozenset(),
    special_prefixes=("!", "/"),
    continuations=(),  # it waits for its user at a usage limit
    own_prompt_prefix="<hook_prompt",
    typed_characters=900,
    typed_lines=1,
    reply_characters=100_000,
    continued_turns=0,  # what waits at a turn's end becomes a prompt of its own
    refusal_margin=0,
    marks=re.compile(
        r"<(?=\s*/?\s*(?:hook_prompt|environment_context|user_instructions|permissions\b|skills_instructions|"
        r"turn_aborted|subagent_notification|collaboration_mode|personality_spec))",
        re.IGNORECASE,
    ),
    paste=re.compile(r"(?!)()"),
    startup_question="Codex asks something at its start (such as whether this folder is trusted); attach and answer it",
    plugin_unanswered="its app-server does not answer",
    handoff_tool=HANDOFF_TOOL,
    document_tools="apply_patch or a shell command",
    patient_hooks=frozenset({"SessionStart"}),
)
APP = replace(CODEX, command_record=None, special_prefixes=("/",), typed_characters=1 << 20, typed_lines=1 << 20)
"""Through the app-server a prompt is no line of keys, and taken as it is; its commands are requests."""
