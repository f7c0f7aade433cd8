"""The model behind the agent: a scenario played in this process, or a Messages API on loopback.

Both get the same request, so one scenario file serves the real client and this one. Each request is logged in the form
of the scripted model's own log.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import msgspec

from sm.testing import sse
from sm.testing.agent.firing import post
from sm.testing.agent.loop import Cancel
from sm.testing.agent.tools import NAMES
from sm.testing.player import Player
from sm.testing.request import Request, read_request
from sm.testing.scenario import Fault, Scenario, parse_scenario

Json: TypeAlias = dict[str, Any]
SUCCESS = 200
RETRIED = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
SYSTEM = "You are Claude Code, Anthropic's official CLI for Claude."


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error of the API."""

    status: int
    kind: str
    message: str
    retried: bool


class Mind(Protocol):
    def ask(self, body: Json, cancel: Cancel) -> Json | Refusal:
        """Return the reply message; raises InterruptedTurn if the turn is cancelled meanwhile."""


@dataclass(slots=True)
class Scripted:
    player: Player
    log: Path | None = None
    _number: int = 0

    def ask(self, body: Json, cancel: Cancel) -> Json | Refusal:
        self._number += 1
        request = read_request(msgspec.json.encode(body), **_received(self._number))
        answer = self.player.answer(request)
        note(self.log, msgspec.structs.replace(request, matched=answer.matched))
        cancel.sleep(answer.step.delay)
        if answer.step.error:
            return _refusal(answer.step.error, self._number)
        cancel.sleep(answer.step.chunk_delay * (len(answer.step.say) // sse.PIECE))
        return sse.message(answer, request.model, self._number)


def _refusal(fault: Fault, number: int) -> Refusal:
    body, headers = sse.error(fault, number)
    return refusal(fault.status, body, headers)


def refusal(status: int, body: Json, headers: Mapping[str, str]) -> Refusal:
    error = body.get("error") or {}
    wish = headers.get("x-should-retry")
    retried = wish == "true" if wish else status in RETRIED
    return Refusal(status, str(error.get("type", "api_error")), str(error.get("message", "")), retried)


@dataclass(slots=True)
class Remote:
    url: str
    log: Path | None = None
    _number: int = field(default=0)

    def ask(self, body: Json, cancel: Cancel) -> Json | Refusal:
        self._number += 1
        encoded = msgspec.json.encode(body)
        note(self.log, read_request(encoded, **_received(self._number)))
        try:
            status, content = post(f"{self.url}/v1/messages", encoded, {}, None, cancel)
            reply = json.loads(content)
        except (OSError, ValueError) as problem:
            cancel.check()
            return Refusal(0, "api_error", f"Connection error: {problem}", retried=True)
        return reply if status == SUCCESS else refusal(status, reply, {})


def mind_from(environment: Mapping[str, str]) -> Mind:
    log = Path(environment["SM_AGENT_LOG"]) if environment.get("SM_AGENT_LOG") else None
    if path := environment.get("SM_SCENARIO"):
        return Scripted(_player(parse_scenario(Path(path).read_text(), toml=path.endswith(".toml"))), log)
    if url := environment.get("ANTHROPIC_BASE_URL"):
        return Remote(url.rstrip("/"), log)
    return Scripted(_player(Scenario()), log)


def _player(script: Scenario) -> Player:
    return Player(script, prefix=os.urandom(4).hex())


def request_body(model: str, session: str, messages: list[Json]) -> Json:
    return {
        "model": model,
        "max_tokens": 32_000,
        "system": SYSTEM,
        "tools": [{"name": name} for name in NAMES],
        "messages": messages,
        "metadata": {"user_id": json.dumps({"session_id": session})},
    }


def _received(number: int) -> Json:
    epoch = time.time()  # noqa: TID251  # a stamp, as in the scripted model's log
    return {"number": number, "at": time.monotonic(), "epoch": epoch, "path": "/v1/messages"}


def note(log: Path | None, request: Request) -> None:
    if log is not None:
        with log.open("ab") as file:
            file.write(msgspec.json.encode(request) + b"\n")
