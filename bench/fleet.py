"""A hundred sessions without a hundred clients: a real server, real panes, tokens and rows, and `sleep` in each pane.

The program that the server starts as client writes what a client shows of itself (its state file), leaves its token
where the load finds it, and becomes `sleep`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sm import hook
from sm.testing.scenario import Scenario
from tests.e2e.rig import Rig

SIZE = 100
CLIENT = """\
#!/bin/sh
umask 077
while [ $# -gt 1 ]; do
  [ "$1" = --session-id ] && conversation=$2
  shift
done
mkdir -p "$CLAUDE_CONFIG_DIR/sessions"
printf '{"sessionId":"%s","status":"busy"}' "$conversation" >"$CLAUDE_CONFIG_DIR/sessions/$$.json"
printf '%s %s %s %s\\n' "$CLAUDE_SESSION_MANAGER_ID" "$SM_SESSION_TOKEN" "$conversation" $$ >"$BENCH_FLEET/$$.tmp"
mv "$BENCH_FLEET/$$.tmp" "$BENCH_FLEET/$CLAUDE_SESSION_MANAGER_ID"
exec sleep 86400
"""
OUTPUT = "tests/test_limiter.py::test_refills_lazily PASSED\n" * 70
"""Makes the payload 4.3 KB, as measured on a real session."""
HISTORY = 200
"""Records in each transcript before the load begins."""


@dataclass(frozen=True, slots=True)
class Member:
    """One session, as its client knows it."""

    id: str
    token: str
    conversation: str
    pid: int
    transcript: Path

    def payload(self, **members: object) -> bytes:
        common = {"session_id": self.conversation, "transcript_path": str(self.transcript), "cwd": "/project"}
        return json.dumps({**common, **members}).encode()

    def tool_used(self) -> bytes:
        response = {"stdout": OUTPUT, "stderr": "", "interrupted": False, "isImage": False}
        return self.payload(
            hook_event_name="PostToolUse",
            permission_mode="default",
            tool_name="Bash",
            tool_input={"command": "pytest tests/test_limiter.py -v", "description": "Run the limiter's tests"},
            tool_response=response,
            tool_use_id="toolu_01AbCdEfGhIjKlMnOpQrStUv",
            duration_ms=812,
        )

    def started(self) -> bytes:
        return self.payload(hook_event_name="SessionStart", source="startup", model="claude-sonnet-4-5")

    def prompted(self, text: str) -> bytes:
        return self.payload(hook_event_name="UserPromptSubmit", permission_mode="default", prompt=text)

    def ended(self) -> bytes:
        return self.payload(hook_event_name="Stop", permission_mode="default", stop_hook_active=False)


@dataclass(slots=True)
class Fleet:
    rig: Rig
    members: list[Member]

    @property
    def url(self) -> str:
        return str(json.loads(self.rig.home.server_record.read_text())["url"])

    @property
    def server(self) -> int:
        assert self.rig.server is not None
        return self.rig.server.pid


def reply_record(number: int, tokens: int) -> bytes:
    """What the client appends for one reply, with a call in it."""
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 400, "cache_read_input_tokens": tokens}
    message = {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "usage": {**usage, "output_tokens": 90}}
    text = [{"type": "text", "text": "Next, the tests. " * 40}]
    record = {"isSidechain": False, "type": "assistant", "message": {**message, "content": text}}
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


@asynccontextmanager
async def fleet(size: int = SIZE) -> AsyncIterator[Fleet]:
    async with Rig(Scenario(), as_installed=True) as rig:
        place = prepared(rig, CLIENT)
        for number in range(size):
            await rig.new(name=f"agent-{number}", BENCH_FLEET=str(place))
        await rig.until(
            lambda: len([file for file in place.iterdir() if file.suffix == ""]) == size, "every client is up"
        )
        found = Fleet(rig, [member(rig, line.read_text()) for line in sorted(place.iterdir())])
        await asyncio.to_thread(start_all, found)
        yield found


def prepared(rig: Rig, program: str) -> Path:
    """Have sessions run that program; return the directory in which each then leaves its line."""
    place = rig.root / "fleet"
    place.mkdir()
    client = rig.root / "client"
    client.write_text(program)
    client.chmod(0o700)
    rig.client = str(client)
    return place


def member(rig: Rig, line: str) -> Member:
    identity, token, conversation, pid = line.split()
    transcript = rig.root / f"{conversation}.jsonl"
    transcript.write_bytes(b"".join(reply_record(number, 20_000) for number in range(HISTORY)))
    return Member(identity, token, conversation, int(pid), transcript)


def start_all(fleet: Fleet) -> None:
    for member in fleet.members:
        say(fleet.url, member, member.started())


def say(url: str, member: Member, payload: bytes) -> None:
    """Send a hook on a connection of its own."""
    extra = f"X-SM-Client-Pid: {member.pid}\r\n"
    status, _ = hook.exchange(url, hook.request_bytes("POST", "/hooks/claude", member.token, payload, extra), 5.0)
    if status != 200:
        raise RuntimeError(f"a hook was answered with {status}")
