"""`sm tail`: the events of one session, the last ones first from the store and then as they happen."""

from __future__ import annotations

import http.client
import json
from datetime import UTC, datetime
from typing import Any

from sm.cli.output import show
from sm.client import Client, UnavailableError


def print_events(client: Client, session: str, lines: int, *, follow: bool, as_json: bool) -> None:
    from urllib.parse import quote  # noqa: PLC0415  # only here

    found = client.call("GET", f"/sessions/{quote(session, safe='')}/events?lines={lines}")
    for event in found["events"]:
        _print(event, as_json=as_json)
    if follow:
        last = found["events"][-1]["number"] if found["events"] else found["last"]
        _follow(client, found["session"], last, as_json=as_json)


def _print(event: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        show(json.dumps(event, ensure_ascii=False))
        return
    at = datetime.fromtimestamp(event["at"], UTC).astimezone()
    data = {name: value for name, value in (event.get("data") or {}).items() if value not in (None, "", [], {})}
    words = " ".join(f"{name}={_brief(value)}" for name, value in data.items() if name != "conversation")
    show(f"{at:%H:%M:%S} {event['kind']:<20} {words}"[:200].rstrip())


def _brief(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {one}" for name, one in value.items() if one is not None) + "}"
    return str(value)


def _follow(client: Client, session: str, last: int, *, as_json: bool) -> None:
    host = client.address.partition("://")[2]
    connection = http.client.HTTPConnection(host, timeout=None)
    headers = {"Authorization": f"Bearer {client.token}", "Last-Event-ID": str(last)}
    try:
        connection.request("GET", "/events", headers=headers)
        answer = connection.getresponse()
        for raw in answer:
            line = raw.decode("utf-8", "replace")
            if line.startswith("data: "):
                event = json.loads(line[6:])
                if event.get("session") == session:
                    _print(event, as_json=as_json)
    except OSError as problem:
        raise UnavailableError(str(problem)) from problem
    except KeyboardInterrupt:
        return
    finally:
        connection.close()
