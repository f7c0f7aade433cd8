"""Parents and children on the real client: spawned, watched, ended, kept over rotations and servers."""

import asyncio
import signal
from pathlib import Path

import pytest

from sm.processes import alive
from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import AWOKE, HANDED_OFF, WROTE, client_is, person_settings, shell, unsandboxed, wake_request
from tests.e2e.rig import REAL_CLIENT, Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]


def sm(words, **options):
    return Call("Bash", command=f"sm {words}", **options)


def news(request):
    """What is new in a request: a prompt, or what a hook's reply has carried."""
    return f"{request.user_text}\n{request.context_text}"


def told(text):
    """A request in which a notice that holds `text` is new."""
    return lambda request: any(text in line for line in notices(request))


def notices(request):
    """The lines of notices that are new in a request."""
    return [f"[sm{line.partition('[sm')[2]}".strip() for line in news(request).splitlines() if "[sm" in line]


async def child_of(rig, parent, number=0):
    await rig.wait_view(parent, lambda view: len(view["children"]) > number, "with a child")
    return (await rig.ask("GET", f"/sessions/{parent}/children"))[number]


def environment(pid):
    raw = Path(f"/proc/{pid}/environ").read_bytes().decode()
    return dict(line.split("=", 1) for line in raw.split("\0") if "=" in line)


LEAD = Turn("lead the work", steps=[sm("spawn --name kid do part one"), Say("Waiting.")])
PART_ONE = Turn("do part one", steps=[sm("status 'on part one'"), Say("All of it:\nPart one is finished.", delay=0.5)])


async def test_a_parent_is_told_once_when_its_child_has_stopped():
    script = scenario(LEAD, PART_ONE, otherwise=Say("ok"))
    async with Rig(script) as rig:
        parent = await rig.new("lead the work")
        request = await rig.model.wait_for(told("has finished its turn"), within=30)
        child = await child_of(rig, parent)
        assert notices(request) == [
            f'[sm] kid ({child["id"]}) has finished its turn and is idle. Last line: "Part one is finished."'
        ]
        assert 'ago: "on part one"' in news(request)
        assert child["parent"] == parent
        await client_is(rig, "idle")
        await asyncio.sleep(2)
        assert len([r for r in rig.model.main_requests if told("has finished its turn")(r)]) == 1


@pytest.mark.claude_only("the modes and the arguments are those of Claude Code")
async def test_a_child_gets_nothing_of_its_parents_client_and_no_wider_permissions():
    script = scenario(LEAD, PART_ONE, otherwise=Say("ok"))
    async with Rig(script) as rig:
        person_settings(rig, permissions={"defaultMode": "acceptEdits"})
        parent = await rig.new("lead the work", "--permission-mode", "plan", "--disallowedTools", "WebFetch")
        child = await child_of(rig, parent)
        await rig.wait_view(child["id"], lambda view: view["mode"] == "plan", "in plan mode")
        theirs, own = [environment((await rig.view(identity))["pid"]) for identity in (child["id"], parent)]
        assert theirs["CLAUDE_SESSION_MANAGER_ID"] == child["id"]
        assert theirs["SM_SESSION_TOKEN"] != own["SM_SESSION_TOKEN"]
        assert set(theirs) - set(own) == set()
        assert {name for name in own if name not in theirs} <= {"CLAUDE_CODE_AUTO_COMPACT_WINDOW"}
        assert theirs["PATH"] == own["PATH"]
        argv = Path(f"/proc/{(await rig.view(child['id']))['pid']}/cmdline").read_bytes().decode().split("\0")
        assert argv[argv.index("--permission-mode") + 1] == "plan"
        assert argv[argv.index("--disallowedTools") + 1] == "WebFetch"


@pytest.mark.soak
async def test_a_parent_that_rotates_keeps_its_children_notifications_reminders_and_waits():
    start = ("spawn --name one slow work", "spawn --name two slow work", "wait two 60", "remind 8 look at it")
    script = scenario(
        Turn("lead the work", steps=[*map(sm, start), WROTE, HANDED_OFF, Say("Handed off.")]),
        Turn("slow work", steps=[Say("Slow work is finished.", delay=6.0)]),
        Turn(AWOKE, steps=[Say("Going on.")]),
        otherwise=Say("ok"),
    )
    async with Rig(script) as rig:
        person_settings(rig, permissions={"defaultMode": "default", "allow": ["Bash"]})
        parent = await rig.new("lead the work")
        woken = await wake_request(rig)
        view = await rig.view(parent)
        assert {child_view["name"] for child_view in view["children"]} == {"one", "two"}
        assert {child_view["status"] for child_view in view["children"]} <= {"working", "starting", "idle"}
        for text in ("one (", "[sm wait] two (", "[sm remind] look at it"):
            request = await rig.model.wait_for(told(text), within=40)
            assert request.session == woken.session


@pytest.mark.not_in_terminal("it does not tell its sandbox, so its children may only read")
@pytest.mark.soak
async def test_a_killed_child_takes_its_whole_family_of_processes_along_and_a_killed_parent_none_of_its_children():
    grand = "setsid sleep 1234 & (trap '' HUP; exec sleep 1235) & echo $! > grand.pid; wait"
    script = scenario(
        Turn("lead the work", steps=[sm("spawn --name kid run for ever"), Say("Waiting.")]),
        Turn("run for ever", steps=[Call("Bash", command=grand), Say("Done.")]),
        otherwise=Say("ok"),
    )
    async with Rig(script) as rig:
        person_settings(rig, permissions={"defaultMode": "default", "allow": ["Bash"]})
        parent = await rig.new("lead the work", *unsandboxed())
        child = await child_of(rig, parent)
        await rig.until((rig.project / "grand.pid").exists, "the grandchildren run")
        await rig.wait_status(parent, "idle")
        await rig.ask("DELETE", f"/sessions/{parent}")
        await rig.wait_status(parent, "exited")
        pid = int((rig.project / "grand.pid").read_text())
        kid = (await rig.view(child["id"]))["pid"]
        assert alive(pid)
        assert alive(kid)
        await rig.ask("DELETE", f"/sessions/{child['id']}")
        await rig.until(lambda: not alive(kid) and not alive(pid), "all of it has ended")
        marked = f"CLAUDE_SESSION_MANAGER_ID={child['id']}".encode()
        assert not [file for file in Path("/proc").glob("[0-9]*/environ") if marked in read(file)]
        assert (await rig.view(child["id"]))["detail"] == "killed"


def read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.claude_only("its main agent is not told of the end of a subagent for which it does not wait")
@pytest.mark.soak
async def test_a_background_agent_is_no_stop_until_it_has_reported():
    launch = Call("Agent", description="look around", prompt="sub work", subagent_type="general-purpose")
    script = scenario(
        Turn("lead the work", steps=[sm("spawn --name kid use an agent"), Say("Waiting.")]),
        Turn("sub work", steps=[Say("sub done", delay=6.0)]),
        Turn("use an agent", steps=[launch, Say("It looks around.")]),
        Turn("task-notification", steps=[Say("All is done now.")]),
        otherwise=Say("ok"),
    )
    async with Rig(script) as rig:
        await rig.new("lead the work")
        request = await rig.model.wait_for(told("kid ("), within=40)
        assert "has finished its turn" in news(request)
        assert "It looks around." not in news(request)
        assert any("sub done" in request.all_text for request in rig.model.main_requests)


@pytest.mark.soak
async def test_done_tells_the_parent_instead_of_the_stop():
    script = scenario(
        LEAD,
        Turn("do part one", steps=[sm("done 'part one [sm] is \"built\"'"), Say("Finished.", delay=1.0)]),
        otherwise=Say("ok"),
    )
    async with Rig(script) as rig:
        parent = await rig.new("lead the work")
        request = await rig.model.wait_for(told("is done"), within=30)
        child = await child_of(rig, parent)
        assert notices(request) == [f"[sm] kid ({child['id']}) is done: \"part one (sm) is 'built'\""]
        assert child["report"]["done"]
        await asyncio.sleep(3)
        assert not [r for r in rig.model.main_requests if told("has finished its turn")(r)]


@pytest.mark.soak
async def test_a_cleared_child_begins_its_next_task_in_an_empty_context():
    script = scenario(
        LEAD,
        PART_ONE,
        Turn("has finished its turn.*Part one", steps=[sm("clear kid do part two"), Say("Waiting again.")]),
        Turn("do part two", steps=[Say("Part two is finished.")]),
        otherwise=Say("ok"),
    )
    async with Rig(script) as rig:
        parent = await rig.new("lead the work")
        request = await rig.model.wait_for(lambda r: "do part two" in r.user_text, within=40)
        assert "Part one" not in request.all_text
        await rig.model.wait_for(told("Part two is finished."), within=30)
        child = await child_of(rig, parent)
        assert child["rotations"] == 1
        assert child["report"] is None
        assert "HANDOFF LOADED" not in request.all_text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.soak
async def test_a_server_that_goes_and_comes_forgets_no_wait_stop_or_reminder_and_takes_no_busy_child_for_idle(number):
    start = ("spawn --name kid slow work", "remind 9 look at it", "remind 3 early", "wait kid 90")
    script = scenario(
        Turn("lead the work", steps=[*map(sm, start), Say("Waiting.")]),
        Turn("slow work", steps=[Say("Slow work is finished.", delay=14.0)]),
        otherwise=Say("ok"),
    )
    async with Rig(script) as rig:
        person_settings(rig, permissions={"defaultMode": "default", "allow": ["Bash"]})
        parent = await rig.new("lead the work")
        child = (await child_of(rig, parent))["id"]
        await rig.wait_event(child, "PromptSubmitted")
        rig.server.send_signal(number)
        await asyncio.to_thread(rig.server.wait, 20)
        await asyncio.sleep(4)
        await rig.start_server()
        working = await rig.wait_view(child, lambda view: view["status"] != "unknown", "known again")
        assert working["status"] == "working"
        for text in ("[sm remind] early", "[sm remind] look at it", "kid (", "[sm wait] kid"):
            await rig.model.wait_for(told(text), within=40)
        said = [line for r in rig.model.main_requests for line in notices(r)]
        for text in ("early", "look at it", "has finished its turn", "[sm wait]"):
            assert len([line for line in said if text in line]) == 1


BYPASS = "--dangerously-skip-permissions"


async def mode_of_child(rig, *arguments):
    parent = await rig.new("lead the work", *arguments, IS_SANDBOX="1")
    child = await child_of(rig, parent)
    modes = [
        (await rig.wait_view(identity, lambda view: view["mode"], "in a mode"))["mode"]
        for identity in (parent, child["id"])
    ]
    await rig.wait_event(child["id"], "TurnEnded")
    return modes


@pytest.mark.claude_only("the modes and the arguments are those of Claude Code")
@pytest.mark.soak
async def test_a_child_of_a_bypassing_parent_bypasses_too():
    async with Rig(scenario(LEAD, PART_ONE, otherwise=Say("ok"))) as rig:
        person_settings(rig, skipDangerousModePermissionPrompt=True)
        assert await mode_of_child(rig, BYPASS) == ["bypassPermissions"] * 2


@pytest.mark.claude_only("the modes and the arguments are those of Claude Code")
@pytest.mark.soak
async def test_a_configured_bypass_is_no_way_round_the_parents_mode():
    config = f'[claude]\ncommand = "{REAL_CLIENT}"\narguments = ["{BYPASS}"]\n'
    async with Rig(scenario(LEAD, PART_ONE, otherwise=Say("ok")), client=None, config=config) as rig:
        person_settings(rig, skipDangerousModePermissionPrompt=True)
        assert await mode_of_child(rig, "--permission-mode", "acceptEdits") == ["acceptEdits"] * 2


@pytest.mark.claude_only("the tool of a sandboxed agent has no `restore`, which asks its user in a shell")
@pytest.mark.soak
async def test_a_child_that_dies_is_reported_and_brought_back_with_its_conversation_by_its_parent():
    script = scenario(
        Turn("lead the work", steps=[sm("spawn --name kid do part one"), sm("wait kid 90"), Say("Waiting.")]),
        Turn("do part one", steps=[sm("status begun"), Say("Part one is finished.", delay=60)]),
        Turn("sm wait.*has ended", steps=[sm("restore kid"), Say("Brought back.")]),
        otherwise=Say("ok"),
    )
    async with Rig(script) as rig:
        person_settings(rig, permissions={"allow": ["Bash(sm restore:*)"]})  # by itself it asks
        parent = await rig.new("lead the work")
        child = (await child_of(rig, parent))["id"]
        # Measured: a reply is in its transcript, without which no conversation can be resumed.
        before = await rig.wait_view(child, lambda view: view["report"] and view["context"]["tokens"], "at work")
        await rig.wait_status(parent, "idle")
        await rig.kill_client(child)
        request = await rig.model.wait_for(told("[sm wait]"), within=30)
        assert f"[sm wait] kid ({child}) has ended: the client has ended (signal 9)." in notices(request)
        after = await rig.wait_view(child, lambda view: view["pid"] != before["pid"], "brought back")
        assert after["conversation"] == before["conversation"]
        argv = Path(f"/proc/{after['pid']}/cmdline").read_bytes().decode().split("\0")
        assert argv[argv.index("--resume") + 1] == before["conversation"]
        assert argv[argv.index("--permission-mode") + 1] == "default"


@pytest.mark.soak
async def test_after_a_reboot_a_team_is_restored_with_its_reminders():
    start = ("spawn --name kid do part one", "remind 12 look at it")
    lead = Turn("lead the work", steps=[*map(sm, start), Say("Waiting.")])
    async with Rig(scenario(lead, Turn("do part one", steps=[Say("Begun.")]), otherwise=Say("ok"))) as rig:
        person_settings(rig, permissions={"defaultMode": "default", "allow": ["Bash"]})
        parent = await rig.new("lead the work")
        child = (await child_of(rig, parent))["id"]
        await rig.model.wait_for(told("has finished its turn"), within=30)
        await rig.wait_status(parent, "idle")
        await rig.kill_server()
        rig.tmux("kill-server")
        await rig.start_server()
        for identity in (parent, child):
            view = await rig.wait_view(identity, lambda view: view["status"] in {"exited", "crashed"}, "ended")
            assert view["detail"] == "pane lost (tmux stopped or machine rebooted)"
            await rig.ask("POST", f"/sessions/{identity}/restore", {"env": rig.env})
            assert (await rig.wait_status(identity, "idle"))["conversation"] == view["conversation"]
        request = await rig.model.wait_for(told("[sm remind] look at it"), within=30)
        assert "lead the work" in request.all_text
        assert [child_view["id"] for child_view in (await rig.view(parent))["children"]] == [child]


@pytest.mark.not_in_terminal("its dialog opens only once sm has let go of its hook: see `test_codex_terminal.py`")
@pytest.mark.soak
async def test_a_parent_is_told_of_a_dialog_in_which_its_child_is_stuck():
    script = scenario(
        Turn("lead the work", steps=[sm("spawn --name kid do part one"), Say("Waiting.")]),
        Turn(
            "do part one",
            steps=[Call("Bash", command="touch asked", dangerouslyDisableSandbox=True), Say("Part one is finished.")],
        ),
        otherwise=Say("ok"),
    )
    async with Rig(script) as rig:
        parent = await rig.new("lead the work")
        child = (await child_of(rig, parent))["id"]
        request = await rig.model.wait_for(told("waits for the user"), within=60)
        assert notices(request) == [f"[sm] kid ({child}) waits for the user: asks for permission: {shell()}."]
        assert not (rig.project / "asked").exists()
        rig.press(child, "Enter")
        await rig.model.wait_for(told("Part one is finished."), within=30)


@pytest.mark.soak
async def test_a_sender_is_told_of_the_stop_of_its_own_task_and_checks_on_it_after_its_delivery():
    script = scenario(
        Turn("lead the work", steps=[sm("send kid --notify-on-stop --wait 3 do part two"), Say("Waiting.")]),
        Turn("do part one", steps=[Say("Part one is finished.", delay=8.0)]),
        Turn(context="do part two", steps=[Say("Part two is finished.", delay=6.0)]),  # told at the end of its turn
        Turn("do part two", steps=[Say("Part two is finished.", delay=6.0)]),  # by Codex after it
        otherwise=Say("ok"),
    )
    async with Rig(script) as rig:
        kid = await rig.new("do part one", name="kid")
        await rig.wait_event(kid, "PromptSubmitted")
        await rig.new("lead the work", name="boss")
        await rig.model.wait_for(told("has finished its turn"), within=60)
        [stop] = [line for r in rig.model.main_requests for line in notices(r) if "has finished its turn" in line]
        assert stop == f'[sm] kid ({kid}) has finished its turn and is idle. Last line: "Part two is finished."'
        [check] = [line for r in rig.model.main_requests for line in notices(r) if "after your message" in line]
        assert check == f"[sm wait] 3s after your message kid ({kid}) is working."


@pytest.mark.soak
async def test_a_person_clears_an_agent_and_gives_it_another_task():
    """C1: the command of a person, with no session to be told when the task has ended."""
    async with Rig(scenario(Turn("hello", steps=[Say("Hi.")]), otherwise=Say("ok"))) as rig:
        session = await rig.new("hello", name="b")
        await rig.wait_event(session, "TurnEnded")
        first = (await rig.view(session))["conversation"]
        done = await asyncio.to_thread(rig.sm, "clear", "b", "work", "on", "part", "two")
        assert (done.returncode, done.stderr) == (0, "b will be cleared as soon as it is idle\n")
        request = await rig.model.wait_for(lambda request: "work on part two" in request.user_text)
        assert "hello" not in request.all_text
        assert (await rig.view(session))["conversation"] != first
        refused = await asyncio.to_thread(rig.sm, "clear", "b", "-", words="x" * 300_000)
        assert refused.returncode == 1
        assert "at most 262,144 bytes" in refused.stderr
        await rig.wait_status(session, "idle")
        assert len(await rig.events(session, "ClearRequested")) == 1
