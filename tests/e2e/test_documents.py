"""Which document the next context gets, on the real client: the one that this agent handed off, whoever writes what."""

import asyncio
import sys

import pytest

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import (
    AWOKE,
    DOCUMENT,
    GOES_ON,
    HANDED_OFF,
    WROTE,
    client_of_test,
    hands_off,
    person_settings,
    read_at_wake,
    wake_request,
)
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

ADVISED = r"write a handoff document \((?P<file>\.sm/handoff-[0-9a-f]{8}\.md): goal"
"""Where the session's own first words tell it to write."""


def woken_in(conversation):
    return lambda request: AWOKE in request.user_text and request.session == conversation


async def test_an_agent_writes_where_it_is_told_to_and_is_asked_nothing():
    """C2: the path is the session's own, and its client's allow rule covers it."""
    steps = [Call("Write", file_path="{{file}}", content=DOCUMENT), Call("Bash", command="sm handoff {{file}}")]
    async with Rig(scenario(Turn("hand off", anywhere=ADVISED, steps=[*steps, Say("ok")]), GOES_ON)) as rig:
        session = await rig.new("please hand off")
        request = await wake_request(rig)
        view = await rig.wait_phase(session, "done")
        told = read_at_wake(view, f"{rig.project}/.sm/handoff-{session}.md")
        assert request.user_text.strip() == f"Read {told} and {AWOKE}."
        assert not await rig.events(session, "PermissionAsked")


@pytest.mark.parametrize("shared", [".sm/handoff.md", "notes.md"])
@pytest.mark.often(".sm/handoff.md")
async def test_two_agents_of_one_directory_wake_with_their_own_documents(shared):
    """C2: B writes over the file that A has handed off, while A's turn lasts."""
    if client_of_test() == "codex" and not shared.startswith(".sm/"):
        shared = f".sm/{shared}"  # where its agent's tool takes a file

    def writes(name, *rest):
        command = f"mkdir -p .sm; printf 'The goal of {name}.\\n' > {shared}"
        return Turn(f"hand off {name}", steps=[Call("Bash", command=command), Call("Bash", command=call), *rest])

    call = f"sm handoff {shared}"
    lasts = Call("Bash", command="until [ -e go ]; do sleep 0.1; done")
    script = scenario(writes("A", lasts, Say("ok")), writes("B", Say("ok")), GOES_ON, otherwise=Say("ok"))
    async with Rig(script) as rig:
        person_settings(rig, permissions={"defaultMode": "default", "allow": ["Bash"]})
        first = await rig.new("please hand off A", name="a")
        await rig.wait_phase(first, "pending")
        second = await rig.new("please hand off B", name="b")
        await rig.wait_phase(second, "done")
        (rig.project / "go").touch()
        await rig.wait_phase(first, "done")
        for session, name, other in ((first, "A", "B"), (second, "B", "A")):
            view = await rig.view(session)
            request = await rig.model.wait_for(woken_in(view["conversation"]))
            assert f"The goal of {name}." in request.all_text
            assert f"The goal of {other}." not in request.all_text
            told = view["handoff"]["copy"] if name == "A" else read_at_wake(view, f"{rig.project}/{shared}")
            assert request.user_text.strip() == f"Read {told} and {AWOKE}."


@pytest.mark.parametrize("command", ["echo 'LATER WORDS' >> .sm/handoff.md", "git stash -q", "cp other .sm/handoff.md"])
@pytest.mark.soak
async def test_a_script_that_writes_the_file_after_the_call_changes_nothing(command):
    """C2: a formatter, `git stash`, a build step."""
    later = Call("Bash", command=f"sleep 0; {command}")
    async with Rig(hands_off(later, Say("Handed off."))) as rig:
        person_settings(rig, permissions={"defaultMode": "default", "allow": ["Bash"]})
        git = "git init -q && mkdir .sm && echo old > .sm/handoff.md && echo LATER WORDS > other && git add -A -f"
        commit = "git -c user.name=n -c user.email=e commit -qm one && rm .sm/handoff.md"
        made = await asyncio.create_subprocess_shell(f"{git} && {commit}", cwd=rig.project)
        assert await made.wait() == 0
        session = await rig.new("please hand off")
        request = await wake_request(rig)
        assert "LATER WORDS" not in request.all_text.rpartition("=== HANDOFF LOADED")[2]
        assert request.user_text.strip() == f"Read {(await rig.view(session))['handoff']['copy']} and {AWOKE}."


@pytest.mark.parametrize("file", [".sm/handoff.md", "docs/next.md"])
@pytest.mark.often(".sm/handoff.md")
@pytest.mark.claude_only("the tool of a sandboxed agent hands off a text, which no later change of a file changes")
async def test_what_the_agents_own_tools_add_after_the_call_is_in_the_document(file):
    """C2: a later change counts where it came from this session's own tools."""
    edit = Call("Edit", file_path=file, old_string="Next step: N.", new_string="Next step: N.\nLATER WORDS")
    write, call = Call("Write", file_path=file, content=DOCUMENT), Call("Bash", command=f"sm handoff {file}")
    script = scenario(Turn("hand off", steps=[write, call, edit, Say("ok")]), GOES_ON, otherwise=Say("ok"))
    async with Rig(script) as rig:
        person_settings(rig, permissions={"defaultMode": "acceptEdits", "allow": ["Bash"]})
        await rig.new("please hand off")
        request = await wake_request(rig)
        assert "LATER WORDS" in request.all_text
        assert request.user_text.strip() == f"Read {rig.project}/{file} and {AWOKE}."


HOSTILE = {
    "a link to our token": ("ln -s {home}/token notes.md", "sm handoff notes.md"),
    "our token itself": ("true", "sm handoff {home}/token"),
    "a copy of it": ("cp {home}/token notes.md", "sm handoff notes.md"),
    "a hard link to it": ("ln {home}/token notes.md", "sm handoff notes.md"),
    "a file elsewhere": ("echo PRIVATE > {home}/../private", "sm handoff ../private"),
    "a link to one": ("echo PRIVATE > {home}/../private; ln -s ../private notes.md", "sm handoff notes.md"),
    "a directory that is a link": (
        "mkdir {home}/../out; echo PRIVATE > {home}/../out/a; ln -s ../out d",
        "sm handoff d/a",
    ),
}


@pytest.mark.parametrize("how", HOSTILE)
@pytest.mark.often("our token itself")
async def test_an_agent_gets_no_secret_into_its_next_context(how):
    """C22: the hostile agent; its client would ask before it reads any of these."""
    prepared, called = HOSTILE[how]
    async with Rig(scenario(otherwise=Say("ok"))) as rig:
        made = await asyncio.create_subprocess_shell(prepared.format(home=rig.home.root), cwd=rig.project)
        assert await made.wait() == 0
        token = rig.home.token.read_text().strip()
        rig.model.play(Turn("now", steps=[Call("Bash", command=called.format(home=rig.home.root)), Say("ok")]))
        session = await rig.new("do it now")
        await rig.wait_event(session, "TurnEnded")
        await rig.wait_status(session, "idle")
        assert (await rig.view(session))["handoff"]["phase"] is None
        assert not list(rig.home.handoffs.glob("*/*.md"))
        seen = "".join(request.all_text for request in rig.model.requests)
        assert "Cannot hand off" in seen
        assert token not in seen
        assert "PRIVATE" not in seen


async def test_a_file_swapped_for_a_link_before_the_turn_ends_is_not_followed():
    """C43"""
    swap = Call("Bash", command="ln -sf /etc/passwd .sm/handoff.md")
    async with Rig(hands_off(swap, Say("Handed off."))) as rig:
        person_settings(rig, permissions={"defaultMode": "default", "allow": ["Bash"]})
        await rig.new("please hand off")
        request = await wake_request(rig)
        assert "root:" not in request.all_text.rpartition("=== HANDOFF LOADED")[2]


SKEWED = """
import sys, time
import sm.clock
ahead = float(sys.argv[1])
class Skewed:
    def __getattr__(self, name):
        return getattr(time, name)
    def time(self):
        return time.time() + ahead
sm.clock.time = Skewed()
from sm.cli import main
sys.argv = ["sm", "server", "run"]
main()
"""


class SkewedRig(Rig):
    """Its server read the clock when that was wrong; it was put right since."""

    ahead = "0"

    def server_command(self):
        return [sys.executable, "-c", SKEWED, self.ahead]


@pytest.mark.parametrize("ahead", ["120", "2.5", "-119"])
@pytest.mark.soak
async def test_a_clock_that_was_set_since_the_servers_start_loses_nothing(ahead):
    """C4: an agent can hand off, and an important message is told once."""
    works = [Call("Bash", command="sleep 1") for _ in range(3)]
    script = scenario(
        Turn("hand off", steps=[WROTE, HANDED_OFF, Say("Handed off.")]),
        Turn("work on", steps=[*works, Say("done")]),
        GOES_ON,
        otherwise=Say("ok"),
    )
    rig = SkewedRig(script)
    rig.ahead = ahead
    async with rig:
        session = await rig.new("hello", "--allowedTools", "Bash")
        await rig.wait_event(session, "TurnEnded")
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "work on it"})
        await rig.model.wait_for(lambda request: "work on" in request.user_text)
        body = {"text": "important qqq2", "mode": "important"}
        message = (await rig.ask("POST", f"/sessions/{session}/messages", body))["id"]
        await rig.wait_event(session, "TurnEnded", 2)

        async def state():
            return (await rig.ask("GET", f"/messages/{message}"))["state"]

        while await state() not in {"confirmed", "unconfirmed", "failed"}:
            await asyncio.sleep(0.1)
        assert await state() == "confirmed"
        await rig.wait_status(session, "idle")
        assert rig.model.main_requests[-1].all_text.count("important qqq2") == 1
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "please hand off"})
        await wake_request(rig)
        await rig.wait_phase(session, "done")
