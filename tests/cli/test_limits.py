from sm.core import events as ev
from sm.core.model.usage_limit import UsageLimit, UsedShare


async def limited(desk, name):
    session = await desk.api.new(name)
    actor, at = desk.api.engine.sessions.actors[session], desk.api.clock.now()
    met = UsageLimit("five_hour", at + 3_600, at)
    await actor.ask(ev.TurnFailed(at=at, conversation=actor.session.conversation.id, error="rate_limit", limit=met))
    return session, met


async def test_limits_shows_what_each_account_has_used_and_who_waits(desk):
    assert (await desk.run("limits")).err == "no running session\n"
    session, met = await limited(desk, "api")
    shown = desk.api.engine.sessions.actors[session].session
    desk.api.engine.usage_limits.reported(
        shown, [UsedShare("five_hour", 100.0, met.resets_at), UsedShare("seven_day", 40.0)]
    )
    ran = await desk.run("limits")
    head, row = ran.out.splitlines()
    assert head.split() == ["ACCOUNT", "LIMIT", "USED", "WAITING"]
    assert row.split()[1:3] == ["5-hour", "until"]
    assert "5-hour 100%, weekly 40%" in row
    assert "api: 5-hour limit reached; messages wait until it resets" in ran.err
    found = (await desk.run("limits", "--json")).data
    assert found["resume"] == "auto"
    assert [waiting["name"] for waiting in found["accounts"][0]["sessions"]] == ["api"]


async def test_resume_lets_a_session_continue_now(desk):
    session, _ = await limited(desk, "api")
    ran = await desk.run("limits", "--resume", "api")
    assert (ran.code, ran.err) == (0, "continues: api\n")
    assert desk.api.engine.sessions.actors[session].session.limit is None
    again = await desk.run("limits", "--resume", "api", "--json")
    assert again.error["code"] == "not_limited"


async def test_an_agent_may_neither_see_the_limits_nor_resume_anybody(desk):
    session, _ = await limited(desk, "api")
    assert (await desk.run("limits", "--json", session=session)).error["code"] == "forbidden"
    refused = await desk.run("limits", "--resume", "api", "--json", session=session)
    assert refused.error["code"] == "forbidden"
    assert desk.api.engine.sessions.actors[session].session.limit is not None
