"""A real browser on the page of a server inside the test: Chromium of `clients/browser`, driven by Playwright."""

import asyncio
import contextlib
import json
from dataclasses import dataclass, field

from playwright.async_api import async_playwright

from scripts import browser
from sm.core import events as ev
from sm.core.model.rotation import Phase
from sm.core.ports.panes import View
from sm.core.rules.rotation import prompt_of
from tests.fakes.conversation import Conversation
from tests.web.browser import login_link, served

SIZES = {
    "desktop": {"width": 1280, "height": 900},
    "phone": {"width": 390, "height": 844},
    "small phone": {"width": 360, "height": 740},
}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
    window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
"""
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}}


@contextlib.asynccontextmanager
async def chromium(home):
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "LD_LIBRARY_PATH": str(browser.LIBRARIES)}
    async with async_playwright() as player:
        found = await player.chromium.launch(executable_path=browser.CHROMIUM, args=FLAGS, env=env)
        try:
            yield found
        finally:
            await found.close()


@dataclass
class Tab:
    """A page that notes what a browser complains of."""

    page: object
    complaints: list = field(default_factory=list)
    questions: list = field(default_factory=list)
    agrees: bool = False
    """To what the page asks before it does something."""

    async def dialog(self, dialog):
        if self.agrees and dialog.type == "confirm":
            self.questions.append(dialog.message)
            await dialog.accept()
        else:
            self.complaints.append(f"{dialog.type}: {dialog.message}")
            await dialog.dismiss()

    async def violations(self):
        return await self.page.evaluate("window.violations")

    async def findings(self):
        """What axe finds, in short."""
        await self.page.evaluate(browser.AXE.read_text() + "; undefined")
        found = await self.page.evaluate("(rules) => axe.run(document, rules)", RULES)
        return [(each["id"], [node["html"][:160] for node in each["nodes"]]) for each in found["violations"]]


@dataclass
class Site:
    api: object
    port: int
    chromium: object

    async def tab(self, size="desktop", scheme="light", **wanted):
        """A device of its own, logged in by a link and on the page of the fleet."""
        tab = await self.empty_tab(size, scheme)
        await tab.page.goto(await login_link(self.api, self.port, **wanted))
        await tab.page.get_by_role("button", name="Log in").click()
        await tab.page.wait_for_selector("#rows", state="attached")
        return tab

    async def empty_tab(self, size="desktop", scheme="light", **more):
        context = await self.chromium.new_context(viewport=SIZES[size], color_scheme=scheme, locale="en-GB", **more)
        await context.add_init_script(WATCH)
        tab = Tab(await context.new_page())
        tab.page.set_default_timeout(8_000)
        tab.page.on("pageerror", lambda problem: tab.complaints.append(str(problem)))
        tab.page.on("dialog", tab.dialog)
        return tab

    def at(self, path):
        return f"http://{self.api.devices.host}:{self.port}{path}"


@contextlib.asynccontextmanager
async def site(tmp_path):
    async with served(tmp_path) as (api, port), chromium(tmp_path) as found:
        yield Site(api, port, found)


async def begin(api, session, transcript=""):
    """The client's first hook, with where its transcript is."""
    conversation = api.conversation(session)
    body = api.hook("SessionStart", session_id=conversation, source="startup", transcript_path=str(transcript))
    await hooked(api, session, body)


async def prompt(api, session, text="do it"):
    body = api.hook("UserPromptSubmit", session_id=api.conversation(session), prompt=text)
    await hooked(api, session, body)


async def hooked(api, session, body):
    """Send a hook of the session's client."""
    pid = {"X-SM-Client-Pid": str(api.engine.ports.panes.pid)}
    status, reply = await api.call("POST", "/hooks/claude", api.tokens[session], body, **pid)
    assert status == 200, reply


def conversation(path, *turns):
    """A transcript of (person, agent) turns, as the client writes it."""
    talk = Conversation()
    for said, reply in turns:
        talk.person(said)
        talk.reply({"type": "text", "text": reply}, "end_turn")
    return talk.save(path)


async def to_cleared(api, session, document="# Go on"):
    """Have a session at its prompt hand off, up to where its context is to be cleared."""
    actor = api.engine.sessions.actors[session]
    body = {"requester_session_id": session, "document": document}
    status, reply = await api.call("POST", f"/sessions/{session}/handoff", body=body)
    assert status == 200, reply
    if actor.session.rotation.phase is Phase.PENDING:
        api.clock.advance(30)
        await hooked(api, session, api.hook("Stop", session_id=api.conversation(session)))
    await actor.ask(ev.ComposerReady(at=api.clock.advance(1), step=actor.session.step))
    await actor.ask(ev.SnapshotTaken(at=api.clock.now(), step=actor.session.step, path="/dump"))
    assert actor.session.rotation.phase is Phase.CLEARING


async def to_done(api, session, transcript=""):
    """Clear it and wake it: a new conversation with its own transcript has begun."""
    actor, number = api.engine.sessions.actors[session], len(api.engine.sessions.actors[session].session.past) + 2
    new = f"{number:08}-0000-4000-8000-000000000000"
    api.clock.advance(2)
    await hooked(
        api, session, api.hook("SessionStart", session_id=new, source="clear", transcript_path=str(transcript))
    )
    await actor.ask(ev.ComposerReady(at=api.clock.advance(1), step=actor.session.step))
    assert actor.session.rotation.phase is Phase.PROMPTING
    api.clock.advance(1.5)
    await prompt(api, session, prompt_of(actor.session.rotation))
    assert actor.session.rotation.phase is Phase.DONE


class ShownPane:
    """A pane whose screen a test writes, and that notes what is typed."""

    def __init__(self, *lines, size=(80, 24)):
        self.lines, self.size, self.typed, self.pasted = list(lines), size, b"", []

    async def look(self):
        await asyncio.sleep(0)
        return View(tuple(self.lines), (0, len(self.lines)), dead=False, typed_ago=None, size=self.size)

    async def user_typed(self, data):
        self.typed += data

    async def paste(self, text):
        self.pasted.append(text)

    async def history(self):
        return "\n".join(self.lines)


async def eventually(check, seconds=5.0):
    """Wait until `check` is true."""
    async with asyncio.timeout(seconds):
        while not (found := check()):
            await asyncio.sleep(0.02)
    return found


def question(text, *labels, several=False):
    options = [{"label": label, "description": f"about {label}"} for label in labels]
    return {"question": text, "header": "q", "options": options, "multiSelect": several}


def as_json(value):
    return json.dumps(value)


def row(tab, name):
    return tab.page.locator(".row", has_text=name)
