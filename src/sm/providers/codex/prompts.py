"""What was submitted to a thread, by its rollout: also what was sent while a turn ran, once the model is given it.

The client takes the blanks around a prompt away and leaves all else of it as it was typed or pasted (Codex 0.171.0).
"""

from __future__ import annotations

from pathlib import Path

from sm.core.model.message import digest
from sm.core.model.usage_limit import RESUME_WORDS
from sm.providers.codex.records import newest_records, prompt

PROMPT = (b'"UserMessage"',)
MAX_PROMPTS = 50_000


def submitted(rollout: Path, wanted: str, position: int = 0) -> str | None:
    """Return the text of a prompt with that digest among the newest behind that many bytes of the file, or None."""
    texts = map(prompt, newest_records(rollout, PROMPT, start=position))
    return next((text for text in texts if digest(text) == wanted), None)


def newest_task(rollout: Path) -> str:
    """Return the newest prompt that says more than to continue; empty without one."""
    texts = map(prompt, newest_records(rollout, PROMPT, most=MAX_PROMPTS))
    return next((text for text in texts if text and not text.startswith(RESUME_WORDS)), "")
