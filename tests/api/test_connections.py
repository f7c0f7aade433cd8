"""Who may keep a connection: somebody with a token, and strangers only for a while and while there is room."""

import asyncio
import contextlib
import json

import pytest
from structlog.testing import capture_logs

from sm.api import connections
from tests.api.rig import USER


@pytest.fixture
async def port(api):
    async with api.listening() as port:
        yield port


@contextlib.asynccontextmanager
async def connection(port, token=None):
    """A connection that has sent one request with the token, or nothing."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    if token is not None:
        await ask(reader, writer, token)
    try:
        yield reader, writer
    finally:
        writer.close()


async def ask(reader, writer, token):
    """The status of one request."""
    writer.write(f"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
    await reader.readexactly(int(length.split()[1]))
    return int(head.split()[1])


async def closed(reader):
    async with asyncio.timeout(5):
        with contextlib.suppress(ConnectionResetError):
            return await reader.read(1) == b""
        return True


@pytest.mark.parametrize("token", [None, "wrong"])
async def test_a_stranger_is_let_go_and_whoever_has_a_token_stays(port, monkeypatch, token):
    monkeypatch.setattr(connections, "STRANGER", 0.2)
    async with connection(port, token) as (strange, _), connection(port, USER) as (reader, writer):
        assert await closed(strange)
        await asyncio.sleep(0.2)
        assert await ask(reader, writer, USER) == 200


async def test_one_who_sends_a_request_bit_by_bit_is_a_stranger_too(port, monkeypatch):
    monkeypatch.setattr(connections, "STRANGER", 0.2)
    async with connection(port) as (reader, writer):
        writer.write(b"GET /health HTTP/1.1\r\n")
        assert await closed(reader)


@pytest.mark.parametrize("head", [b"GET /health HTTP/1.1\r\nX: ", b"GET /"])
async def test_one_whose_request_has_no_end_is_let_go(port, head):
    async with connection(port) as (reader, writer):
        writer.write(head)
        with contextlib.suppress(ConnectionError):
            for _ in range(64):
                writer.write(b"a" * (1 << 16))
                await writer.drain()
        assert await closed(reader)


async def test_whoever_has_a_token_may_send_a_large_body_and_another(port):
    async with connection(port) as (reader, writer):
        body = b'{"session_id": "' + b"a" * (3 << 20) + b'"}'
        for _ in range(2):
            writer.write(
                f"POST /hooks/claude HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {USER}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            )
            writer.write(body)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 400")
            await reader.readuntil(b"}")


async def test_one_who_leaves_in_the_middle_of_a_body_is_no_fault_of_ours(port):
    with capture_logs() as logs:
        async with connection(port) as (_, writer):
            writer.write(
                f"POST /hooks/claude HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {USER}\r\n"
                "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode()
            )
            await asyncio.sleep(0.1)
        async with connection(port, USER):
            await asyncio.sleep(0.1)
    assert [one for one in logs if one["log_level"] == "error"] == []


async def test_whoever_follows_events_is_not_cut_off(port, monkeypatch):
    monkeypatch.setattr(connections, "STRANGER", 0.1)
    async with connection(port) as (reader, writer):
        writer.write(f"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {USER}\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.3)
        assert not reader.at_eof()


async def test_the_stranger_who_has_been_here_longest_makes_room(port, monkeypatch):
    monkeypatch.setattr(connections, "most_connections", lambda: 2)
    async with connection(port, USER) as (reader, writer), connection(port) as (old, _), connection(port) as (new, _):
        assert await closed(old)
        assert await ask(reader, writer, USER) == 200
        assert not new.at_eof()


CHUNK = b" " * (1 << 20)


async def sent_whole(port, path, megabytes, *, chunked, kind="application/json"):
    """The answer to a body that is sent to its end before anything is read, as our own client does it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {megabytes << 20}"
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {USER}\r\n{length}\r\n"
    writer.write(f"{head}Content-Type: {kind}\r\nConnection: close\r\n\r\n".encode())
    for _ in range(megabytes):
        writer.write(b"100000\r\n" + CHUNK + b"\r\n" if chunked else CHUNK)
        await writer.drain()
    writer.write(b"0\r\n\r\n" if chunked else b"")
    async with asyncio.timeout(30):
        answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["code"]


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(("path", "megabytes"), [("/hooks/claude", 17), ("/hooks/claude", 40), ("/messages", 3)])
async def test_a_body_that_is_too_large_is_answered_and_not_cut_off(port, path, megabytes, chunked):  # C31
    assert await sent_whole(port, path, megabytes, chunked=chunked) == (413, "too_large")


async def test_a_body_of_another_kind_is_answered_however_large(port):  # C31
    assert await sent_whole(port, "/messages", 5, chunked=False, kind="text/plain") == (415, "bad_type")
