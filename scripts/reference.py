"""Writes docs/reference.md from the code: commands, settings, error codes, routes, events, effects.

Run it after changing any of them: `.venv/bin/python scripts/reference.py`. A test compares.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click

from sm.api.app import ROUTES
from sm.api.errors import CODES
from sm.cli.app import cli
from sm.cli.exits import CODES as EXITS
from sm.core import effects, events
from sm.settings import ACCEPTED, accepted, reference

TARGET = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
HEAD = """\
# Reference

Generated from the code by `scripts/reference.py`; edit the text there, beside what it describes.
"""
WIDTH = 100


def render() -> str:
    parts = [HEAD, *_commands(), *_exits(), *_settings(), *_codes(), *_routes()]
    parts += _classes(
        "Events", "What can happen to a session, as `sm tail` and `GET /events` show it.", events, events.Event
    )
    parts += _classes("Effects", "What the core decides to have done.", effects, effects.Effect)
    return "\n".join(parts)


def _commands() -> Iterator[str]:
    yield "## Commands\n"
    yield 'Every command that prints data takes `--json`: one object, `{"schema": 1, "data": …}` or'
    yield '`{"schema": 1, "error": {"code", "message", "hint"}}`. Data go to stdout, words to stderr.\n'
    for words, command in every_command(cli, ()):
        context = click.Context(
            command, info_name=" ".join(("sm", *words)), terminal_width=WIDTH, max_content_width=WIDTH
        )
        yield f"### sm {' '.join(words)}\n\n```text\n{context.get_help()}\n```\n"


def every_command(group: click.Group, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from every_command(command, (*words, name))


def _exits() -> Iterator[str]:
    usage = ", ".join(f"`{code}`" for code in sorted(EXITS))
    yield "## Exit codes\n"
    yield "| code | meaning |\n| --- | --- |\n| 0 | done |\n| 1 | refused or failed |"
    yield f"| 2 | wrong usage, no session id in the environment, or server unavailable: {usage} |"
    yield "| 130 | Ctrl-C |\n"


def _settings() -> Iterator[str]:
    yield "## Settings\n"
    yield "`~/.config/sm/config.toml`, then the project's `.sm/config.toml`, then the environment;"
    yield "`sm config show --source` says what holds, and why. A running server follows the files within seconds, and"
    yield "goes by the environment it was started with: another value given to a command reaches that command alone.\n"
    yield "| key | default | accepted | variable | |\n| --- | --- | --- | --- | --- |"
    for table, name, default, text in reference():
        dotted = f"{table}.{name}" if table else name
        shown = f"`{default}`" if default else ""
        yield f"| `{dotted}` | {shown} | {_cell(accepted(dotted))} | `{ACCEPTED[dotted].variable}` | {_cell(text)} |"
    yield ""


def _codes() -> Iterator[str]:
    yield "## Error codes\n\n| code | HTTP status | meaning |\n| --- | --- | --- |"
    yield from (f"| `{code}` | {status} | {_cell(text)} |" for code, (status, text) in sorted(CODES.items()))
    yield ""


def _routes() -> Iterator[str]:
    yield "## HTTP\n\n| route | |\n| --- | --- |"
    for route in ROUTES:
        methods = ", ".join(sorted(set(route.methods or ()) - {"HEAD"}))
        yield f"| `{methods} {route.path}` | {_cell(inspect.getdoc(route.endpoint) or '')} |"
    yield ""


def _classes(title: str, words: str, module: ModuleType, base: type) -> Iterator[str]:
    yield f"## {title}\n\n{words}\n\n| | |\n| --- | --- |"
    for name, one in vars(module).items():
        if isinstance(one, type) and issubclass(one, base) and one.__module__ == module.__name__:
            yield f"| `{name}` | {_cell(inspect.getdoc(one) or '')} |"
    yield ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
    print(f"written: {TARGET.name}")
