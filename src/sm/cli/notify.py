"""`sm notify`: whether the user is reached while they are away."""

from __future__ import annotations

import os

import click

from sm.cli.connection import user_client
from sm.cli.exits import REFUSED
from sm.cli.format import emit_json, say, show
from sm.cli.options import json_option, no_start
from sm.core.errors import SmError, error
from sm.plain_text import plain


@click.group()
def notify() -> None:
    """Test how you are notified while you are away: see [notify] in sm help reference."""


@notify.command()
@no_start
@json_option
def test(*, as_json: bool) -> int:
    """Send a test notification by every configured channel. Exit code 1 if one of them fails."""
    _check_file()
    results = user_client().call("POST", "/notifications/test", timeout=TIMEOUT_S)
    if as_json:
        emit_json(results)
    for result in () if as_json else results:
        show(f"{plain(result['channel'])}: {'sent' if result['ok'] else 'failed'}")
        if not result["ok"]:
            say(plain(result["problem"]))
    return 0 if all(result["ok"] for result in results) else REFUSED


def _check_file() -> None:
    """Refuse to test what is not in the file: a running server uses its last good one while that is invalid."""
    from sm.settings import load  # noqa: PLC0415  # msgspec costs 31 ms

    try:
        load(None, os.environ)
    except SmError as problem:
        words = f"The configuration is rejected, and the server uses the last good one: {problem.refused.message}"
        raise error(problem.refused.code, words, problem.refused.hint) from problem


TIMEOUT_S = 60.0
"""Above the time that a channel may take."""
