"""`sm completion` and `sm help`: both ask the commands themselves."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from sm.cli.output import show
from sm.core.errors import error

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_SM_COMPLETE"
INSTALL = """\
bash, in ~/.bashrc:                eval "$(sm completion bash)"
zsh, in ~/.zshrc, after compinit:  eval "$(sm completion zsh)"
fish:  sm completion fish > ~/.config/fish/completions/sm.fish"""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), required=False)
def completion(shell: str | None) -> None:
    """Print the completion script for SHELL; without one, how to install it."""
    if shell is None:
        show(INSTALL)
        return
    kind = get_completion_class(shell)
    assert kind is not None
    show(kind(click.get_current_context().find_root().command, {}, "sm", VARIABLE).source())


@click.command("help")
@click.argument("words", nargs=-1)
def help_command(words: tuple[str, ...]) -> None:
    """Show help for the command that WORDS name, as in `sm help server start`."""
    context = click.get_current_context().find_root()
    for word in words:
        group = context.command
        found = group.get_command(context, word) if isinstance(group, click.Group) else None
        if found is None:
            raise error("usage", f"No such command: sm {' '.join(words)}", "sm help")
        context = click.Context(found, info_name=found.name, parent=context)
    show(context.get_help())
