import pytest

from tests.api.rig import house


@pytest.fixture
async def api(tmp_path):
    async with house(tmp_path) as found:
        yield found
