"""Up to a thousand clients on the link, spoken for by this process.

Only the session's own client may use its link: on a unix socket the peer is whoever has connected, whoever speaks on
the connection later. So each client, a process in its pane, connects by itself, hands its connections over and becomes
`sleep`.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.fleet import CLIENT, Fleet, Member, member, prepared, say
from sm import hook
from sm.testing.scenario import Scenario
from tests.e2e.rig import Rig

BY_MOD = '[claude]\ndriver = "mod"\n'
HOLD_S = 25
TAKER = "taker.sock"
HANDS_OVER = """\
import array, os, socket, time
server = os.environ["SM_SOCKET"].removeprefix("unix:")
connections = [socket.socket(socket.AF_UNIX) for _ in range(2)]
for connection in connections:
    connection.connect(server)
taker = socket.socket(socket.AF_UNIX)
taker.connect(os.path.join(os.environ["BENCH_FLEET"], "taker.sock"))
numbers = array.array("i", [connection.fileno() for connection in connections])
session = os.environ["CLAUDE_SESSION_MANAGER_ID"].encode()
taker.sendmsg([session], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])
taker.recv(1)
os.execv("/bin/sleep", ["sleep", "86400"])
"""


@dataclass(slots=True)
class Exchanges:
    """One connection of a client, over which it asks one thing after the other."""

    member: Member
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, **body: object) -> dict[str, object]:
        path, content = f"/sessions/{self.member.id}/link", json.dumps({"generation": self.member.id, **body})
        request = hook.request_bytes("POST", path, self.member.token, content.encode())
        self.writer.write(request.replace(b"Connection: close\r\n", b"", 1))
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        answer = await self.reader.readexactly(length)
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"the link was answered with {answer!r}")
        return dict(json.loads(answer))


@dataclass(slots=True)
class StandIn:
    member: Member
    held: Exchanges
    free: Exchanges
    tokens: int = 20_000
    polling: asyncio.Task[None] | None = None

    async def poll(self, carry_out: CarryOut) -> None:
        done: list[dict[str, object]] = []
        while True:
            answer = await self.held.ask(hold=HOLD_S, done=done)
            orders = answer["orders"]
            assert isinstance(orders, list)
            for order in orders:
                carry_out(self, order["text"])
            done = [{"id": order["id"]} for order in orders]

    async def report(self) -> float:
        """Report a fuller context; return how long the answer took."""
        self.tokens += 10
        context = {"conversation": self.member.conversation, "tokens": self.tokens, "window": 200_000}
        began = time.perf_counter()
        await self.free.ask(context=context)
        return time.perf_counter() - began


CarryOut = Callable[[StandIn, str], None]
"""Takes the text of an order as soon as it has come."""


@dataclass(slots=True)
class StandIns:
    rig: Rig
    place: Path
    carry_out: CarryOut
    clients: list[StandIn] = field(default_factory=list)

    @property
    def fleet(self) -> Fleet:
        return Fleet(self.rig, [client.member for client in self.clients])

    async def start(self, group: asyncio.TaskGroup, taker: socket.socket, number: int) -> None:
        """Start one more session, and speak for its client at once: a connection of no known caller is not kept."""
        await self.rig.new(name=f"agent-{number}", BENCH_FLEET=str(self.place))
        connection, _ = await asyncio.get_running_loop().sock_accept(taker)
        connection.settimeout(5)
        with connection:
            session, numbers, _, _ = socket.recv_fds(connection, 100, 2)
        who = member(self.rig, (self.place / session.decode()).read_text())
        await asyncio.to_thread(say, self.fleet.url, who, who.started())
        held, free = [await exchanges(who, socket.socket(fileno=number)) for number in numbers]
        client = StandIn(who, held, free)
        await client.free.ask()
        client.polling = group.create_task(client.poll(self.carry_out))
        self.clients.append(client)


@asynccontextmanager
async def standins(size: int, carry_out: CarryOut) -> AsyncIterator[StandIns]:
    """Each polls for orders while the block lasts, and gives their text to `carry_out`."""
    hands_over = f"exec {sys.executable} -I -S -c '{HANDS_OVER}'"
    program = CLIENT.replace('"busy"', '"idle"').replace("exec sleep 86400", hands_over)
    async with Rig(Scenario(), as_installed=True, config=BY_MOD) as rig, asyncio.TaskGroup() as group:
        found = StandIns(rig, prepared(rig, program), carry_out)
        with socket.socket(socket.AF_UNIX) as taker:
            taker.settimeout(0)
            taker.bind(str(found.place / TAKER))
            taker.listen()
            for number in range(size):
                await found.start(group, taker, number)
        try:
            yield found
        finally:
            for client in found.clients:
                if client.polling is not None:
                    client.polling.cancel()


async def exchanges(who: Member, connection: socket.socket) -> Exchanges:
    connection.settimeout(0)
    return Exchanges(who, *await asyncio.open_unix_connection(sock=connection))
