"""One browser for all tests of a worker, each with contexts of its own: its start takes longer than most of them."""

import contextlib

import pytest
import pytest_asyncio

from tests.api.rig import house
from tests.web.browser import served
from tests.web.page_rig import Site, chromium


@pytest.fixture
async def api(tmp_path):
    async with house(tmp_path) as found:
        yield found


class SharedBrowser:
    """Is started by the first test that wants it, and again if it has ended."""

    def __init__(self, home):
        self.home, self.running, self.found = home, contextlib.AsyncExitStack(), None

    async def get(self):
        if self.found is None or not self.found.is_connected():
            await self.running.aclose()
            self.found = await self.running.enter_async_context(chromium(self.home))
        return self.found


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_browser(tmp_path_factory):
    shared = SharedBrowser(tmp_path_factory.mktemp("browser"))
    await shared.get()  # before any test: what a test starts is ended with it
    yield shared
    await shared.running.aclose()


@pytest_asyncio.fixture(loop_scope="session")
async def here(tmp_path, shared_browser):
    found = await shared_browser.get()
    async with served(tmp_path) as (api, port):
        yield Site(api, port, found)
        for context in found.contexts:  # first: a server waits for those who follow it
            await context.close()


def pytest_collection_modifyitems(items):
    for item in items:
        if "shared_browser" in item.fixturenames:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
