"""Where a transcript is looked for once the path that the client told leads nowhere."""

from dataclasses import replace

import pytest

from sm.engine.transcripts import transcript_of
from tests.core.playbook import idle_session


class Finder:
    """A provider that finds the conversation by its id."""

    def found_transcript(self, config, conversation):
        return f"{config}/{conversation}.jsonl"


@pytest.mark.parametrize("told", ["/nowhere/x.jsonl", "9" * 400, "/x\0y", "/dev/null/x"])
def test_a_path_that_leads_nowhere_is_looked_for_by_id(told):  # C5, C27
    session = idle_session()
    moved = replace(session, config="/config", conversation=replace(session.conversation, transcript=told))
    assert transcript_of(Finder(), moved) == "/config/c0.jsonl"
