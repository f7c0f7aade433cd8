"""A home in which the real client runs without network, account or questions, against a model on loopback.

Of the caller's environment only the variables listed here are passed, and no permission is given: what a client may do
without asking is set with `--settings`, or for Codex with its own flags.
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
LOOPBACK_VARIABLES = {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}
QUIET_VARIABLES = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    **LOOPBACK_VARIABLES,
}
CODEX_CONFIG = """\
model = "scripted-model"
model_provider = "scripted"
check_for_update_on_startup = false

[model_providers.scripted]
name = "Scripted"
base_url = {url}
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false

[features]
daemon_auto_start = false
"""
"""Without the last line a client in a terminal starts a server of its own that outlives it (Codex 0.171.0)."""


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
        **_inherited(),
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(config),
        "TMPDIR": str(scratch),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": API_KEY,
        **QUIET_VARIABLES,
    }


def offline_codex_env(home: Path, url: str, *projects: Path, trusted: bool = True) -> dict[str, str]:
    """Set up `home` for a Codex without login, and return the environment to start it with.

    The folders in `projects` are trusted; if `trusted` is false the client does not know them, and asks.
    """
    config, scratch = home / ".codex", home / "tmp"
    for folder in (config, scratch):
        folder.mkdir(parents=True, exist_ok=True)
    known = [f"[projects.{json.dumps(str(project.resolve()))}]" for project in projects if trusted]
    trust = "".join(f'\n{table}\ntrust_level = "trusted"\n' for table in known)
    (config / "config.toml").write_text(CODEX_CONFIG.format(url=json.dumps(f"{url}/v1")) + trust)
    return {
        **_inherited(),
        "HOME": str(home),
        "CODEX_HOME": str(config),
        "TMPDIR": str(scratch),
        **LOOPBACK_VARIABLES,
    }


def _inherited() -> dict[str, str]:
    return {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}


def _project(*, trusted: bool) -> dict[str, bool]:
    return {"hasTrustDialogAccepted": trusted, "hasCompletedProjectOnboarding": trusted}
