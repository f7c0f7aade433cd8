import pytest

from tests.api.rig import house
from tests.web.page_rig import site


@pytest.fixture
async def api(tmp_path):
    async with house(tmp_path) as found:
        yield found


@pytest.fixture
async def here(tmp_path):
    async with site(tmp_path) as found:
        yield found
