"""`sm config show` and `sm trust`: what is set, by what, and what a project may set."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from sm import settings
from sm.cli.descriptions import plain
from sm.cli.format import emit_json, say, show
from sm.cli.options import json_option
from sm.client import inside_session
from sm.core.errors import error


@click.group()
def config() -> None:
    """Show the configuration of this directory."""


@config.command("show")
@click.option("--source", is_flag=True, help="Show the source of each value.")
@json_option
def show_config(*, source: bool, as_json: bool) -> None:
    """Print every setting with its value. An invalid file is an error that names the reason."""
    found = settings.sources(Path.cwd(), os.environ)
    if as_json:
        emit_json({_dotted(one): _value(one, source=source) for one in found})
        return
    for one in found:
        origin = f"  # {plain(one.source)}" if source else ""
        show(f"{_dotted(one)} = {_written(one.value)}{origin}")


def _dotted(one: settings.Setting) -> str:
    return f"{one.table}.{one.key}" if one.table else one.key


def _value(one: settings.Setting, *, source: bool) -> object:
    return {"value": one.value, "source": one.source} if source else one.value


def _written(value: object) -> str:
    """As in the file; TOML has no null, so what is not set is said in a word."""
    return "none" if value is None else json.dumps(value, ensure_ascii=False)


@click.command()
@click.argument("directory", default=".", metavar="[DIR]")
def trust(directory: str) -> None:
    """Allow the .sm/config.toml of DIR to set everything, until its content changes. Read it first."""
    if inside_session() is not None:
        raise error("forbidden", "A session may not trust a project", "ask the user who runs sm")
    if not os.path.lexists(Path(directory).expanduser() / settings.PROJECT_FILE):
        text = f"Nothing to trust: {plain(directory)} has no {settings.PROJECT_FILE}"
        raise error("not_found", text, "give the directory that holds it: sm trust DIR")
    say(f"trusted with its present content: {settings.trust(Path(directory).expanduser(), os.environ)}")
