import os

import pytest

from tests.tui.rig import WIDTHS, environment, watching


@pytest.fixture(params=WIDTHS)
def width(request):
    return request.param


@pytest.fixture(autouse=True)
def own_environment(tmp_path, monkeypatch):
    """What the screen starts is in this test's world alone."""
    for name in [*os.environ]:
        if name not in {"PATH", "LANG", "PYTEST_CURRENT_TEST"}:
            monkeypatch.delenv(name)
    (tmp_path / "home").mkdir()
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)


async def one(api):
    await api.new("alpha")


@pytest.fixture
async def seen(tmp_path, width):
    async with watching(tmp_path, width, before=one) as found:
        yield found
