"""How long the client keeps transcripts, which `sm doctor` warns of: its clean-up runs ten minutes after a start."""

import asyncio
import json
import os
import time

import pytest

from sm.providers.claude.retention import DEFAULT_DAYS, transcript_days
from sm.testing.scenario import Say, scenario
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(1200)]

CLEANED = 1000.0
"""Seconds; seen: 590."""


async def left_after_the_clean_up(settings, *ages):
    """The ages in days of those transcripts that a client with these settings leaves."""
    async with Rig(scenario(otherwise=Say("ok"))) as rig:
        config = rig.root / "home" / ".claude"
        folder = config / "projects" / "-other-project"
        folder.mkdir(parents=True)
        for age in ages:
            path = folder / f"{age:08}-0000-4000-8000-000000000000.jsonl"
            path.write_text('{"type":"user"}\n')
            written = time.time() - age * 86_400
            os.utime(path, (written, written))
        file = config / "settings.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **settings}))
        await rig.wait_event(await rig.new("hello"), "TurnEnded")
        await rig.until((config / ".last-cleanup").exists, "the client cleans up", CLEANED)
        left = {int(path.name[:8]) for path in folder.iterdir()} if folder.exists() else set()
        return transcript_days(config, rig.project), left


async def test_what_was_not_written_for_the_period_of_its_settings_is_deleted():
    found = await asyncio.gather(
        left_after_the_clean_up({}, DEFAULT_DAYS - 2, DEFAULT_DAYS + 2),
        left_after_the_clean_up({"cleanupPeriodDays": 60}, 58, 62),
    )
    assert found == [(DEFAULT_DAYS, {DEFAULT_DAYS - 2}), (60, {58})]
