"""What the rows say is what the server says, compared while 20 sessions change at random: no row is a second old."""

from tests.fleet_truth import SESSIONS, Truth, commands, passing, told, twenty
from tests.tui.rig import watching

CHANGES = 100


async def test_every_row_shows_what_the_server_said_within_the_last_second(tmp_path):
    async with watching(tmp_path, 200, 40, before=twenty) as seen, passing(seen.api):
        truth, pictures = Truth(seen.api), []
        follower, show = seen.app.follower, seen.app.follower.show

        def noted(picture):
            show(picture)
            pictures.append((picture.at, {row.id: told(row) for row in seen.app.main.rows}))

        await truth.note(seen.api.clock.now())
        follower.show = noted
        follower.want()
        await truth.change(CHANGES)
        await truth.settled()
        assert truth.late(pictures) == []
        assert truth.untrue(pictures) == []
        states = {row[3] for _, shown in pictures for row in shown.values()}
        assert states >= {"waiting", "blocked", "working", "idle", "compacting"}


async def test_every_row_is_what_sm_list_prints(tmp_path):
    async with watching(tmp_path, 200, 40, before=twenty) as seen, passing(seen.api):
        truth = Truth(seen.api)
        with commands(seen.api, seen.port) as desk:
            for _ in range(3):
                await truth.change(15)
                listed = [told(row) for row in await truth.listed(desk)]
                assert len(listed) == SESSIONS
                await seen.until(lambda listed=listed: [told(row) for row in seen.app.main.rows] == listed)
