"""A server of the Model Context Protocol on stdio: JSON-RPC 2.0, one object a line.

The client starts one for each thread, outside the sandbox, and ends it with SIGTERM (Codex 0.171.0). Calls run beside
each other, and are answered in the order in which they end.

Standard library only, and nothing that is slow to import before the first call: a thread waits for its tools.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

from sm import __version__
from sm.agent_tools.command import Command
from sm.agent_tools.tools import TOOLS, called

TYPE_CHECKING = False  # `typing` costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO, NoReturn

    Json = dict[str, Any]

VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
"""Of the protocol, newest first: what is used of it is the same in all."""
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
MAX_LINE_BYTES = 8 * 1024 * 1024
MAX_CALLS = 16
"""At the same time."""
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> None:
    if not sys.flags.isolated:  # else the agent's own files, in the directory it works in, would be our modules
        sys.exit("Error: start it with `python -I -m sm.agent_tools`")
    server = Server(sys.stdout.buffer)
    for number in ENDING_SIGNALS:
        signal.signal(number, _exit)
    try:
        for line in lines(sys.stdin.buffer):
            server.take(line)
    finally:
        server.end()
        os._exit(0)  # a thread may still write to a client that has gone


def _exit(*_: object) -> NoReturn:
    raise SystemExit


def lines(source: BinaryIO) -> Iterator[bytes]:
    """Return the lines; of one that is too long an empty one, which is no JSON either."""
    while line := source.readline(MAX_LINE_BYTES):
        if len(line) < MAX_LINE_BYTES or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = source.readline(MAX_LINE_BYTES)
        yield b""


class Server:
    """Our end of one client's connection."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._writing = threading.Lock()
        self._running: dict[str, Command] = {}
        """By the id of the request, as JSON: 1 and "1" are two."""

    def take(self, line: bytes) -> None:
        """Answer one line, or begin to."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._fail(None, PARSE_ERROR, "Not JSON")
            return
        if not isinstance(message, dict) or not isinstance(message.get("method", ""), str):
            self._fail(None, INVALID_REQUEST, "Not a request: one JSON object a line")
        elif "method" in message:  # without one it answers what was never asked
            params = message.get("params")
            self._asked(message, message["method"], params if isinstance(params, dict) else {})

    def _asked(self, message: Json, method: str, params: Json) -> None:
        if "id" not in message:
            if method == "notifications/cancelled":
                self._cancel(params)
            return
        request = message["id"]
        match method:
            case "initialize":
                self._answer(request, _introduction(params))
            case "ping":
                self._answer(request, {})
            case "tools/list":
                self._answer(request, {"tools": TOOLS})
            case "tools/call":
                self._begin(request, params)
            case _:
                self._fail(request, NO_METHOD, f"No method {method}")

    def _cancel(self, params: Json) -> None:
        command = self._running.get(json.dumps(params.get("requestId")))
        if command is not None:
            command.cancel()

    def _begin(self, request: object, params: Json) -> None:
        key = json.dumps(request)
        if params.get("name") not in {tool["name"] for tool in TOOLS}:
            self._fail(request, INVALID_PARAMS, f"No tool {params.get('name')}")
        elif key in self._running:
            self._fail(request, INVALID_REQUEST, f"The id {key} is in use")
        elif len(self._running) >= MAX_CALLS:
            self._fail(request, INVALID_REQUEST, f"{MAX_CALLS} calls are running: wait for one to end")
        else:
            self._running[key] = command = Command()
            threading.Thread(target=self._run, args=(request, key, command, params), daemon=True).start()

    def _run(self, request: object, key: str, command: Command, params: Json) -> None:
        answer = called(command, params)
        del self._running[key]
        if not command.cancelled:  # then the client expects no answer
            self._answer(request, answer)

    def end(self) -> None:
        """End what runs: nothing reads the answers."""
        for command in list(self._running.values()):
            command.cancel()

    def _answer(self, request: object, answer: Json) -> None:
        self._write({"jsonrpc": "2.0", "id": request, "result": answer})

    def _fail(self, request: object, code: int, message: str) -> None:
        self._write({"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": message}})

    def _write(self, message: Json) -> None:
        with self._writing:
            self._output.write(json.dumps(message).encode() + b"\n")
            self._output.flush()


def _introduction(params: Json) -> Json:
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "sm", "version": __version__},
    }
