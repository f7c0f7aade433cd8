"""What an app-server of Codex says, and one that says it over a real socket, in memory otherwise (Codex 0.171.0)."""

import asyncio
import json
from collections import defaultdict
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count

import msgspec
from websockets.asyncio.server import unix_serve
from websockets.exceptions import ConnectionClosed

from sm.providers.codex.app.rpc import ServerMessage

WORKSPACE = {"type": "workspaceWrite", "writableRoots": [], "networkAccess": False}


def said(method, number=None, **params):
    """A message as the connection hands it on."""
    return ServerMessage(method, msgspec.Raw(json.dumps(params).encode()), number)


@dataclass(eq=False)
class Client:
    """One connection."""

    socket: object
    threads: set = field(default_factory=set)
    """Those whose items it is sent."""


@dataclass
class Thread:
    id: str
    name: str | None = None
    originator: str = "sm"
    ephemeral: bool = False
    parent: str | None = None
    role: str | None = None
    settings: dict = field(default_factory=dict)
    turn: str | None = None
    flags: list = field(default_factory=list)
    injected: list = field(default_factory=list)
    prompts: list = field(default_factory=list)
    goal: dict | None = None

    @property
    def has_file(self):
        return self.name is not None or bool(self.prompts)

    def shown(self):
        kind = {"type": "active", "activeFlags": self.flags} if self.turn else {"type": "idle"}
        return {
            "id": self.id,
            "path": f"/codex/rollout-{self.id}.jsonl",
            "status": kind,
            "originator": self.originator,
            "ephemeral": self.ephemeral,
            "parentThreadId": self.parent,
            "agentRole": self.role,
            "turns": [],
        }


class RefusedRequestError(Exception):
    pass


@dataclass(eq=False)
class FakeAppServer:
    """A turn runs until the test ends it; what is asked stays asked until somebody answers."""

    path: str
    clients: list = field(default_factory=list)
    threads: dict = field(default_factory=dict)
    asked: dict = field(default_factory=dict)
    """What waits for an answer: (method, params) by the request's number."""
    answers: dict = field(default_factory=dict)
    """What was replied, by the request's number."""
    requests: list = field(default_factory=list)
    refuses: dict = field(default_factory=dict)
    """Words with which a method is refused."""
    silent: set = field(default_factory=set)
    """Methods that get no result, ever."""
    plays: object = None
    """What happens in a turn, given the thread and its prompt; by itself a turn runs until the test ends it."""
    server: object = None
    running: set = field(default_factory=set)
    numbers: defaultdict = field(default_factory=lambda: defaultdict(lambda: count(1)))

    async def start(self):
        self.server = await unix_serve(self._serve, self.path, compression=None)

    async def stop(self):
        """Ends at once, with its connections."""
        for task in tuple(self.running):
            task.cancel()
        for client in tuple(self.clients):
            client.socket.transport.abort()
        self.server.close()
        await self.server.wait_closed()

    def called(self, method):
        return [params for name, params in self.requests if name == method]

    async def _serve(self, socket):
        client = Client(socket)
        self.clients.append(client)
        with suppress(ConnectionClosed):
            async for text in socket:
                await self._take(client, json.loads(text))
        self.clients.remove(client)

    async def _take(self, client, message):
        if "method" not in message:
            await self._replied(message)
            return
        if "id" not in message:
            return
        self.requests.append((message["method"], message["params"]))
        if message["method"] in self.silent:
            return
        try:
            self._check(message["method"])
            work = getattr(self, "_" + message["method"].replace("/", "_"))
            result, after = await work(client, message["params"])
        except RefusedRequestError as problem:
            await self.send(client, {"id": message["id"], "error": {"code": -32600, "message": str(problem)}})
            return
        await self.send(client, {"id": message["id"], "result": result})
        for step in after:
            await step

    def _check(self, method):
        if method in self.refuses:
            raise RefusedRequestError(self.refuses[method])

    async def send(self, client, message):
        with suppress(ConnectionClosed):
            await client.socket.send(message if isinstance(message, str | bytes) else json.dumps(message), text=True)

    async def tell(self, method, thread="", **params):
        """Notify those that have taken up the thread; everybody where there is none."""
        about = {"threadId": thread} if thread else {}
        for client in tuple(self.clients):
            if not thread or thread in client.threads:
                await self.send(client, {"method": method, "params": {**about, **params}})

    # --- requests ---------------------------------------------------------------------------------------------------

    async def _initialize(self, _client, _params):
        return {"userAgent": "sm/0.171.0"}, ()

    def _opened(self, thread):
        return {
            "thread": thread.shown(),
            "model": thread.settings.get("model", "mock-model"),
            "approvalPolicy": thread.settings.get("approvalPolicy", "on-request"),
            "approvalsReviewer": thread.settings.get("approvalsReviewer", "user"),
            "sandbox": thread.settings.get("sandbox", WORKSPACE),
            "reasoningEffort": thread.settings.get("effort"),
        }

    def begin(self, **members):
        """A thread, as one that a client's screen has begun."""
        thread = Thread(f"t-{next(self.numbers['thread'])}", **members)
        self.threads[thread.id] = thread
        return thread

    async def _thread_start(self, client, params):
        names = {"read-only": "readOnly", "workspace-write": "workspaceWrite", "danger-full-access": "dangerFullAccess"}
        thread = self.begin(originator="sm")
        kept = ("model", "approvalPolicy", "approvalsReviewer")
        thread.settings = {name: params[name] for name in kept if name in params}
        if "sandbox" in params:
            thread.settings["sandbox"] = {"type": names[params["sandbox"]]}
        client.threads.add(thread.id)
        return self._opened(thread), (self.announced(thread),)

    async def announced(self, thread):
        for client in tuple(self.clients):
            await self.send(client, {"method": "thread/started", "params": {"thread": thread.shown()}})

    def _known(self, identity):
        if identity not in self.threads:
            raise RefusedRequestError(f"thread not found: {identity}")
        return self.threads[identity]

    async def _thread_resume(self, client, params):
        thread = self.threads.get(params["threadId"])
        if thread is None or not thread.has_file:
            raise RefusedRequestError(f"no rollout found for thread id {params['threadId']}")
        client.threads.add(thread.id)
        pending = [(number, *asked) for number, asked in self.asked.items() if asked[1]["threadId"] == thread.id]
        again = [
            self.send(client, {"id": number, "method": method, "params": told}) for number, method, told in pending
        ]
        return self._opened(thread), again

    async def _thread_loaded_list(self, _client, _params):
        return {"data": list(self.threads), "nextCursor": None}, ()

    async def _thread_read(self, _client, params):
        return {"thread": self._known(params["threadId"]).shown()}, ()

    async def _thread_unsubscribe(self, client, params):
        client.threads.discard(params["threadId"])
        return {"status": "unsubscribed"}, ()

    async def _thread_name_set(self, _client, params):
        self._known(params["threadId"]).name = params["name"]
        return {}, ()

    async def _thread_goal_get(self, _client, params):
        return {"goal": self._known(params["threadId"]).goal}, ()

    async def _thread_goal_set(self, _client, params):
        self._known(params["threadId"]).goal = params
        return {"goal": self.threads[params["threadId"]].goal}, ()

    async def _thread_inject_items(self, _client, params):
        self._known(params["threadId"]).injected += params["items"]
        return {}, ()

    async def _turn_start(self, _client, params):
        thread = self._known(params["threadId"])
        text = params["input"][0]["text"] if params["input"] else ""
        thread.prompts += [text] if text else []
        steps = [self.prompted(thread, text)] if text else []
        if thread.turn is None:
            thread.turn = f"turn-{next(self.numbers['turn'])}"
            turn = {"id": thread.turn, "status": "inProgress", "items": []}
            steps = [self.changed(thread), self.tell("turn/started", params["threadId"], turn=turn), *steps]
            steps += [self._played(thread, text)] if self.plays else []
        return {"turn": {"id": thread.turn, "status": "inProgress", "items": []}}, steps

    async def _turn_interrupt(self, _client, params):
        thread = self._known(params["threadId"])
        if thread.turn != params["turnId"]:
            raise RefusedRequestError("no active turn to interrupt")
        return {}, (self.end_turn(thread, "interrupted"),)

    async def _thread_compact_start(self, _client, params):
        self._known(params["threadId"])
        return {}, ()

    async def _played(self, thread, text):
        task = asyncio.get_running_loop().create_task(self.plays(thread, text))
        self.running.add(task)
        task.add_done_callback(self.running.discard)

    # --- what happens ---------------------------------------------------------------------------------------------

    async def changed(self, thread):
        await self.tell("thread/status/changed", thread.id, status=thread.shown()["status"])

    async def prompted(self, thread, text):
        item = {
            "type": "userMessage",
            "id": f"i-{next(self.numbers['item'])}",
            "content": [{"type": "text", "text": text}],
        }
        for method in ("item/started", "item/completed"):
            await self.tell(method, thread.id, turnId=thread.turn, item=item)

    async def reply(self, thread, text):
        item = {"type": "agentMessage", "id": f"i-{next(self.numbers['item'])}", "text": text}
        await self.tell("item/completed", thread.id, turnId=thread.turn, item=item)

    async def ran(self, thread, command, seconds=0.3):
        """Begin a command, and end it after a while."""
        item = {"type": "commandExecution", "id": f"i-{next(self.numbers['item'])}", "command": command}
        await self.tell("item/started", thread.id, turnId=thread.turn, item={**item, "status": "inProgress"})
        await asyncio.sleep(seconds)
        done = {**item, "status": "completed", "aggregatedOutput": ""}
        await self.tell("item/completed", thread.id, turnId=thread.turn, item=done)

    async def end_turn(self, thread, status="completed", error=None):
        turn, thread.turn, thread.flags = thread.turn, None, []
        if turn is None:
            return  # it was interrupted
        for number, (_, params) in tuple(self.asked.items()):
            if params["threadId"] == thread.id:
                await self.resolved(number)
        await self.changed(thread)
        await self.tell("turn/completed", thread.id, turn={"id": turn, "status": status, "error": error, "items": []})

    async def ask(self, thread, method, **params):
        """Ask those that have taken up the thread; return the request's number."""
        number = next(self.numbers["request"]) - 1
        self.asked[number] = method, {"threadId": thread.id, "turnId": thread.turn, **params}
        thread.flags = ["waitingOnApproval"]
        await self.changed(thread)
        for client in tuple(self.clients):
            if thread.id in client.threads:
                await self.send(client, {"id": number, "method": method, "params": self.asked[number][1]})
        return number

    async def answered(self, number):
        while number not in self.answers:
            await asyncio.sleep(0.005)

    async def resolved(self, number):
        _, params = self.asked.pop(number)
        await self.tell("serverRequest/resolved", params["threadId"], requestId=number)

    async def _replied(self, message):
        if message["id"] not in self.asked:
            return
        self.answers[message["id"]] = message.get("result")
        thread = self.threads[self.asked[message["id"]][1]["threadId"]]
        await self.resolved(message["id"])
        thread.flags = []
        await self.changed(thread)


@asynccontextmanager
async def app_server(path):
    server = FakeAppServer(str(path))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def until(condition, words="it happens", seconds=10.0):
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)
    assert condition(), words
