"""How a call of a scenario reaches Codex: by the client's own tool where the scenario names one of Claude Code.

A scenario is the same for both clients. Codex has no tools that read or write a file: it runs `cat`, and a patch, which
its shell tool recognises and applies itself, so that its user sees a change of a file. A tool that has a namespace, as
each of an MCP server, is found only by both; the other client's `mcp__sm__handoff` is `handoff` in `mcp__sm` here
(Codex 0.171.0). Its sandboxed shell reaches no server, so a command of `sm` alone goes by the tool for that.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

    from sm.testing.player import ToolUse

SHELL = "exec_command"
ESCALATED = {"sandbox_permissions": "require_escalated", "justification": "the scenario asks"}
"""What asks the user; the other client asks in its default mode anyway."""
OWN_TOOL = "mcp__sm.sm"
QUESTION = "request_user_input"
"""Offered in plan mode alone, or with the client's feature `default_mode_request_user_input` (0.171.0)."""
SUBAGENT = "spawn_agent"
"""Works while its parent does; a later request tells of its end."""
HERE_TEXT = re.compile(r" <<'EOF'\n")
FREE_TEXT = frozenset({"apply_patch", "exec"})
"""Tools that take `input` as it is, no JSON object."""


def call_item(use: ToolUse, offered: Collection[str]) -> dict[str, Any]:
    """Return the item of a reply that makes a call."""
    name, arguments = use.call.name, use.call.input
    if name in FREE_TEXT:
        return {"type": "custom_tool_call", "call_id": use.id, "name": name, "input": arguments.get("input", "")}
    command = _command(name, arguments)
    own = _own_command(command or "")
    if own is not None and OWN_TOOL in offered:
        name, arguments = OWN_TOOL.replace(".", "__"), own
    elif command is not None:
        escalated = ESCALATED if arguments.get("dangerouslyDisableSandbox") else {}
        name, arguments = SHELL, {"cmd": command, **escalated}
    elif name == "AskUserQuestion":
        name, arguments = QUESTION, {"questions": [_question(*found) for found in enumerate(arguments["questions"])]}
    elif name == "Agent":
        name, arguments = SUBAGENT, {"message": arguments["prompt"]}
    item = {"type": "function_call", "call_id": use.id, "name": name, "arguments": json.dumps(arguments)}
    for space, _, inner in (tool.rpartition(".") for tool in offered):
        if space and name in {inner, f"{space}__{inner}"}:
            return item | {"namespace": space, "name": inner}
    return item


def _own_command(command: str) -> dict[str, Any] | None:
    """Return what the tool is given for a command of `sm` that is nothing but that; a text may follow as its input."""
    line, *given = HERE_TEXT.split(command, maxsplit=1) if HERE_TEXT.search(command) else (command,)
    if not line.startswith("sm ") or set(line) & set(";&|<>$`\n"):
        return None
    return {"arguments": shlex.split(line)[1:], **({"input": given[0].removesuffix("\nEOF")} if given else {})}


def _question(number: int, asked: dict[str, Any]) -> dict[str, Any]:
    shown = {name: asked.get(name, "") for name in ("header", "question")}
    return {"id": f"question-{number}", **shown, "options": asked.get("options", [])}


def _command(name: str, arguments: dict[str, Any]) -> str | None:
    """Return what the shell is to run for a tool of Claude Code, None for any other."""
    if name == "Bash":
        return str(arguments.get("command", ""))
    if name == "Read":
        return f"cat {shlex.quote(arguments['file_path'])}"
    return _written(arguments["file_path"], arguments["content"]) if name == "Write" else None


def _written(path: str, content: str) -> str:
    """Return the command that writes a file: a patch, but for what no patch can write, text without a last newline."""
    if content.endswith("\n"):
        lines = "".join(f"+{line}\n" for line in content[:-1].split("\n"))
        return f"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\nEOF"
    folder = shlex.quote(str(PurePath(path).parent))
    return f"mkdir -p {folder} && printf %s {shlex.quote(content)} >{shlex.quote(path)}"
