#!/bin/sh
# Tells the skill where it runs and what prevents writing, and keeps the document out of git.
# Only what every POSIX system has, and always exit code 0: the client drops a skill whose command fails.

PROMPT=.sm/continue-prompt.md

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
if [ -f "$PROMPT" ]; then
    printf '%s: exists already, from an earlier handoff\n' "$PROMPT"
else
    printf '%s: does not exist yet\n' "$PROMPT"
fi
sm config show 2>/dev/null | sed -n 's/^\(continuation\.include_[a-z_]* = false\)$/Setting: \1/p'
keep_out_of_git
exit 0
