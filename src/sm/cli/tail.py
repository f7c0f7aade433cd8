"""`sm tail`: the events of one session, the last ones first from the store and then as they happen."""

from __future__ import annotations

import http.client
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sm.cli.connection import running
from sm.cli.descriptions import plain
from sm.cli.event_lines import EventLines, raw
from sm.cli.format import emit_json, say, show
from sm.cli.tables import UNLIMITED, shortened, terminal_width
from sm.client import Client, UnavailableError, answered, inside_session, session_path
from sm.paths import locate_home

SILENCE_TIMEOUT_S = 60.0
"""Seconds without a byte, where the server sends a ping every 15, before the connection is taken for dead."""
RETRY = 0.3
RESTARTED = "EventNumbersRestarted"
"""As in `sm.api.feed`, which costs more than a command may load."""
PROMPT_WITHIN = 2.0
"""Seconds from a prompt's hook to its record in the transcript (seen: 0.1)."""
LOOK = 0.05
WIDEST = 200
MOST = 200_000
PER_LINE = 20
"""Events fetched for a line: most say how sm works and are left out."""


@dataclass(frozen=True, slots=True)
class TailOptions:
    """What of the events is asked for."""

    lines: int
    follow: bool
    as_json: bool
    everything: bool
    """Also the steps inside sm, as they are stored."""


def print_events(client: Client, session: str, wish: TailOptions) -> None:
    fetched = wish.lines if wish.as_json or wish.everything else min(MOST, wish.lines * PER_LINE)
    found = client.call("GET", session_path(session, f"/events?lines={fetched}"))
    if wish.as_json and not wish.follow:
        emit_json(found)
        return
    view = client.call("GET", session_path(found["session"]))
    said = EventLines({path} if (path := view.get("transcript")) else set())
    lines = [line for event in found["events"] if (line := _line(event, said, wish)) is not None]
    for line in lines[-wish.lines :]:
        show(line)
    if wish.follow:
        said.look_again = _recent
        for event in followed(client, found["session"], found["last"]):
            if (line := _line(event, said, wish)) is not None:
                show(line)


def _line(event: dict[str, Any], said: EventLines, wish: TailOptions) -> str | None:
    if wish.as_json:
        return json.dumps({"schema": 1, "data": event})
    if wish.everything:
        words: str | None = f"{event['kind']:<20} {raw(event.get('data') or {})}"
    else:
        words = said.line(event)
    if words is None:
        return None
    at = datetime.fromtimestamp(event["at"], UTC).astimezone()
    room = terminal_width()
    return shortened(plain(f"{at:%H:%M:%S} {words}".rstrip()), WIDEST if room == UNLIMITED else room)


def _recent(at: float) -> bool:
    if abs(time.time() - at) > PROMPT_WITHIN:  # noqa: TID251  # the server's clock is this machine's
        return False
    time.sleep(LOOK)
    return True


def followed(client: Client, session: str, last: int) -> Iterator[dict[str, Any]]:
    """The events of a session after number `last`, without end; a server that goes is waited for."""
    while True:
        try:
            for event in _stream(client, last):
                last = event["number"]
                if event["kind"] == RESTARTED:
                    say("the event numbers restarted: the server has another database, or a back-up of it")
                elif event["session"] == session:
                    yield event
        except (OSError, http.client.HTTPException):
            pass  # as when the server is killed; otherwise it ends the stream itself
        say("the server has gone; waiting for it")
        client = _back(client)
        say("the server is back")


def _stream(client: Client, last: int) -> Iterator[dict[str, Any]]:
    connection = http.client.HTTPConnection(client.address.partition("://")[2], timeout=SILENCE_TIMEOUT_S)
    headers = {"Authorization": f"Bearer {client.token}", "Last-Event-ID": str(last)}
    try:
        connection.request("GET", "/events", headers=headers)
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            answered(client.address, answer.status, answer.read())
        for raw in answer:
            if raw.startswith(b"data: "):
                yield json.loads(raw[6:])
    finally:
        connection.close()


def _back(client: Client) -> Client:
    """The server once it answers again; a person's may have another address by then."""
    while True:
        time.sleep(RETRY)
        found = _answering(client) if inside_session() is not None else running(locate_home(os.environ))
        if found is not None:
            return found


def _answering(client: Client) -> Client | None:
    try:
        client.call("GET", "/health", timeout=2.0)
    except UnavailableError:
        return None
    return client
