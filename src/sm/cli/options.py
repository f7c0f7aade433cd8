"""Options and arguments that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import click

from sm.client import inside_session
from sm.core.errors import SmError, error

_NO_START = "sm.no_start"


class Seconds(click.FloatRange):
    """A number of seconds; refuses `nan`, which click's own ranges accept."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401  # as in the base class
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number of seconds.", param, ctx)
        return number


class UserOption(click.Option):
    """An option that names a program, or any file: an agent's commands do not have it.

    Commands that an agent may run without a dialog must not do what needs one.
    """

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        return None if inside_session() else super().get_help_record(ctx)

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        if self.name in opts and inside_session():
            raise not_for_agents(self.opts[0])
        return super().handle_parse_result(ctx, opts, args)


def not_for_agents(option: str) -> SmError:
    message = f"{option} is not available inside a session: it names a program or a file anywhere"
    return error("forbidden", message, "run it in a terminal of your own")


def _remember(context: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001  # click's own form
    context.meta[_NO_START] = value


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
no_start = click.option(
    "--no-start",
    is_flag=True,
    expose_value=False,
    callback=_remember,
    help="Do not start a server; fail if none runs.",
)


def lines_option(default: int | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "-n",
        "--lines",
        type=click.IntRange(1, 200_000),
        default=default,
        show_default=default is not None,
        help="Number of lines from the end.",
    )


def may_start() -> bool:
    """Whether the current command may start a server."""
    context = click.get_current_context(silent=True)
    return context is None or not context.meta.get(_NO_START, False)


def _session_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return names for a shell's completion; none without a server."""
    from sm.cli.connection import user_client  # noqa: PLC0415  # for a shell's completion only

    try:
        found = user_client(start=False).call("GET", "/sessions")
    except SmError:
        return []
    return [view["name"] for view in found if view["name"].startswith(incomplete)]


def session_argument(*, required: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.argument("session", required=required, shell_complete=_session_names)


def sessions_argument(*, required: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.argument("sessions", nargs=-1, required=required, shell_complete=_session_names)
