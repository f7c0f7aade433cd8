"""The agent's model: a scenario played in this process, or a Messages API on loopback.

Both get the same request, so one scenario file serves the real client and this one. Each request is logged in the
format of the scripted model's own log.
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
from sm.testing.agent.hooks import post
from sm.testing.agent.loop import Cancellation
from sm.testing.agent.tools import TOOL_NAMES
from sm.testing.player import Player
from sm.testing.request import Request, read_request
from sm.testing.scenario import Fault, Scenario, parse_scenario

Json: TypeAlias = dict[str, Any]
HTTP_OK = 200
RETRIED_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
SYSTEM_PROMPT = "You are Claude Code, Anthropic's official CLI for Claude."


@dataclass(frozen=True, slots=True)
class ApiRefusal:
    """An error of the API."""

    status: int
    kind: str
    message: str
    retried: bool


class ModelClient(Protocol):
    def ask(self, body: Json, cancel: Cancellation) -> Json | ApiRefusal:
        """Return the reply message; InterruptedTurn if the turn is cancelled before it."""


@dataclass(slots=True)
class InProcessModel:
    player: Player
    log: Path | None = None
    _number: int = 0

    def ask(self, body: Json, cancel: Cancellation) -> Json | ApiRefusal:
        self._number += 1
        request = read_request(msgspec.json.encode(body), **_received(self._number))
        answer = self.player.answer(request)
        log_request(self.log, msgspec.structs.replace(request, matched=answer.matched))
        cancel.sleep(answer.step.delay)
        if answer.step.error:
            return _refusal(answer.step.error, self._number)
        cancel.sleep(answer.step.chunk_delay * (len(answer.step.say) // sse.PIECE_CHARS))
        return sse.message(answer, request.model, self._number)


def _refusal(fault: Fault, number: int) -> ApiRefusal:
    body, headers = sse.error(fault, number)
    return refusal(fault.status, body, headers)


def refusal(status: int, body: Json, headers: Mapping[str, str]) -> ApiRefusal:
    error = body.get("error") or {}
    header = headers.get("x-should-retry")
    retried = header == "true" if header else status in RETRIED_STATUSES
    return ApiRefusal(status, str(error.get("type", "api_error")), str(error.get("message", "")), retried)


@dataclass(slots=True)
class HttpModel:
    url: str
    log: Path | None = None
    _number: int = field(default=0)

    def ask(self, body: Json, cancel: Cancellation) -> Json | ApiRefusal:
        self._number += 1
        encoded = msgspec.json.encode(body)
        log_request(self.log, read_request(encoded, **_received(self._number)))
        try:
            status, content = post(f"{self.url}/v1/messages", encoded, {}, None, cancel)
            reply = json.loads(content)
        except (OSError, ValueError) as problem:
            cancel.check()
            return ApiRefusal(0, "api_error", f"Connection error: {problem}", retried=True)
        return reply if status == HTTP_OK else refusal(status, reply, {})


def model_client_from(environment: Mapping[str, str]) -> ModelClient:
    log = Path(environment["SM_AGENT_LOG"]) if environment.get("SM_AGENT_LOG") else None
    if path := environment.get("SM_SCENARIO"):
        return InProcessModel(_player(parse_scenario(Path(path).read_text(), toml=path.endswith(".toml"))), log)
    if url := environment.get("ANTHROPIC_BASE_URL"):
        return HttpModel(url.rstrip("/"), log)
    return InProcessModel(_player(Scenario()), log)


def _player(script: Scenario) -> Player:
    return Player(script, prefix=os.urandom(4).hex())


def request_body(model: str, session: str, messages: list[Json]) -> Json:
    return {
        "model": model,
        "max_tokens": 32_000,
        "system": SYSTEM_PROMPT,
        "tools": [{"name": name} for name in TOOL_NAMES],
        "messages": messages,
        "metadata": {"user_id": json.dumps({"session_id": session})},
    }


def _received(number: int) -> Json:
    epoch = time.time()  # noqa: TID251  # a stamp, as in the scripted model's log
    return {"number": number, "at": time.monotonic(), "epoch": epoch, "path": "/v1/messages"}


def log_request(log: Path | None, request: Request) -> None:
    if log is not None:
        with log.open("ab") as file:
            file.write(msgspec.json.encode(request) + b"\n")
