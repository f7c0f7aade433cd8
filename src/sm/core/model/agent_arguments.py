"""Which arguments of the agent's commands its tool may pass on to the command line.

The tool runs outside the sandbox that the agent's shell is in, so it must not do for the agent what the sandbox keeps
it from: an option that names a file, a directory, a program or another client is refused here, as is every option that
this table does not know. What the session's token may do is for the server to decide, as for any caller.

The options are put together again from what was understood: the command line never parses an agent's own spelling.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COMMANDS: dict[str, tuple[str, str, str]] = {
    "handoff": (
        "- | .sm/NAME.md | --auto | --status | --cancel | --retry",
        "Continue in a fresh context from a document (called by an agent)",
        "--auto --to= --status --cancel --retry --json",
    ),
    "send": (
        "TARGET TEXT",
        "Send a message to other sessions",
        "--sequential --important --urgent --steer --notify-on-stop --wait= --expires= --json",
    ),
    "status": ("[TEXT]", "Show this session, or report what it is doing", "--json"),
    "context": ("[SESSION]", "Show how full a context is", "--rearm --json"),
    "inbox": ("", "List the messages queued for a session", "--dead --json"),
    "message": ("ID", "Show whether a message was delivered", "--cancel --json"),
    "remind": ("DELAY TEXT | list | cancel ID", "Get a reminder later", "--every --json"),
    "wait": ("TARGET DELAY", "Get a message when another session is idle", "--json"),
    "spawn": (
        "PROMPT",
        "Start a child session",
        "--provider= --name= --model= --track[=] --notify-on-stop --no-notify-on-stop --json",
    ),
    "children": ("", "List a session's children", "--json"),
    "kill": ("CHILD", "End sessions", "--children --json"),
    "clear": (
        "CHILD [PROMPT]",
        "Clear a child's context and give it another task",
        "--notify-on-stop --no-notify-on-stop --json",
    ),
    "done": ("[TEXT]", "Report the task as complete", "--json"),
    "search": (
        "WORDS",
        "Search terminals, transcripts and documents of all sessions",
        "--session= --limit= --json",
    ),
}
"""For each command what follows it, what it does, and its options: `=` where a value follows, `[=]` where one may."""
ASK_USER = "ask the user to run it in a terminal of their own"
WITHHELD: dict[str, tuple[str, str]] = {
    "handoff --out": ("it names a file anywhere", "leave it out: the document is kept in .sm/"),
    "handoff --transcript": ("it names a file anywhere", "leave it out: --auto takes this session's transcript"),
    "handoff --reason": ("it is not kept with a document", "write the reason into the document"),
    "handoff --session": ("it names another session", "leave it out: it is about this session"),
    "context --transcript": ("it names a file anywhere", "leave it out, or name a session"),
    "context --provider": ("it goes with --transcript", "leave it out"),
    "send --command": (
        "a command of the client can change what the child may do",
        "send it as text; sm clear CHILD clears its context",
    ),
    "spawn --dir": (
        "a client runs what the files of its directory name, as hooks, and those files may be the agent's own",
        f"leave it out: the child works in this session's directory; or {ASK_USER}",
    ),
}
"""Options of the command line that the tool refuses, each with the reason and what to do instead."""
HELP = ("--help", "-h")


class ArgumentError(Exception):
    """Why an agent's arguments are not passed on, and what to do instead."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def understood(arguments: Sequence[str]) -> tuple[str, list[str], list[str]]:
    """Return the command, its options, one string each, and its other words; ArgumentError for what is not allowed."""
    own = arguments[1:] if arguments and arguments[0] == "sm" else arguments
    command, *rest = own or [""]
    if command not in COMMANDS:
        raise ArgumentError(f"No command of an agent: {command!r}", f"it is one of {', '.join(COMMANDS)}")
    if any("\0" in argument for argument in rest):
        raise ArgumentError("An argument contains NUL", "write text without it")
    options: list[str] = []
    words: list[str] = []
    left = iter(rest)
    for argument in left:
        if argument == "--":
            words += left
        elif argument == "-" or not argument.startswith("-"):
            words.append(argument)
        else:
            options.append(_option(command, argument, left))
    return command, options, words


def command_line(command: str, options: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return the arguments of `sm`; the plain form stays plain, which the command line runs without its parser."""
    dashed = any(word.startswith("-") and word != "-" for word in words)
    return [command, *options, *(["--"] if dashed else []), *words]


def _option(command: str, argument: str, left: Iterator[str]) -> str:
    """Return an option as one string, its value after `=`, which may be the next argument."""
    name, separator, value = argument.partition("=")
    kinds = COMMANDS[command][2].split()
    if argument in HELP or (name in kinds and not separator):
        return argument
    if f"{name}[=]" in kinds:
        return argument
    if f"{name}=" not in kinds:
        raise _refused(command, name, has_value=bool(separator))
    given = value if separator else next(left, None)
    if given is None:
        raise ArgumentError(f"sm {command} {name} needs a value", f"sm {command} --help")
    return f"{name}={given}"


def _refused(command: str, name: str, *, has_value: bool) -> ArgumentError:
    if has_value and name in COMMANDS[command][2].split():
        return ArgumentError(f"sm {command} {name} takes no value", f"write {name} alone")
    withheld = WITHHELD.get(f"{command} {name}")
    if withheld is not None:
        return ArgumentError(f"sm {command} {name} is not available to an agent: {withheld[0]}", withheld[1])
    known = COMMANDS[command][2].replace("[=]", "").replace("=", " VALUE")
    hint = f"its options here: {known}; write -- before text that begins with a dash"
    return ArgumentError(f"sm {command} has no option {name} for an agent", hint)
