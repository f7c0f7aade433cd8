"""The tools that the model may call: what they do, what they return, and which of them need the user's permission."""

from __future__ import annotations

import fnmatch
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from sm.testing.agent.loop import Cancellation

Json: TypeAlias = dict[str, Any]

TOOL_NAMES = ("Agent", "Bash", "Edit", "Glob", "Grep", "Read", "Skill", "ToolSearch", "Write", "TodoWrite")
EDITING_TOOLS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
ASKING_TOOLS = EDITING_TOOLS | {"Bash", "Read", "WebFetch", "WebSearch"}
READ_ONLY = frozenset({"cat", "cd", "echo", "grep", "head", "ls", "pwd", "tail", "wc"})
"""Commands that the client runs without asking in its own folder."""
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
SEPARATOR = re.compile(r"&&|\|\||[;|\n]")
RULE = re.compile(r"(\w+)(?:\((.*)\))?", re.DOTALL)
MAX_OUTPUT_CHARS = 30_000


@dataclass(frozen=True, slots=True)
class CallResult:
    text: str
    """The result for the model."""
    response: Json
    """The `tool_response` for a hook."""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Permissions:
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    mode: str = "default"

    def denied(self, name: str, given: Json, directory: str) -> bool:
        return any(_covers(rule, name, given, directory) for rule in self.deny)

    def asks(self, name: str, given: Json, directory: str) -> bool:
        """Whether the user has to allow this call."""
        if (
            name not in ASKING_TOOLS
            or self.mode == "bypassPermissions"
            or (name in EDITING_TOOLS and self.mode == "acceptEdits")
        ):
            return False
        if name == "Bash":
            return not all(self._allows_command(part, directory) for part in _commands(str(given.get("command", ""))))
        if name == "Read" and _path(given, directory).is_relative_to(directory):
            return False
        return not any(_covers(rule, name, given, directory) for rule in self.allow)

    def _allows_command(self, command: str, directory: str) -> bool:
        if command.split(" ", 1)[0] in READ_ONLY:
            return True
        return any(_covers(rule, "Bash", {"command": command}, directory) for rule in self.allow)


def _commands(line: str) -> list[str]:
    """Return the commands of a shell line; of a here-document only the line that opens it."""
    opened = line.split("\n", 1)[0] if "<<" in line else line
    parts = SEPARATOR.split(QUOTED.sub("_", opened))
    return [part.strip() for part in parts if part.strip()]


def _covers(rule: str, name: str, given: Json, directory: str) -> bool:
    match = RULE.fullmatch(rule)
    if match is None or not (match[1] == name or (match[1] == "Edit" and name in EDITING_TOOLS)):
        return False
    pattern = match[2]
    if pattern is None:
        return True
    if name == "Bash":
        return _covers_command(pattern, str(given.get("command", "")))
    return fnmatch.fnmatch(str(_path(given, directory)), str(Path(directory) / _absolute(pattern)))


def _covers_command(pattern: str, command: str) -> bool:
    prefix = pattern.removesuffix(":*")
    if prefix != pattern:
        return command == prefix or command.startswith(f"{prefix} ")
    return fnmatch.fnmatchcase(command, pattern)


def _absolute(pattern: str) -> str:
    """Resolve a rule's path: `//x` is absolute, `~/x` at home, anything else relative to the folder."""
    if pattern.startswith("//"):
        return pattern[1:]
    return os.path.expanduser(pattern) if pattern.startswith("~") else pattern.lstrip("/")  # noqa: PTH111  # a pattern


def _path(given: Json, directory: str) -> Path:
    return Path(os.path.normpath(Path(directory) / str(given.get("file_path", ""))))


def run(name: str, given: Json, directory: str, environment: Mapping[str, str], cancel: Cancellation) -> CallResult:
    if name == "Bash":
        return _bash(given, directory, environment, cancel)
    try:
        if name == "Write":
            return _write(_path(given, directory), str(given.get("content", "")))
        if name == "Read":
            return _read(_path(given, directory))
        if name == "Edit":
            return _edit(_path(given, directory), given)
    except (OSError, ValueError) as problem:
        return _failed(_explained(problem, directory))
    return CallResult("ok", {"result": "ok"})


def _explained(problem: Exception, directory: str) -> str:
    if isinstance(problem, FileNotFoundError):
        return f"File does not exist. Note: your current working directory is {directory}."
    return str(problem)


def _failed(text: str) -> CallResult:
    return CallResult(text, {}, failed=True)


def _bash(given: Json, directory: str, environment: Mapping[str, str], cancel: Cancellation) -> CallResult:
    process = start_command(str(given.get("command", "")), directory, environment)
    with cancel.on_cancel(lambda: end_group(process)), process:
        out, err = (text.decode(errors="replace").rstrip("\n") for text in process.communicate())
    if process.returncode:
        said = "\n".join(part for part in (f"Exit code {process.returncode}", out, err) if part)
        return _failed(said[:MAX_OUTPUT_CHARS])
    text = "\n".join(part for part in (out, err) if part)
    response = {"stdout": out, "stderr": err, "interrupted": False, "isImage": False, "noOutputExpected": not text}
    return CallResult(text[:MAX_OUTPUT_CHARS] or "(Bash completed with no output)", response)


def start_command(command: str, directory: str, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/bash", "-c", command],
        cwd=directory,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def end_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _write(path: Path, content: str) -> CallResult:
    before = path.read_text() if path.exists() else None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    kind, done = ("create", "created") if before is None else ("update", "updated")
    response: Json = {"type": kind, "filePath": str(path), "content": content, "structuredPatch": []}
    response |= {"originalFile": before, "userModified": False}
    return CallResult(f"File {done} successfully at: {path}", response)


def _read(path: Path) -> CallResult:
    content = path.read_text(errors="replace")
    lines = content.split("\n")
    text = "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, start=1))
    file = {"filePath": str(path), "content": content, "numLines": len(lines), "startLine": 1, "totalLines": len(lines)}
    return CallResult(text, {"type": "text", "file": file})


def _edit(path: Path, given: Json) -> CallResult:
    old, new = str(given.get("old_string", "")), str(given.get("new_string", ""))
    before = path.read_text()
    if old not in before:
        raise ValueError(f"String to replace not found in file.\nString: {old}")
    path.write_text(before.replace(old, new) if given.get("replace_all") else before.replace(old, new, 1))
    response = {"filePath": str(path), "oldString": old, "newString": new, "originalFile": before}
    return CallResult(f"The file {path} has been updated successfully.", response)


def texts(blocks: Sequence[Json]) -> str:
    return "\n".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
