"""Another client continues a session, on the real clients: there and back with its team, and when it does not start."""

import asyncio
import json
import stat

import pytest

from sm.processes import alive
from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import AWOKE
from tests.e2e.rig import CODEX, REAL_CLIENT, Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

DOCUMENT = "# Handoff\nThe goal is G.\nNext step: N.\n"
HELLO = Turn("hello", steps=[Say("Here.")])
AWOKEN = Turn(AWOKE, steps=[Say("Going on.", delay=0.2)])
NOTE = "a note for whoever continues"
CONFIG = f"""
[claude]
command = "{REAL_CLIENT}"

[team]
may_switch = true

[codex]
command = "CODEX"
"""


def switching(*turns, codex=str(CODEX), **more):
    script = scenario(*turns, AWOKEN, otherwise=Say("ok"))
    return Rig(script, config=CONFIG.replace("CODEX", codex), client=None, **more)


def sm(words, **options):
    return Call("Bash", command=f"sm {words}", **options)


def hands_off(to):
    document = Call("Write", file_path=".sm/handoff.md", content=DOCUMENT)
    return [document, sm(f"handoff .sm/handoff.md --to {to}"), Say("Handed off.", delay=0.3)]


async def idle(rig, prompt="hello", *arguments, **more):
    session = await rig.new(prompt, *arguments, **more)
    await rig.wait_event(session, "TurnEnded")
    await rig.wait_status(session, "idle")
    return session


def ordered(rig, session, provider, *arguments):
    path = rig.root / f"{provider}.md"
    path.write_text(DOCUMENT)
    return rig.sm("handoff", str(path), "--to", provider, "--session", session, *arguments)


async def continues(rig, session, provider, *arguments):
    """A person has that client continue, once the session is idle; return its view then."""
    before = await rig.wait_status(session, "idle")
    done = ordered(rig, session, provider, *arguments)
    assert done.returncode == 0, done.stderr
    return await settled(rig, session, provider, before["rotations"] + 1)


async def settled(rig, session, provider, rotations=1):
    def expected(view):
        handoff = view["handoff"]["phase"], view["queued"]
        return (view["provider"], view["rotations"], view["status"], *handoff) == (
            provider,
            rotations,
            "idle",
            "done",
            0,
        )

    return await rig.wait_view(session, expected, f"continued with {provider}")


def woken(rig):
    return [request for request in rig.model.main_requests if AWOKE in request.user_text]


def told(rig, text):
    """How often the model was told it: a conversation's last request holds all of it."""
    last = {request.session: request for request in rig.model.main_requests}
    return sum(request.all_text.count(text) for request in last.values())


async def test_a_session_goes_on_with_the_other_client_and_back():
    async with switching(HELLO) as rig:
        session = await idle(rig)
        first = await rig.view(session)
        second = await continues(rig, session, "codex")
        assert (second["id"], second["name"], second["model"]) == (session, first["name"], "scripted-model")
        assert DOCUMENT.strip() in woken(rig)[-1].all_text
        assert not alive(first["pid"])
        third = await continues(rig, session, "claude")
        assert third["past_conversations"] == [first["conversation"], second["conversation"]]
        chain = [entry for entry in await rig.ask("GET", "/handoffs") if entry["session"] == session]
        assert [(entry["state"], entry["conversation"]) for entry in chain] == [
            ("consumed", second["conversation"]),
            ("consumed", first["conversation"]),
        ]

        def used():
            [cost] = rig.call("GET", "/cost")
            return [context["spent"]["requests"] > 0 for context in cost["contexts"]]

        await rig.until(lambda: used() == [True] * 3, "each context with what it has used")


@pytest.mark.soak
async def test_a_codex_in_its_terminal_asks_its_user_first_and_then_continues():
    """It has a dialog of its own for a folder whose configuration is kept out (0.171.0)."""
    async with switching(HELLO) as rig:
        session = await idle(rig)
        assert ordered(rig, session, "codex-tui").returncode == 0
        await rig.wait_event(session, "SessionLaunched", provider="codex-tui")
        await rig.wait_screen(session, "1. Open restricted")
        await asyncio.sleep(1)
        rig.press(session, "Enter")
        await settled(rig, session, "codex-tui")
        assert DOCUMENT.strip() in woken(rig)[-1].all_text
        await continues(rig, session, "claude")
        assert DOCUMENT.strip() in woken(rig)[-1].all_text
        assert len(woken(rig)) == 2


@pytest.mark.soak
async def test_a_team_of_both_clients_keeps_together_while_its_parent_changes_its_own():
    lead = Turn("lead", steps=[sm("spawn --provider codex --name kid help me"), Say("Waiting.")])
    helps = Turn("help me", steps=[sm("status 'on it'"), Say("Helped.")])
    asks = Turn("ask for more", steps=[sm("spawn --provider claude --name other look at it"), Say("Asked.")])
    looks = Turn("look at it", steps=[Say("Looked.")])
    reports = Turn("report back", steps=[sm("send parent 'all is well'"), Say("Reported.")])
    async with switching(lead, helps, asks, looks, reports) as rig:
        parent = await rig.new("lead", "--allowedTools", "Bash(sm:*)")
        await rig.wait_view(parent, lambda view: view["children"], "a parent")
        await rig.model.wait_for(lambda request: "Helped." in request.all_text and "kid" in request.all_text)
        [kid] = await rig.ask("GET", f"/sessions/{parent}/children")
        assert (kid["provider"], kid["parent"], kid["report"]["text"]) == ("codex", parent, "on it")

        await continues(rig, parent, "codex")
        await rig.ask("POST", f"/sessions/{parent}/messages", {"text": "ask for more"})
        await rig.wait_view(parent, lambda view: len(view["children"]) == 2, "with both children")
        children = {child["name"]: child for child in await rig.ask("GET", f"/sessions/{parent}/children")}
        assert {name: child["provider"] for name, child in children.items()} == {"kid": "codex", "other": "claude"}
        await rig.model.wait_for(lambda request: "Looked." in request.all_text and "other" in request.all_text)

        await continues(rig, children["other"]["id"], "codex")
        for name in children:  # to the children, and from them to their parent
            await rig.ask("POST", f"/sessions/{children[name]['id']}/messages", {"text": "report back"})
            await rig.wait_event(children[name]["id"], "TurnEnded", 3 if name == "other" else 2)
        await rig.wait_view(parent, lambda view: view["status"] == "idle" and view["queued"] == 0, "told")
        assert told(rig, "all is well") >= 2
        assert (await continues(rig, parent, "claude"))["provider"] == "claude"
        assert {child["name"] for child in await rig.ask("GET", f"/sessions/{parent}/children")} == {"kid", "other"}


@pytest.mark.parametrize(("own", "to"), [("claude", "codex"), ("codex", "claude")])
@pytest.mark.often("claude-codex")
async def test_an_agent_hands_off_to_the_other_client_by_itself(own, to):
    async with switching(Turn("hand off", steps=hands_off(to))) as rig:
        arguments = ["--allowedTools", "Bash(sm:*)"] if own == "claude" else ["-s", "workspace-write", "-a", "never"]
        session = await rig.new("please hand off", *arguments, provider=own)
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": NOTE})
        view = await settled(rig, session, to)
        assert DOCUMENT.strip() in woken(rig)[-1].all_text
        assert told(rig, NOTE) == 1
        expected = {"codex": "read-only on-request", "claude": "acceptEdits"}
        assert view["mode"] == expected[to]


PHASES = {
    "requested": "kind = 'HandoffRequested'",
    "turn ended": "kind = 'TurnEnded'",
    "exchanged": "kind = 'SnapshotTaken'",
    "launched": "kind = 'SessionLaunched' AND json_extract(data, '$.provider') = 'codex'",
    "begun": "kind = 'ConversationStarted' AND json_extract(data, '$.pid') IS NOT NULL AND number > 20",
    "done": "kind = 'PromptSubmitted' AND json_extract(data, '$.text_size') > 40",
}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.often("exchanged")
async def test_a_server_that_is_killed_at_any_step_lets_the_other_client_continue_after_its_restart(phase):
    async with switching(Turn("hand off", steps=hands_off("codex"))) as rig:
        session = await rig.new("please hand off", "--allowedTools", "Bash(sm:*)")
        await rig.wait_event(session, "PromptSubmitted")
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": NOTE})
        await rig.recorded(PHASES[phase])
        await rig.kill_server()
        await rig.start_server()
        await settled(rig, session, "codex")
        [wake] = woken(rig)
        named = f"Read {rig.project}/.sm/handoff.md" in wake.user_text  # killed in between, it told no more than that
        assert DOCUMENT.strip() in wake.all_text or named
        assert told(rig, NOTE) == 1


@pytest.mark.soak
async def test_a_server_that_is_killed_while_no_client_is_left_starts_the_other_one():
    async with switching(HELLO) as rig:
        session = await idle(rig)
        pid = (await rig.view(session))["pid"]
        assert ordered(rig, session, "codex").returncode == 0
        while alive(pid):
            await asyncio.sleep(0.001)
        await rig.kill_server()
        await rig.start_server()
        await settled(rig, session, "codex")


@pytest.mark.parametrize("why", ["gone", "ends at once"])
@pytest.mark.often("gone")
async def test_where_the_other_client_does_not_start_the_one_before_continues(why, tmp_path):
    program = tmp_path / "codex"
    program.write_text(f'#!/bin/sh\nexec {CODEX} "$@"\n')
    program.chmod(stat.S_IRWXU)
    async with switching(Turn("hand off", steps=hands_off("codex")), codex=str(program)) as rig:
        parent = await idle(rig, "hello", name="boss")
        body = {"dir": str(rig.project), "prompt": "please hand off", "env": rig.env, "name": "kid"}
        # its own settings let it run `sm`
        session = (await rig.ask("POST", f"/sessions/{parent}/children", body))["id"]
        await rig.wait_event(session, "HandoffRequested")
        program.unlink()
        if why == "ends at once":
            program.write_text("#!/bin/sh\necho no such model; exit 3\n")
            program.chmod(stat.S_IRWXU)
        view = await settled(rig, session, "claude")
        assert DOCUMENT.strip() in woken(rig)[-1].all_text
        words = {"gone": "codex was not started: Client not found", "ends at once": "codex did not start"}[why]
        await rig.model.wait_for(lambda request: words in request.all_text)
        assert words in rig.home.server_log.read_text()
        assert view["parent"] == parent


async def test_more_rights_take_a_persons_word():
    document = Call("Write", file_path=".sm/handoff.md", content=DOCUMENT)
    widens = [document, sm("handoff .sm/handoff.md --to codex -- --yolo"), Say("I tried.")]
    async with switching(Turn("hand off", steps=widens)) as rig:
        session = await idle(rig, "hand off", "--allowedTools", "Bash(sm:*)")
        assert "An agent gives no client arguments" in rig.model.main_requests[-1].tool_results[-1].text
        assert (await rig.view(session))["handoff"]["phase"] is None
        view = await continues(rig, session, "codex", "--", "-s", "danger-full-access", "-a", "never")
        assert view["mode"] == "danger-full-access never"
        back = await continues(rig, session, "claude", "--", "--permission-mode", "acceptEdits")
        assert back["mode"] == "acceptEdits"


async def test_what_an_agent_has_put_into_the_configuration_of_the_other_client_is_not_run():
    """Codex runs a project's server of tools outside of its sandbox, and Claude Code a project's hooks."""
    async with switching(HELLO) as rig:
        session = await idle(rig)
        mark = rig.root / "was-run"
        (rig.project / ".codex").mkdir()
        evil = f'[mcp_servers.evil]\ncommand = "touch"\nargs = ["{mark}"]\n'
        (rig.project / ".codex" / "config.toml").write_text(evil)
        await continues(rig, session, "codex")
        (rig.project / ".claude").mkdir(exist_ok=True)
        hook = {"hooks": [{"type": "command", "command": f"touch {mark}"}]}
        (rig.project / ".claude" / "settings.json").write_text(json.dumps({"hooks": {"SessionStart": [hook]}}))
        await continues(rig, session, "claude")
        assert not mark.exists()


async def test_what_is_wrong_with_the_wish_is_said_at_once():
    async with switching(HELLO) as rig:
        session = await idle(rig)
        refused = ordered(rig, session, "gemini")
        assert refused.returncode == 1
        assert "No provider 'gemini'" in refused.stderr
        assert "one of claude, codex" in refused.stderr
        assert ordered(rig, session, "codex", "--", "--remote", "x").returncode == 1
        assert ordered(rig, session, "claude", "--", "--verbose").returncode == 1
        assert (await rig.view(session))["handoff"]["phase"] is None


@pytest.mark.soak
async def test_a_killed_session_stays_dead_and_leaves_no_client():
    async with switching(HELLO) as rig:
        session = await idle(rig)
        assert ordered(rig, session, "codex").returncode == 0
        await rig.recorded("kind = 'SnapshotTaken'")
        rig.sm("kill", session)
        await rig.wait_status(session, "exited")
        await asyncio.sleep(2)
        await rig.until(
            lambda: session not in rig.tmux("list-panes", "-a", "-F", "#{@sm_session} #{pane_dead}"), "no pane"
        )
        assert (await rig.view(session))["status"] == "exited"
