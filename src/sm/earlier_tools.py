"""What the names of earlier tools are called here: the table behind docs/coming-from.md and the hints for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

LATER = "not part of sm yet"


class Row(NamedTuple):
    names: tuple[str, ...]
    """As somebody would type or search for them."""
    here: str
    """What does the same in `sm`, or that nothing does and what to use."""


class EarlierTool(NamedTuple):
    name: str
    about: str
    rows: tuple[Row, ...]


_STATE = "kept in the database; `sm context --json` prints {}"
_THRESHOLDS = "`context_monitor.warning_threshold` and `critical_threshold`, {}"

LITTLE_LOOPS = EarlierTool(
    "little-loops",
    "Its two commands, its keys and its continuation prompt are here under nearly the same names. Its runners are not.",
    (
        Row(("/ll:handoff",), '`/sm:handoff`, with the same hint and `--deep`: `/sm:handoff "the auth module" --deep`'),
        Row(("/ll:resume",), "`/sm:resume` in the client, or `sm resume` in a shell; both take a path"),
        Row(
            (".ll/ll-continue-prompt.md",),
            "`.sm/continue-prompt.md`; where only the old file exists, `sm resume` and `/sm:resume` read it",
        ),
        Row(
            (".ll/ll-config.json", "ll-config.json"),
            "`.sm/config.toml` in the project or `~/.config/sm/config.toml`: TOML, the same tables and keys",
        ),
        Row((".ll/ll-context-state.json", "state_file"), _STATE.format("it")),
        Row(
            (".ll/ll-session-state.json",),
            "kept in the database; `sm list --json` prints it. Nothing has to be deleted when a session stops",
        ),
        Row(
            ("ll-auto", "ll-parallel", "ll-sprint", "ll-sprint run"),
            f"{LATER}. For one issue at a time: `sm run`, or `sm new --prompt TEXT`; for helpers: `sm spawn`",
        ),
        Row(
            ("CONTEXT_HANDOFF", "CONTEXT_HANDOFF: Ready for fresh session"),
            f"{LATER}: no command waits for this line. An agent calls `sm handoff FILE` instead, whose answer says "
            "whether it is scheduled",
        ),
        Row(
            ("--handoff-threshold", "handoff_threshold"),
            "`critical_threshold` in the project's `.sm/config.toml`; no option of a single run",
        ),
        Row(
            ("continuation.max_continuations", "Reached max continuations"),
            "accepted, and read by nothing before there are unattended runs; `handoff.max_restarts` limits `sm run`",
        ),
        Row(
            ("[ll] Context ~82% used",),
            "`[sm context] Context at … tokens (~…%). …` at the warning threshold, "
            "and a critical one, repeated every `context_monitor.remind_every` seconds until a handoff is pending",
        ),
        Row(("context_monitor.enabled",), "the same key; on by default here"),
        Row(("context_monitor.auto_handoff_threshold",), "accepted as another name of `critical_threshold`"),
        Row(
            ("context_monitor.context_limit_estimate",),
            "the same key. Known models need none; set it where `sm context` shows the wrong window",
        ),
        Row(("context_monitor.use_transcript_baseline",), "the same key"),
        Row(
            ("context_monitor.estimate_weights", "read_per_line", "tool_call_base", "bash_output_per_char"),
            "the same keys; see also `grep_per_match`, `glob_per_file`, `edit`, `agent`, `web_fetch`, `web_search`",
        ),
        Row(
            (
                "continuation.enabled",
                "auto_detect_on_session_start",
                "include_todos",
                "include_git_status",
                "include_recent_files",
                "prompt_expiry_hours",
            ),
            "the same keys in `[continuation]`",
        ),
        Row(("estimated_tokens",), "`projected` in `sm context --json`"),
        Row(("transcript_baseline_tokens",), "`tokens` in `sm context --json`"),
        Row(("result_token_count",), "not here: it sums up a whole run, not a context; use `projected`"),
        Row(("threshold_crossed_at",), "`crossed_at` in `sm context --json`, one time for each level"),
        Row(("handoff_complete",), "`handoff.phase` in `sm list --json`: `done`; in words: `sm handoff --status`"),
        Row(
            ("session_start",),
            "`created` in `sm list --json` for the session; `sm tail` shows the start of each context",
        ),
        Row(("breakdown", "tool_calls"), "the same members in `sm context --json`"),
        Row(("jq",), "not needed: hooks need no other program"),
        Row(("detect_context_handoff", "read_continuation_prompt"), f"functions of the runners: {LATER}"),
        Row(("commands/handoff.md", "commands/resume.md"), "`sm handoff --help`, `sm resume --help`, README.md"),
    ),
)

AUTO_HANDOFF = EarlierTool(
    "auto-handoff",
    "`sm run` does what its wrapper did, in your own terminal; `sm new` does it in a tmux pane. Auto-compaction may "
    "stay on, and permissions are not bypassed.",
    (
        Row(("claude-wrapper",), "`sm run -- CLIENT ARGS`: the arguments are kept at each restart"),
        Row(
            ("claude-wrapper -h", "--handoff"),
            "`sm resume`: a new session from the handoff that is open in this project. A plain start never takes one",
        ),
        Row(("claude-wrapper -r", "claude-wrapper -c"), "`sm run -- --resume ID`, `sm run -- --continue`"),
        Row(
            ("~/.claude/handoff/{channel}.manifest.json", "manifest", "handoff-manifest.json"),
            "`SM_HOME/handoffs/<channel>/manifest.json`, with the same members; all of them: `sm handoffs --json`",
        ),
        Row(
            ("~/.claude/handoff/{channel}-CURRENT.md", "CURRENT.md"),
            "`SM_HOME/handoffs/<channel>/<id>.md`, with the same head lines; no file is overwritten. "
            "`sm handoffs show ID` prints it",
        ),
        Row(
            ("channel", "channels", "channel-registry.json", "get-channel.sh"),
            "a project: its repository with all worktrees. The table `[channels]` in `~/.config/sm/config.toml` "
            "(path = name, the longest path wins) joins or splits projects",
        ),
        Row(("HO-20260202-064530-c74cc080", "HANDOFF-ID"), "the same form of id, in the same head line"),
        Row(("active", "consumed", "expired", "cleared"), "the same states, and `pending` and `failed`: `sm handoffs`"),
        Row(
            ("created_at", "created_by_pid", "consumed_at", "consumed_by_pid"),
            "the same members; `sm handoffs` also names the session",
        ),
        Row(
            (
                ".current-session",
                "get_current_session_id()",
                "get_current_transcript_path()",
                "write_session_file()",
                "clear_session_file()",
            ),
            "no such file, so that sessions cannot mix: `$CLAUDE_SESSION_MANAGER_ID` and `sm status` say which session "
            "this is, `transcript` in `sm context --json` where its transcript is",
        ),
        Row(
            (".context-status", "STATUS:SIZE"),
            "no such file: `sm context` (levels `ok`, `warning`, `critical`, `unknown`), `sm list`, and "
            "`sm setup --statusline` for the client's status line",
        ),
        Row(
            ("track_session()", "start_monitor()"),
            "not needed: hooks of the client report the conversation, and `sm` measures each one",
        ),
        Row((".restart-session", ".killed-by-monitor", ".wrapper-pid"), "no such file: the server signals `sm run`"),
        Row(
            (".critical-triggered", "auto-session.log", "{channel}.lock.d"),
            "no such file: state is kept in the database, the log is `SM_HOME/server.log`",
        ),
        Row(
            ("EARLY_WARN_KB",),
            "no such level: `sm list` always shows how full a context is. The first warning is "
            "`context_monitor.warning_threshold`",
        ),
        Row(
            ("WARN_KB", "CRITICAL_KB"),
            _THRESHOLDS.format("a share of the usable context, or tokens: the size of a file says little about it"),
        ),
        Row(
            ("context-monitor.sh", "pre-compact-handoff.sh", "session-start-from-handoff.sh", "handoff-manifest.sh"),
            "take these hooks out of `~/.claude/settings.json`: `sm new` and `sm run` bring their own, and `sm setup` "
            "adds some for sessions that you start yourself",
        ),
        Row(
            ("memory-keeper", "context_get({ channel, priorities })", "context_get"),
            "`sm` does not use it. Put such a line into `handoff.instructions`: that text follows each handoff",
        ),
        Row(("create_handoff()", "generate_handoff_id()", "write_manifest()"), "`sm handoff FILE` or `--auto`"),
        Row(("load_handoff()",), "`sm resume [ID|PATH]`"),
        Row(("read_manifest()",), "`sm handoffs --json`"),
        Row(
            ("get_active_handoff_file()", "get_active_handoff_id()", "has_active_handoff()"),
            "`sm handoffs active`: exit code 0 if there is one, and its id; the file: `copy` in `sm handoffs --json`",
        ),
        Row(("clear_handoff()",), "`sm handoffs clear [ID]`"),
        Row(("extract_recent_context()",), "`sm handoff --auto --transcript FILE`"),
        Row(
            ("# Auto-Handoff (Pre-Compaction)",),
            "before a compaction `sm` saves such a document by itself (`handoff.on_compact`), with all you asked for, "
            "not the last 15 texts",
        ),
        Row(("Restored from auto-handoff",), "no announcement; add one through `handoff.instructions` if you want it"),
        Row(("max 10 restarts",), "`handoff.max_restarts`, 10 by default"),
        Row(("2-hour expiry",), "`handoff.expiry_hours`, 2 by default"),
        Row((".test-mode",), "`sm demo`"),
    ),
)

SESSION_MANAGER = EarlierTool(
    "session-manager",
    "An earlier `sm`. The commands `handoff`, `send`, `spawn`, `children`, `wait`, `remind`, `clear`, `kill`, `output` "
    "and `tail` have the same names, and agents read the same texts.",
    (
        Row(
            ("CLAUDE_SESSION_MANAGER_ID",),
            "the same variable; see “Environment” in [reference.md](reference.md#environment) for the others",
        ),
        Row(
            ("config.yaml", "config.yaml.example"),
            "`~/.config/sm/config.toml`: TOML. `context_monitor:` becomes `[context_monitor]`",
        ),
        Row(
            ("warning_percentage", "critical_percentage", "threshold_percentages"),
            _THRESHOLDS.format('such as `"60%"`: the percentage of the usable context'),
        ),
        Row(("fallback_tool_count", "check_frequency"), "the same keys in `[context_monitor]`"),
        Row(
            ("sm context-monitor", "context_monitor_enabled", "sm em"),
            "not needed: each session is measured. `context_monitor.enabled = false` switches it off",
        ),
        Row(
            ("sessions.json", "state file", "~/.local/share/claude-sessions", "message_queue.db", "tool_usage.db"),
            "one database in `SM_HOME` (`~/.local/state/sm`), which outlives a reboot; read it through `--json`",
        ),
        Row(
            ("/tmp/claude-sessions/claude-117897d1.log", "Session.log_file", "log_file"),  # noqa: S108  # a name only
            "`SM_HOME/logs/<session>.log`; `sm log NAME` prints it as text, `sm search WORDS` searches it",
        ),
        Row(
            ("dump.txt", "~/.local/share/claude-sessions/handoffs"),
            "`SM_HOME/archive/<session>-<time>/dump.txt`, the screen before each rotation; `sm archive list NAME`",
        ),
        Row(("history-limit", "history_limit"), "`tmux.history_limit`, 100,000 lines: sm has a tmux server of its own"),
        Row(("Session.tokens_used", "tokens_used"), "`context.tokens` in `sm list --json`"),
        Row(("read_transcript_tokens()",), "`sm context --transcript FILE`"),
        Row(
            ("DeliveryMode.SEQUENTIAL", "DeliveryMode.IMPORTANT", "DeliveryMode.URGENT"),
            "the options `--sequential`, `--important` and `--urgent` of `sm send`",
        ),
        Row(("tools_used",), "`tool_calls` and `breakdown` in `sm context --json`"),
        Row(("Session.transcript_path", "transcript_path"), "`transcript` in `sm list --json`"),
        Row(("pending_handoff_path", "last_handoff_path"), "`handoff.path` in `sm list --json`; `sm handoff --status`"),
        Row(("context_warning",), "`crossed_at` in `sm context --json`; `sm tail` shows it"),
        Row(
            ("stop_notify_skip_count", "schedule_handoff", "_execute_handoff", "mark_session_idle"),
            "not here: hooks of the client confirm each step; the phases are in `sm handoff --status`",
        ),
        Row(
            ("POST /sessions/{session_id}/handoff", "requester_session_id"),
            "the same route and members; every request needs a token (see SECURITY.md)",
        ),
        Row(
            ("codex", "codex-app", "codex-fork"),
            f"running Codex is {LATER}; `sm context --transcript FILE` reads its transcripts",
        ),
        Row(("sm me", "sm name", "sm rename"), "`sm status`; `sm rename SESSION NAME`"),
        Row(("sm all", "sm who", "sm others", "sm alone", "sm what"), "`sm list`, `sm children`, `sm output SESSION`"),
        Row(("sm claude", "sm codex"), "`sm new`"),
        Row(("sm task", "sm role"), "`sm status TEXT`: what the session says of itself, shown in `sm list`"),
        Row(("sm task-complete", "sm turn-complete"), "`sm done`; the end of a turn is noticed without a command"),
        Row(("sm dispatch",), "`sm clear CHILD PROMPT` for a fresh context, `sm send CHILD TEXT` for the present one"),
        Row(("sm retire",), "`sm kill`"),
        Row(("sm unkill",), "`sm restore`"),
        Row(("sm watch-job",), "not here: an agent's own background task, or `sm remind`"),
        Row(("sm lock", "sm unlock"), "not here: give each agent a worktree of its own"),
        Row(("sm telegram", "sm email"), "not here: `sm` sends nothing anywhere"),
    ),
)

RUNNERS = EarlierTool(
    "little-loops",
    "",
    (
        Row(
            ("sm auto", "sm parallel", "sm sprint", "sm runs", "sm worker", "sm issues"),
            f"{LATER}. For one issue at a time: `sm run`, or `sm new --prompt TEXT`; for helpers: `sm spawn`",
        ),
    ),
)
"""Its commands, as somebody would look for them here."""

TOOLS = (LITTLE_LOOPS, AUTO_HANDOFF, SESSION_MANAGER)


def _plain(name: str) -> str:
    return re.sub(r"\([^()]*\)$", "", name).lower()


def _lookups() -> Iterator[tuple[str, str]]:
    for tool in (*TOOLS, RUNNERS):
        for row in tool.rows:
            for name in row.names:
                yield _plain(name), f"{tool.name} has this name; in sm: {row.here.replace('`', '')}"


def called_here(name: str) -> str | None:
    """What an earlier tool's key, file or command is here, in words; None for a name that no earlier tool had."""
    found: dict[str, str] = {}
    for known, text in _lookups():
        found.setdefault(known, text)
    return found.get(_plain(name))
