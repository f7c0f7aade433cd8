import pytest

from sm.core.ports.store import LaunchRecord
from sm.store.database import Database
from sm.store.sessions import SqliteStore
from tests.core.playbook import idle_session
from tests.fakes.clock import FakeClock


@pytest.fixture
async def store(tmp_path):
    """It holds one session that is idle."""
    async with await Database.open(tmp_path / "sm.db") as database:
        found = SqliteStore(database, FakeClock())
        await found.add(idle_session(), "token", LaunchRecord())
        yield found
