"""What happened in a thread, read once from the start of its rollouts (Codex 0.171.0).

A fork begins with what it continues of its parent, and a thread whose user went back with what still counts of its
earlier file. Subagents have rollouts of their own; what they said is no part of this.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sm.core.model.framing import THE_USER, framed_messages
from sm.digest import transcript_events as events
from sm.digest.own_text import LOADED, is_ours
from sm.providers import jsonl
from sm.providers.codex import files
from sm.providers.codex.records import RolloutRecord, member, prompt, rollout_record, string, text
from sm.providers.codex.tool_calls import RolloutCalls
from sm.providers.codex.turns import ABORTED, COMPLETE, STARTED

HOOK_CONTEXT = b"hooks.additional_context"
"""How a message is marked that a hook has added to what the model reads."""
ADDED = (HOOK_CONTEXT, b"HANDOFF LOADED", b"[Input from: ")
"""What is in a message of role "developer" that `sm` has added: by a hook, or by a request, which marks none."""
WORDS = (
    *ADDED,
    b'"item_completed"',
    b'"function_call',
    b'"custom_tool_call',
    b'"session_meta"',
    b'"turn_context"',
    b'"compacted"',
    b'"task_started"',
    b'"task_complete"',
    b'"turn_aborted"',
    b"subagent_notification",
)


def transcript_events(path: Path) -> Iterator[events.TranscriptEvent]:
    """What the rollouts hold, in order; OSError if the newest cannot be read."""
    parts = files.history(path)
    reader = _Reader()
    for before, part in zip([None, *parts], parts, strict=False):
        if before is not None and before.thread != part.thread:
            yield from reader.ended()
            yield events.Forked()
            reader = _Reader(place=reader.place)
        with jsonl.opened(part.path) as fd:
            for line in _lines(fd, part.end):
                yield from reader.line(line)
    yield from reader.ended()


def _lines(fd: int, stop: int | None) -> Iterator[bytes]:
    end = 0
    for line, end in jsonl.lines_forward(WORDS, fd, 0):
        if stop is not None and end > stop:
            return
        yield line
    rest = os.pread(fd, jsonl.MAX_REPLY_BYTES, end) if stop is None else b""
    if rest.rstrip().endswith(b"}"):  # a last record that lacks only its LF
        yield rest


@dataclass(slots=True)
class _Reader:
    place: events.WorkingDirectory | None = None
    prompts: int = 0
    """Of the turn."""
    reply: str = ""
    """The newest text of the agent, until it shows whether that ended the turn."""
    calls: RolloutCalls = field(default_factory=RolloutCalls)

    def line(self, line: bytes) -> Iterator[events.TranscriptEvent]:
        record = rollout_record(line) if any(word in line for word in WORDS) else None
        if record is None:
            return
        closing = record.event == COMPLETE and "error" not in record.payload
        found = [*self._told(record, any(word in line for word in ADDED))]
        if found or record.event in {COMPLETE, ABORTED} or record.response in {"function_call", "custom_tool_call"}:
            yield from self._replied(closing=closing)
        self.reply = _reply(record) or self.reply
        yield from found

    def ended(self) -> Iterator[events.TranscriptEvent]:
        yield from self._replied(closing=False)
        yield from self.calls.unfinished()

    def _replied(self, *, closing: bool) -> Iterator[events.TranscriptEvent]:
        if self.reply:
            yield events.AgentReplied(self.reply, closing)
        self.reply = ""

    def _told(self, record: RolloutRecord, added: bool) -> Iterator[events.TranscriptEvent]:  # noqa: FBT001  # of the line
        if record.type in {"session_meta", "turn_context"}:
            yield from self._placed(record)
        elif record.type == "compacted":
            yield events.Compacted()
        elif record.event in {STARTED, COMPLETE, ABORTED}:
            self.prompts = 0
        elif record.event == "item_completed":
            yield from self._item(record)
        elif record.response == "message" and (added or record.payload.get("role") == "user"):
            yield from _added(record)
        else:
            yield from self.calls.response(record)

    def _placed(self, record: RolloutRecord) -> Iterator[events.TranscriptEvent]:
        """The branch is in the first record alone."""
        directory, git = string(record.payload, "cwd"), record.payload.get("git")
        if not directory or (record.type == "turn_context" and self.place and self.place.directory == directory):
            return
        place = events.WorkingDirectory(directory, string(git, "branch") if isinstance(git, dict) else "")
        if place != self.place:
            self.place = place
            yield place

    def _item(self, record: RolloutRecord) -> Iterator[events.TranscriptEvent]:
        item = record.item
        if item.get("type") == "UserMessage":
            yield from _said(prompt(record), interrupting=self.prompts > 0)
            self.prompts += 1
        elif item.get("type") == "HookPrompt":
            yield from _sent(framed_messages(text(item.get("fragments"))))
        elif item.get("type") in {"AgentMessage", "Plan"} and self.reply:
            yield from self._replied(closing=False)
        else:
            yield from self.calls.item(item)


def _reply(record: RolloutRecord) -> str:
    item = record.item
    if item.get("type") == "Plan":
        return string(item, "text").strip()
    return text(item.get("content")).strip() if item.get("type") == "AgentMessage" else ""


def _said(words: str, *, interrupting: bool) -> Iterator[events.TranscriptEvent]:
    if is_ours(words) and (messages := framed_messages(words)):
        yield from _sent(messages)
    elif words:
        yield events.UserSaid(words, interrupting)


def _added(record: RolloutRecord) -> Iterator[events.TranscriptEvent]:
    """What was put among the messages: by `sm`, or by the client as a subagent has ended."""
    kinds = member(record.payload, "internal_chat_message_metadata_passthrough").get("content_item_kinds")
    words = text(record.payload.get("content"))
    if isinstance(kinds, list) and "multi_agent.subagent_notification" in kinds:
        yield from _subagent_ended(words)
    elif record.payload.get("role") == "developer" or (isinstance(kinds, list) and HOOK_CONTEXT.decode() in kinds):
        found = LOADED.search(words)
        if found:
            yield events.HandoffRead(found[1], found[2])
        yield from _sent(framed_messages(words))


def _subagent_ended(words: str) -> Iterator[events.TranscriptEvent]:
    found = files.ID.search(words)
    if found:
        yield events.TaskEnded(found[0])


def _sent(messages: Iterable[tuple[str, str]]) -> Iterator[events.TranscriptEvent]:
    """What came through `sm send`, in the name of whoever sent it."""
    for sender, body in messages:
        if sender == THE_USER:
            yield from _said(body, interrupting=True)
        elif body:
            yield events.AgentMessaged(sender, body)
