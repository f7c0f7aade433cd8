"""The command line. The commands that agents call most skip the command parser.

All others go through click, which loads only the command in question.
"""

from __future__ import annotations

import sys

from sm.cli.exits import INTERRUPTED, REFUSED
from sm.cli.format import drop, is_terminal, say

FAST_COMMANDS = (["status"], ["context"])


def main() -> None:
    sys.exit(guarded(sys.argv[1:]))


def guarded(arguments: list[str]) -> int:
    """Run a command; Ctrl-C, a closed pipe and a full disk become an exit code."""
    try:
        return _dispatch(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        drop(sys.stdout)
        return REFUSED
    except OSError as problem:
        drop(sys.stdout)
        say(f"Error: {problem.strerror or problem}")
        return REFUSED


def _dispatch(arguments: list[str]) -> int:
    if arguments[:1] == ["handoff"] or arguments in FAST_COMMANDS:
        from sm.cli import fastpath  # noqa: PLC0415  # no other module may be loaded on this path

        if fastpath.is_plain_handoff(arguments[1:]):
            return fastpath.handoff(arguments[1])
        if arguments in FAST_COMMANDS and fastpath.inside_session() and fastpath.printed(arguments[0]):
            return 0
    if arguments[:1] == ["send"]:
        from sm.cli import fastpath  # noqa: PLC0415  # as above

        if fastpath.is_plain_send(arguments[1:]):
            return fastpath.send(arguments[1], arguments[2:])
    if arguments[:1] == ["statusline"] and "--help" not in arguments and not is_terminal(sys.stdin):
        from sm.cli import status_line  # noqa: PLC0415  # the client runs it after every reply

        return status_line.main(arguments[1:])
    from sm.cli.app import run  # noqa: PLC0415  # click costs 36 ms

    return run(arguments)
