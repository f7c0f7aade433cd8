"""`sm notify`: whether the user is reached while they are away."""

from __future__ import annotations

import click

from sm.cli.connection import user_client
from sm.cli.descriptions import plain
from sm.cli.exits import REFUSED
from sm.cli.format import emit_json, say, show
from sm.cli.options import json_option, no_start


@click.group()
def notify() -> None:
    """Test how you are notified while you are away: see [notify] in sm help reference."""


@notify.command()
@no_start
@json_option
def test(*, as_json: bool) -> int:
    """Send a test notification by every configured channel. Exit code 1 if one of them fails."""
    results = user_client().call("POST", "/notifications/test", timeout=TIMEOUT_S)
    if as_json:
        emit_json(results)
    for result in () if as_json else results:
        show(f"{plain(result['channel'])}: {'sent' if result['ok'] else 'failed'}")
        if not result["ok"]:
            say(plain(result["problem"]))
    return 0 if all(result["ok"] for result in results) else REFUSED


TIMEOUT_S = 60.0
"""Above the time that a channel may take."""
