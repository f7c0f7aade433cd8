"""Writes a rollout as the client does (Codex 0.171.0): short records with the members that are read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Json = dict[str, Any]
START = 1_780_000_000.0
THREAD = "019e0000-0000-7000-8000-000000000001"


class Rollout:
    def __init__(self, thread: str = THREAD, at: float = START, **meta: object) -> None:
        self.lines: list[bytes] = []
        self.thread, self.turn, self.at, self.number = thread, "", at, 0
        members = {"id": thread, "session_id": thread, "cwd": "/srv/app", "cli_version": "0.171.0", **meta}
        self.record("session_meta", **members)

    @property
    def data(self) -> bytes:
        return b"".join(self.lines)

    def save(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.data)
        return path

    def record(self, kind: str, **payload: object) -> None:
        stamp = datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        record = {"timestamp": stamp, "ordinal": len(self.lines), "type": kind, "payload": payload}
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
        self.lines.append(line.encode("utf-8", "surrogatepass"))

    def event(self, kind: str, **payload: object) -> None:
        self.record("event_msg", type=kind, **payload)

    def item(self, kind: str, /, **members: object) -> None:
        item = {"type": kind, "id": f"i{len(self.lines)}", **members}
        self.event("item_completed", thread_id=self.thread, turn_id=self.turn, item=item)

    def message(self, role: str, text: str, *kinds: str) -> None:
        """What the model reads or has said."""
        content = [{"type": "output_text" if role == "assistant" else "input_text", "text": text}]
        more = {"turn_id": self.turn, "content_item_kinds": list(kinds)}
        self.record(
            "response_item", type="message", role=role, content=content, internal_chat_message_metadata_passthrough=more
        )

    # --- turns --------------------------------------------------------------------------------------------------

    def started(self, model: str = "gpt-x", cwd: str = "/srv/app") -> None:
        self.number += 1
        self.turn = f"t{self.number}"
        self.event("task_started", turn_id=self.turn, model_context_window=258_400)
        self.record("turn_context", turn_id=self.turn, cwd=cwd, model=model)

    def completed(self, last: str | None = None, error: Json | None = None) -> None:
        more = {} if error is None else {"error": error}
        self.event("task_complete", turn_id=self.turn, last_agent_message=last, **more)

    def failed(self, message: str, info: object) -> None:
        self.completed(error={"message": message, "codex_error_info": info})

    def aborted(self) -> None:
        self.message("user", "<turn_aborted>\nThe turn was interrupted.\n</turn_aborted>", "generic.turn_aborted")
        self.event("turn_aborted", turn_id=self.turn, reason="interrupted")

    def lost(self) -> None:
        """The client was killed: nothing ends the turn."""

    def prompt(self, *texts: str) -> None:
        """In the turn that runs."""
        self.message("user", "\n".join(texts), *["user.text"] * len(texts))
        self.item("UserMessage", content=[{"type": "text", "text": text, "text_elements": []} for text in texts])

    def said(self, text: str) -> None:
        self.item("AgentMessage", content=[{"type": "Text", "text": text}])
        self.message("assistant", text, "unknown")

    def asked(self, prompt: str, reply: str) -> None:
        """A whole turn."""
        self.started()
        self.prompt(prompt)
        self.said(reply)
        self.used(1_000)
        self.counted(1_000)
        self.completed(reply)

    def hook(self, text: str) -> None:
        self.message("developer", text, "hooks.additional_context")

    def used(self, tokens: int, output: int = 10, key: str | None = None, **usage: object) -> None:
        counts = {"input_tokens": tokens, "output_tokens": output, "total_tokens": tokens + output, **usage}
        self.record(
            "token_usage_record",
            thread_id=self.thread,
            turn_id=self.turn,
            response_id=key or f"resp_{self.thread[-4:]}_{len(self.lines)}",
            usage=counts,
        )

    def counted(self, tokens: int, total: int | None = None, limits: Json | None = None, spent: int = 0) -> None:
        total = tokens + 10 if total is None else total
        last = {"input_tokens": tokens, "output_tokens": total - tokens if tokens else 0, "total_tokens": total}
        info = {"total_token_usage": {"total_tokens": spent}, "last_token_usage": last, "model_context_window": 258_400}
        self.event("token_count", info=info, rate_limits=limits or {"primary": None, "secondary": None})

    def compacted(self, summary: str = "What was done.") -> None:
        self.message("assistant", summary, "unknown")
        self.record("compacted", message=summary, replacement_history=[])
        self.counted(0, 500)
        self.item("ContextCompaction")

    # --- calls --------------------------------------------------------------------------------------------------

    def call(self, name: str, given: Json | str) -> str:
        identity = f"call_{len(self.lines)}"
        if isinstance(given, str):
            self.record("response_item", type="custom_tool_call", call_id=identity, name=name, input=given)
        else:
            arguments = json.dumps(given)
            self.record("response_item", type="function_call", call_id=identity, name=name, arguments=arguments)
        return identity

    def result(self, identity: str, output: object, kind: str = "function_call_output") -> None:
        self.record("response_item", type=kind, call_id=identity, output=output)

    def command(
        self, identity: str, command: str, output: str, code: int, source: str = "unified_exec_startup"
    ) -> None:
        self.item(
            "CommandExecution",
            id=identity,
            command=["/bin/bash", "-lc", command],
            cwd="file:///srv/app",
            source=source,
            status="failed" if code else "completed",
            aggregated_output=output,
            exit_code=code,
        )

    def ran(self, command: str, output: str = "", code: int = 0) -> None:
        identity = self.call("exec_command", {"cmd": command})
        self.command(identity, command, output, code)
        self.result(identity, ran_text(output, code))

    def script(self, source: str, *outputs: str) -> None:
        """A call of the one tool that the newest models have; what the script does has items of its own."""
        parts = ["Script completed\nWall time 0.1 seconds\nOutput:\n", *outputs]
        content = [{"type": "input_text", "text": part} for part in parts]
        self.result(self.call("exec", source), content, "custom_tool_call_output")

    def patched(self, changes: Json, status: str = "completed") -> None:
        identity = self.call("apply_patch", "*** Begin Patch\n*** End Patch")
        self.item("FileChange", id=identity, changes=changes, status=status)
        self.result(identity, "Success." if status == "completed" else "patch rejected", "custom_tool_call_output")


def ran_text(output: str, code: int) -> str:
    """What the model is given of a command that has ended."""
    return (
        f"Chunk ID: b129cc\nWall time: 0.0000 seconds\nProcess exited with code {code}\n"
        f"Original token count: 6\nOutput:\n{output}"
    )
