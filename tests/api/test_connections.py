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
            await reader.read()  # whatever is said before
        return True


@pytest.mark.parametrize("token", [None, "wrong"])
async def test_a_stranger_is_let_go_and_whoever_has_a_token_stays(port, monkeypatch, token):
    monkeypatch.setattr(connections, "STRANGER_TIMEOUT_S", 0.2)
    async with connection(port, token) as (strange, _), connection(port, USER) as (reader, writer):
        assert await closed(strange)
        await asyncio.sleep(0.2)
        assert await ask(reader, writer, USER) == 200


async def test_whoever_has_shown_a_token_stays_in_the_middle_of_a_request(port, monkeypatch):
    monkeypatch.setattr(connections, "STRANGER_TIMEOUT_S", 0.2)
    async with connection(port, USER) as (reader, writer):
        writer.write(b"GET /health HTTP/1.1\r\n")
        await asyncio.sleep(0.4)
        writer.write(f"Host: 127.0.0.1\r\nAuthorization: Bearer {USER}\r\n\r\n".encode())
        assert b" 200 " in await reader.readline()


async def test_one_who_sends_a_request_bit_by_bit_is_a_stranger_too(port, monkeypatch):
    monkeypatch.setattr(connections, "STRANGER_TIMEOUT_S", 0.2)
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
    assert [entry for entry in logs if entry["log_level"] == "error"] == []


async def test_whoever_follows_events_is_not_cut_off(port, monkeypatch):
    monkeypatch.setattr(connections, "STRANGER_TIMEOUT_S", 0.1)
    async with connection(port) as (reader, writer):
        writer.write(f"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {USER}\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.3)
        assert not reader.at_eof()


async def test_the_stranger_who_has_been_here_longest_makes_room(port, monkeypatch):
    monkeypatch.setattr(connections, "max_connections", lambda: 2)
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


HEAD = f"Host: localhost\r\nAuthorization: Bearer {USER}\r\n"
MALFORMED = {
    "no HTTP at all": "hello\r\n\r\n",
    "TLS": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "no such version": f"GET /health HTTP/9.9\r\n{HEAD}\r\n",
    "a header without a colon": f"GET /health HTTP/1.1\r\n{HEAD}nonsense\r\n\r\n",
    "a header with a blank": f"GET /health HTTP/1.1\r\n{HEAD}Bad Name: 1\r\n\r\n",
    "a NUL in a header": f"GET /health HTTP/1.1\r\n{HEAD}X: \0\r\n\r\n",
    "a folded header": f"GET /health HTTP/1.1\r\n{HEAD}X: a\r\n b\r\n\r\n",
    "two lengths": f"POST /hooks/claude HTTP/1.1\r\n{HEAD}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}",
    "a negative length": f"POST /hooks/claude HTTP/1.1\r\n{HEAD}Content-Length: -1\r\n\r\n",
    "length and chunks": f"POST / HTTP/1.1\r\n{HEAD}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a bad chunk": (
        f"POST /messages HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"
    ),
    "a bad chunk where no body is read": f"GET /health HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
    "a path of other bytes": f"GET /h\xe9 HTTP/1.1\r\n{HEAD}\r\n",
    "an address without a path": f"OPTIONS * HTTP/1.1\r\n{HEAD}\r\n",
    "a path for ever": "GET /" + "x" * (2 << 20),
    "a header for ever": f"GET /health HTTP/1.1\r\n{HEAD}X: " + "x" * (2 << 20),
}


async def raw(port, text):
    """Status, headers and body of the first answer to these bytes, once the other side has closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text.encode("latin-1"))
    await writer.drain()
    async with asyncio.timeout(20):
        answer = await reader.read()
    writer.close()
    head, _, body = answer.decode().partition("\r\n\r\n")
    line, *headers = head.lower().split("\r\n")
    return int(line.split()[1]), dict(header.split(": ", 1) for header in headers), body


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
async def test_what_is_no_http_is_answered_in_json_like_any_other_error(port, text):  # C44
    status, headers, body = await raw(port, text)
    found = json.loads(body)
    assert 400 <= status < 500
    assert headers["content-type"] == "application/json"
    assert set(found) == {"error", "code", "hint"}
    assert found["code"] in {"bad_request", "too_large", "bad_type", "no_route"}
    async with connection(port, USER) as (reader, writer):
        assert await ask(reader, writer, USER) == 200


async def test_the_connection_that_was_refused_is_closed_and_forgotten(api, port):  # C44
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"nonsense\r\n\r\n")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
    await reader.read()
    writer.write(b"GET /health HTTP/1.1\r\n\r\n" * 100)
    assert await closed(reader)
    writer.close()
