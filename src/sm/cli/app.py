"""The command `sm` and its subcommands, each loaded only when it is called."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from sm import __version__
from sm.cli.exits import INTERRUPTED
from sm.cli.format import fail, is_dumb, is_terminal, show
from sm.client import inside_session
from sm.core.errors import Refused, SmError, error

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Sessions": {
        "new": ("sm.cli.new:new", "Start an agent in a pane and attach to it"),
        "run": ("sm.cli.foreground.run:run", "Run an agent in this terminal, without tmux"),
        "watch": ("sm.tui.command:watch", "Show all sessions live, and do everything from there"),
        "list": ("sm.cli.sessions:list_sessions", "List the sessions, their status and how full their contexts are"),
        "attach": ("sm.cli.sessions:attach", "Show a session's pane in this terminal"),
        "send": ("sm.cli.messages:send", "Send a message to other sessions"),
        "output": ("sm.cli.sessions:output", "Print what a session's pane shows now"),
        "tail": ("sm.cli.sessions:tail", "Print what a session does: prompts, tools, warnings, handoffs"),
        "rename": ("sm.cli.sessions:rename", "Rename a session"),
        "kill": ("sm.cli.lifecycle:kill", "End sessions"),
        "restore": ("sm.cli.lifecycle:restore", "Restart ended sessions with their last conversation"),
        "rm": ("sm.cli.removal:rm", "Remove ended sessions from the list"),
        "prune": ("sm.cli.removal:prune", "Remove all sessions from the list that ended over a day ago"),
        "limits": ("sm.cli.limits:limits", "Show usage limits, and continue the work that one has interrupted"),
    },
    "Asks (what agents wait for you to answer)": {
        "asks": ("sm.cli.asks:asks", "List open permission requests, questions and plans"),
        "approve": ("sm.cli.asks:approve", "Allow what an agent asks for, or approve its plan"),
        "deny": ("sm.cli.asks:deny", "Refuse it, with a reason"),
        "answer": ("sm.cli.asks:answer", "Answer an agent's question"),
    },
    "Issues (work that agents can do by themselves)": {
        "auto": ("sm.cli.auto:auto", "Have agents work on the issues, one after the other, and merge what passes"),
        "parallel": ("sm.cli.auto:parallel", "Have agents work on several of the issues at the same time"),
        "sprint": ("sm.cli.sprints:sprint", "Have agents work on a named list of issues"),
        "runs": ("sm.cli.runs:runs", "List unattended runs, leave issues out of one, or stop it"),
        "worker": ("sm.cli.worker:worker", "Work on issues of runs that several machines share"),
        "issues": ("sm.cli.issues:issues", "List a project's issues in the order of work, and answer in them"),
    },
    "Handoffs": {
        "handoff": ("sm.cli.agents:handoff", "Continue in a fresh context from a document (called by an agent)"),
        "handoffs": ("sm.cli.handoffs:handoffs", "List the handoff documents and their states"),
        "resume": ("sm.cli.handoffs:resume", "Start a session from a handoff document"),
        "context": ("sm.cli.agents:context", "Show how full a context is"),
    },
    "Agents (commands that an agent calls in its session)": {
        "status": ("sm.cli.agents:status", "Show this session, or report what it is doing"),
        "spawn": ("sm.cli.team:spawn", "Start a child session"),
        "children": ("sm.cli.team:children", "List a session's children"),
        "clear": ("sm.cli.team:clear", "Clear a child's context and give it another task"),
        "wait": ("sm.cli.team:wait", "Get a message when another session is idle"),
        "remind": ("sm.cli.team:remind", "Get a reminder later"),
        "done": ("sm.cli.team:done", "Report the task as complete"),
        "inbox": ("sm.cli.messages:inbox", "List the messages queued for a session"),
        "message": ("sm.cli.messages:message", "Show whether a message was delivered"),
    },
    "History": {
        "log": ("sm.cli.archive:log", "Print what a session's terminal has shown since its start"),
        "search": ("sm.cli.archive:search", "Search terminals, transcripts and documents of all sessions"),
        "cost": ("sm.cli.cost:cost", "Show the tokens that sessions have used, and what they cost"),
        "archive": ("sm.cli.archive:archive", "List and delete what is kept of past contexts"),
    },
    "Set-up": {
        "server": ("sm.cli.server:server", "Start, stop and inspect the server"),
        "web": ("sm.cli.web:web", "Open the page of this server in a browser, or on a phone"),
        "setup": ("sm.cli.setup:setup", "Add hooks and plugin to the sessions that you start without sm"),
        "statusline": ("sm.cli.setup:statusline", "Print a line for the client's status line"),
        "notify": ("sm.cli.notify:notify", "Test how you are notified while you are away"),
        "doctor": ("sm.cli.doctor:doctor", "Check everything that sm needs"),
        "config": ("sm.cli.config:config", "Show the configuration"),
        "trust": ("sm.cli.config:trust", "Allow a project's configuration to set everything"),
        "demo": ("sm.cli.demo:demo", "Show a handoff with a real client and a scripted model"),
        "completion": ("sm.cli.completion:completion", "Print a completion script for a shell"),
        "help": ("sm.cli.completion:help_command", "Show help for a command, or print a document"),
    },
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
ALIASES = {"ls": "list"}
OTHER_NAMES = {
    "ps": "sm list",
    "start": "sm new",
    "stop": "sm kill SESSION",
    "delete": "sm kill SESSION ends it, sm rm SESSION removes an ended one from the list",
    "logs": "sm log SESSION",
    "version": "sm --version",
    "sessions": "sm list",
}
"""Names of other programs for the same."""
MIN_SIMILARITY = 0.7
"""A word that is as similar to a command counts as a misspelling of it."""


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        name = ALIASES.get(cmd_name, cmd_name)
        return _command(name) if name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise error("usage", f"No such command {args[0]!r}.", _other_command(args[0]))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        widest = max(map(len, COMMANDS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{widest}}", text) for name, (_, text) in group.items()])


def _command(name: str) -> click.Command:
    module, _, function = COMMANDS[name][0].partition(":")
    command = getattr(importlib.import_module(module), function)
    assert isinstance(command, click.Command)
    return command


def _other_command(word: str) -> str:
    """Return what to type instead of a command that does not exist."""
    from sm.earlier_tools import hint_for  # noqa: PLC0415  # for a mistake only

    known = OTHER_NAMES.get(word) or hint_for(f"sm {word}") or hint_for(word)
    if known is not None:
        return known
    import difflib  # noqa: PLC0415  # for a mistake only

    nearest = difflib.get_close_matches(word, [*COMMANDS, *ALIASES], n=1, cutoff=MIN_SIMILARITY)
    return f"sm {nearest[0]}" if nearest else "sm --help"


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name="sm", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Keep long-running coding agents working without losing what they know.

    Start with: sm new, sm, sm attach NAME. Try it without an account: sm demo.

    Sessions are called by name or id, asks by id; of an id the first 4 characters are enough, in any case.

    Documents: sm help watch, troubleshooting, how-it-works, unattended, web, coming-from, glossary, reference.
    """
    if context.invoked_subcommand is None:
        if inside_session() is None and is_terminal(sys.stdin) and is_terminal(sys.stdout) and not is_dumb():
            context.invoke(_command("watch"))
        else:
            show(context.get_help())


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    try:
        result: Any = _main(list(arguments))
    except click.exceptions.Exit as left:
        return left.exit_code
    except click.exceptions.NoArgsIsHelpError as bare:
        show(bare.ctx.get_help() if bare.ctx else "")
        return 0
    except click.Abort:
        return INTERRUPTED
    except OSError as problem:
        if problem.filename is None and not isinstance(problem, FileNotFoundError):
            raise  # of standard output: an error text could not be shown
        return fail(_refused(problem, arguments), as_json="--json" in options)
    except Exception as problem:  # noqa: BLE001  # the command line's boundary: a bug shows no traceback
        return fail(_refused(problem, arguments), as_json="--json" in options)
    return result if isinstance(result, int) else 0


def _main(arguments: list[str]) -> object:
    if sys.platform == "win32":
        raise error("usage", "Native Windows is not supported", "run sm inside WSL2")
    return cli.main(arguments, prog_name="sm", standalone_mode=False)


def _refused(problem: Exception, arguments: Sequence[str]) -> Refused:
    if isinstance(problem, SmError):
        return problem.refused
    if isinstance(problem, click.ClickException):
        context = problem.ctx if isinstance(problem, click.UsageError) else None
        bare = f"sm {arguments[0]}" if arguments and arguments[0] in COMMANDS else "sm"  # the parser knows no context
        return Refused("usage", problem.format_message(), f"{context.command_path if context else bare} --help")
    if isinstance(problem, UnicodeEncodeError):  # half a surrogate pair: bytes of a name that is not UTF-8
        name = problem.object[: problem.end].rpartition('"')[2]  # only the name, not the request's whole body
        return Refused("file_unusable", f"A name is not UTF-8 and cannot be sent as JSON: {name!r}", "rename it")
    if os.environ.get("SM_DEBUG"):
        raise problem
    if isinstance(problem, FileNotFoundError) and problem.filename is None:
        return Refused("no_directory", "The working directory is gone", "cd to a directory that exists")
    if isinstance(problem, OSError):
        hint = "correct the path or its permissions"
        return Refused("file_unusable", f"{problem.filename}: {problem.strerror}", hint)
    return Refused("internal", f"{type(problem).__name__}: {problem}", "SM_DEBUG=1 shows where; please report it")
