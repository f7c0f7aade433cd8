"""Sends hooks at a fixed rate, whether or not the answers keep up, and times each from its sending to its answer.

Each session has a connection that it keeps, as the client does. A session that still waits for an answer is passed
over: the next one sends in its place.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.fleet import Member, reply_record
from bench.numbers import Times
from sm import hook

LANDS = 0.02
"""Seconds after its hook at which a reply's record is on disk."""


@dataclass(slots=True)
class Lane:
    """One session's connection."""

    member: Member
    connection: socket.socket
    request: bytes
    transcript: int
    sent: float = 0.0
    """0 while nothing is under way."""
    count: int = 0
    answer: bytes = b""

    def send(self, now: float) -> None:
        self.sent, self.answer = now, b""
        self.count += 1
        self.connection.sendall(self.request)

    def receive(self) -> bool:
        """True once the answer is there."""
        piece = self.connection.recv(1 << 16)
        if not piece:
            raise RuntimeError("the server has closed the connection")
        self.answer += piece
        head, end, body = self.answer.partition(b"\r\n\r\n")
        return bool(end) and len(body) >= length_of(head)

    def write_record(self) -> None:
        os.write(self.transcript, reply_record(1_000_000 + self.count, 20_000 + self.count))


def length_of(head: bytes) -> int:
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"a hook was answered with {head[:60]!r}")
    return int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])


@dataclass(slots=True)
class Load:
    lanes: dict[int, Lane]
    """By file descriptor."""
    free: deque[Lane]
    latencies: list[float] = field(default_factory=list)
    landing: deque[tuple[float, Lane]] = field(default_factory=deque)
    """Records still to be written, and when."""

    def run(self, rate: float, seconds: float) -> Outcome:
        """Offer `rate` hooks a second for so long."""
        began = due = time.perf_counter()
        while (now := time.perf_counter()) < began + seconds:
            while due <= now and self.free:
                self.send()
                due += 1 / rate
            self.turn(max(0.0, due - time.perf_counter()) if self.free else 0.05)
        self.drain()
        return Outcome(Times(tuple(self.latencies)), rate, len(self.latencies) / (time.perf_counter() - began))

    def send(self) -> None:
        lane = self.free.popleft()
        now = time.perf_counter()
        lane.send(now)
        self.landing.append((now + LANDS, lane))

    def turn(self, seconds: float) -> None:
        if self.landing:
            seconds = min(seconds, max(0.0, self.landing[0][0] - time.perf_counter()))
        ready, _, _ = select.select(self.lanes, (), (), seconds)
        for descriptor in ready:
            self.take(self.lanes[descriptor])
        while self.landing and self.landing[0][0] <= time.perf_counter():
            self.landing.popleft()[1].write_record()

    def take(self, lane: Lane) -> None:
        if lane.receive():
            self.latencies.append(time.perf_counter() - lane.sent)
            lane.sent = 0.0
            self.free.append(lane)

    def drain(self) -> None:
        deadline = time.perf_counter() + 5.0
        while (len(self.free) < len(self.lanes) or self.landing) and time.perf_counter() < deadline:
            self.turn(0.05)


def offer(url: str, members: Sequence[Member], rate: float, seconds: float) -> Outcome:
    """Open a connection for each session and send `rate` hooks a second over them all."""
    lanes = [open_lane(url, member) for member in members]
    try:
        return Load({lane.connection.fileno(): lane for lane in lanes}, deque(lanes)).run(rate, seconds)
    finally:
        for lane in lanes:
            lane.connection.close()
            os.close(lane.transcript)


@dataclass(frozen=True, slots=True)
class Outcome:
    times: Times
    offered: float
    """Hooks a second."""
    achieved: float


def open_lane(url: str, member: Member) -> Lane:
    host, _, port = url.partition("://")[2].rpartition(":")
    connection = socket.create_connection((host, int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    request = hook.request_bytes("POST", "/hooks/claude", member.token, member.tool_used())
    request = request.replace(b"Connection: close\r\n", b"", 1)
    return Lane(member, connection, request, os.open(member.transcript, os.O_WRONLY | os.O_APPEND))
