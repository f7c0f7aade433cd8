"""How a Codex client with its own app-server is started: one program in the pane runs it and its screen.

The app-server takes settings as configuration alone, so a start's arguments are those that can be written as that.
"""

from __future__ import annotations

from collections.abc import Sequence

from sm.core.errors import SmError, error
from sm.providers.codex import options
from sm.providers.codex.app.place import AppPlace

SCREEN = ("--no-alt-screen", *options.configured(**options.QUIET))
"""For the screen, which else draws where the terminal keeps nothing that it has scrolled away: a snapshot would hold
one screen (0.171.0)."""


def settings_of(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the user's arguments as the app-server takes them; SmError for one that it cannot be given."""
    made: list[str] = []
    try:
        for name, value in options.options(arguments):
            if name in options.BYPASS:
                made += options.configured(**options.FULL_ACCESS)
            elif name in options.MODES or name in options.MODEL:
                made += options.configured(**{(options.MODES | options.MODEL)[name]: value})
            else:
                made += (name, value or "")
    except ValueError as problem:
        raise _not_taken(str(problem)) from None
    return tuple(made)


def _not_taken(argument: str) -> SmError:
    hint = "give -m, -s, -a, -c, --enable or --disable, set it in Codex's config.toml, or use --provider codex-tui"
    return error("reserved_argument", f"Codex's app-server takes no argument {argument}", hint)


def argv(
    python: str, pane: str, program: str, place: AppPlace, settings: Sequence[str], screen: Sequence[str]
) -> tuple[str, ...]:
    """Return the command of the pane."""
    here = (str(place.socket), str(place.thread_file), str(place.log))
    return (python, "-I", "-S", pane, *here, program, str(len(settings)), *settings, *screen)
