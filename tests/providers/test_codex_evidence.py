"""What is Codex's own of the port `TranscriptEvidence`; the rest is in `contracts/test_transcript_evidence.py`."""

import pytest

from sm.core.model.capacity import NO_LIMITS, ClientLimits
from sm.core.model.context import ContextReading
from sm.providers.codex.evidence import CodexTranscripts
from tests.fakes.rollout import THREAD, Rollout
from tests.providers.test_codex_files import file_of

SOURCE = CodexTranscripts()


@pytest.mark.parametrize(("limits", "usable"), [(NO_LIMITS, 244_800), (ClientLimits(auto_compact=90_000), 90_000)])
def test_what_is_usable_ends_where_the_client_compacts(limits, usable):
    reading, found = SOURCE.sized(ContextReading(tokens=1, window=258_400), limits, None)
    assert (reading.window, found) == (258_400, usable)


def test_a_thread_that_has_nothing_but_its_first_record_can_be_resumed(tmp_path):
    assert SOURCE.resumable(str(Rollout().save(file_of(tmp_path, THREAD))))


def test_an_archived_thread_is_found_and_cannot_be_resumed(tmp_path):
    talk = Rollout()
    talk.asked("One", "Done")
    path = talk.save(tmp_path / f"archived_sessions/rollout-2026-05-28T20-26-40-{THREAD}.jsonl")
    assert SOURCE.found_transcript(str(tmp_path), THREAD) == str(path)
    assert not SOURCE.resumable(str(path))


def test_the_client_waits_for_no_limit(tmp_path):
    talk = Rollout()
    talk.started()
    talk.failed("You’ve hit your usage limit. Try again later.", "usage_limit_exceeded")
    path = str(talk.save(tmp_path / "r.jsonl"))
    assert SOURCE.usage_limit(path, talk.at) is not None
    assert not SOURCE.wait_cancelled(path)
