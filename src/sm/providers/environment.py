"""The environment that a session's client is started with: its caller's, without what belongs to something else.

A start from inside an agent's shell would inherit what its client has set there, whichever client that is:
CLAUDE_CODE_CHILD_SESSION alone stops transcripts and state files (Claude Code 2.1.328), and CODEX_THREAD_ID names a
thread of another session (Codex 0.171.0).
"""

from __future__ import annotations

from collections.abc import Mapping

KEPT = {
    "CLAUDE": (
        "CLAUDE_CONFIG_DIR",
        "CLAUDE_CODE_USE_",
        "CLAUDE_CODE_SKIP_",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
        "CLAUDE_CODE_CLIENT_",
        "CLAUDE_CODE_MAX_",
        "CLAUDE_CODE_AUTO_COMPACT_WINDOW",
        "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
        "CLAUDE_CODE_DISABLE_",
        "CLAUDE_CODE_ENABLE_",
        "CLAUDE_CODE_SUBAGENT_MODEL",
        "CLAUDE_CODE_SHELL",
        "CLAUDE_CODE_EXTRA_BODY",
    ),
    "CODEX_": ("CODEX_HOME", "CODEX_API_KEY", "CODEX_CA_CERTIFICATE", "CODEX_SQLITE_HOME"),
}
"""By prefix: the user's own configuration of a client. Every other variable of that prefix names one that runs."""
TERMINAL = frozenset({"TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "COLUMNS", "LINES", "WINDOWID", "STY"})
MADE_BY_CLIENT = frozenset({"AI_AGENT", "COREPACK_ENABLE_AUTO_PIN", "GIT_EDITOR", "NoDefaultCurrentDirectoryInExePath"})
"""What Claude Code sets for its agent's shell beside CLAUDE* (2.1.328): a child's client sets its own."""
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
SHELL = frozenset({"PWD", "OLDPWD", "SHLVL", "_"})
LOOPBACK = ("127.0.0.1", "localhost")


def client_environment(
    caller: Mapping[str, str], own: Mapping[str, str], bin_directory: str, *, foreground: bool = False
) -> dict[str, str]:
    """Return what is passed on of the caller's environment, plus our own variables.

    In the foreground the terminal is the caller's own.
    """
    foreign = MADE_BY_CLIENT if "CLAUDECODE" in caller else frozenset()
    passed = {name: value for name, value in caller.items() if _passes(name) or (foreground and _is_terminals(name))}
    kept = {name: value for name, value in passed.items() if name not in foreign}
    path = [part for part in kept.get("PATH", DEFAULT_PATH).split(":") if part != bin_directory]
    kept["PATH"] = ":".join([bin_directory, *path])
    for name in ("NO_PROXY", "no_proxy"):
        listed = [entry for entry in kept.get(name, "").split(",") if entry]
        kept[name] = ",".join([*listed, *(host for host in LOOPBACK if host not in listed)])
    return {**kept, **own}


def _passes(name: str) -> bool:
    for prefix, kept in KEPT.items():
        if name.startswith(prefix):
            return name.startswith(kept)
    return not name.startswith("SM_") and name not in SHELL and not _is_terminals(name)


def _is_terminals(name: str) -> bool:
    return name.startswith("TMUX") or name in TERMINAL
