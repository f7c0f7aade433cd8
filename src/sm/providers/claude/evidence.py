"""What a transcript of Claude Code shows: how full its context is, and what has become of prompts, turns and limits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sm.core.model.capacity import ClientLimits
from sm.core.model.context import ContextReading, Source
from sm.core.model.usage_limit import UsageLimit
from sm.core.ports.provider import Transcript, TranscriptPart, Utterance
from sm.digest.progress import shows_progress
from sm.providers.claude import receipts, state, windows
from sm.providers.claude.task import newest_task
from sm.providers.claude.transcript import TranscriptReader, last_reply_text
from sm.providers.claude.transcript_events import transcript_events
from sm.providers.claude.transcript_parts import parts
from sm.providers.claude.usage import ClaudeUsage
from sm.providers.claude.utterances import utterance
from sm.providers.jsonl import with_window


class ClaudeTranscripts:
    """Implements the port `TranscriptEvidence`; reads files and keeps nothing."""

    __slots__ = ()

    def transcript(self, path: str) -> Transcript:
        return TranscriptReader(Path(path))

    def sized(
        self, reading: ContextReading, limits: ClientLimits, assumed: int | None
    ) -> tuple[ContextReading, int | None]:
        known = reading.window or windows.window_of(reading.model, limits)
        sized = with_window(reading, known, assumed)
        return sized, windows.usable_of(sized.window, reading.model, limits)

    def usage(self, transcript: str) -> ClaudeUsage:
        return ClaudeUsage(Path(transcript))

    def submitted(self, transcript: str, digest: str, position: int) -> str | None:
        return state.submitted(Path(transcript), digest, position)

    def kept(self, transcript: str, marks: Mapping[str, int]) -> frozenset[str]:
        """What the plugin holds for it is in no file."""
        del transcript, marks
        return frozenset()

    def shown(self, transcript: str, marks: Mapping[str, int]) -> frozenset[str] | None:
        return receipts.shown(Path(transcript), marks)

    def utterance(self, line: bytes) -> Utterance | None:
        return utterance(line)

    def parts(self, line: bytes) -> tuple[TranscriptPart, ...]:
        return parts(line)

    def resumable(self, transcript: str) -> bool:
        """The client refuses to resume a conversation without a reply, and then exits with 1 (2.1.328)."""
        return TranscriptReader(Path(transcript)).read().source is not Source.UNKNOWN

    def found_transcript(self, config: str, conversation: str) -> str | None:
        found = next(Path(config).glob(f"projects/*/{conversation}.jsonl"), None)
        return None if found is None else str(found)

    def shows_progress(self, transcript: str) -> bool:
        return shows_progress(transcript_events(Path(transcript)))

    def finished(self, transcript: str) -> bool:
        return last_reply_text(Path(transcript)) is not None

    def failure(self, transcript: str) -> str:
        """Its own hook tells of a turn that failed."""
        del transcript
        return ""

    def usage_limit(self, transcript: str, now: float) -> UsageLimit | None:
        return state.usage_limit(Path(transcript), now)

    def wait_cancelled(self, transcript: str) -> bool:
        return state.wait_cancelled(Path(transcript))

    def answered(self, transcript: str) -> bool:
        return state.answered(Path(transcript))

    def task(self, transcript: str) -> str:
        return newest_task(Path(transcript))

    def refusal(self, transcript: str) -> str | None:
        return state.refusal(Path(transcript))
