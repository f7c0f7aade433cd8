"""What a rollout of Codex shows: how full its context is, and what has become of prompts, turns and limits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sm.core.model.capacity import ClientLimits
from sm.core.model.context import ContextReading
from sm.core.model.usage_limit import UsageLimit
from sm.core.ports.provider import Transcript, TranscriptPart, Utterance
from sm.digest.progress import shows_progress
from sm.providers.codex import files, prompts, receipts, turns
from sm.providers.codex.transcript import TranscriptReader, compacts_at
from sm.providers.codex.transcript_events import transcript_events
from sm.providers.codex.transcript_parts import parts
from sm.providers.codex.usage import CodexUsage
from sm.providers.codex.utterances import utterance
from sm.providers.jsonl import with_window


class CodexTranscripts:
    """Implements the port `TranscriptEvidence` but for `auto_handoff`; reads files and keeps nothing."""

    __slots__ = ()

    def transcript(self, path: str) -> Transcript:
        return TranscriptReader(Path(path))

    def sized(
        self, reading: ContextReading, limits: ClientLimits, assumed: int | None
    ) -> tuple[ContextReading, int | None]:
        sized = with_window(reading, reading.window, assumed)
        return sized, compacts_at(sized.window, limits)

    def usage(self, transcript: str) -> CodexUsage:
        return CodexUsage(Path(transcript))

    def submitted(self, transcript: str, digest: str, position: int) -> str | None:
        return prompts.submitted(Path(transcript), digest, position)

    def kept(self, transcript: str, marks: Mapping[str, int]) -> frozenset[str]:
        return receipts.kept(Path(transcript), marks)

    def shown(self, transcript: str, marks: Mapping[str, int]) -> frozenset[str] | None:
        return receipts.shown(Path(transcript), marks)

    def utterance(self, line: bytes) -> Utterance | None:
        return utterance(line)

    def parts(self, line: bytes) -> tuple[TranscriptPart, ...]:
        return parts(line)

    def resumable(self, transcript: str) -> bool:
        """A thread that has nothing but its first record is resumed, an archived one is refused (0.171.0)."""
        path = Path(transcript)
        return not files.archived(path) and bool(files.first_record(path))

    def found_transcript(self, config: str, conversation: str) -> str | None:
        found = files.newest_file(Path(config), conversation)
        return None if found is None else str(found)

    def shows_progress(self, transcript: str) -> bool:
        return shows_progress(transcript_events(Path(transcript)))

    def finished(self, transcript: str) -> bool:
        return turns.finished(Path(transcript))

    def failure(self, transcript: str) -> str:
        return turns.failure(Path(transcript))

    def usage_limit(self, transcript: str, now: float) -> UsageLimit | None:
        return turns.usage_limit(Path(transcript), now)

    def wait_cancelled(self, transcript: str) -> bool:
        """The client waits for no limit's end: a turn that meets one has failed (0.171.0)."""
        del transcript
        return False

    def answered(self, transcript: str) -> bool:
        return turns.answered(Path(transcript))

    def task(self, transcript: str) -> str:
        return prompts.newest_task(Path(transcript))

    def refusal(self, transcript: str) -> str | None:
        return turns.refusal(Path(transcript))
