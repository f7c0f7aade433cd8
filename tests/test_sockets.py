"""The server's own sockets."""

import asyncio
import socket

from sm.paths import SmHome
from sm.settings import Settings
from sm.sockets import open_sockets


async def test_an_answer_in_two_pieces_never_waits_for_the_first_to_be_acknowledged(tmp_path):
    sockets = open_sockets(SmHome(tmp_path), Settings())
    options = []

    def connected(_, writer):
        options.append(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    server = await asyncio.start_server(connected, sock=sockets.loopback)
    async with server:
        reader, writer = await asyncio.open_connection(*sockets.loopback.getsockname())
        await reader.read()
        writer.close()
    sockets.private.close()
    assert options == [1]
