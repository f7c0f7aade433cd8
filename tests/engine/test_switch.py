"""The exchange of a session's client, on fake panes: what is refused, what is kept, and each way in which it fails."""

import asyncio
import os

import pytest

from sm.core import events as ev
from sm.core.errors import SmError
from sm.core.model.foreground import Foreground
from sm.core.model.rotation import Phase, Switch
from sm.core.model.session import Status
from sm.core.ports.panes import PaneError
from sm.core.ports.store import LaunchRecord
from tests.api.rig import USER, house
from tests.engine.test_engine import next_life, until

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/home/dev", "ANTHROPIC_API_KEY": "k", "CODEX_HOME": "/home/dev/.codex"}
DOCUMENT = "# Handoff\n"


@pytest.fixture
async def api(tmp_path):
    async with house(tmp_path) as found:
        yield found


async def started(api, provider="claude", **more):
    body = {"dir": str(api.home.root.parent), "name": "a", "env": ENV, "provider": provider, "model": "m", **more}
    status, view = await api.call("POST", "/sessions", body=body)
    assert status == 201, view
    session = view["id"]
    api.tokens[session] = api.launched[session]
    began = ev.ConversationStarted(at=1.0, conversation=view["conversation"] or "c0", pid=os.getpid())
    await actor_of(api, session).ask(began)
    prompt = ev.PromptSubmitted(at=1.0, conversation=began.conversation, text="x", mode=more.get("mode", "acceptEdits"))
    await actor_of(api, session).ask(prompt)
    return session


def actor_of(api, session):
    return api.engine.sessions.actors[session]


async def order(api, session, token=USER, to="codex", **more):
    body = {"requester_session_id": session, "document": DOCUMENT, "to": to, **more}
    return await api.call("POST", f"/sessions/{session}/handoff", token, body)


async def ready(api, session):
    """The turn ends and the client is idle: what comes next is the exchange."""
    actor, at = actor_of(api, session), api.clock.now()
    await actor.ask(ev.TurnEnded(at=at, conversation=actor.session.conversation.id))
    await actor.ask(ev.ComposerReady(at=at, step=actor.session.step))
    await actor.ask(ev.SnapshotTaken(at=at, step=actor.session.step, path="/dump"))


@pytest.fixture
def mortal(monkeypatch):
    """The clients of the fake panes are this process: let it count as ended once its pane was emptied."""
    dead = []
    monkeypatch.setattr("sm.engine.switch.alive", lambda _: not dead)
    return dead


async def exchanged(api, session, provider="codex"):
    await until(lambda: actor_of(api, session).session.provider == provider)
    return actor_of(api, session).session


async def test_the_other_client_is_started_in_the_same_session_with_nothing_of_the_ones_before(api):
    session = await started(api, arguments=["--verbose"], command="sh")
    before = actor_of(api, session)
    assert (await order(api, session))[0] == 200
    await ready(api, session)
    after = await exchanged(api, session)
    assert (after.id, after.name, after.model, after.status) == (session, "a", None, Status.STARTING)
    assert actor_of(api, session) is before
    assert before.traits is api.engine.ports.providers["codex"].traits
    record = api.engine.sessions.launches[session]
    assert record.arguments[-4:] == ("-s", "workspace-write", "-a", "on-request")
    assert (record.model, record.command, record.provider) == (None, None, "codex")
    assert record.before == LaunchRecord(("--verbose",), "m", "sh")
    assert (await api.engine.ports.store.launches())[session] == record
    given = api.engine.ports.panes.environments[session]
    assert (given["ANTHROPIC_API_KEY"], given["CODEX_HOME"]) == ("k", "/home/dev/.codex")
    assert api.engine.sessions.by_token(next(iter(api.engine.sessions.tokens))) == session
    assert given["SM_SESSION_TOKEN"] != api.tokens[session]
    await until(lambda: session not in api.engine.sessions.restoring)


async def test_one_that_cannot_be_started_any_more_leaves_the_old_client_alone(api):
    session = await started(api)
    await order(api, session)
    object.__setattr__(api.engine.ports.providers["codex"], "command", lambda: ("no-such-client",))
    await ready(api, session)
    await until(lambda: actor_of(api, session).session.rotation.switch is None)
    found = actor_of(api, session).session
    assert found.provider == "claude"
    assert "Client not found: no-such-client" in found.rotation.note or found.rotation.phase is Phase.RESERVED
    assert not api.engine.ports.panes.emptied


async def test_one_that_no_pane_takes_gives_the_document_back_to_the_one_before(api, mortal):
    session = await started(api)
    await order(api, session)
    panes = api.engine.ports.panes
    create, tried = panes.create, []

    async def once(own, launch, log):
        tried.append(launch.argv[0])
        if len(tried) == 1:
            mortal.append(True)
            raise PaneError("no room")
        mortal.clear()
        return await create(own, launch, log)

    panes.create = once
    panes.environment = remembered(panes)
    await ready(api, session)
    await until(lambda: len(tried) == 2)
    await until(lambda: actor_of(api, session).session.status is Status.STARTING)
    found = actor_of(api, session).session
    assert (found.provider, found.rotation.switch) == ("claude", Switch("claude", left="codex", back=True))
    assert not found.ended
    assert api.engine.sessions.launches[session].arguments == ()


def remembered(panes):
    async def environment(session):
        return panes.environments[session]

    return environment


async def test_where_neither_starts_the_session_ends_with_its_document(api, mortal):
    session = await started(api)
    _, handoff = await order(api, session)
    panes = api.engine.ports.panes

    async def never(*_):
        mortal.append(True)
        raise PaneError("no room")

    panes.create = never
    panes.environment = remembered(panes)
    await ready(api, session)
    await until(lambda: actor_of(api, session).session.ended)
    stored = await api.engine.ports.store.handoff(handoff["id"])
    assert (stored.state, stored.holder) == ("active", "")
    assert "no room" in actor_of(api, session).session.detail


async def test_a_server_that_died_in_between_starts_the_other_one_at_its_next_start(api):
    session = await started(api)
    await order(api, session)
    panes = api.engine.ports.panes
    panes.create, create = forever, panes.create
    await ready(api, session)
    await until(lambda: panes.emptied)
    panes.environment = remembered(panes)
    await panes.clear(session)
    panes.create = create
    # the old client's dead pane is all that is left
    status = await create(actor_of(api, session).session, Started(panes.environments[session]), None)
    panes.living = {status.pane: _dead(status)}
    async with next_life(api) as again:
        await until(lambda: again.sessions.actors[session].session.provider == "codex")
        assert not again.sessions.actors[session].session.ended


class Started:
    def __init__(self, env):
        self.env = env


def _dead(status):
    from dataclasses import replace

    return replace(status, dead=True)


async def forever(*_):
    await asyncio.Event().wait()


async def test_an_agent_may_only_where_it_is_configured(api, tmp_path):
    session = await started(api)
    status, answer = await order(api, session, api.tokens[session])
    assert (status, answer["code"]) == (403, "forbidden")
    assert "team.may_switch" in answer["error"]
    (tmp_path / "config.toml").write_text("[team]\nmay_switch = true\n")
    assert (await order(api, session, api.tokens[session]))[0] == 200


async def test_an_agent_gives_no_arguments_and_a_user_gives_them_for_another_client(api, tmp_path):
    (tmp_path / "config.toml").write_text("[team]\nmay_switch = true\n")
    session = await started(api)
    given = {"arguments": ["--yolo"]}
    assert (await order(api, session, api.tokens[session], **given))[1]["code"] == "forbidden"
    assert (await order(api, session, api.tokens[session], to="claude", **given))[1]["code"] == "forbidden"
    assert (await order(api, session, to="claude", **given))[1]["code"] == "bad_request"
    assert (await order(api, session, to="", **given))[1]["code"] == "bad_request"
    assert (await order(api, session, arguments=["--remote", "x"]))[1]["code"] == "reserved_argument"
    assert actor_of(api, session).session.rotation is None
    assert (await order(api, session, **given))[0] == 200
    await ready(api, session)
    await exchanged(api, session)
    assert api.engine.sessions.launches[session].arguments[-5:] == (
        "-s",
        "workspace-write",
        "-a",
        "on-request",
        "--yolo",
    )


async def test_what_restricts_the_client_before_needs_the_users_word(api):
    session = await started(api, arguments=["--disallowedTools", "Bash"])
    status, answer = await order(api, session)
    assert (status, answer["code"]) == (403, "rights")
    assert (await order(api, session, arguments=["-s", "read-only"]))[0] == 200


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"foreground": Foreground(wrapper=1)}, "switch_refused"),
        ({"adopted": True}, "adopted"),
        ({"attempt": "r/1/1"}, "switch_refused"),
        ({"status": Status.EXITED}, "ended"),
    ],
)
async def test_a_session_whose_client_is_not_ours_to_exchange_refuses_it(api, changes, code):
    session = await started(api)
    await api.alter(session, **changes)
    assert (await order(api, session))[1]["code"] == code


async def test_to_its_own_client_it_is_an_ordinary_handoff(api, tmp_path):
    session = await started(api)
    assert (await order(api, session, api.tokens[session], to="claude"))[0] == 200
    assert actor_of(api, session).session.rotation.switch is None


async def test_a_provider_that_is_none_is_refused_with_those_that_are(api):
    session = await started(api)
    _, answer = await order(api, session, to="gemini")
    assert (answer["code"], answer["hint"]) == ("unknown_provider", "one of claude, codex")


async def test_a_session_that_ended_before_is_restored_with_the_client_that_was_wanted(api):
    session = await started(api)
    await order(api, session)
    await actor_of(api, session).ask(ev.ClientExited(at=5.0, code=0))
    api.engine.ports.panes.living.clear()
    status, view = await api.call("POST", f"/sessions/{session}/restore", body={"env": ENV})
    assert (status, view["provider"]) == (200, "codex")
    assert api.engine.sessions.launches[session].before == LaunchRecord((), "m")


async def test_the_status_says_which_client_continues(api):
    session = await started(api)
    await order(api, session)
    assert (await api.call("GET", f"/sessions/{session}/handoff"))[1]["to"] == "codex"


async def test_without_an_environment_nothing_is_begun(api):
    session = await started(api)
    api.engine.ports.panes.environments[session] = {}
    with pytest.raises(SmError, match="environment"):
        await api.engine.switches.wanted(session, "codex", (), by_user=True)
