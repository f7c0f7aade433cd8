"""Writes a Claude Code transcript the way the client does: one assistant record per block, results as user records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]
REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). To tell you how to proceed, the user said:\n"
)


class Conversation:
    def __init__(self, directory: str = "/p", branch: str = "main") -> None:
        self.directory, self.branch = directory, branch
        self.lines: list[bytes] = []
        self.parent: str | None = None
        self.number = 0

    def save(self, path: Path) -> Path:
        path.write_bytes(b"".join(self.lines))
        return path

    def record(self, kind: str, **members: object) -> str:
        self.number += 1
        name = f"u{self.number}"
        record = {"parentUuid": self.parent, "isSidechain": False, "type": kind, **members, "uuid": name}
        record |= {"timestamp": "2026-02-02T06:45:30.000Z", "cwd": self.directory, "gitBranch": self.branch}
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
        self.lines.append(line.encode("utf-8", "surrogatepass"))
        self.parent = name
        return name

    # --- the person and the client ------------------------------------------------------------------------------

    def person(self, text: str | list[Json], **members: object) -> None:
        self.record("user", **{"message": {"role": "user", "content": text}, "origin": {"kind": "human"}, **members})

    def client(self, text: str, **members: object) -> None:
        """A user record that no person wrote."""
        self.record("user", message={"role": "user", "content": text}, **members)

    def queued(self, text: str, **members: object) -> None:
        attachment = {"type": "queued_command", "prompt": text, "origin": {"kind": "human"}, **members}
        self.record("attachment", attachment=attachment)

    def hook(self, event: str, text: str) -> None:
        attachment = {"type": "hook_additional_context", "content": [text], "hookEvent": event}
        self.record("attachment", attachment=attachment)

    def compacted(self, recap: str) -> None:
        self.record("system", subtype="compact_boundary", compactMetadata={"preTokens": 9, "postTokens": 1})
        self.client(recap, isCompactSummary=True)

    # --- the agent ----------------------------------------------------------------------------------------------

    def reply(self, block: Json, stop: str) -> None:
        message = {"id": f"m{self.number}", "model": "claude-x", "content": [block], "stop_reason": stop}
        self.record("assistant", message=message)

    def said(self, text: str) -> None:
        """In the middle of a turn."""
        self.reply({"type": "text", "text": text}, "tool_use")

    def closed(self, text: str) -> None:
        self.reply({"type": "text", "text": text}, "end_turn")

    def thought(self, text: str) -> None:
        self.reply({"type": "thinking", "thinking": text}, "tool_use")

    def call(self, tool: str, given: Json) -> str:
        name = f"t{self.number}"
        self.reply({"type": "tool_use", "id": name, "name": tool, "input": given}, "tool_use")
        return name

    def result(
        self, call: str, content: object, *, failed: bool = False, details: object = None, beside: str = ""
    ) -> None:
        """`beside`: what the person typed with their yes to the call."""
        block: Json = {"tool_use_id": call, "type": "tool_result", "content": content}
        if failed:
            block["is_error"] = True
        extra = {} if details is None else {"toolUseResult": details}
        blocks = [block, {"type": "text", "text": beside}] if beside else [block]
        self.record("user", message={"role": "user", "content": blocks}, **extra)

    def ran(self, command: str, output: str = "", code: int = 0) -> None:
        call = self.call("Bash", {"command": command, "description": "Run it"})
        self.result(call, f"Exit code {code}\n{output}" if code else output, failed=code != 0)

    def edited(self, path: str) -> None:
        call = self.call("Edit", {"file_path": f"{self.directory}/{path}", "old_string": "a", "new_string": "b"})
        self.result(call, "The file has been updated.", details={"filePath": path})

    def wrote(self, path: str, *, new: bool = True) -> None:
        call = self.call("Write", {"file_path": f"{self.directory}/{path}", "content": "x"})
        self.result(call, "Written.", details={"type": "create" if new else "update", "filePath": path})

    def todos(self, *rows: tuple[str, str]) -> None:
        todos = [{"content": text, "status": status, "activeForm": text} for text, status in rows]
        self.result(self.call("TodoWrite", {"todos": todos}), "Todos have been modified.")

    def asked(self, question: str, answer: str, notes: str = "", *, free: bool = False) -> None:
        """`free`: in the person's own words, instead of one of the choices."""
        asked = {"questions": [{"question": question}]}
        details: Json = {**asked, "answers": {} if free else {question: answer}}
        if free:
            details["response"] = answer
        if notes:
            details["annotations"] = {question: {"notes": notes}}
        self.result(self.call("AskUserQuestion", asked), f'"{question}"="{answer}"', details=details)

    def refused(self, tool: str, given: Json, words: str = "") -> None:
        text = REFUSED + words if words else REFUSED.partition(" To tell")[0]
        self.result(self.call(tool, given), text, failed=True)

    def launched(self, task: str, command: str, description: str) -> None:
        call = self.call("Bash", {"command": command, "description": description, "run_in_background": True})
        text = f"Command running in background with ID: {task}. Output is being written to: /x."
        self.result(call, text, details={"stdout": "", "backgroundTaskId": task})

    def task_ended(self, task: str, result: str = "") -> None:
        note = (
            f"<task-notification>\n<task-id>{task}</task-id>\n<status>completed</status>\n{result}</task-notification>"
        )
        self.client(note, origin={"kind": "task-notification"})
