"""`sm tail`: the events of one session, first the last stored ones, then new ones as they happen."""

from __future__ import annotations

import http.client
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sm.cli.connection import running_client
from sm.cli.event_lines import EventLines, raw
from sm.cli.format import emit_json, say, show
from sm.cli.tables import UNLIMITED, shortened, terminal_width
from sm.client import Client, UnavailableError, answered, inside_session, session_path
from sm.core.errors import SmError
from sm.paths import locate_home
from sm.plain_text import plain

SILENCE_TIMEOUT_S = 60.0
"""A connection without a byte for that long is dead: the server sends a ping every 15 s."""
RETRY_INTERVAL_S = 0.3
RESTARTED = "EventNumbersRestarted"
"""As in `sm.api.feed`, whose import is too slow for a command."""
PROMPT_TIMEOUT_S = 2.0
"""From a prompt's hook to its record in the transcript (seen: 0.1)."""
POLL_INTERVAL_S = 0.05
MAX_PIPE_COLUMNS = 200
MAX_EVENTS = 200_000
EVENTS_PER_LINE = 20
"""Fetched for each line: most events are internal and not shown."""


@dataclass(frozen=True, slots=True)
class TailOptions:
    """Which events are shown, and how."""

    lines: int
    follow: bool
    as_json: bool
    everything: bool
    """Also internal steps, as they are stored."""


def print_events(client: Client, session: str, options: TailOptions) -> None:
    fetched = (
        options.lines if options.as_json or options.everything else min(MAX_EVENTS, options.lines * EVENTS_PER_LINE)
    )
    found = client.call("GET", session_path(session, f"/events?lines={fetched}"))
    if options.as_json and not options.follow:
        emit_json(found)
        return
    view = client.call("GET", session_path(found["session"]))
    event_lines = EventLines({path} if (path := view.get("transcript")) else set(), answer_of=Answers(client).of)
    lines = [line for event in found["events"] if (line := _line(event, event_lines, options)) is not None]
    for line in lines[-options.lines :]:
        show(line)
    if options.follow:
        event_lines.wait_for_prompt = _wait_for_prompt
        for event in followed(client, found["session"], found["last"]):
            if (line := _line(event, event_lines, options)) is not None:
                show(line)


def _line(event: dict[str, Any], event_lines: EventLines, options: TailOptions) -> str | None:
    if options.as_json:
        return json.dumps({"schema": 1, "data": event})
    if options.everything:
        words: str | None = f"{event['kind']:<20} {raw(event.get('data') or {})}"
    else:
        words = event_lines.line(event)
    if words is None:
        return None
    at = datetime.fromtimestamp(event["at"], UTC).astimezone()
    room = terminal_width()
    return shortened(plain(f"{at:%H:%M:%S} {words}".rstrip()), MAX_PIPE_COLUMNS if room == UNLIMITED else room)


@dataclass(frozen=True, slots=True)
class Answers:
    """What was answered to asks; nothing of it to an agent, which may not see them."""

    client: Client
    known: dict[str, str] = field(default_factory=dict)
    """The words, by the ask's id."""

    def of(self, ask: str) -> str:
        if ask not in self.known:
            self.known[ask] = ""
            with suppress(SmError):
                self.known.update({view["id"]: view["answer"] for view in self.client.call("GET", "/asks?all=1")})
        return self.known[ask]


def _wait_for_prompt(at: float) -> bool:
    if abs(time.time() - at) > PROMPT_TIMEOUT_S:  # noqa: TID251  # the server's clock is this machine's
        return False
    time.sleep(POLL_INTERVAL_S)
    return True


def followed(client: Client, session: str, last: int) -> Iterator[dict[str, Any]]:
    """Yield the events of a session after number `last`, without end; wait for a server that has ended."""
    while True:
        try:
            for event in _stream(client, last):
                last = event["number"]
                if event["kind"] == RESTARTED:
                    say("the event numbers restarted: the server has another database, or a back-up of it")
                elif event["session"] == session:
                    yield event
        except (OSError, http.client.HTTPException):
            pass  # as when the server was killed; a stopping one ends the stream itself
        say("the server has gone; waiting for it")
        client = _wait_for_server(client)
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


def _wait_for_server(client: Client) -> Client:
    """Wait for the server; return a client for it, whose address may be another one for the user."""
    while True:
        time.sleep(RETRY_INTERVAL_S)
        found = _answering(client) if inside_session() is not None else running_client(locate_home(os.environ))
        if found is not None:
            return found


def _answering(client: Client) -> Client | None:
    try:
        client.call("GET", "/health", timeout=2.0)
    except UnavailableError:
        return None
    return client
