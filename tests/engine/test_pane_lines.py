"""The line below each pane is written when it changes, and only then; on fake panes."""

import pytest

from sm.core.model.session import Status
from tests.api.rig import house


@pytest.fixture
async def api(tmp_path):
    async with house(tmp_path) as found:
        yield found


async def test_a_line_is_written_where_it_has_changed(api):
    first, other = await api.new("first"), await api.new("other")
    lines, labels = api.engine.pane_lines, api.engine.ports.panes.labels
    pane = api.engine.sessions.actors[first].session.pane
    await lines.write()
    assert sorted(labels.values()) == ["first", "other"]
    labels.clear()
    await lines.write()
    assert labels == {}
    await api.alter(other, status=Status.WAITING)
    await lines.write()
    assert labels == {pane: "other waits for you · first"}
    await api.call("DELETE", f"/sessions/{other}")
    await lines.write()
    assert labels == {pane: "first"}
