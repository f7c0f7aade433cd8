import pytest

from tests.cli.rig import desk_with_server, desk_without_server


@pytest.fixture
async def desk(tmp_path):
    """A server runs."""
    async with desk_with_server(tmp_path) as found:
        yield found


@pytest.fixture
def bare(tmp_path):
    """No server runs."""
    return desk_without_server(tmp_path)


@pytest.fixture
async def session(desk):
    """The id of a session, known to the server that runs."""
    return await desk.api.new("a")
