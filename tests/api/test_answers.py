"""Every answer of the API as it was recorded: names of the members, their order, types and values.

`answers.json` holds the answers. What differs from run to run (ids, tokens, paths, process ids, the time of a file) is
replaced by its kind. A reader decodes each with its struct of `wire.py` and has all of it. After a wanted change,
record again and read the difference: `python -m tests.api.test_answers`.
"""

import asyncio
import contextlib
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from sm import wire
from sm.core import events as ev
from sm.core.model.context import ContextReading, Level, Monitor, Source
from sm.core.model.handoff_offer import ContinuationPrompt, Offer, ProjectDocument
from sm.core.model.report import Report
from sm.core.model.rotation import Phase
from sm.core.model.usage_limit import UsageLimit
from sm.processes import start_time
from sm.web.routes import JSON_ROUTES as ROUTES
from tests.api.rig import USER, house
from tests.api.test_feed import following
from tests.fakes.notifier import FakeChannel, FakeNotifier
from tests.web.browser import logged_in

RECORDED = Path(__file__).with_name("answers.json")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
CODE = re.compile(r"(\?code=)[\w-]{43}")
CHANNEL = re.compile(r"(/handoffs/)[^/]+/")
NAMED = ("id", "token", "born")
"""Members whose value differs from run to run."""
RECENT = 86_400.0
JSON = "application/json"
SHAPES = {
    "GET /health": wire.HealthAnswer,
    "GET /sessions": list[wire.SessionView],
    "POST /sessions": wire.SessionView,
    "GET /sessions/{session}": wire.SessionView,
    "PATCH /sessions/{session}": wire.SessionView,
    "DELETE /sessions/{session}": wire.SessionView,
    "POST /sessions/{session}/restore": wire.SessionView,
    "POST /sessions/{session}/clear": wire.SessionView,
    "POST /sessions/{session}/remove": wire.EndedSession,
    "POST /sessions/{session}/report": wire.SessionView,
    "POST /sessions/{session}/client": wire.SessionView,
    "POST /sessions/{session}/client/exit": wire.SessionView,
    "POST /status/{provider}": wire.SessionView | None,
    "GET /sessions/{session}/children": list[wire.SessionView],
    "POST /sessions/{session}/children": wire.SessionView,
    "GET /sessions/{session}/context": wire.ContextView,
    "GET /sessions/{session}/context/history": wire.ContextHistoryView,
    "POST /sessions/{session}/context/rearm": wire.ContextView,
    "GET /sessions/{session}/output": wire.TextAnswer,
    "GET /sessions/{session}/events": wire.EventsAnswer,
    "GET /sessions/{session}/attach": wire.AttachAnswer,
    "POST /sessions/{session}/messages": wire.SentMessage,
    "POST /messages": list[wire.SentMessage],
    "GET /sessions/{session}/messages": list[wire.MessageView],
    "GET /messages/{message}": wire.MessageView,
    "DELETE /messages/{message}": wire.MessageView,
    "GET /sessions/{session}/handoff": wire.RotationView,
    "DELETE /sessions/{session}/handoff": wire.RotationView,
    "POST /sessions/{session}/handoff/retry": wire.RotationView,
    "POST /sessions/{session}/handoff": wire.ScheduledAnswer,
    "GET /asks": list[wire.AskView],
    "GET /asks/{ask}": wire.AskView,
    "POST /asks/{ask}": wire.AskView,
    "GET /handoffs": list[wire.HandoffView],
    "DELETE /handoffs": wire.ClearedAnswer,
    "GET /handoffs/{handoff}": wire.HandoffView,
    "DELETE /handoffs/{handoff}": wire.HandoffView,
    "POST /sessions/{session}/waits": wire.WaitAnswer,
    "GET /sessions/{session}/reminders": list[wire.ReminderView],
    "POST /sessions/{session}/reminders": wire.ReminderView,
    "DELETE /sessions/{session}/reminders/{reminder}": wire.CancelledReminder,
    "GET /limits": wire.LimitsAnswer,
    "POST /sessions/{session}/limit/resume": wire.SessionView,
    "GET /sessions/{session}/archive": list[wire.ArtefactView],
    "POST /archive/prune": wire.PrunedAnswer,
    "GET /search": list[wire.HitView],
    "GET /sessions/{session}/order": wire.OrderAnswer,
    "POST /sessions/{session}/order": wire.LaunchView,
    "POST /stop": wire.StopAnswer,
    "GET /cost": list[wire.SessionCostView],
    "POST /notifications/test": list[wire.ChannelTest],
    "POST /notifications/run-ended": wire.Notified,
    "POST /sessions/{session}/link": wire.LinkAnswer,
    "POST /link/{provider}": wire.LinkAnswer,
    "POST /web/links": wire.WebLink,
    "GET /web/devices": list[wire.DeviceView],
    "DELETE /web/devices/{device}": wire.DeviceView,
    "GET /web/push": wire.PushView,
    "PUT /web/push": wire.DeviceView,
    "DELETE /web/push": wire.DeviceView,
}
"""What a reader with the user's token decodes; a refusal is an ErrorAnswer."""
OTHERS = {
    "sessions as a session sees them": list,
    "session as another sees it": wire.PublicSession,
    "message to several": list,
}
"""By label; a list in which two structs stand side by side has no type of its own."""
NO_STRUCT = {"POST /hooks/{provider}", "GET /events", "GET /sessions/{session}/log"}
"""The client's own reply, a stream of events, text."""


@dataclass
class Recorder:
    api: object
    known: dict
    answers: dict = field(default_factory=dict)
    counts: Counter = field(default_factory=Counter)
    taken: set = field(default_factory=set)
    """(method, path) of the routes that have answered."""

    @property
    def env(self):
        return {"PATH": "/usr/bin:/bin", "HOME": str(self.api.home.root.parent)}

    async def ask(self, label, method, path, token=USER, body=None, **more):
        """Keep what a route answers; return it as it came."""
        content = {} if body is None else {"content": json.dumps(body), "headers": {"Content-Type": JSON}}
        async with self.api.client(Authorization=f"Bearer {token}", **more) as client:
            answer = await client.request(method, path, **content)
        kind = answer.headers["content-type"]
        whole = answer.json() if kind == JSON else None
        shape = shape_of(label, method, path, answer.status_code)
        if shape is not None:
            assert msgspec.json.encode(msgspec.json.decode(answer.content, type=shape)) == answer.content, label
        self.keep(label, method, path, {"status": answer.status_code, "type": kind, "answer": whole})
        return whole

    def keep(self, label, method, path, found):
        self.taken |= {(name, route.path) for route in ROUTES for name in matching(route, method, path)}
        self.learn(found)
        assert label not in self.answers
        self.answers[label] = {"route": f"{method} {self.plain(path)}", **self.plain(found)}

    def learn(self, value):
        """Note what is to be replaced."""
        if isinstance(value, dict):
            for name, text in value.items():
                if name in NAMED and isinstance(text, str) and text not in self.known:
                    self.counts[name] += 1
                    self.known[text] = f"<{name} {self.counts[name]}>"
                self.learn(text)
        elif isinstance(value, list):
            for item in value:
                self.learn(item)

    def plain(self, value):
        if isinstance(value, dict):
            vague = {"size": "<int>"} if value.get("kind") == "handoff" else {}  # it names paths
            vague |= {"at": "<float>"} if "marks" in value else {}  # by how fast its terminal was written
            vague |= {"queued": "<int>"} if value.get("ended") else {}  # its children's ends are told behind the answer
            return {self.plain(name): self.plain(member) for name, member in {**value, **vague}.items()}
        if isinstance(value, list):
            return [self.plain(item) for item in value]
        if isinstance(value, str):
            for known in sorted(self.known, key=len, reverse=True):
                value = value.replace(known, self.known[known])
            return CODE.sub(r"\1<code>", CHANNEL.sub(r"\1<channel>/", UUID.sub("<uuid>", value)))
        if value == os.getpid():
            return "<pid>"
        recent = isinstance(value, int | float) and abs(value - time.time()) < RECENT
        return f"<{type(value).__name__}: now>" if recent else value


def shape_of(label, method, path, status):
    """The struct that a reader decodes the answer with; None for what has none."""
    if status >= 400:
        return wire.ErrorAnswer
    [template] = [route.path for route in ROUTES if matching(route, method, path)]
    return OTHERS.get(label) or SHAPES.get(f"{method} {template}")


def matching(route, method, path):
    return {method} if method in route.methods and route.path_regex.fullmatch(path.partition("?")[0]) else ()


@contextlib.asynccontextmanager
async def recorder(root):
    async with house(root) as api:
        yield Recorder(api, {sys.executable: "<python>", str(root): "<tmp>"})


async def everything(root):
    async with recorder(root) as record:
        boss, kid = await of_sessions(record)
        await of_messages(record, boss, kid)
        await of_the_team(record, boss)
        await of_handoffs(record, boss, kid, root)
        await of_the_archive(record, boss, root)
        await of_the_foreground(record, root)
        await of_asks(record, boss)
        await of_the_client(record, boss)
        await of_the_feed(record, boss)
        await of_notifications(record)
        await of_browsers(record)
        await of_ends(record, kid)
        await of_errors(record, boss)
        await of_a_notified_browser(record)  # last: it lets time pass, in which a message arrives
        return record


async def of_sessions(record):
    api, ask = record.api, record.ask
    await ask("health", "GET", "/health")
    new = {"dir": str(api.home.root.parent), "name": "boss", "env": record.env}
    boss = (await ask("new session", "POST", "/sessions", body=new))["id"]
    api.tokens[boss] = api.launched[boss]
    kid = await api.new("kid", parent=boss, env=record.env)
    record.known[kid] = "<id of kid>"
    current = api.engine.sessions.actors[boss].session.conversation
    await api.alter(boss, conversation=None)
    await ask("session without a conversation", "GET", f"/sessions/{boss}")
    await ask("context without a conversation", "GET", f"/sessions/{boss}/context")
    await api.alter(boss, conversation=replace(current, transcript="/t.jsonl"))
    await ask("context that was not read yet", "GET", f"/sessions/{boss}/context")
    await api.alter(boss, **full_state(api, boss))
    await ask("whole session", "GET", f"/sessions/{boss}")
    await ask("sessions as the user sees them", "GET", "/sessions")
    await ask("sessions as a session sees them", "GET", "/sessions", api.tokens[kid])
    await ask("session as another sees it", "GET", "/sessions/boss", api.tokens[kid])
    await ask("whole context", "GET", f"/sessions/{boss}/context")
    await ask("context over time", "GET", f"/sessions/{boss}/context/history")
    await ask("limits", "GET", "/limits")
    await ask("context, latches reset", "POST", f"/sessions/{boss}/context/rearm")
    await ask("session renamed", "PATCH", f"/sessions/{kid}", body={"name": "son"})
    await ask("output", "GET", f"/sessions/{kid}/output?lines=2")
    await ask("events of a session", "GET", f"/sessions/{kid}/events")
    await ask("attach", "GET", f"/sessions/{kid}/attach")
    return boss, kid


def full_state(api, session):
    """A session of which everything is known."""
    now = api.clock.now()
    reading = ContextReading(
        tokens=120_000, projected=121_000, source=Source.USAGE, exact=True, model="m", window=200_000, compactions=1,
        messages=7, output_tokens=900, malformed=0,
    )  # fmt: skip
    monitor = Monitor(
        reading, 167_000, 500, (("Read", 500),), 3, ((Level.WARNING, now), (Level.CRITICAL, now + 1)), told=now
    )
    current = api.engine.sessions.actors[session].session.conversation
    return {
        "conversation": replace(current, monitor=monitor),
        "past": ("c0",),
        "detail": "words",
        "limit": UsageLimit("five_hour", now + 60, now, proven=True),
        "mode": "plan",
        "model": "m",
        "report": Report("at it", now, done=True),
        "too_late": 1,
        "offer": Offer(None, (ProjectDocument("/p/a.md", now, tracked=True),), ContinuationPrompt("/p/b.md", now)),
    }


async def of_messages(record, boss, kid):
    api, ask = record.api, record.ask
    await ask("message queued", "POST", f"/sessions/{kid}/messages", api.tokens[boss], {"text": "one"})
    [sent] = await ask("message to one", "POST", "/messages", api.tokens[boss], {"to": "son", "text": "two"})
    several = {"to": "son,nobody,children", "text": "three", "mode": "urgent", "expires": 60}
    await ask("message to several", "POST", "/messages", api.tokens[boss], several)
    await ask("message", "GET", f"/messages/{sent['id']}", api.tokens[boss])
    await ask("inbox", "GET", f"/sessions/{kid}/messages", api.tokens[kid])
    await ask("message cancelled", "DELETE", f"/messages/{sent['id']}")
    await ask("message that is no longer queued", "DELETE", f"/messages/{sent['id']}")
    await ask("what did not arrive", "GET", f"/sessions/{kid}/messages?dead=1")


async def of_the_team(record, boss):
    api, ask = record.api, record.ask
    child = {"dir": str(api.home.root.parent), "prompt": "do it", "env": record.env, "track": 600}
    await ask("child", "POST", f"/sessions/{boss}/children", api.tokens[boss], child)
    await ask("children", "GET", f"/sessions/{boss}/children")
    await ask("reported", "POST", f"/sessions/{boss}/report", body={"text": "half"})
    await ask("reported as complete", "POST", f"/sessions/{boss}/report", body={"text": "all", "done": True})
    once = {"delay": 60, "text": "look"}
    made = await ask("reminder", "POST", f"/sessions/{boss}/reminders", body=once)
    await ask("repeated reminder", "POST", f"/sessions/{boss}/reminders", body={**once, "every": True})
    await ask("wait", "POST", f"/sessions/{boss}/waits", body={"target": "son", "seconds": 60})
    await ask("reminders", "GET", f"/sessions/{boss}/reminders")
    await ask("reminder deleted", "DELETE", f"/sessions/{boss}/reminders/{made['id']}")
    await ask("cleared", "POST", "/sessions/boss-child/clear", body={"prompt": "next"})
    await ask("handoff without a document", "GET", "/sessions/boss-child/handoff")


async def of_handoffs(record, boss, kid, root):
    api, ask = record.api, record.ask
    await ask("no handoff", "GET", f"/sessions/{boss}/handoff")
    await ask("no handoffs", "GET", "/handoffs")
    await ask("handoff scheduled", *await to_hand_off(record, boss, root))
    await ask("handoff of a child scheduled", *await to_hand_off(record, kid, root))
    await ask("handoff", "GET", f"/sessions/{kid}/handoff")
    await ask("handoff tried again", "POST", f"/sessions/{kid}/handoff/retry")
    actor = api.engine.sessions.actors[kid]
    known = {"note": "why", "attempts": 2, "snapshot": "/s.txt", "stopped": 1.5, "finished": 2.5}
    await api.alter(kid, rotation=replace(actor.session.rotation, phase=Phase.FAILED, **known))
    await ask("failed handoff", "GET", f"/sessions/{kid}/handoff")
    await ask("handoff cancelled", "DELETE", f"/sessions/{boss}/handoff")
    await ask("session with an offer", "GET", await offered(api, kid))
    left = [await left_behind(record, name, root) for name in ("first", "second")]
    await ask("handoffs", "GET", "/handoffs")
    await ask("open handoffs, by directory", "GET", f"/handoffs?waiting=1&dir={root}")
    await ask("handoff with its document", "GET", f"/handoffs/{left[0]}")
    await ask("handoff dismissed", "DELETE", f"/handoffs/{left[0]}")
    await ask("handoff that is held", "DELETE", f"/handoffs/{api.engine.sessions.actors[kid].session.offer.waiting.id}")
    await ask("handoffs dismissed", "DELETE", f"/handoffs?dir={root}")


async def to_hand_off(record, session, root):
    """The request for it; each a second later, since they are listed by their time."""
    record.api.clock.advance(1)
    (root / f"{session}.md").write_text("goal\n")
    given = {"requester_session_id": session, "file_path": str(root / f"{session}.md"), "reason": "full"}
    return "POST", f"/sessions/{session}/handoff", record.api.tokens[session], given


async def left_behind(record, name, root):
    """A handoff whose session has ended: its id."""
    session = await record.api.new(name, env=record.env)
    record.known[session] = f"<id of {name}>"
    method, path, token, given = await to_hand_off(record, session, root)
    _, made = await record.api.call(method, path, token, given)
    record.known[made["id"]] = f"<id of the handoff of {name}>"
    await record.api.call("DELETE", f"/sessions/{session}")
    return made["id"]


async def offered(api, session):
    """A session that has begun where another one's handoff waits."""
    await api.alter(session, offer=Offer(api.engine.sessions.actors[session].session.rotation.handoff))
    return f"/sessions/{session}"


async def of_the_archive(record, boss, root):
    api, ask = record.api, record.ask
    api.home.logs.mkdir(exist_ok=True)
    api.home.log(boss).write_text("an okapi\r\n" + "line\r\n\r\n" * 600)
    os.utime(api.home.log(boss), (api.clock.now(), api.clock.now()))
    (api.home.logs / "0badcafe.log").write_text("x" * 64)
    os.utime(api.home.logs / "0badcafe.log", (1.5, 1.5))
    for _ in range(2):
        api.archiving.archive.tend(await api.archiving.histories(), api.clock.now())
    await ask("log", "GET", f"/sessions/{boss}/log")
    await ask("raw log", "GET", f"/sessions/{boss}/log?raw=1")
    await ask("files of a session", "GET", f"/sessions/{boss}/archive")
    await ask("hits", "GET", "/search?q=okapi")
    strict = replace(api.archiving.archive.rules(), keep=1.0)
    api.archiving.archive.rules = lambda: strict
    await ask("what would be pruned", "POST", "/archive/prune", body={"dry_run": True})
    await ask("pruned", "POST", "/archive/prune", body={})


async def of_the_foreground(record, root):
    api, ask = record.api, record.ask
    (root / "front").mkdir()
    new = {"dir": str(root / "front"), "env": record.env, "foreground": {"wrapper": os.getpid()}}
    view = await ask("session of sm run", "POST", "/sessions", body=new)
    session, launch = view["id"], {name: value for name, value in view["launch"].items() if name != "env"}
    started = {"launch": {**launch, "conversation": "c0"}, "pid": os.getpid(), "born": start_time(os.getpid())}
    await ask("client of sm run started", "POST", f"/sessions/{session}/client", body=started)
    actor, at = api.engine.sessions.actors[session], api.clock.now()
    await ask("no order", "GET", f"/sessions/{session}/order?seconds=1")
    (root / "front" / "h.md").write_text("goal\n")
    await actor.ask(ev.ConversationStarted(at=at, conversation="c0"))
    await actor.ask(ev.PromptSubmitted(at=at, conversation="c0", text="do it"))
    handoff = api.engine.ports.documents.schedule(actor.session, root / "front" / "h.md", at, "")
    await actor.ask(ev.HandoffRequested(at=at, handoff=handoff))
    await actor.ask(ev.TurnEnded(at=at, conversation="c0"))
    await actor.ask(ev.ComposerReady(at=at, step=actor.session.step))
    found = await ask("order", "GET", f"/sessions/{session}/order?seconds=5")
    await ask("order taken", "POST", f"/sessions/{session}/order", body={**found["order"], "env": record.env})
    gone = {"pid": os.getpid(), "code": 0}
    await ask("client of sm run exited", "POST", f"/sessions/{session}/client/exit", body=gone)


async def of_the_client(record, boss):
    api, ask = record.api, record.ask
    own = {"session_id": api.conversation(boss)}
    await ask("hook", "POST", "/hooks/claude", api.tokens[boss], {"hook_event_name": "Stop", **own})
    await api.alter(boss)  # answered, a hook may still be at work
    await ask("status line", "POST", "/status/claude", api.tokens[boss], own)
    peer = "unix", api.engine.sessions.actors[boss].session.pid
    await ask(
        "client driven by its plugin",
        "POST",
        f"/sessions/{boss}/link",
        api.tokens[boss],
        {"generation": "g"},
        peer=peer,
    )
    await ask("client of the user that is not known", "POST", "/link/claude", None, {"generation": "g"}, peer=peer)
    await ask("status line of no session", "POST", "/status/claude", USER, {"session_id": "none"})


async def of_asks(record, boss):
    api, ask = record.api, record.ask
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue"}]
    given = {"questions": [{"question": "Which colour?", "options": options, "multiSelect": False}]}
    members = {"session_id": api.conversation(boss), "tool_name": "AskUserQuestion", "tool_input": given}
    payload = api.hook("PermissionRequest", **members)
    async with asyncio.TaskGroup() as group:
        hook = group.create_task(api.call("POST", "/hooks/claude", api.tokens[boss], payload))
        while not (open_asks := (await api.call("GET", "/asks"))[1]):
            await asyncio.sleep(0.005)
        await ask("asks", "GET", "/asks")
        path = f"/asks/{open_asks[0]['id']}"
        await ask("ask", "GET", path)
        await ask("ask answered", "POST", path, body={"decision": "answer", "answers": [2]})
        await ask("late answer", "POST", path, body={"decision": "deny"})
    assert hook.result()[1]["hookSpecificOutput"]["decision"]["behavior"] == "allow"


async def of_the_feed(record, boss):
    api = record.api
    newest = await api.engine.ports.store.newest_event()
    async with api.listening() as port:
        async with following(port, last=newest + 100) as feed:
            record.keep(
                "feed of another database", "GET", "/events", without_frame(await feed.event(), wire.ReplayedEvent)
            )
        async with following(port, last=newest - 1) as feed:
            record.keep("replayed event", "GET", "/events", without_frame(await feed.event(), wire.ReplayedEvent))
        async with following(port) as feed:
            await api.engine.sessions.actors[boss].ask(ev.SessionRenamed(at=1.5, name="chief"))
            record.keep("live event", "GET", "/events", without_frame(await feed.event(), wire.LiveEvent))


async def of_notifications(record):
    await record.ask("cost", "GET", "/cost?since=1")
    await record.ask("notifications without a channel", "POST", "/notifications/test")
    used = [FakeChannel("command"), FakeChannel("url 1 (ntfy)", fails="the service did not take it")]
    record.api.engine.notifications.notifier = FakeNotifier(used=used)
    await record.ask("notifications tested", "POST", "/notifications/test")
    ended = {"run": "R-1", "project": "p", "text": "run R-1: 1 delivered"}
    await record.ask("run ended", "POST", "/notifications/run-ended", body=ended)


async def of_browsers(record):
    devices = record.api.devices
    record.known[devices.host] = "<host>"
    await record.ask("link for a browser", "POST", "/web/links", body={"name": "phone", "read_only": True})
    await devices.add("phone", read_only=True)
    [phone] = await record.ask("browsers", "GET", "/web/devices")
    await record.ask("browser logged out", "DELETE", f"/web/devices/{phone['id']}")


async def of_a_notified_browser(record):
    devices = record.api.devices
    devices.push = replace(devices.push, program=("true",))  # takes everything
    visitor = await logged_in(record.api, name="laptop")
    record.known[await devices.push.public_key()] = "<key>"
    subscribed = {"endpoint": "https://push.example.net/x", "keys": {"p256dh": "B" * 87, "auth": "a" * 22}}
    for label, method in (("key for browsers", "GET"), ("browser notified", "PUT"), ("notified no longer", "DELETE")):
        answer = await visitor.call(method, "/web/push", json.dumps(subscribed) if method == "PUT" else None)
        shape = SHAPES[f"{method} /web/push"]
        assert msgspec.json.encode(msgspec.json.decode(answer.content, type=shape)) == answer.content, label
        kind = answer.headers["content-type"]
        record.keep(label, method, "/web/push", {"status": answer.status_code, "type": kind, "answer": answer.json()})


def without_frame(event, shape):
    """The event without the lines of the transport around it."""
    content = msgspec.json.encode(event["data"])
    assert msgspec.json.encode(msgspec.json.decode(content, type=shape)) == content
    return {"event": event["event"], "number": event["id"], "data": event["data"]}


async def of_ends(record, kid):
    ask = record.ask
    await ask("resumed without a limit", "POST", f"/sessions/{kid}/limit/resume")
    await ask("killed", "DELETE", f"/sessions/{kid}")
    await ask("restored", "POST", f"/sessions/{kid}/restore", body={"env": record.env})
    await ask("killed with its children", "DELETE", "/sessions/chief?children=1")
    await ask("removed", "POST", f"/sessions/{kid}/remove")
    state = record.api.app.app.state  # below the guard
    state.backend = replace(state.backend, problems=lambda: ["the disk is full"])
    await ask("health with problems", "GET", "/health")
    await ask("stopped", "POST", "/stop")


async def of_errors(record, boss):
    ask = record.ask
    await ask("wrong token", "GET", "/sessions", "wrong")
    await ask("unknown route", "GET", "/nowhere")
    await ask("unknown method", "PUT", "/sessions")
    await ask("unknown session", "GET", "/sessions/nobody")
    await ask("bad body", "POST", "/sessions", body={"dir": 1})


async def test_every_route_answers_as_recorded(tmp_path):
    record, expected = await everything(tmp_path), json.loads(RECORDED.read_text())
    assert {f"{method} {path}" for method, path in record.taken} == SHAPES.keys() | NO_STRUCT
    assert record.taken == {(method, route.path) for route in ROUTES for method in route.methods - {"HEAD"}}
    assert list(record.answers) == list(expected)
    for label, answer in record.answers.items():
        # As text, since the order of the members counts.
        assert json.dumps(answer, indent=1) == json.dumps(expected[label], indent=1), label


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        found = asyncio.run(everything(Path(directory))).answers
    RECORDED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
