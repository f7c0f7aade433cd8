"""What happened in a conversation, read once from the start of Claude Code's transcript.

Only what may matter is decoded: of a tool's result mostly that there is one, since results are the bulk of a
transcript. Subagents have files of their own; what they said is no part of this.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from sm.core.model.framing import THE_USER, framed_messages
from sm.digest import transcript_events as events
from sm.digest.own_text import LOADED, is_ours
from sm.providers import jsonl
from sm.providers.claude import authorship
from sm.providers.claude.tool_calls import PLAN, STILL_RUNS, TITLES, Calls
from sm.providers.jsonl import well_formed

SPEAKERS = (b'"user"', b'"assistant"')
NOTED = (b'"queued_command"', b'"compact_boundary"', b"HANDOFF LOADED", b"[Input from: ")
"""Records that are neither and matter all the same."""
WORDS = SPEAKERS + NOTED
ONLY_THOUGHT = re.compile(rb'"content"\s*:\s*\[\s*\{\s*"type"\s*:\s*"(?:redacted_)?thinking"')
OTHER_BLOCK = re.compile(rb'"type"\s*:\s*"(?:text|tool_use)"')
SESSION = re.compile(rb'"sessionId"\s*:\s*"([\w-]{1,100})"')
TASK = re.compile(r"<task-id>\s*([^<\s]+)\s*</task-id>")

Json = dict[str, Any]


class _Message(msgspec.Struct):
    id: Any = None
    model: Any = None
    content: Any = None
    stop_reason: Any = None


class _Record(msgspec.Struct, rename="camel"):
    type: Any = None
    subtype: Any = None
    parent_uuid: Any = None
    is_sidechain: Any = None
    is_meta: Any = None
    is_compact_summary: Any = None
    origin: Any = None
    plan_content: Any = None
    session_id: Any = None
    forked_from: Any = None
    cwd: Any = None
    git_branch: Any = None
    message: _Message | None = None
    attachment: Any = None
    tool_use_result: Any = None


_DECODER = msgspec.json.Decoder(_Record)
_SHAPE: Json = {"message": {}}


def transcript_events(path: Path) -> Iterator[events.TranscriptEvent]:
    """What the file holds, in order; OSError if it cannot be read."""
    with jsonl.opened(path) as fd:
        reader = _Reader(_last_session(fd))
        for line in _lines(fd):
            yield from reader.line(line)
    yield from reader.calls.unfinished()


def _lines(fd: int) -> Iterator[bytes]:
    end = 0
    for line, end in jsonl.lines_forward(WORDS, fd, 0):  # noqa: B007  # the last one is needed
        yield line
    rest = os.pread(fd, jsonl.MAX_REPLY_BYTES, end)
    if rest.rstrip().endswith(b"}"):  # a last record that lacks only its LF
        yield rest


def _last_session(fd: int) -> str | None:
    """Whose the newest record is: a fork begins with copies of its parent's, which name the parent or say so."""
    stop = jsonl.after_last_line(fd)
    newest = next(jsonl.lines_backward((b'"sessionId"',), fd, max(0, stop - jsonl.MAX_RECORD_BYTES), stop), b"")
    found = SESSION.search(newest)
    return found[1].decode() if found else None


@dataclass(slots=True)
class _Reader:
    session: str | None = None
    copied: bool = False
    """All records so far were another conversation's."""
    begun: bool = False
    """A record of this conversation has been seen."""
    shell: str = ""
    """The command that the user ran in the client, until its output comes."""
    calls: Calls = field(default_factory=Calls)
    place: events.WorkingDirectory | None = None
    prompts: dict[str, int] = field(default_factory=dict)
    """How much had been said before each prompt, by the record it follows."""
    said: int = 0

    def line(self, line: bytes) -> Iterator[events.TranscriptEvent]:
        for event in self._told(line):
            self.said += isinstance(event, events.UserSaid | events.AgentMessaged)
            yield event

    def _told(self, line: bytes) -> Iterator[events.TranscriptEvent]:
        if b'"tool_result"' in line:
            seen = self.calls.seen(line)
            if seen is not None:
                yield from seen
                return
        elif not any(word in line for word in WORDS) or _is_thought(line):
            return
        record = _record(line)
        if record is not None and record.is_sidechain is not True:
            yield from self._whose(record)
            yield from self._placed(record)
            yield from self._record(record)

    def _record(self, record: _Record) -> Iterator[events.TranscriptEvent]:
        if record.type == "assistant" and record.message is not None:
            yield from self._reply(record.message)
        elif record.type == "user" and record.message is not None:
            yield from self._results(record, record.message)
            yield from self._prompt(record, record.message)
        elif record.type == "attachment" and isinstance(record.attachment, dict):
            yield from _attached(record.attachment)
        elif record.type == "system" and record.subtype == "compact_boundary":
            yield events.Compacted()

    def _whose(self, record: _Record) -> Iterator[events.TranscriptEvent]:
        other = isinstance(record.session_id, str) and self.session not in {None, record.session_id}
        if other or isinstance(record.forked_from, dict):
            self.copied = not self.begun
        elif record.type in {"user", "assistant"}:
            self.begun = True
            if self.copied:
                self.copied = False
                yield events.Forked()

    def _placed(self, record: _Record) -> Iterator[events.TranscriptEvent]:
        if isinstance(record.cwd, str) and isinstance(record.git_branch, str):
            place = events.WorkingDirectory(well_formed(record.cwd), well_formed(record.git_branch))
            if place != self.place:
                self.place = place
                yield place

    def _reply(self, message: _Message) -> Iterator[events.TranscriptEvent]:
        if message.model == authorship.SYNTHETIC:
            return
        for block in authorship.blocks(message.content):
            if block.get("type") == "tool_use":
                self.calls.begun(block)
        said = authorship.text(message.content).strip()
        if said:
            yield events.AgentReplied(said, closing=message.stop_reason != "tool_use")

    def _results(self, record: _Record, message: _Message) -> Iterator[events.TranscriptEvent]:
        call = self.calls.answered(message.content)
        for block in authorship.blocks(message.content):
            yield from self.calls.ended(block, record.tool_use_result)
        words = authorship.words_beside(message.content) if record.is_meta is not True and _human(record.origin) else ""
        if words:
            yield from _said(words, interrupting=True, about_call=call)

    def _prompt(self, record: _Record, message: _Message) -> Iterator[events.TranscriptEvent]:
        raw = authorship.text(message.content)
        if raw.startswith("<task-notification>"):
            yield from _notified(raw)
        elif _kind(record.origin) == "auto-continuation":
            yield from _planned(record.plan_content, raw)
        elif raw.startswith("<bash-"):
            yield from self._shell(raw)
        elif True not in (record.is_meta, record.is_compact_summary) and _human(record.origin):
            words = authorship.slash_command(raw) or authorship.user_text(message.content)
            if words:
                yield from self._gone_back(record.parent_uuid)
                yield from _said(words, interrupting=False)

    def _shell(self, raw: str) -> Iterator[events.TranscriptEvent]:
        command, output = authorship.SHELL.search(raw), authorship.SHELL_OUTPUT.search(raw)
        self.shell = command[1].strip() if command else self.shell
        if output and self.shell:
            yield events.UserRanCommand(self.shell, output[1].strip())
            self.shell = ""

    def _gone_back(self, parent: object) -> Iterator[events.TranscriptEvent]:
        """Two prompts follow the same record: the user rewound to before the earlier one."""
        before = self.prompts.get(parent) if isinstance(parent, str) else None
        if before is not None:
            self.said = before
            self.prompts = {key: count for key, count in self.prompts.items() if count < before}
            yield events.Rewound(before)
        if isinstance(parent, str):
            self.prompts[parent] = self.said


def _planned(content: object, raw: str) -> Iterator[events.TranscriptEvent]:
    """A plan that was approved in a conversation whose context was cleared for it."""
    plan, words = authorship.plan_and_words(raw)
    plan = well_formed(content) if isinstance(content, str) else plan
    if plan:
        yield events.PlanDecided(plan.strip(), approved=True)
    if words:
        yield from _said(words, interrupting=True, about_call=TITLES[PLAN])


def _said(words: str, *, interrupting: bool, about_call: str = "") -> Iterator[events.TranscriptEvent]:
    if is_ours(words) and (messages := framed_messages(words)):
        yield from _sent(messages)
        return
    text, lines = authorship.without_pastes(words)
    if text or lines:
        yield events.UserSaid(text, interrupting, lines, about_call)


def _attached(attachment: Json) -> Iterator[events.TranscriptEvent]:
    kind = attachment.get("type")
    if kind == "queued_command":
        prompt = attachment.get("prompt")
        raw = authorship.text(prompt)
        if raw.startswith("<task-notification>"):
            yield from _notified(raw)
        elif attachment.get("isMeta") is not True and _human(attachment.get("origin")):
            yield from _said(authorship.user_text(prompt) or "", interrupting=True)
    elif kind == "hook_additional_context":
        text = _joined(attachment.get("content"))
        found = LOADED.search(text) if attachment.get("hookEvent") == "SessionStart" else None
        if found:
            yield events.HandoffRead(found[1], found[2])
        yield from _sent(framed_messages(text))


def _sent(messages: Iterable[tuple[str, str]]) -> Iterator[events.TranscriptEvent]:
    """What came through `sm send`, in the name of whoever sent it."""
    for sender, body in messages:
        if sender == THE_USER:
            yield from _said(body, interrupting=True)
        elif body:
            yield events.AgentMessaged(sender, body)


def _record(line: bytes) -> _Record | None:
    return jsonl.decoded(_DECODER, line, _SHAPE)


def _is_thought(line: bytes) -> bool:
    return bool(ONLY_THOUGHT.search(line)) and not OTHER_BLOCK.search(line)


def _kind(origin: object) -> object:
    return origin.get("kind") if isinstance(origin, dict) else None


def _human(origin: object) -> bool:
    """Older records do not say."""
    return _kind(origin) in (None, "human")


def _notified(raw: str) -> Iterator[events.TranscriptEvent]:
    found = TASK.search(raw)
    if found and not STILL_RUNS.search(raw):
        yield events.TaskEnded(found[1])


def _joined(content: object) -> str:
    parts = content if isinstance(content, list) else [content]
    return well_formed("\n".join(part for part in parts if isinstance(part, str)))
