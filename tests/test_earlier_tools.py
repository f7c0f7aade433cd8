"""A reader who comes from an earlier tool finds each name that they know: what it is here, or that it is not here."""

import re
import runpy
from pathlib import Path

import pytest

from sm.cli.app import ALIASES, COMMANDS
from sm.earlier_tools import TOOLS, hint_for
from sm.settings import ACCEPTED

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ROWS = [row for tool in TOOLS for row in tool.rows]

LITTLE_LOOPS = """/ll:handoff /ll:resume --deep ll-auto ll-parallel ll-sprint --handoff-threshold CONTEXT_HANDOFF
    .ll/ll-continue-prompt.md .ll/ll-config.json .ll/ll-context-state.json .ll/ll-session-state.json state_file
    context_monitor.enabled auto_handoff_threshold context_limit_estimate use_transcript_baseline estimate_weights
    read_per_line tool_call_base bash_output_per_char continuation.enabled auto_detect_on_session_start include_todos
    include_git_status include_recent_files max_continuations prompt_expiry_hours session_start estimated_tokens
    transcript_baseline_tokens result_token_count tool_calls threshold_crossed_at handoff_complete breakdown jq
    detect_context_handoff read_continuation_prompt commands/handoff.md commands/resume.md"""
AUTO_HANDOFF = """claude-wrapper .current-session .context-status .restart-session EARLY_WARN_KB WARN_KB CRITICAL_KB
    memory-keeper context_get manifest.json CURRENT.md channel .lock.d HANDOFF-ID consumed_by_pid consumed_at expired
    cleared context-monitor.sh pre-compact-handoff.sh session-start-from-handoff.sh get-channel.sh
    handoff-manifest.sh get_current_session_id() get_current_transcript_path() generate_handoff_id() read_manifest()
    write_manifest() create_handoff() load_handoff() get_active_handoff_file() get_active_handoff_id()
    has_active_handoff() clear_handoff() extract_recent_context() write_session_file() clear_session_file() created_at
    created_by_pid track_session start_monitor"""
SESSION_MANAGER = """CLAUDE_SESSION_MANAGER_ID Session.tokens_used Session.transcript_path Session.log_file tools_used
    pending_handoff_path requester_session_id warning_threshold critical_threshold fallback_tool_count check_frequency
    context_warning config.yaml dump.txt history-limit claude-sessions codex-app _execute_handoff mark_session_idle
    stop_notify_skip_count schedule_handoff read_transcript_tokens() /tmp/claude-sessions DeliveryMode.SEQUENTIAL
    DeliveryMode.URGENT"""


@pytest.mark.parametrize("name", f"{LITTLE_LOOPS} {AUTO_HANDOFF} {SESSION_MANAGER}".split())
def test_each_name_of_an_earlier_tool_is_in_a_document(name):
    assert any(name in path.read_text() for path in DOCUMENTS)


def test_the_committed_table_is_what_the_code_says():
    written = runpy.run_path(str(ROOT / "scripts/reference.py"))["coming_from"]()
    assert (ROOT / "docs/coming-from.md").read_text() == written


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.names[0])
def test_what_a_row_names_exists(row):
    for command in re.findall(r"`sm ([a-z]+)", row.here):
        assert command in {*COMMANDS, *ALIASES}
    for key in re.findall(r"`([a-z_]+\.[a-z_]+)`", row.here):
        assert key in {*ACCEPTED, "handoff.path", "handoff.phase", "context.tokens"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("state_file", "sm context --json"),
        ("EARLY_WARN_KB", "context_monitor.warning_threshold"),
        ("early_warn_kb", "context_monitor.warning_threshold"),
        ("warning_percentage", "context_monitor.warning_threshold"),
        ("claude-wrapper", "sm run"),
        ("get_current_session_id", "sm status"),
    ],
)
def test_a_name_is_found_however_it_is_written(name, words):
    assert words in (hint_for(name) or "")


def test_a_name_that_no_tool_had_is_not_found():
    assert hint_for("zzz") is None
