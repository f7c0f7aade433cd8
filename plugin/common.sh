# What the scripts of the plugin share: the configuration, and which continuation prompt there is. Sourced.
# Only what every POSIX system has; without `sm` on the PATH the configuration is read from its files.

DEFAULT=.sm/continue-prompt.md
OLDER_TOOL=.ll/ll-continue-prompt.md
DEFAULT_HOURS=24

shown=$(sm config show 2>/dev/null)

# setting NAME VARIABLE: continuation.NAME as it is set; empty if it is not.
setting() {
    if [ -n "$shown" ]; then
        printf '%s\n' "$shown" | sed -n "s/^continuation\\.$1 = //p"
        return
    fi
    eval "value=\${SM_CONTINUATION_$2:-}"
    for file in "$(project_file)" "$(user_file)"; do
        [ -n "$value" ] && break
        [ -f "$file" ] && [ -r "$file" ] && value=$(in_file "$1" "$file")
    done
    printf '%s' "$value"
}

user_file() {
    printf '%s' "${SM_CONFIG:-${XDG_CONFIG_HOME:-$HOME/.config}/sm/config.toml}"
}

project_file() {
    place=$PWD
    while [ ! -e "$place/.sm/config.toml" ] && [ "$place" != / ]; do
        place=$(dirname "$place")
    done
    printf '%s' "$place/.sm/config.toml"
}

# in_file NAME FILE: the value in [continuation], or of the dotted key; of TOML, what one line can say.
in_file() {
    awk -v key="$1" '
        { sub(/\r$/, "") }
        /^[ \t]*\[/ { table = $0; gsub(/[ \t]|#.*/, "", table); next }
        {
            line = $0
            sub(/^[ \t]+/, "", line)
            name = table == "[continuation]" ? key : table == "" ? "continuation[.]" key : "^$"
            if (match(line, "^" name "[ \t]*=")) {
                value = substr(line, RLENGTH + 1)
                sub(/[ \t]*#.*/, "", value)
                gsub(/^[ \t"\047]+|[ \t"\047]+$/, "", value)
            }
        }
        END { print value }' "$2" 2>/dev/null
}

# switched_off NAME VARIABLE
switched_off() {
    case $(setting "$1" "$2") in
    false | no | off | 0) true ;;
    *) false ;;
    esac
}

expiry_hours() {
    hours=$(setting prompt_expiry_hours PROMPT_EXPIRY_HOURS)
    case $hours in
    '' | *[!0-9.]*) hours=$DEFAULT_HOURS ;;
    esac
    printf '%s' "$hours"
}

# expired FILE HOURS: whether it is older; with 0 hours nothing is.
expired() {
    minutes=$(awk -v hours="$2" 'BEGIN { printf "%d", hours * 60 }')
    [ "$minutes" -gt 0 ] && [ -n "$(find "$1" -prune -mmin "+$minutes" 2>/dev/null)" ]
}

tracked() {
    git -C "$(dirname "$1")" ls-files --error-unmatch -- "$(basename "$1")" >/dev/null 2>&1
}

# The continuation prompt of this project, here or at the root of the repository.
default_prompt() {
    top=$(git rev-parse --show-toplevel 2>/dev/null)
    for candidate in "$DEFAULT" "$OLDER_TOOL" "$top/$DEFAULT" "$top/$OLDER_TOOL"; do
        [ -f "$candidate" ] && printf '%s' "$candidate" && return
    done
    printf '%s' "$DEFAULT"
}
