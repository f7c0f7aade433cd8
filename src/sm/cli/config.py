"""`sm config show` and `sm trust`: values, their sources, and which project may set all of them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from sm import settings
from sm.cli.format import emit_json, say, show
from sm.cli.options import json_option
from sm.client import inside_session
from sm.core.errors import error
from sm.plain_text import plain


@click.group()
def config() -> None:
    """Show the configuration of this directory."""


@config.command("show")
@click.option("--source", is_flag=True, help="Show the source of each value.")
@json_option
def show_config(*, source: bool, as_json: bool) -> None:
    """Print every setting with its value. An invalid file is an error that names the reason."""
    found = [_without_secrets(setting) for setting in settings.sources(Path.cwd(), os.environ)]
    if as_json:
        emit_json({_dotted(setting): _value(setting, source=source) for setting in found})
        return
    for setting in found:
        origin = f"  # {plain(setting.source)}" if source else ""
        show(f"{_dotted(setting)} = {_as_in_file(setting.value)}{origin}")


def _without_secrets(setting: settings.Setting) -> settings.Setting:
    """Leave of a URL the kind of service: the rest may hold a token or a password."""
    if _dotted(setting) not in SECRET_KEYS or not setting.value:
        return setting
    if isinstance(setting.value, str):
        return setting._replace(value=_kind(setting.value))
    return setting._replace(value=[_kind(url) for url in setting.value])


def _kind(url: str) -> str:
    return f"{url.partition('://')[0] if '://' in url else ''}://…"


SECRET_KEYS = frozenset({"notify.urls", "runner.database"})


def _dotted(setting: settings.Setting) -> str:
    return f"{setting.table}.{setting.key}" if setting.table else setting.key


def _value(setting: settings.Setting, *, source: bool) -> object:
    return {"value": setting.value, "source": setting.source} if source else setting.value


def _as_in_file(value: object) -> str:
    """Return a value as in the file; `none` for null, which TOML does not have."""
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
