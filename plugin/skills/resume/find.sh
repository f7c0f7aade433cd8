#!/bin/sh
# Tells the skill which continuation prompt there is, whether it is stale, and what it says.
# With a path it looks at that file alone. Only what every POSIX system has, and always exit code 0: the client drops a
# skill whose command fails.

MAX_INLINE=24000 # bytes; what is longer is read with a tool

. "$(dirname "$0")/../../common.sh"

error() {
    printf 'Error: No continuation prompt found at %s\n' "$1"
    printf 'Run /handoff to generate one, or specify a custom path:\n'
    printf '/sm:resume path/to/custom-prompt.md\n'
    exit 0
}

describe() {
    printf 'Continuation prompt: %s\n' "$1"
    written=$(date -r "$1" '+%Y-%m-%d %H:%M' 2>/dev/null) && printf 'Written: %s\n' "$written"
    hours=$(expiry_hours)
    if expired "$1" "$hours"; then
        printf 'Warning: this prompt is stale: it is older than %s hours (continuation.prompt_expiry_hours).\n' "${hours%.0}"
    fi
    if tracked "$1"; then
        printf 'Warning: this prompt is foreign: git tracks it, so it came with the project and from no session here.\n'
    fi
}

# Whether a file is what its name says and is inside this project. For any other the client asks before it is read.
in_project() {
    [ -L "$1" ] && return 1
    place=$(cd -P -- "$(dirname "$1")" 2>/dev/null && pwd -P) || return 1
    for root in "$(pwd -P)" "$(git rev-parse --show-toplevel 2>/dev/null)"; do
        [ -n "$root" ] || continue
        case $place/ in "$root"/*) return 0 ;; esac
    done
    return 1
}

content() {
    if ! in_project "$1"; then
        printf 'It is a link, or outside this project: read the file with your own tool before you continue.\n'
    elif [ "$(wc -c <"$1")" -le "$MAX_INLINE" ]; then
        printf -- '--- begin of the prompt\n'
        cat -- "$1"
        printf -- '\n--- end of the prompt\n'
    else
        printf 'It is long: read the whole file before you continue.\n'
    fi
}

file=${1:-$(default_prompt)}
case $file in -*) file=./$file ;; esac
[ -f "$file" ] && [ -r "$file" ] && [ -s "$file" ] || error "$file"
describe "$file"
content "$file"
exit 0
