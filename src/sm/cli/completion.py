"""`sm completion` and `sm help`, both made from the commands themselves."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import get_completion_class

import sm
from sm.cli.format import show
from sm.core.errors import error

SHELLS = ("bash", "zsh", "fish")
COMPLETION_VARIABLE = "_SM_COMPLETE"
INSTALL_HELP = """\
bash, in ~/.bashrc:                eval "$(sm completion bash)"
zsh, in ~/.zshrc, after compinit:  eval "$(sm completion zsh)"
fish:  sm completion fish > ~/.config/fish/completions/sm.fish"""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), required=False)
def completion(shell: str | None) -> None:
    """Print the completion script for SHELL; without SHELL, how to install it."""
    if shell is None:
        show(INSTALL_HELP)
        return
    kind = get_completion_class(shell)
    assert kind is not None
    show(kind(click.get_current_context().find_root().command, {}, "sm", COMPLETION_VARIABLE).source())


@click.command("help")
@click.argument("words", nargs=-1)
def help_command(words: tuple[str, ...]) -> None:
    """Show help for the command that WORDS name, as in `sm help server start`, or print a document.

    Documents: troubleshooting, how-it-works, rotation-states, glossary, coming-from, reference, releasing.
    """
    context = click.get_current_context().find_root()
    document = _document(words)
    if document is not None:
        show(document.read_text(encoding="utf-8").rstrip())
        return
    for word in words:
        group = context.command
        found = group.get_command(context, word) if isinstance(group, click.Group) else None
        if found is None:
            raise error("usage", f"No such command or document: {' '.join(words)}", "sm help")
        context = click.Context(found, info_name=found.name, parent=context)
    show(context.get_help())


def _document(words: tuple[str, ...]) -> Path | None:
    """Return the document of that name in docs/, which an installed package has as well."""
    package = Path(sm.__file__).parent
    names = (f"{words[0]}.md",) if len(words) == 1 else ()
    places = (package / "docs", package.parents[1] / "docs")
    return next((path for place in places for path in place.glob("*.md") if path.name in names), None)
