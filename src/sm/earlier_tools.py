"""Names of earlier tools and their equivalents in sm: the table for docs/coming-from.md and for hints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

LATER = "not part of sm yet"


class Equivalent(NamedTuple):
    names: tuple[str, ...]
    """As a user would type or search for them."""
    here: str
    """What does the same in `sm`, or what to use instead."""


class EarlierTool(NamedTuple):
    name: str
    about: str
    rows: tuple[Equivalent, ...]


_STATE = "kept in the database; `sm context --json` prints {}"
_THRESHOLDS = "`context_monitor.warning_threshold` and `critical_threshold`, {}"

LITTLE_LOOPS = EarlierTool(
    "little-loops",
    "Its two commands, its keys and its continuation prompt are here under nearly the same names. Of its runners the "
    "one that works on one issue after the other is here.",
    (
        Equivalent(
            ("/ll:handoff",), '`/sm:handoff`, with the same hint and `--deep`: `/sm:handoff "the auth module" --deep`'
        ),
        Equivalent(("/ll:resume",), "`/sm:resume` in the client, or `sm resume` in a shell; both take a path"),
        Equivalent(
            (".ll/ll-continue-prompt.md",),
            "`.sm/continue-prompt.md`; where only the old file exists, `sm resume` and `/sm:resume` read it",
        ),
        Equivalent(
            (".ll/ll-config.json", "ll-config.json"),
            "`.sm/config.toml` in the project or `~/.config/sm/config.toml`: TOML, the same tables and keys",
        ),
        Equivalent((".ll/ll-context-state.json", "state_file"), _STATE.format("it")),
        Equivalent(
            (".ll/ll-session-state.json",),
            "kept in the database; `sm list --json` prints it. Nothing has to be deleted when a session stops",
        ),
        Equivalent(
            ("ll-auto",),
            "`sm auto`, with the same `--only`, `--skip`, `--type`, `--priority`, `--label`, `--max-issues`, "
            "`--idle-timeout`, `--handoff-threshold` and `--dry-run`; it continues by itself what was interrupted",
        ),
        Equivalent(
            ("ll-parallel",),
            "`sm parallel`, with the options of `sm auto`; `-j` and `runner.jobs` are its number of workers",
        ),
        Equivalent(
            ("parallel.worktree_copy_files", "--feature-branches", "--overlap-detection"),
            "a file `.worktreeinclude`; `--deliver branch`, or `pull-request`; issues that name the same files run one "
            "after the other",
        ),
        Equivalent(
            ("ll-sprint", "ll-sprint run"),
            "`sm sprint run NAME`; it continues by itself what was interrupted",
        ),
        Equivalent(
            (".issues/", "ll-issues", "ll-issues list", "ll-issues next-issue"),
            "the same files with the same names and front matter: `sm issues list`, `sm issues next`",
        ),
        Equivalent(
            (".sprints/", "ll-sprint list", "ll-sprint show"),
            "the same files with `issues`; other keys than those of `sm help unattended` are an error: `sm sprint "
            "list`, `sm issues list --sprint NAME`",
        ),
        Equivalent(
            ("CONTEXT_HANDOFF", "CONTEXT_HANDOFF: Ready for fresh session"),
            "the agent of a run says `CONTEXT_HANDOFF: RUN`, on a line of its own in its last message; its prompt has "
            "the line. Everywhere else it calls `sm handoff FILE`, whose answer says whether it is scheduled",
        ),
        Equivalent(
            ("--handoff-threshold", "handoff_threshold"),
            "the same option of `sm auto`; everywhere else `critical_threshold` in the project's `.sm/config.toml`",
        ),
        Equivalent(
            ("continuation.max_continuations", "Reached max continuations"),
            "the same key, for `sm auto`; `handoff.max_restarts` limits `sm run`",
        ),
        Equivalent(
            ("[ll] Context ~82% used",),
            "`[sm context] Context at … tokens (~…%). …` at the warning threshold, "
            "and a critical one, repeated every `context_monitor.remind_every` seconds until a handoff is pending",
        ),
        Equivalent(("context_monitor.enabled",), "the same key; on by default here"),
        Equivalent(("context_monitor.auto_handoff_threshold",), "accepted as another name of `critical_threshold`"),
        Equivalent(
            ("context_monitor.context_limit_estimate",),
            "the same key. Known models need none; set it where `sm context` shows the wrong window",
        ),
        Equivalent(("context_monitor.use_transcript_baseline",), "the same key"),
        Equivalent(
            ("context_monitor.estimate_weights", "read_per_line", "tool_call_base", "bash_output_per_char"),
            "the same keys; see also `grep_per_match`, `glob_per_file`, `edit`, `agent`, `web_fetch`, `web_search`",
        ),
        Equivalent(
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
        Equivalent(("estimated_tokens",), "`projected` in `sm context --json`"),
        Equivalent(("transcript_baseline_tokens",), "`tokens` in `sm context --json`"),
        Equivalent(("result_token_count",), "not here: it sums up a whole run, not a context; use `projected`"),
        Equivalent(("threshold_crossed_at",), "`crossed_at` in `sm context --json`, one time for each level"),
        Equivalent(
            ("handoff_complete",), "`handoff.phase` in `sm list --json`: `done`; in words: `sm handoff --status`"
        ),
        Equivalent(
            ("session_start",),
            "`created` in `sm list --json` for the session; `sm tail` shows the start of each context",
        ),
        Equivalent(("breakdown", "tool_calls"), "the same members in `sm context --json`"),
        Equivalent(("jq",), "not needed: hooks need no other program"),
        Equivalent(("detect_context_handoff", "read_continuation_prompt"), f"functions of the runners: {LATER}"),
        Equivalent(("commands/handoff.md", "commands/resume.md"), "`sm handoff --help`, `sm resume --help`, README.md"),
    ),
)

AUTO_HANDOFF = EarlierTool(
    "auto-handoff",
    "`sm run` does what its wrapper did, in your own terminal; `sm new` does it in a tmux pane. Auto-compaction may "
    "stay on, and permissions are not bypassed.",
    (
        Equivalent(("claude-wrapper",), "`sm run -- CLIENT ARGS`: the arguments are kept at each restart"),
        Equivalent(
            ("claude-wrapper -h", "--handoff"),
            "`sm resume`: a new session from the handoff that is open in this project. A plain start never takes one",
        ),
        Equivalent(("claude-wrapper -r", "claude-wrapper -c"), "`sm run -- --resume ID`, `sm run -- --continue`"),
        Equivalent(
            ("~/.claude/handoff/{channel}.manifest.json", "manifest", "handoff-manifest.json"),
            "`SM_HOME/handoffs/<channel>/manifest.json`, with the same members; all of them: `sm handoffs --json`",
        ),
        Equivalent(
            ("~/.claude/handoff/{channel}-CURRENT.md", "CURRENT.md"),
            "`SM_HOME/handoffs/<channel>/<id>.md`, with the same head lines; no file is overwritten. "
            "`sm handoffs show ID` prints it",
        ),
        Equivalent(
            ("channel", "channels", "channel-registry.json", "get-channel.sh"),
            "a project: its repository with all worktrees. The table `[channels]` in `~/.config/sm/config.toml` "
            "(path = name, the longest path wins) joins or splits projects",
        ),
        Equivalent(("HO-20260202-064530-c74cc080", "HANDOFF-ID"), "the same form of id, in the same head line"),
        Equivalent(
            ("active", "consumed", "expired", "cleared"), "the same states, and `pending` and `failed`: `sm handoffs`"
        ),
        Equivalent(
            ("created_at", "created_by_pid", "consumed_at", "consumed_by_pid"),
            "the same members; `sm handoffs` also names the session",
        ),
        Equivalent(
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
        Equivalent(
            (".context-status", "STATUS:SIZE"),
            "no such file: `sm context` (levels `ok`, `warning`, `critical`, `unknown`), `sm list`, and "
            "`sm setup --statusline` for the client's status line",
        ),
        Equivalent(
            ("track_session()", "start_monitor()"),
            "not needed: hooks of the client report the conversation, and `sm` measures each one",
        ),
        Equivalent(
            (".restart-session", ".killed-by-monitor", ".wrapper-pid"), "no such file: the server signals `sm run`"
        ),
        Equivalent(
            (".critical-triggered", "auto-session.log", "{channel}.lock.d"),
            "no such file: state is kept in the database, the log is `SM_HOME/server.log`",
        ),
        Equivalent(
            ("EARLY_WARN_KB",),
            "no such level: `sm list` always shows how full a context is. The first warning is "
            "`context_monitor.warning_threshold`",
        ),
        Equivalent(
            ("WARN_KB", "CRITICAL_KB"),
            _THRESHOLDS.format("a share of the usable context, or tokens: the size of a file says little about it"),
        ),
        Equivalent(
            ("context-monitor.sh", "pre-compact-handoff.sh", "session-start-from-handoff.sh", "handoff-manifest.sh"),
            "take these hooks out of `~/.claude/settings.json`: `sm new` and `sm run` bring their own, and `sm setup` "
            "adds some for sessions that you start yourself",
        ),
        Equivalent(
            ("memory-keeper", "context_get({ channel, priorities })", "context_get"),
            "`sm` does not use it. Put such a line into `handoff.instructions`: that text follows each handoff",
        ),
        Equivalent(("create_handoff()", "generate_handoff_id()", "write_manifest()"), "`sm handoff FILE` or `--auto`"),
        Equivalent(("load_handoff()",), "`sm resume [ID|PATH]`"),
        Equivalent(("read_manifest()",), "`sm handoffs --json`"),
        Equivalent(
            ("get_active_handoff_file()", "get_active_handoff_id()", "has_active_handoff()"),
            "`sm handoffs active`: exit code 0 if there is one, and its id; the file: `copy` in `sm handoffs --json`",
        ),
        Equivalent(("clear_handoff()",), "`sm handoffs clear [ID]`"),
        Equivalent(("extract_recent_context()",), "`sm handoff --auto --transcript FILE`"),
        Equivalent(
            ("# Auto-Handoff (Pre-Compaction)",),
            "before a compaction `sm` saves such a document by itself (`handoff.on_compact`), with all you asked for, "
            "not the last 15 texts",
        ),
        Equivalent(
            ("Restored from auto-handoff",), "no announcement; add one through `handoff.instructions` if you want it"
        ),
        Equivalent(("max 10 restarts",), "`handoff.max_restarts`, 10 by default"),
        Equivalent(("2-hour expiry",), "`handoff.expiry_hours`, 2 by default"),
        Equivalent((".test-mode",), "`sm demo`"),
    ),
)

SESSION_MANAGER = EarlierTool(
    "session-manager",
    "An earlier `sm`. The commands `handoff`, `send`, `spawn`, `children`, `wait`, `remind`, `clear`, `kill`, `output` "
    "and `tail` have the same names, and agents read the same texts.",
    (
        Equivalent(
            ("CLAUDE_SESSION_MANAGER_ID",),
            "the same variable; see “Environment” in [reference.md](reference.md#environment) for the others",
        ),
        Equivalent(
            ("config.yaml", "config.yaml.example"),
            "`~/.config/sm/config.toml`: TOML. `context_monitor:` becomes `[context_monitor]`",
        ),
        Equivalent(
            ("warning_percentage", "critical_percentage", "threshold_percentages"),
            _THRESHOLDS.format('such as `"60%"`: the percentage of the usable context'),
        ),
        Equivalent(("fallback_tool_count", "check_frequency"), "the same keys in `[context_monitor]`"),
        Equivalent(
            ("sm context-monitor", "context_monitor_enabled", "sm em"),
            "not needed: each session is measured. `context_monitor.enabled = false` switches it off",
        ),
        Equivalent(
            ("sessions.json", "state file", "~/.local/share/claude-sessions", "message_queue.db", "tool_usage.db"),
            "one database in `SM_HOME` (`~/.local/state/sm`), which outlives a reboot; read it through `--json`",
        ),
        Equivalent(
            ("/tmp/claude-sessions/claude-117897d1.log", "Session.log_file", "log_file"),  # noqa: S108  # a name only
            "`SM_HOME/logs/<session>.log`; `sm log NAME` prints it as text, `sm search WORDS` searches it",
        ),
        Equivalent(
            ("dump.txt", "~/.local/share/claude-sessions/handoffs"),
            "`SM_HOME/archive/<session>-<time>/dump.txt`, the screen before each rotation; `sm archive list NAME`",
        ),
        Equivalent(
            ("history-limit", "history_limit"), "`tmux.history_limit`, 100,000 lines: sm has a tmux server of its own"
        ),
        Equivalent(("Session.tokens_used", "tokens_used"), "`context.tokens` in `sm list --json`"),
        Equivalent(("read_transcript_tokens()",), "`sm context --transcript FILE`"),
        Equivalent(
            ("DeliveryMode.SEQUENTIAL", "DeliveryMode.IMPORTANT", "DeliveryMode.URGENT"),
            "the options `--sequential`, `--important` and `--urgent` of `sm send`",
        ),
        Equivalent(("tools_used",), "`tool_calls` and `breakdown` in `sm context --json`"),
        Equivalent(("Session.transcript_path", "transcript_path"), "`transcript` in `sm list --json`"),
        Equivalent(
            ("pending_handoff_path", "last_handoff_path"), "`handoff.path` in `sm list --json`; `sm handoff --status`"
        ),
        Equivalent(("context_warning",), "`crossed_at` in `sm context --json`; `sm tail` shows it"),
        Equivalent(
            ("stop_notify_skip_count", "schedule_handoff", "_execute_handoff", "mark_session_idle"),
            "not here: hooks of the client confirm each step; the phases are in `sm handoff --status`",
        ),
        Equivalent(
            ("POST /sessions/{session_id}/handoff", "requester_session_id"),
            "the same route and members; every request needs a token (see SECURITY.md)",
        ),
        Equivalent(
            ("codex", "codex-app", "codex-fork"),
            "`--provider codex-tui` drives it by keys in its terminal, `--provider codex` by its app-server, where it "
            "hands off too; a fork is the client's own affair",
        ),
        Equivalent(("sm me", "sm name", "sm rename"), "`sm status`; `sm rename SESSION NAME`"),
        Equivalent(
            ("sm all", "sm who", "sm others", "sm alone", "sm what"), "`sm list`, `sm children`, `sm output SESSION`"
        ),
        Equivalent(("sm claude", "sm codex"), "`sm new`, `sm new --provider codex`"),
        Equivalent(("sm task", "sm role"), "`sm status TEXT`: what the session says of itself, shown in `sm list`"),
        Equivalent(
            ("sm task-complete", "sm turn-complete"), "`sm done`; the end of a turn is noticed without a command"
        ),
        Equivalent(
            ("sm dispatch",), "`sm clear CHILD PROMPT` for a fresh context, `sm send CHILD TEXT` for the present one"
        ),
        Equivalent(("sm retire",), "`sm kill`"),
        Equivalent(("sm unkill",), "`sm restore`"),
        Equivalent(("sm watch-job",), "not here: an agent's own background task, or `sm remind`"),
        Equivalent(("sm lock", "sm unlock"), "not here: give each agent a worktree of its own"),
        Equivalent(("sm telegram", "sm email"), "not here: `sm` sends nothing anywhere"),
    ),
)

TOOLS = (LITTLE_LOOPS, AUTO_HANDOFF, SESSION_MANAGER)


def _plain(name: str) -> str:
    return re.sub(r"\([^()]*\)$", "", name).lower()


def _lookups() -> Iterator[tuple[str, str]]:
    for tool in TOOLS:
        for row in tool.rows:
            for name in row.names:
                yield _plain(name), f"{tool.name} has this name; in sm: {row.here.replace('`', '')}"


def hint_for(name: str) -> str | None:
    """Return what an earlier tool's key, file or command is in sm, in words; None for an unknown name."""
    found: dict[str, str] = {}
    for known, text in _lookups():
        found.setdefault(known, text)
    return found.get(_plain(name))
