#!/bin/sh
# SessionStart: announces a fresh continuation prompt of this project, where no server of sm does it.
# It says that there is one, never what it says. Always exit code 0.

[ -z "${CLAUDE_SESSION_MANAGER_ID:-}" ] || exit 0 # the hooks of sm tell
[ "${CLAUDE_CODE_ENTRYPOINT:-cli}" = cli ] || exit 0 # a script's run
case $0 in */*) own=${0%/*} ;; *) own=. ;; esac

# Whether the hooks that `sm setup` installs are in place and a server runs that answers them.
server_tells() {
    grep -q 'hook\.py"' "${CLAUDE_CONFIG_DIR:-$HOME/.claude}/settings.json" 2>/dev/null || return 1
    home=${SM_HOME:-${XDG_STATE_HOME:-$HOME/.local/state}/sm}
    pid=$(sed -n 's/.*"pid": *\([0-9][0-9]*\).*/\1/p' "$home/server.json" 2>/dev/null)
    [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null
}

for name in .sm/continue-prompt.md .ll/ll-continue-prompt.md; do
    [ -f "$name" ] && found=yes
done
[ -n "${found:-}" ] || git rev-parse --show-toplevel >/dev/null 2>&1 || exit 0
server_tells && exit 0
. "$own/../common.sh"
prompt=$(default_prompt)
[ -f "$prompt" ] && [ -r "$prompt" ] && [ -s "$prompt" ] || exit 0
tracked "$prompt" && exit 0 # it came with the project
switched_off enabled ENABLED && exit 0
switched_off auto_detect_on_session_start AUTO_DETECT_ON_SESSION_START && exit 0
expired "$prompt" "$(expiry_hours)" && exit 0
case $prompt in
/*) where="${prompt##*/} at the root of this repository (in .sm or .ll)" ;;
*) where=$prompt ;;
esac
written=$(date -r "$prompt" '+%Y-%m-%d %H:%M' 2>/dev/null)
text="[sm handoff] This project has a continuation prompt of an earlier session: $where, written ${written:-recently}. It is not loaded. If the user wants to continue that work, read it first: /sm:resume does."
printf '{"systemMessage": "A continuation prompt of an earlier session is open: %s. /sm:resume continues from it.", ' "$where"
printf '"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "%s"}}\n' "$text"
exit 0
