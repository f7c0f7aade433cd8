"""`sm` as a process of its own, against a server that runs inside the test on fake panes."""

import asyncio
import contextlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from sm import __version__
from sm.lock import ServerLock, announce
from sm.paths import atomic_write
from tests.api.rig import USER, House, house
from tests.cli import warm

SM = (sys.executable, "-I", "-m", "sm")
PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def data(self):
        envelope = json.loads(self.out)
        assert (set(envelope), envelope["schema"]) == ({"schema", "data"}, 1), envelope
        return envelope["data"]

    @property
    def stream(self):
        """What each line holds, of a command that prints them as they come."""
        return [json.loads(line)["data"] for line in self.out.splitlines()]

    @property
    def error(self):
        envelope = json.loads(self.out)
        assert (set(envelope), set(envelope["error"])) == ({"schema", "error"}, {"code", "message", "hint"})
        return envelope["error"]


@dataclass
class Desk:
    """A person's shell, or with `session` an agent's."""

    root: Path
    api: House | None = None
    port: int = 0

    @property
    def env(self):
        return {
            "PATH": PATH,
            "HOME": str(self.root / "home"),
            "SM_HOME": str(self.root / "state"),
            "SM_CONFIG": str(self.root / "config.toml"),
            "LANG": "C.UTF-8",
        }

    def agent_env(self, session):
        url = f"http://127.0.0.1:{self.port}"
        token = self.api.tokens[session]
        return {"CLAUDE_SESSION_MANAGER_ID": session, "SM_SESSION_TOKEN": token, "SM_URL": url}

    async def start(self, *arguments, session=None, command=SM, env=None, **streams):
        pipe = asyncio.subprocess.PIPE
        agent = self.agent_env(session) if session else {}
        streams = {"stdin": asyncio.subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, "cwd": self.root, **streams}
        environ = {**self.env, **agent, **(env or {})}
        return await asyncio.create_subprocess_exec(*command, *arguments, env=environ, **streams)

    async def run(self, *arguments, stdin=None, session=None, env=None, **options):
        agent = self.agent_env(session) if session else {}
        request = warm.asked(arguments, {**self.env, **agent, **(env or {})}, options.get("cwd", self.root))
        if request is not None and options.keys() <= {"cwd"} and warm.serves(request, env or {}, stdin):
            code, out, err = await warm.shared().run(request, stdin or b"")
            return Ran(code, out.decode(), err.decode())
        options |= {"session": session, "env": env}
        if stdin is not None:
            options["stdin"] = asyncio.subprocess.PIPE
        process = await self.start(*arguments, **options)
        out, err = await process.communicate(stdin)
        return Ran(process.returncode, (out or b"").decode(), (err or b"").decode())


def desk_without_server(root):
    for name in ("home", "work"):
        (root / name).mkdir(exist_ok=True)
    (root / "config.toml").touch()
    return Desk(root)


@contextlib.asynccontextmanager
async def desk_with_server(root, **more):
    desk_without_server(root)
    async with house(root, **more) as api, api.listening() as port:
        atomic_write(api.home.token, USER.encode())
        with ServerLock.acquire(api.home):
            announce(api.home, f"http://127.0.0.1:{port}", __version__)
            yield Desk(root, api, port)
