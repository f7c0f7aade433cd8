"""The document of a day that was recorded with Codex 0.171.0 on a scripted model: the client wrote all records.

Once as a model does the work that calls each tool, and once as one of the newest, which writes scripts that call them.
"""

from pathlib import Path

import pytest

from sm.archive.handoffs.auto_handoff import auto_handoff
from sm.core.model.handoff import document_limit
from sm.digest.progress import shows_progress
from sm.providers.claude.traits import CLAUDE
from sm.providers.codex.transcript_events import transcript_events

DAYS = Path(__file__).parents[1] / "cases/recorded"


@pytest.fixture(scope="module", params=["codex_day.jsonl", "codex_day_of_scripts.jsonl"])
def day(request):
    return DAYS / request.param


@pytest.fixture(scope="module")
def document(day, tmp_path_factory):
    place = str(tmp_path_factory.mktemp("shop"))
    return auto_handoff(transcript_events(day), place, document_limit(CLAUDE))


@pytest.mark.parametrize(
    "kept",
    [
        '- "Make parse_price in prices.py read prices like 1.000,50. Never change the tests."',
        '- "Always keep plain numbers like 1.5 working, too."',
        "- `prices.py`: edited",
        "- `notes.md`: created",
        "python3 -m unittest -q` failed 2 ×: ValueError",
        "Leave out the dots of thousands",
        "Refuse an empty price",
        "Read the comma of a price",
        "Please also think of an empty price.",
        "The comma works.",
        "sleep 20",
    ],
)
def test_it_has_task_files_failing_check_and_plan(document, kept):
    assert kept in document


@pytest.mark.parametrize(
    "left_out",
    ["Chunk ID", "Plan updated", "Script completed", "tools.", "HANDOFF LOADED", "turn_aborted", "/srv/shop"],
)
def test_it_has_nothing_of_the_clients_own(document, left_out):
    assert left_out not in document


def test_the_day_was_work(day):
    assert shows_progress(transcript_events(day))
