import re
import time
from dataclasses import replace

import pytest

from sm.cli.descriptions import clock
from sm.core import events as ev
from sm.core.model.usage_limit import UsageLimit, UsedShare


async def limited(desk, name):
    """Let a session meet a limit that resets an hour after now, which is the user's now too."""
    desk.api.clock.advance(time.time() - desk.api.clock.now())
    session = await desk.api.new(name)
    actor, at = desk.api.engine.sessions.actors[session], desk.api.clock.now()
    met = UsageLimit("five_hour", at + 3_600, at, proven=True)
    await actor.ask(ev.TurnFailed(at=at, conversation=actor.session.conversation.id, error="rate_limit", limit=met))
    return session, met


async def test_limits_shows_what_each_account_has_used_and_who_waits(desk):
    assert (await desk.run("limits")).err == "no running session\n"
    session, met = await limited(desk, "api")
    shown = desk.api.engine.sessions.actors[session].session
    shares = [UsedShare("five_hour", 100.0, met.resets_at), UsedShare("seven_day", 40.0)]
    desk.api.engine.usage_limits.reported(shown, shares, by_client=True)
    ran = await desk.run("limits")
    head, row = ran.out.splitlines()
    assert head.split() == ["ACCOUNT", "LIMIT", "USED", "WAITING"]
    assert row.split()[1:3] == ["5-hour", "until"]
    assert "5-hour 100%, weekly 40%" in row
    assert f"api: 5-hour limit reached; messages wait until it resets at {clock(met.resets_at)}" in ran.err
    found = (await desk.run("limits", "--json")).data
    assert (found["resume"], found["patience"]) == ("auto", 180.0)
    assert [waiting["name"] for waiting in found["accounts"][0]["sessions"]] == ["api"]


async def test_resume_lets_a_session_continue_now(desk):
    session, met = await limited(desk, "api")
    early = await desk.run("limits", "--resume", "api", "--json")
    assert early.error["code"] == "not_reset"
    assert "sm attach api" in early.error["hint"]
    desk.api.clock.advance(met.resets_at + 1 - desk.api.clock.now())
    soon = await desk.run("limits", "--resume", "api", "--json")
    assert soon.error["code"] == "client_continues"
    assert desk.api.engine.sessions.actors[session].session.limit is not None
    desk.api.clock.advance(180)
    ran = await desk.run("limits", "--resume", "api")
    assert (ran.code, ran.err) == (0, "continues: api\n")
    assert desk.api.engine.sessions.actors[session].session.limit is None
    again = await desk.run("limits", "--resume", "api", "--json")
    assert again.error["code"] == "not_limited"


async def test_of_several_each_that_may_continue_does_whatever_is_refused_of_the_others(desk):
    first, met = await limited(desk, "api")
    desk.api.clock.advance(met.resets_at + 181 - desk.api.clock.now())
    other = await desk.api.new("other")
    ran = await desk.run("limits", "--resume", "other", "--resume", "api")
    assert (ran.code, ran.err.splitlines()[0]) == (1, "continues: api")
    assert "Session other waits for no usage limit" in ran.err
    assert desk.api.engine.sessions.actors[first].session.limit is None
    ran = await desk.run("limits", "--resume", "other", "--resume", "api", "--json")
    assert (ran.code, ran.data["resumed"]) == (1, [])
    assert [(refused["id"], refused["code"]) for refused in ran.data["refused"]] == [
        (other, "not_limited"),
        (first, "not_limited"),
    ]
    unknown = await desk.run("limits", "--resume", "nobody", "--resume", "api", "--json")
    assert unknown.error["code"] == "not_found"


async def test_an_agent_may_neither_see_the_limits_nor_resume_anybody(desk):
    session, _ = await limited(desk, "api")
    assert (await desk.run("limits", "--json", session=session)).error["code"] == "forbidden"
    refused = await desk.run("limits", "--resume", "api", "--json", session=session)
    assert refused.error["code"] == "forbidden"
    assert desk.api.engine.sessions.actors[session].session.limit is not None


async def reset(desk, session, ago, **changes):
    """Let the limit of a session have reset some seconds ago, of which the account has used all."""
    actor = desk.api.engine.sessions.actors[session]
    met = replace(actor.session.limit, resets_at=time.time() - ago, since=time.time() - ago - 60, **changes)
    await desk.api.alter(session, limit=met)
    share = UsedShare("five_hour", 100.0, met.resets_at)
    desk.api.engine.usage_limits.reported(desk.api.engine.sessions.actors[session].session, [share], by_client=True)


async def test_after_the_reset_it_says_when_the_work_continues(desk):
    session, _ = await limited(desk, "api")
    await reset(desk, session, 60)
    ran = await desk.run("limits")
    assert ran.out.count("5-hour has reset") == 2
    assert "100%" not in ran.out
    assert re.fullmatch(r"api: 5-hour limit has reset; continues within 1[12]\d s\n", ran.err)
    listed = (await desk.run("list")).err
    assert listed == "api: 5-hour limit has reset; sm limits shows when it continues\n"
    await reset(desk, session, 60, interrupted=False)
    assert "has reset; messages are sent within" in (await desk.run("limits")).err
    await reset(desk, session, 60, asks=True)
    for command in ("limits", "list"):
        assert (await desk.run(command)).err.endswith("waits for you: sm limits --resume api\n")


@pytest.mark.parametrize(
    ("resume", "words"), [("off", "s\n"), ("ask", "s, then sm asks you: sm limits --resume api\n")]
)
async def test_without_auto_only_the_client_continues_by_itself(desk, resume, words):
    session, _ = await limited(desk, "api")
    await reset(desk, session, 60)
    (desk.root / "config.toml").write_text(f'[limits]\nresume = "{resume}"\n')
    ran = await desk.run("limits")
    assert "its client may continue by itself within" in ran.err
    assert ran.err.endswith(words)


async def test_what_single_sessions_wait_for_is_shown(desk):
    await limited(desk, "api")
    web, _ = await limited(desk, "web")
    ran = await desk.run("limits", "web")
    assert (len(ran.out.splitlines()), ran.err.count("web: "), "api" in ran.err) == (2, 1, False)
    session = (await desk.run("limits", "api", "--json")).data["accounts"][0]["sessions"]
    assert [waiting["name"] for waiting in session] == ["api"]
    await desk.api.alter(web, limit=None)
    ran = await desk.run("limits", "web")
    assert (ran.out, ran.err) == ("", "web waits for no usage limit\n")
    assert (await desk.run("limits", "nix", "--json")).error["code"] == "not_found"
