#!/bin/sh
# Tells the skill where it runs and what prevents writing, and keeps the document out of git.
# Only what every POSIX system has, and always exit code 0: the client drops a skill whose command fails.

. "$(dirname "$0")/../../common.sh"
DOCUMENT=$DEFAULT
[ -z "${CLAUDE_SESSION_MANAGER_ID:-}" ] || DOCUMENT=.sm/handoff-$(printf %.8s "$CLAUDE_SESSION_MANAGER_ID").md

keep_out_of_git() {
    exclude=$(git rev-parse --git-path info/exclude 2>/dev/null) || return 0
    mkdir -p "$(dirname "$exclude")" 2>/dev/null
    for pattern in '**/.sm/handoff.md' '**/.sm/handoff-*.md' '**/.sm/continue-prompt.md'; do
        grep -qxF "$pattern" "$exclude" 2>/dev/null && continue
        [ -s "$exclude" ] && [ -n "$(tail -c 1 "$exclude")" ] && printf '\n' >>"$exclude"
        printf '%s\n' "$pattern" >>"$exclude"
    done 2>/dev/null
}

if [ -n "${CLAUDE_SESSION_MANAGER_ID:-}" ]; then
    printf 'Runs under sm: yes (session %s)\n' "$CLAUDE_SESSION_MANAGER_ID"
else
    printf 'Runs under sm: no\n'
fi
printf 'Document: %s\n' "$DOCUMENT"
if [ -f "$DOCUMENT" ]; then
    printf '%s: exists already, from an earlier handoff\n' "$DOCUMENT"
else
    printf '%s: does not exist yet\n' "$DOCUMENT"
fi
switched_off include_todos INCLUDE_TODOS && printf 'Setting: continuation.include_todos = false\n'
switched_off include_git_status INCLUDE_GIT_STATUS && printf 'Setting: continuation.include_git_status = false\n'
switched_off include_recent_files INCLUDE_RECENT_FILES && printf 'Setting: continuation.include_recent_files = false\n'
keep_out_of_git
exit 0
