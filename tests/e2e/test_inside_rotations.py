"""What a rotation by the plugin leaves as it is, on the real client: many in one client, whatever its user is at."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

import pytest

from sm.processes import descendants
from sm.testing.scenario import Call, Say, Step, Turn, scenario
from tests.e2e.people import (
    AWOKE,
    Person,
    box_shows,
    box_text,
    client_state,
    held,
    look,
    paste,
    person_settings,
    submit,
)
from tests.e2e.rig import PATIENCE, Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

ROUNDS = 20
BY_MOD = '[claude]\ndriver = "auto"\n[handoff]\nwait_background = 0\n'
HELD = Call("Bash", command="until [ -e go-{{n}} ]; do sleep 0.02; done")
"""The turn does not end before its user has done what they do."""
ASKING = {"permissions": {"defaultMode": "default"}}
ALLOWED = {"permissions": {"defaultMode": "default", "allow": ["Bash"]}}
VIM = {**ALLOWED, "editorMode": "vim"}
ASKS = Call("Bash", command="touch asked-{{n}}")


def document(number):
    return f"# Handoff {number}\n\nThe goal is G{number}.\nNext step: N{number}.\n"


class Plain:
    """Nobody does anything. The other cases say what their user does, and what must still be so afterwards."""

    before = ()
    steps = ()
    """What the agent does before its document is handed off, and after it."""
    last = Say("Over for {{n}}.")
    turns = ()
    compaction = Step(say="The work so far, in short.")
    settings = ALLOWED
    arguments = ()
    rounds = ROUNDS

    def script(self):
        handoff = Call("mcp__sm__handoff", document=document("{{n}}"))
        works = Turn(r"please hand off (?P<n>\d+)", steps=[*self.before, handoff, *self.steps, self.last])
        wakes = Turn(AWOKE, steps=[Say("Going on.")])
        return scenario(works, wakes, *self.turns, otherwise=Say("ok"), compaction=self.compaction)

    async def prepare(self, rig, session):
        """Once, in the idle client."""

    async def during(self, rig, session, number):
        """While the turn runs that hands off."""

    async def check(self, rig, session, number, request):
        """The first request of the new context has come, and its turn is over."""
        await box_shows(rig, session, "")


@dataclass
class Draft(Plain):
    text: str

    async def prepare(self, rig, session):
        paste(rig, session, self.text)
        await box_shows(rig, session, self.text)

    async def check(self, rig, session, number, request):
        assert box_text(rig, session) == self.text


class Typing(Plain):
    """A key every 40 ms, from before the message until after the turn of the new context."""

    keys = "thequickbrownfoxjumpsoverthelazydog"

    async def prepare(self, rig, session):
        self.typed, self.stopped = "", asyncio.Event()

    async def during(self, rig, session, number):
        self.typed = ""
        self.stopped.clear()
        self.task = asyncio.get_running_loop().create_task(self.type(rig, session))

    async def type(self, rig, session):
        with Person(rig, session) as person:
            while not self.stopped.is_set():
                key = self.keys[len(self.typed) % len(self.keys)]
                person.type(key)
                self.typed += key
                await asyncio.sleep(0.04)

    async def check(self, rig, session, number, request):
        self.stopped.set()
        await self.task
        await rig.until(
            lambda: "".join((box_text(rig, session) or "").split()) == self.typed, f"{self.typed} in the box"
        )
        assert len(self.typed) > 6
        assert not any(self.typed[:6] in request.user_text for request in rig.model.requests)
        rig.press(session, "C-u")
        await box_shows(rig, session, "")


class Vim(Draft):
    settings = VIM

    def __init__(self, mode):
        super().__init__("a vim draft")
        self.mode = mode

    async def prepare(self, rig, session):
        rig.type(session, self.text)
        await box_shows(rig, session, self.text)
        if self.mode == "NORMAL":
            rig.press(session, "Escape")
            await rig.until(lambda: not self.inserts(rig, session), "NORMAL mode")

    async def check(self, rig, session, number, request):
        await super().check(rig, session, number, request)
        assert self.inserts(rig, session) is (self.mode == "INSERT")

    def inserts(self, rig, session):
        return "-- INSERT --" in rig.screen(session)


class ShellMode(Plain):
    async def prepare(self, rig, session):
        rig.type(session, "!")
        rig.type(session, "touch X")
        await box_shows(rig, session, "touch X")

    async def check(self, rig, session, number, request):
        box = look(rig, session)
        assert (box.text, box.shell_mode) == ("touch X", True)
        assert not (rig.project / "X").exists()


class Popup(Draft):
    async def prepare(self, rig, session):
        rig.type(session, self.text)
        await box_shows(rig, session, self.text)
        await rig.wait_screen(session, "Switch model")

    async def check(self, rig, session, number, request):
        await super().check(rig, session, number, request)
        assert "Switch model" in rig.screen(session)


@dataclass
class View(Plain):
    """Something that covers the input box."""

    key: str
    shows: str

    async def prepare(self, rig, session):
        rig.press(session, self.key)
        await rig.wait_screen(session, self.shows)

    async def check(self, rig, session, number, request):
        assert self.shows in rig.screen(session)


@dataclass
class Mode(Plain):
    mode: str
    shows: str

    @property
    def arguments(self):
        return ("--permission-mode", self.mode)

    async def check(self, rig, session, number, request):
        assert self.shows in rig.screen(session)


class Shells(Plain):
    """One more background shell in each context."""

    before = (Call("Bash", command="sleep 4321", run_in_background=True),)
    rounds = 12

    async def check(self, rig, session, number, request):
        pid = (await rig.view(session))["pid"]
        shells = [one for one in descendants(pid) if command_of(one) == b"sleep\x004321\x00"]
        assert len(shells) == number
        assert "Still running in the background: " in request.user_text


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return b""


def lowest(rig, session):
    """The lines of an open menu; above it the client shows what waits."""
    return rig.screen(session).rstrip().split("\n")[-12:]


@dataclass
class Menu(Plain):
    """Opened while the agent works: the order waits, and says for what; nothing in the menu changes."""

    command: str
    steps = (HELD,)

    async def during(self, rig, session, number):
        await rig.wait_phase(session, "pending")
        await submit(rig, session, self.command)
        (rig.project / f"go-{number}").touch()
        await held(rig, session, because="a dialog is open")
        await asyncio.sleep(0.5)  # until it is drawn
        menu = lowest(rig, session)
        await asyncio.sleep(0.5)
        assert lowest(rig, session) == menu
        assert not any(awoke(request, number) for request in rig.model.requests)
        await close(rig, session)


async def close(rig, session):
    """Press Escape once for each level of the menu: one more may stop what comes after it."""
    while client_state(rig).get("status", "waiting") == "waiting":
        rig.press(session, "Escape")
        with suppress(TimeoutError):
            async with asyncio.timeout(1.5):
                while client_state(rig).get("status", "waiting") == "waiting":
                    await asyncio.sleep(0.02)


class PermissionDialog(Plain):
    settings = ASKING
    steps = (ASKS,)

    async def during(self, rig, session, number):
        view = await rig.wait_status(session, "waiting")
        assert "permission" in view["detail"]
        await self.answer(rig, session, number)

    async def answer(self, rig, session, number):
        await rig.wait_screen(session, "Do you want to proceed?")
        await asyncio.sleep(0.5)  # a dialog is deaf for its first 0.1 s (2.1.328)
        assert not (rig.project / f"asked-{number}").exists()
        rig.press(session, "Enter")

    async def check(self, rig, session, number, request):
        assert (rig.project / f"asked-{number}").exists()


class BackgroundDialog(PermissionDialog):
    before = (Call("Agent", description="look", prompt="sub work {{n}}", subagent_type="general-purpose"),)
    steps = ()
    last = Say("Over for {{n}}.", delay=1.5)
    turns = (Turn(r"sub work (?P<n>\d+)", steps=[ASKS, Say("sub done")]),)

    async def during(self, rig, session, number):
        with Person(rig, session):  # the client shows a background agent's dialog where somebody looks
            await held(rig, session, because="a dialog is open")
            await self.answer(rig, session, number)

    async def check(self, rig, session, number, request):
        await super().check(rig, session, number, request)
        await rig.until(lambda: notifications(rig) == number, "the subagent's result in a turn of its own")
        await rig.wait_status(session, "idle")


def notifications(rig):
    told = ("\n".join(message.text for message in request.tail) for request in rig.model.main_requests)
    return sum("<task-notification>" in text for text in told)


class Compaction(Plain):
    steps = (HELD,)
    compaction = Step(say="The work so far, in short.", delay=2.0)

    async def during(self, rig, session, number):
        await rig.wait_phase(session, "pending")
        await submit(rig, session, "/compact")
        await box_shows(rig, session, "")
        (rig.project / f"go-{number}").touch()
        await rig.until(lambda: compactions(rig) == number, "a compaction")


def compactions(rig):
    return sum(request.kind == "compaction" for request in rig.model.requests)


class Queued(Plain):
    """Sent while the agent says its last words: answered in the old context, and told to the new one."""

    last = Say("Over for {{n}}.", delay=3.0)
    turns = (Turn("and the port is", steps=[Say("Noted.")]),)

    async def during(self, rig, session, number):
        mine = f"please hand off {number}"
        await rig.model.wait_for(lambda request: request.tool_results and mine in request.all_text, within=PATIENCE)
        await submit(rig, session, f"and the port is 80{number}")

    async def check(self, rig, session, number, request):
        await super().check(rig, session, number, request)
        assert f"> and the port is 80{number}\n" in request.all_text


CASES = {
    "plain": Plain(),
    "draft of one line": Draft("and then the tests"),
    "draft of three lines": Draft("first line\nsecond line\n  third line"),
    "typing": Typing(),
    "vim INSERT": Vim("INSERT"),
    "vim NORMAL": Vim("NORMAL"),
    "shell mode": ShellMode(),
    "popup": Popup("/mod"),
    "search": View("C-r", "search"),
    "transcript": View("C-o", "transcript"),
    "plan mode": Mode("plan", "plan mode on"),
    "acceptEdits": Mode("acceptEdits", "accept edits on"),
    "background shells": Shells(),
    "menu model": Menu("/model"),
    "menu config": Menu("/config"),
    "menu permissions": Menu("/permissions"),
    "permission dialog": PermissionDialog(),
    "dialog of a background subagent": BackgroundDialog(),
    "compaction": Compaction(),
    "queued prompts": Queued(),
}


def awoke(request, number):
    return AWOKE in request.user_text and document(number).strip() in request.all_text


async def rotations(case, rounds):
    async with Rig(case.script(), config=BY_MOD) as rig:
        person_settings(rig, **case.settings)
        session = await rig.new(None, *case.arguments)
        await rig.wait_view(session, lambda view: view["driver"] == "mod" and view["status"] == "idle", "idle")
        await case.prepare(rig, session)
        for number in range(1, rounds + 1):
            await rotation(rig, session, case, number)


async def rotation(rig, session, case, number):
    before = await rig.view(session)
    await rig.ask("POST", f"/sessions/{session}/messages", {"text": f"please hand off {number}"})
    await case.during(rig, session, number)
    request = await rig.model.wait_for(lambda request: awoke(request, number), within=PATIENCE)
    view = await rig.wait_view(
        session, lambda view: view["rotations"] == number and view["status"] == "idle", "idle in the new context"
    )
    assert request.session == view["conversation"] != before["conversation"]
    assert request.all_text.count("=== HANDOFF LOADED") == 1
    assert not any(old in request.all_text for old in ("please hand off", "Over for", f"G{number - 1}."))
    assert sum(awoke(request, number) for request in rig.model.requests) == 1
    assert view["driver"] == "mod"
    await case.check(rig, session, number, request)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.soak
async def test_rotates_again_and_again_and_leaves_everything_as_it_was(case):
    await rotations(case, case.rounds)


@pytest.mark.parametrize("name", ["draft of three lines", "menu model"])
async def test_rotates_with_a_draft_in_the_box_or_a_menu_open(name):
    await rotations(CASES[name], 2)
