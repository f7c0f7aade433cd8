"""The command line. `sm handoff` and `sm status` of an agent are felt on every call, so they skip the command parser
where they can; everything else goes through click, which loads only the command that is asked for.
"""

from __future__ import annotations

import sys


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] == ["handoff"]:
        from sm.cli import quick  # noqa: PLC0415  # nothing else may be loaded on this path

        if quick.handles(arguments[1:]):
            sys.exit(quick.handoff(arguments[1:]))
    from sm.cli.app import run  # noqa: PLC0415  # click costs 36 ms

    sys.exit(run(arguments))
