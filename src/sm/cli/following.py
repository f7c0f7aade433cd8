"""`sm tail`: the events of one session, the last ones first from the store and then as they happen."""

from __future__ import annotations

import http.client
import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from sm.cli.connection import running
from sm.cli.output import emit_json, say, show
from sm.cli.tables import UNLIMITED, shortened, terminal_width
from sm.cli.words import plain
from sm.client import Client, UnavailableError, answered, inside_session, session_path
from sm.paths import home

SILENCE = 60.0
"""Seconds without a byte, where the server sends a ping every 15, before the connection is taken for dead."""
RETRY = 0.3
RESTARTED = "EventNumbersRestarted"
"""As in `sm.api.feed`, which costs more than a command may load."""
WIDEST = 200


def print_events(client: Client, session: str, lines: int, *, follow: bool, as_json: bool) -> None:
    found = client.call("GET", session_path(session, f"/events?lines={lines}"))
    if as_json and not follow:
        emit_json(found)
        return
    for event in found["events"]:
        _print(event, as_json=as_json)
    if follow:
        for event in followed(client, found["session"], found["last"]):
            _print(event, as_json=as_json)


def _print(event: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        show(json.dumps({"schema": 1, "data": event}))
        return
    at = datetime.fromtimestamp(event["at"], UTC).astimezone()
    words = _words(event["kind"], event.get("data") or {})
    room = terminal_width()
    line = plain(f"{at:%H:%M:%S} {event['kind']:<20} {words}".rstrip())
    show(shortened(line, WIDEST if room == UNLIMITED else room))


def _words(kind: str, data: dict[str, Any]) -> str:
    """What an event says, for a person: the few things that matter of the big ones, all of the small."""
    if kind == "ContextRead":
        return _reading(data)
    if kind == "HandoffRequested":
        return str(data["handoff"]["path"])
    if kind == "ToolUsed":
        return f"{data['tool']}{' (failed)' if data['failed'] else ''}"
    said = {name: value for name, value in data.items() if value not in (None, "", [], {}, False)}
    return " ".join(f"{name}={value}" for name, value in said.items() if name not in HIDDEN)


HIDDEN = frozenset({"conversation", "config", "transcript", "epoch"})


def _reading(data: dict[str, Any]) -> str:
    reading, usable = data["reading"], data["usable"]
    size = reading["projected"] if reading["projected"] is not None else reading["tokens"]
    if size is None:
        return "context unknown"
    share = f" ({100 * size / usable:.0f}% of usable)" if usable else ""
    return f"context {size:,} tokens{share}"


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
    connection = http.client.HTTPConnection(client.address.partition("://")[2], timeout=SILENCE)
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
        found = _answering(client) if inside_session() is not None else running(home(os.environ))
        if found is not None:
            return found


def _answering(client: Client) -> Client | None:
    try:
        client.call("GET", "/health", timeout=2.0)
    except UnavailableError:
        return None
    return client
