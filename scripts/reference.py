"""Writes docs/reference.md (commands, settings, error codes, routes, events, effects) and docs/coming-from.md.

Both come from the code. Run it after changing any of them: `.venv/bin/python scripts/reference.py`. A test compares.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click

from sm.api.errors import CODES
from sm.cli.app import cli
from sm.cli.exits import CODES as EXITS
from sm.core import effects, events
from sm.earlier_tools import TOOLS, EarlierTool
from sm.settings import ACCEPTED, accepted_values, reference
from sm.web.routes import EVERY_ROUTE as ROUTES

DOCS = Path(__file__).resolve().parent.parent / "docs"
HEAD = """\
# Reference

Generated from the code by `scripts/reference.py`; edit the text there.
"""
WIDTH = 100
ENVIRONMENT = {
    "CLAUDE_SESSION_MANAGER_ID": "In a session, its id (8 hex digits). With it, `sm` uses the session's token only.",
    "SM_SESSION_TOKEN": "In a session, the token that proves to be this session and nothing more.",
    "SM_URL": "In a session, the address of the server: `http://127.0.0.1:PORT`.",
    "SM_SOCKET": "In a session, the server's unix socket, for the plugin and for command hooks.",
    "SM_DRIVER": "In a session that is driven by the plugin in its client: `mod`.",
    "PATH": "In a session, the directory of `sm` comes first.",
    "SM_HOME": "Where `sm` keeps its state; `~/.local/state/sm` by default. A second one is a separate `sm`.",
    "SM_CONFIG": "The user's configuration file; `~/.config/sm/config.toml` by default. `/dev/null` for none.",
    "SM_<TABLE>_<KEY>": "One setting, such as `SM_CONTEXT_MONITOR_CRITICAL_THRESHOLD`; see the table below.",
    "SM_NO_START": "Set: no command starts a server (`--no-start` for all).",
    "SM_DEBUG": "Set: an internal error prints its traceback.",
    "NO_COLOR": "Set: no colours.",
}
"""Each variable that `sm` sets in a session or reads, with what it means."""
COMING_FROM = """\
# Coming from another tool

What the commands, files, keys and functions of three earlier tools are called in `sm`. A name that you type by habit
(`sm auto`, a key in a configuration file) gets the line of this table as its hint. “Not part of sm yet” means that
nothing here does it today.

Generated from `src/sm/earlier_tools.py` by `scripts/reference.py`.

## Bring your settings along

Configuration is TOML: `~/.config/sm/config.toml` for you, `.sm/config.toml` for a project. Tables and keys are named as
in the YAML and JSON files of those tools, unless the tables below say otherwise.

```yaml
context_monitor:                  # config.yaml, or the same in JSON: .ll/ll-config.json
  warning_threshold: 100000
  critical_threshold: 130000
```

```toml
[context_monitor]                 # config.toml
warning_threshold = 100000        # tokens; or "60%" of the usable context
critical_threshold = 130000
```

`sm config show --source` prints what holds and where it comes from.
"""


def render() -> str:
    parts = [HEAD, *_commands(), *_exits(), *_environment(), *_settings(), *_codes(), *_routes()]
    parts += _classes(
        "Events", "What can happen to a session, as `sm tail` and `GET /events` show it.", events, events.Event
    )
    parts += _classes("Effects", "What the core decides to do.", effects, effects.Effect)
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


def _environment() -> Iterator[str]:
    yield "## Environment\n\n| variable | meaning |\n| --- | --- |"
    yield from (f"| `{name}` | {_cell(text)} |" for name, text in ENVIRONMENT.items())
    yield ""


def _settings() -> Iterator[str]:
    yield "## Settings\n"
    yield "`~/.config/sm/config.toml`, then the project's `.sm/config.toml`, then the environment;"
    yield "`sm config show --source` shows each value and its source. A running server follows the files within seconds"
    yield "and uses the environment of its own start: a variable set for one command affects that command only.\n"
    yield "| key | default | accepted | variable | |\n| --- | --- | --- | --- | --- |"
    for table, name, default, text in reference():
        dotted = f"{table}.{name}" if table else name
        shown = f"`{default}`" if default else ""
        accepted = _cell(accepted_values(dotted))
        yield f"| `{dotted}` | {shown} | {accepted} | `{ACCEPTED[dotted].variable}` | {_cell(text)} |"
    yield ""


def _codes() -> Iterator[str]:
    yield "## Error codes\n\n| code | HTTP status | meaning |\n| --- | --- | --- |"
    yield from (f"| `{code}` | {status} | {_cell(text)} |" for code, (status, text) in sorted(CODES.items()))
    yield ""


def _routes() -> Iterator[str]:
    yield "## HTTP\n"
    yield "A request of a session that changes something must come from a process below the session's own client,"
    yield "unless it is accepted from anywhere. A browser that has logged in (`sm web`) may call what is marked with"
    yield '"from a browser", as the user; a read-only one may call the GET routes of those.\n'
    yield "| route | who may | |\n| --- | --- | --- |"
    for route in ROUTES:
        methods = ", ".join(sorted(set(route.methods or ()) - {"HEAD"}))
        marks = [route.may.words, *["from anywhere"] * route.from_anywhere, *["from a browser"] * route.from_browser]
        who = "; ".join(marks)
        yield f"| `{methods} {route.path}` | {_cell(who)} | {_cell(inspect.getdoc(route.endpoint) or '')} |"
    yield ""


def _classes(title: str, words: str, module: ModuleType, base: type) -> Iterator[str]:
    yield f"## {title}\n\n{words}\n\n| | |\n| --- | --- |"
    for name, member in vars(module).items():
        if isinstance(member, type) and issubclass(member, base) and member.__module__ == module.__name__:
            yield f"| `{name}` | {_cell(inspect.getdoc(member) or '')} |"
    yield ""


def coming_from() -> str:
    return "\n".join([COMING_FROM, *(line for tool in TOOLS for line in _names(tool))])


def _names(tool: EarlierTool) -> Iterator[str]:
    yield f"## {tool.name}\n\n{tool.about}\n\n| there | in sm |\n| --- | --- |"
    for row in tool.rows:
        yield f"| {', '.join(f'`{name}`' for name in row.names)} | {_cell(row.here)} |"
    yield ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    for name, text in {"reference.md": render(), "coming-from.md": coming_from()}.items():
        (DOCS / name).write_text(text, encoding="utf-8")
        print(f"written: {name}")
