"""The main job as a demo: a real client, a scripted model, and every step confirmed by what the client did.

All of it is thrown away afterwards, also when a signal ends it. A step counts only with evidence: a hook of the client,
or a request that it sent to the model.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sm.client import Client
from sm.core.errors import SmError, error
from sm.providers.claude.traits import CLAUDE, SHELL_TOOL, WRITE_TOOL
from sm.sandbox import client_version, demo_directory, demo_server, enter_pressed
from sm.testing.model import ScriptedModel
from sm.testing.request import Request
from sm.testing.scenario import Call, Say, Scenario, Turn, scenario

TASK = "Add the rate limiter and its tests."
DOCUMENT = """\
# Handoff: rate limiter

Goal: add a rate limiter with tests. Done: design, token bucket, its unit tests.
Decision: one bucket per client, refilled lazily. Constraint: no new dependency.
Next step: wire the limiter into the request handler, then run the tests.
"""
STEPS = ("started", "warned", "handoff", "cleared", "woken", "continued")
WARNING = "[sm context] Context"
"""How the monitor's words begin; the primer names the mark alone."""
DEMO_TIMEOUT_S = 50.0
"""Seconds for the whole demo; it takes about ten."""
MODEL = "claude-sonnet-4-5"
PAUSE = "sleep 0.4"


def script() -> Scenario:
    """An agent whose context fills up, which heeds the critical warning and continues from its own document."""
    pause = Call(SHELL_TOOL, command=PAUSE)
    climb = [pause.but(context=size) for size in (38_000, 71_000, 104_000, 118_000, 137_000)]
    write = Call(WRITE_TOOL, file_path=".sm/handoff.md", content=DOCUMENT)
    by_tool = [Call(CLAUDE.handoff_tool, document=DOCUMENT), Say("Handed off.")]
    by_command = [write, Call(SHELL_TOOL, command="sm handoff .sm/handoff.md"), Say("Handed off.")]
    return scenario(
        Turn("rate limiter", steps=[*climb, *([pause] * 8), Say("Done.")], times=1),
        Turn(context=rf"Context critically high[\s\S]*{CLAUDE.handoff_tool}", steps=by_tool, times=1),
        Turn(context="Context critically high", steps=by_command, times=1),
        Turn(
            "continue from where you left off",
            steps=[
                Call(SHELL_TOOL, command="echo wiring the limiter").but(context=21_000),
                Say("The limiter is wired in."),
            ],
        ),
    )


@dataclass(frozen=True, slots=True)
class DemoStep:
    name: str
    at: float
    """Seconds since the start of the demo."""
    evidence: str


@dataclass(slots=True)
class DemoRun:
    """One run of the demo: the steps confirmed so far, and the lines to print about them."""

    tell: Callable[[str], None]
    gauge: Callable[[float], str]
    began: float = field(default_factory=time.monotonic)
    epoch: float = field(default_factory=time.time)  # noqa: TID251  # to place the server's times on the demo's scale
    steps: dict[str, DemoStep] = field(default_factory=dict)
    conversations: list[str] = field(default_factory=list)
    session: str = ""
    same_session: bool = True
    driver: str = "keys"
    """What drives the client: `mod` once its plugin has answered."""
    over: bool = False
    """The client has ended."""
    stopped: float | None = None
    resumed: float | None = None
    seen: int = 0
    lines: list[tuple[float, str]] = field(default_factory=list)
    """Not printed yet: what hooks and requests tell of one moment is put in order first."""

    def confirm(self, name: str, at: float, evidence: str) -> None:
        if name in self.steps:
            return
        self.steps[name] = DemoStep(name, self._since(at), evidence)
        self.note(at, f"{name:<10} {evidence}")

    def note(self, at: float, words: str) -> None:
        self.lines.append((self._since(at), words))

    def print_lines(self) -> None:
        for at, words in sorted(self.lines):
            self.tell(f"{at:6.2f}s  {words}")
        self.lines.clear()

    def _since(self, at: float) -> float:
        return round(max(0.0, at - self.epoch), 3)

    @property
    def inside(self) -> bool:
        return self.driver == "mod"

    @property
    def complete(self) -> bool:
        return all(name in self.steps for name in STEPS)

    @property
    def rotation_seconds(self) -> float | None:
        """From the Stop hook to the first request of the new context."""
        if self.stopped is None or self.resumed is None:
            return None
        return round(self.resumed - self.stopped, 3)


Tell = Callable[[str], None]
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(client: str, driver: str, tell: Tell, gauge: Callable[[float], str], *, keep: bool) -> dict[str, Any]:
    """Run the demo to its end, or to the first signal that ends it, which is obeyed once all it started has ended."""
    received: list[signal.Signals] = []
    try:
        return asyncio.run(_until_signalled(perform(client, driver, tell, gauge, keep=keep), received))
    except asyncio.CancelledError:
        number = received[0] if received else signal.SIGINT
        if number is signal.SIGINT:
            raise KeyboardInterrupt from None
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
        raise


async def _until_signalled(
    work: Coroutine[object, object, dict[str, Any]], received: list[signal.Signals]
) -> dict[str, Any]:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def stop(number: signal.Signals) -> None:
        received.append(number)
        if task is not None and len(received) == 1:  # a second one would interrupt the clearing up
            task.cancel()

    for number in ENDING:
        loop.add_signal_handler(number, stop, number)
    return await work


async def perform(client: str, driver: str, tell: Tell, gauge: Callable[[float], str], *, keep: bool) -> dict[str, Any]:
    """Run the demo; return the result as `sm demo --json` prints it."""
    demo = DemoRun(tell, gauge)
    version = await client_version(client)
    problem = ""
    async with demo_directory(keep=keep) as root:
        tell(f"{version}, scripted model on loopback: no account needed, nothing leaves this machine")
        tell(f"Working directory: {root} ({'kept' if keep else 'deleted afterwards'})\n")
        try:
            async with demo_server(root, script(), f'[claude]\ndriver = "{driver}"\n') as (server, env, model):
                await play(demo, server, env, model, root / "project", client)
                if keep:
                    tell(f"\nThe session is running. Look at it: SM_HOME={env['SM_HOME']} sm attach demo")
                    tell(f"Enter ends it; {root} stays until you delete it.")
                    await enter_pressed()
        except SmError as refused:
            problem = f"{refused.refused.message} {refused.refused.hint}".strip()
            demo.print_lines()
            tell(f"Failed: {problem}")
    return result(demo, version, problem, str(root / "state") if keep else "")


def result(demo: DemoRun, version: str, problem: str, kept: str) -> dict[str, Any]:
    return {
        "ok": demo.complete and demo.same_session and len(demo.conversations) > 1,
        "client": version,
        "driver": demo.driver,
        "session": demo.session,
        "same_session": demo.same_session,
        "conversations": demo.conversations,
        "steps": [asdict(demo.steps[name]) for name in STEPS if name in demo.steps],
        "missing": [name for name in STEPS if name not in demo.steps],
        "rotation_seconds": demo.rotation_seconds,
        "problem": problem,
        **({"home": kept} if kept else {}),
    }


def find_client(given: str | None) -> str:
    """The client to show: the one asked for, the pinned one of a checkout, or the one on PATH."""
    pinned = Path(__file__).resolve().parents[2] / "clients" / "node_modules" / ".bin" / "claude"
    candidates = [given] if given else [str(pinned), "claude"]
    for candidate in candidates:
        found = shutil.which(candidate)
        if found:
            return str(Path(found).absolute())
    install = "make setup installs it" if (pinned.parents[2] / "package.json").exists() else "install Claude Code"
    raise error("client_not_found", f"Client not found: {given or 'claude'}", f"{install}, or name it with --client")


async def play(
    demo: DemoRun, server: Client, env: dict[str, str], model: ScriptedModel, project: Path, client: str
) -> None:
    body = {"dir": str(project), "env": env, "name": "demo", "model": MODEL, "prompt": TASK, "command": client}
    session = await asyncio.to_thread(server.call, "POST", "/sessions", body)
    demo.session = session["id"]
    last = ""
    while not demo.complete and not demo.over and time.monotonic() - demo.began < DEMO_TIMEOUT_S:
        found = await asyncio.to_thread(server.call, "GET", f"/sessions/{demo.session}/events?lines=1000")
        for event in found["events"]:
            if event["number"] > demo.seen:
                demo.seen = event["number"]
                last = take_event(demo, event, last)
        for request in model.main_requests:
            take_request(demo, request)
        demo.print_lines()
        await asyncio.sleep(0.05)
    view = await asyncio.to_thread(server.call, "GET", f"/sessions/{demo.session}")
    demo.same_session = view["id"] == session["id"] and view["pane"] == session["pane"] and view["name"] == "demo"
    if not demo.complete:
        missing = ", ".join(name for name in STEPS if name not in demo.steps)
        raise error("incomplete", f"Not confirmed: {missing} ({view['status']}: {view['detail']})")


def take_event(demo: DemoRun, event: dict[str, Any], last: str) -> str:
    """Confirm what the client shows; the context as last told."""
    kind, data, at = event["kind"], event["data"], event["at"]
    if kind == "ContextReported":
        return tell_context(demo, at, data["tokens"], data["usable"], last)
    if kind == "ContextRead" and data["reading"]["tokens"] and not demo.inside:
        return tell_context(demo, at, data["reading"]["projected"], data["usable"], last)
    if kind == "DriverChanged":
        take_driver(demo, at, data)
    elif kind in {"ClientExited", "LaunchFailed"}:
        demo.over = True
    else:
        take_step(demo, kind, at, data)
    return last


def take_step(demo: DemoRun, kind: str, at: float, data: dict[str, Any]) -> None:
    if kind == "ConversationStarted":
        demo.conversations.append(data["conversation"])
        name = "cleared" if data["origin"] == "clear" else "started"
        way = "by its plugin, no key pressed" if demo.inside else f"{CLAUDE.clear_command} typed in the same pane"
        cleared = "" if name == "started" else f"{way}, "
        demo.confirm(name, at, f"{cleared}the client starts conversation {data['conversation'][:8]}")
    elif kind == "HandoffRequested":
        way = "gives its document to the handoff tool" if demo.inside else "has written its document, calls sm handoff"
        demo.confirm("handoff", at, f"the agent {way}")
    elif kind == "TurnEnded" and "handoff" in demo.steps and demo.stopped is None:
        demo.stopped = at
    elif kind == "PromptSubmitted" and "cleared" in demo.steps:
        way = "submitted by its plugin" if demo.inside else "typed"
        demo.confirm("woken", at, f"{way}: Read <the document> and continue from where you left off.")


def take_driver(demo: DemoRun, at: float, data: dict[str, Any]) -> None:
    demo.driver = data["driver"]
    if demo.inside:
        demo.note(at, "driver     the plugin in the client: it measures, tells, clears and wakes by calls that return")
    else:
        demo.note(at, f"driver     keys: {data['reason']}")


def tell_context(demo: DemoRun, at: float, projected: int, usable: int, last: str) -> str:
    percent = 100 * projected / usable
    line = f"context    {demo.gauge(percent)} {percent:3.0f}%  {projected:,} tokens"
    if line != last:
        demo.note(at, line)
    return line


def take_request(demo: DemoRun, request: Request) -> None:
    """Confirm what the client itself sent to the model."""
    inside_turn = bool(request.tool_results)
    if WARNING in request.context_text and inside_turn:
        words = request.context_text[request.context_text.index(WARNING) :].split("\n")[0]
        demo.confirm("warned", request.epoch, f"the agent reads, inside its turn: {words[:44]}…")
    wakes = "continue from where you left off" in request.user_text
    if wakes and demo.resumed is None:
        demo.resumed = request.epoch
    loaded = "=== HANDOFF LOADED" in request.all_text and "wire the limiter" in request.all_text
    if wakes and loaded and CLAUDE.clear_command in request.all_text:
        demo.confirm("continued", request.epoch, "the agent has its document; its next step: wire the limiter in")
