"""A home in which the real client runs without network, account or questions, against a model on loopback.

Of the caller's environment only the variables listed here are passed, and no permission is given: what a client may do
without asking is set with `--settings`.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

INHERITED_VARIABLES = ("PATH", "LANG", "LC_ALL", "TERM", "TZ")
API_KEY = "sk-ant-offline-not-a-real-key-0123456789"
APPROVED_TAIL_CHARS = 20
"""The client remembers an approved key by its last characters."""
QUIET_VARIABLES = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
}


def offline_client_env(home: Path, url: str, *projects: Path, trusted: bool = True) -> dict[str, str]:
    """Set up `home` for a client without onboarding, and return the environment to start it with.

    The folders in `projects` are trusted, or known and untrusted if `trusted` is false.
    """
    config, scratch = home / ".claude", home / "tmp"
    for folder in (config, scratch):
        folder.mkdir(parents=True, exist_ok=True)
    state = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "hasSeenAutoDefaultNudge": True,  # its dialog would otherwise take keys soon after some starts (2.1.328)
        "customApiKeyResponses": {"approved": [API_KEY[-APPROVED_TAIL_CHARS:]], "rejected": []},
        "projects": {str(project.resolve()): _project(trusted=trusted) for project in projects},
    }
    (config / ".claude.json").write_text(json.dumps(state))
    (config / "settings.json").write_text(json.dumps({"permissions": {"defaultMode": "default"}}))
    return {
        **{name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ},
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(config),
        "TMPDIR": str(scratch),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": API_KEY,
        **QUIET_VARIABLES,
    }


def _project(*, trusted: bool) -> dict[str, bool]:
    return {"hasTrustDialogAccepted": trusted, "hasCompletedProjectOnboarding": trusted}
