"""Codex through its app-server, on the real client: started, prompted, measured, warned, told, asked and kept."""

import asyncio
import errno
import os
import signal
import subprocess
import tomllib
from pathlib import Path

import pytest

from sm.paths import HOOK_SOCKET
from sm.providers.codex.app import schema
from sm.providers.codex.app.rpc import connected
from sm.testing.scenario import Call, Say, Turn, scenario
from sm.tmux.names import socket_path
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

TOUCH = Call("exec_command", cmd="touch asked-for", sandbox_permissions="require_escalated", justification="make it")
WORK = Turn("work on it", steps=[Call("Bash", command="sleep 2"), Call("Bash", command="sleep 1"), Say("Done.")])
WARNING = "Consider writing a handoff doc"


def codex(*turns, **more):
    return Rig(scenario(*turns, otherwise=Say("ok"), **more.pop("script", {})), provider="codex", **more)


async def asked(rig):
    found = []

    def there():
        found[:] = [ask for ask in rig.call("GET", "/asks") if ask["state"] == "open"]
        return len(found) == 1

    await rig.until(there, "an ask")
    return found[0]


async def ended(rig, session, count=1):
    await rig.wait_event(session, "TurnEnded", count)
    return rig.model.main_requests[-1].tool_results[-1]


def told(rig, words):
    return [number for number, request in enumerate(rig.model.main_requests) if words in request.context_text]


def below(pid):
    """The processes below one, by their command lines."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                found[int(entry.name)] = parent, (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except (OSError, ValueError):
                continue
    inside, more = {pid}, True
    while more:
        more = {child for child, (parent, _) in found.items() if parent in inside} - inside
        inside |= more
    return {child: found[child][1] for child in inside - {pid}}


def native_processes(pid, words):
    """The client's own processes, not their wrappers in Node."""
    return [child for child, command in below(pid).items() if words in command and not command.startswith("node")]


async def test_works_on_a_prompt_and_is_measured_by_its_protocol():
    says = Call("Bash", command="echo there").but(context=30_000)
    async with codex(Turn("hello", steps=[says, Say("Done.")])) as rig:
        session = await rig.new("hello")
        assert "there" in (await ended(rig, session)).text
        view = await rig.wait_view(session, lambda view: view["context"]["tokens"] == 30_500, "measured")
        assert view["context"]["usable"] == 244_800
        assert view["status"] == "idle"
        await rig.wait_screen(session, "• Done.")


async def test_the_warning_is_in_the_very_next_request_and_comes_once():
    looks = Call("Bash", command="sleep 0.3")
    sizes = (50_000, 170_000, 171_000, 172_000)
    async with codex(Turn("work", steps=[*(looks.but(context=size) for size in sizes), Say("Done.")])) as rig:
        session = await rig.new("work")
        await rig.wait_event(session, "TurnEnded")
        assert told(rig, WARNING) == [2]
        assert list((await rig.ask("GET", f"/sessions/{session}/context"))["crossed_at"]) == ["warning"]


@pytest.mark.parametrize("mode", ["sequential", "important", "urgent", "steer"])
@pytest.mark.often("steer")
async def test_a_message_to_an_agent_that_works_arrives_once(mode):
    async with codex(WORK) as rig:
        session = await rig.new("work on it")
        await rig.model.wait_for(lambda request: "work on it" in request.user_text)
        await asyncio.sleep(0.5)
        body = {"text": "look at the tests", "mode": mode}
        message = (await rig.ask("POST", f"/sessions/{session}/messages", body))["id"]
        await rig.until(lambda: rig.call("GET", f"/messages/{message}")["state"] == "confirmed", "confirmed", 30)
        await rig.wait_status(session, "idle")
        last = {request.session: request for request in rig.model.main_requests}
        assert sum(request.all_text.count("look at the tests") for request in last.values()) == 1


async def test_a_permission_is_allowed_from_a_shell():
    async with codex(Turn("go", steps=[TOUCH, Say("done")])) as rig:
        session = await rig.new("go", "-s", "workspace-write", "-a", "on-request")
        ask = await asked(rig)
        assert (ask["kind"], ask["tool"]) == ("permission", "exec_command")
        assert "touch asked-for" in ask["input"]["command"]
        await rig.wait_screen(session, "Would you like to run the following command?")
        assert rig.sm("approve", ask["id"]).returncode == 0
        assert not (await ended(rig, session)).is_error
        assert (rig.project / "asked-for").exists()
        await rig.until(lambda: "Would you like" not in rig.screen(session), "the dialog is gone")


async def test_a_permission_is_denied_with_a_reason_that_the_agent_reads():
    async with codex(Turn("go", steps=[TOUCH, Say("done")])) as rig:
        session = await rig.new("go", "-s", "workspace-write", "-a", "on-request")
        ask = await asked(rig)
        assert rig.sm("deny", ask["id"], "no:", "use", "make").returncode == 0
        await ended(rig, session)
        assert "no: use make" in rig.model.main_requests[-1].all_text
        assert not (rig.project / "asked-for").exists()


async def test_what_is_answered_in_the_screen_is_asked_nowhere_else():
    async with codex(Turn("go", steps=[TOUCH, Say("done")])) as rig:
        session = await rig.new("go", "-s", "workspace-write", "-a", "on-request")
        ask = await asked(rig)
        await rig.wait_screen(session, "Would you like to run the following command?")
        rig.press(session, "Enter")
        assert not (await ended(rig, session)).is_error
        await rig.until(lambda: rig.call("GET", f"/asks/{ask['id']}")["state"] == "withdrawn", "withdrawn")


@pytest.mark.soak
async def test_a_server_that_is_killed_finds_the_turn_that_ended_without_it():
    async with codex(WORK) as rig:
        session = await rig.new("work on it")
        await rig.model.wait_for(lambda request: "work on it" in request.user_text)
        await rig.kill_server()
        await rig.until(lambda: "• Done." in rig.screen(session), "the agent works on")
        await rig.start_server()
        await rig.wait_status(session, "idle")
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "look at the tests"})
        await rig.model.wait_for(lambda request: "look at the tests" in request.user_text)


async def test_an_ask_outlives_the_server():
    async with codex(Turn("go", steps=[TOUCH, Say("done")])) as rig:
        session = await rig.new("go", "-s", "workspace-write", "-a", "on-request")
        first = await asked(rig)
        await rig.kill_server()
        await rig.start_server()
        ask = await asked(rig)
        assert ask["id"] == first["id"]
        assert rig.sm("approve", ask["id"]).returncode == 0
        assert not (await ended(rig, session)).is_error


@pytest.mark.soak
async def test_a_killed_screen_comes_back_and_a_killed_app_server_ends_the_session():
    async with codex(Turn("hello", steps=[Say("Here I am.")])) as rig:
        session = await rig.new("hello")
        await rig.wait_event(session, "TurnEnded")
        await rig.wait_screen(session, "Here I am.")
        pid = (await rig.view(session))["pid"]
        os.kill(native_processes(pid, " resume ")[0], signal.SIGKILL)
        await rig.until(lambda: "Here I am." not in rig.screen(session), "the screen is gone", 5)
        await rig.wait_screen(session, "Here I am.")
        assert (await rig.view(session))["status"] == "idle"
        os.kill(native_processes(pid, " app-server ")[0], signal.SIGKILL)
        await rig.wait_view(session, lambda view: view["status"] in {"crashed", "exited"}, "ended")
        assert not below(pid)
        await rig.ask("POST", f"/sessions/{session}/restore", {"env": rig.env})
        await rig.wait_status(session, "idle")
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "are you there"})
        request = await rig.model.wait_for(lambda request: "are you there" in request.user_text)
        assert "Here I am." in request.all_text


async def test_a_folder_that_the_user_has_not_trusted_stays_so_and_nothing_is_asked():
    async with codex(Turn("hello", steps=[Say("Here I am.")]), trusted=False) as rig:
        subprocess.run(["git", "init", "-q", str(rig.project)], check=True)
        file = rig.root / "home" / ".codex" / "config.toml"
        session = await rig.new("hello", "-s", "workspace-write", "-a", "on-request")
        await rig.wait_event(session, "TurnEnded")
        await rig.wait_screen(session, "Here I am.")
        assert "projects" not in tomllib.loads(file.read_text())


async def test_an_agent_in_the_sandbox_reaches_neither_its_app_server_nor_ours():
    tries = "import socket,sys\nfor path in sys.argv[1:]:\n try: socket.socket(1).connect(path); print('reached')\n"
    tries += " except OSError as problem: print(problem.errno)\n"
    async with codex(Turn("go", steps=[Call("Bash", command="python3 try.py $(cat paths)"), Say("done")])) as rig:
        (rig.project / "try.py").write_text(tries)
        session = await rig.new(None, "-s", "workspace-write", "-a", "never")
        sockets = [socket_path(rig.home.root, f"codex-{session}.sock"), socket_path(rig.home.root, HOOK_SOCKET)]
        (rig.project / "paths").write_text(" ".join(map(str, sockets)))
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "go"})
        assert (await ended(rig, session)).text.split() == [str(errno.EPERM)] * 2


@pytest.mark.soak
async def test_a_goal_goes_on_in_the_new_thread_alone():
    document = "# Handoff\nThe goal is G.\nNext step: N.\n"
    hands_off = [Call("create_goal", objective="finish G"), Call("mcp__sm__handoff", document=document), Say("Bye.")]
    goes_on = [Say("Going on."), Call("update_goal", status="complete"), Say("All done.")]
    async with codex(Turn("go now", steps=hands_off), Turn("continue from where", steps=goes_on)) as rig:
        session = await rig.new("go now", "--yolo")
        await rig.wait_screen(session, "All done.")
        view = await rig.wait_phase(session, "done")
        async with connected(str(socket_path(rig.home.root, f"codex-{session}.sock"))) as rpc:
            ids = (*view["past_conversations"], view["conversation"])
            goals = [(await rpc.call(schema.ThreadGoalGet(thread_id=thread))).goal for thread in ids]
        assert [(goal.objective, goal.status) for goal in goals] == [
            ("finish G", "paused"),
            ("finish G", "complete"),
        ]
        before = len(rig.model.main_requests)
        await asyncio.sleep(1)
        assert len(rig.model.main_requests) == before


@pytest.mark.soak
async def test_a_draft_in_the_screen_is_there_again_after_a_rotation():
    document = "# Handoff\nThe goal is G.\nNext step: N.\n"
    hands_off = [Call("mcp__sm__handoff", document=document), Say("Bye.", delay=2.0)]
    async with codex(Turn("hand off", steps=hands_off), Turn("continue from where", steps=[Say("On.")])) as rig:
        session = await rig.new("hand off")
        await rig.wait_phase(session, "pending")
        rig.type(session, "and look at $HOME too")
        await rig.wait_screen(session, "and look at $HOME too")
        await rig.wait_phase(session, "done")
        await rig.wait_screen(session, "On.")
        await rig.until(lambda: "\u203a and look at $HOME too" in rig.screen(session), "the draft is back")
        assert not any("look at $HOME" in request.all_text for request in rig.model.requests)


@pytest.mark.parametrize("provider", ["codex", "codex-tui"])
async def test_no_client_runs_in_the_daemon_that_all_terminals_of_the_user_share(provider):
    """Its tools and hooks would have the environment of whichever terminal came first."""
    shows = Call("Bash", command="echo $CLAUDE_SESSION_MANAGER_ID")
    async with codex(Turn("who", steps=[shows, Say("Done.")])) as rig:
        file = rig.root / "home" / ".codex" / "config.toml"
        text = file.read_text()
        assert "daemon_auto_start = false\n" in text
        file.write_text(text.replace("daemon_auto_start = false\n", "daemon_auto_start = true\n"))
        for name in ("a", "b"):
            session = await rig.new("who", "-s", "danger-full-access", "-a", "never", name=name, provider=provider)
            assert (await ended(rig, session)).text.strip() == session
        assert not (file.parent / "packages" / "app-server-daemon").exists()
        assert not (file.parent / "app-server-control" / "app-server-control.sock").exists()
