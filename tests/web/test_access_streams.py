"""A thousand event streams: the server still answers, and the next one is refused with a hint."""

import asyncio
import contextlib
import resource

import pytest

from sm.api.security import Caller
from sm.api.streams import MAX_OF_ONE, MAX_STREAMS, Streams
from sm.core.errors import SmError
from sm.core.model.device import Device
from tests.api.rig import USER
from tests.web.browser import logged_in

WANTED = 1_000


async def opened(port, headers):
    """Ask for the events; return the connection with the status of its answer, None where it was closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{lines}\r\n".encode())
    line = await asyncio.wait_for(reader.readline(), 20)
    return writer, int(line.split()[1]) if line else None


@contextlib.contextmanager
def descriptors(number):
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < number:
        pytest.skip(f"this machine allows {most} files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))


@pytest.mark.timeout(120)
async def test_of_a_thousand_streams_so_many_are_open_and_the_server_still_answers(api):
    with descriptors(3 * WANTED):
        async with api.listening() as port:
            visitor = await logged_in(api, f"http://127.0.0.1:{port}")
            asked = {"Authorization": f"Bearer {USER}"}
            found = [await opened(port, asked) for _ in range(WANTED)]
            statuses = [status for _, status in found]
            assert statuses == [200] * MAX_STREAMS + [429] * (WANTED - MAX_STREAMS)
            assert (await visitor.get("/sessions")).status_code == 200
            status, answer = await api.call("GET", "/events")
            assert (status, answer["code"]) == (429, "too_many_streams")
            assert answer["hint"]
            session = await api.new("s1")  # and is written to each of them
            assert (await api.call("GET", f"/sessions/{session}"))[0] == 200
            for writer, _ in found:
                writer.close()
            await all_closed(api)
            writer, status = await opened(port, asked)
            assert status == 200
            writer.close()


async def all_closed(api):
    for _ in range(500):
        if not api.app.app.state.streams.open:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(api.app.app.state.streams.open)


async def test_one_session_cannot_take_the_streams_of_all(api):
    token = api.tokens[await api.new("s1")]
    async with api.listening() as port:
        found = [await opened(port, {"Authorization": f"Bearer {token}"}) for _ in range(MAX_OF_ONE + 1)]
        assert [status for _, status in found] == [200] * MAX_OF_ONE + [429]
        writer, status = await opened(port, {"Authorization": f"Bearer {USER}"})
        assert status == 200
        for each in (writer, *(writer for writer, _ in found)):
            each.close()
        await all_closed(api)


def test_streams_are_counted_for_each_device_and_each_session():
    streams, device = Streams(), Device("aaaaaaaa", "x", 0.0, 0.0, read_only=False)
    ends = [streams.take(Caller(device=device)) for _ in range(MAX_OF_ONE)]
    with pytest.raises(SmError):
        streams.take(Caller(device=device))
    streams.take(Caller("s1"))
    streams.take(Caller(device=Device("bbbbbbbb", "x", 0.0, 0.0, read_only=False)))
    ends[0]()
    streams.take(Caller(device=device))
