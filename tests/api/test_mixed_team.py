"""Parents and children of different clients: their rights, and what an agent cannot widen them with."""

import pytest

from sm.core import events as ev
from tests.api.test_team import ENV, launched, spawn, until

FULL_MODES = {"bypassPermissions", "danger-full-access never"}
FULL = "--dangerously-skip-permissions"


async def boss(api, provider, mode, *arguments, **more):
    """A session of that client, in that mode by what its client told last."""
    body = {"dir": str(api.home.root.parent), "name": "boss", "env": ENV, "provider": provider, **more}
    _, view = await api.call("POST", "/sessions", body={**body, "arguments": list(arguments)})
    session = view["id"]
    api.tokens[session] = api.launched[session]
    actor = api.engine.sessions.actors[session]
    started = ev.ConversationStarted(at=1.0, conversation=view["conversation"] or "c0")
    await actor.ask(started)
    await actor.ask(ev.PromptSubmitted(at=1.0, conversation=started.conversation, text="x", mode=mode))
    return session


KEPT_OUT = ("--setting-sources", "user", "--strict-mcp-config")


@pytest.mark.parametrize(
    ("provider", "mode", "expected"),
    [
        ("claude", "default", ("-s", "read-only", "-a", "on-request")),
        ("claude", "plan", ("-s", "read-only", "-a", "on-request")),
        ("claude", "dontAsk", ("-s", "read-only", "-a", "never")),
        ("claude", "acceptEdits", ("-s", "workspace-write", "-a", "on-request")),
        ("claude", "auto", ("-s", "workspace-write", "-a", "on-request")),
        ("claude", "bypassPermissions", ("-s", "danger-full-access", "-a", "never")),
        ("claude", "", ("-s", "read-only", "-a", "never")),
        ("claude", "workspace-write never", ("-s", "read-only", "-a", "never")),
        ("codex", "read-only on-request", (*KEPT_OUT, "--permission-mode", "default")),
        ("codex", "read-only never", (*KEPT_OUT, "--permission-mode", "dontAsk")),
        ("codex", "workspace-write on-request", (*KEPT_OUT, "--permission-mode", "acceptEdits")),
        ("codex", "danger-full-access never", ("--permission-mode", "bypassPermissions")),
        ("codex", "", (*KEPT_OUT, "--permission-mode", "dontAsk")),
        ("codex", "acceptEdits", (*KEPT_OUT, "--permission-mode", "dontAsk")),
    ],
)
async def test_a_child_of_the_other_client_may_what_its_parent_may(api, provider, mode, expected):
    widest = {"claude": [FULL], "codex": ["--yolo"]}[provider] if mode else []  # the mode counts as it is now
    parent = await boss(api, provider, mode, *widest, model="a-model")
    other = {"claude": "codex", "codex": "claude"}[provider]
    status, kid = await spawn(api, parent, provider=other)
    assert status == 201, kid
    assert (kid["provider"], kid["parent"]) == (other, parent)
    given = launched(api, kid["id"]).arguments
    assert given[-len(expected) :] == expected
    keeps_project_out = "--setting-sources" in given or "projects={" in " ".join(given)
    assert keeps_project_out == (mode not in FULL_MODES)
    assert launched(api, kid["id"]).model is None


async def test_a_child_of_the_same_codex_has_its_parents_mode(api):
    parent = await boss(api, "codex", "workspace-write on-request", "--yolo", model="a-model")
    _, kid = await spawn(api, parent)
    assert launched(api, kid["id"]).arguments == ("-s", "workspace-write", "-a", "on-request")
    assert launched(api, kid["id"]).model == "a-model"


@pytest.mark.parametrize(
    ("provider", "arguments", "named"),
    [
        ("claude", ["--disallowedTools", "Bash"], "--disallowedTools"),
        ("claude", [FULL, "--tools", "Read"], "--tools"),
        ("codex", ["--disable", "shell_tool"], "--disable shell_tool"),
    ],
)
async def test_what_restricts_a_parent_and_cannot_be_given_to_the_other_client_refuses_it(
    api, provider, arguments, named
):
    parent = await boss(api, provider, "default", *arguments)
    other = {"claude": "codex", "codex": "claude"}[provider]
    status, answer = await spawn(api, parent, provider=other)
    assert (status, answer["code"]) == (403, "rights")
    assert named in answer["error"]
    assert len(api.engine.ports.panes.living) == 1


@pytest.mark.parametrize(
    "given",
    [
        {"arguments": ["--yolo"]},
        {"arguments": ["-c", "approval_policy=never"]},
        {"command": "/bin/sh"},
        {"model": "--yolo"},
        {"model": "-s danger-full-access"},
        {"model": "-capproval_policy=never"},
        {"provider": "codex --yolo"},
        {"provider": "--dangerously-skip-permissions"},
        {"mode": "danger-full-access never"},
        {"sandbox": "danger-full-access"},
    ],
)
@pytest.mark.parametrize("provider", ["claude", "codex"])
async def test_an_agent_gives_the_other_client_no_argument(api, given, provider):
    parent = await boss(api, provider, "default")
    other = {"claude": "codex", "codex": "claude"}[provider]
    status, _ = await spawn(api, parent, **{"provider": other, **given})
    assert status >= 400
    assert len(api.engine.ports.panes.living) == 1


async def test_a_model_is_a_value_whatever_is_in_it(api):
    parent = await boss(api, "claude", "default")
    seen = []
    create = api.engine.ports.panes.create

    async def remembered(session, launch, log):
        seen.append(launch.argv)
        return await create(session, launch, log)

    api.engine.ports.panes.create = remembered
    hostile = 'x"\napproval_policy="never'
    await spawn(api, parent, provider="codex", model=hostile)
    [argv] = seen
    assert 'model="x\\"\\napproval_policy=\\"never"' in argv


async def test_a_provider_that_is_none_is_named_with_those_that_are(api):
    parent = await boss(api, "claude", "default")
    _, answer = await spawn(api, parent, provider="gemini")
    assert (answer["code"], answer["hint"]) == ("unknown_provider", "one of claude, codex")


async def test_a_parent_brings_a_child_of_the_other_client_back_with_no_more_than_it_has_now(api):
    parent = await boss(api, "claude", "acceptEdits")
    _, kid = await spawn(api, parent, provider="codex")
    assert launched(api, kid["id"]).arguments[-4:] == ("-s", "workspace-write", "-a", "on-request")
    await api.call("DELETE", f"/sessions/{kid['id']}", api.tokens[parent])
    await until(lambda: len(api.engine.ports.panes.living) == 1)
    actor = api.engine.sessions.actors[parent]
    await actor.ask(ev.PromptSubmitted(at=1.0, conversation=api.conversation(parent), text="x", mode="plan"))
    seen = []
    create = api.engine.ports.panes.create

    async def remembered(session, launch, log):
        seen.append(launch.argv)
        return await create(session, launch, log)

    api.engine.ports.panes.create = remembered
    assert (await api.call("POST", f"/sessions/{kid['id']}/restore", api.tokens[parent], {"env": ENV}))[0] == 200
    assert 'sandbox_mode="read-only"' in seen[0]
    assert 'approval_policy="on-request"' in seen[0]
