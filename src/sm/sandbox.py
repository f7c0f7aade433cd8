"""The demo's directory with a server, a client's configuration and a model, and how all of it is ended.

Every process started there has the directory's home in its environment, by which it is found however the demo ends.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from sm.client import Client
from sm.core.errors import error
from sm.lock import running_server
from sm.paths import TMUX_SOCKET, SmHome, read_token
from sm.processes import pids_with_variable
from sm.testing.model import ScriptedModel
from sm.testing.offline import offline_client_env
from sm.testing.scenario import Scenario
from sm.tmux.names import socket_path

SERVER_VARIABLES = frozenset({"PATH", "HOME", "LANG", "LC_ALL", "TERM", "TMPDIR"})
VERSION_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 5.0
GRACE_S = 2.0
"""For other processes to end by themselves once server and tmux have ended."""
POLL_INTERVAL_S = 0.05


@asynccontextmanager
async def demo_directory(*, keep: bool) -> AsyncIterator[Path]:
    """Create the directory; afterwards end all processes started there, and without `keep` remove it."""
    root = Path(tempfile.mkdtemp(prefix="sm-demo-"))
    try:
        yield root
    finally:
        await end_processes(root / "home")
        if not keep:
            shutil.rmtree(root, ignore_errors=True)


@asynccontextmanager
async def demo_server(
    root: Path, script: Scenario, configured: str
) -> AsyncIterator[tuple[Client, dict[str, str], ScriptedModel]]:
    project = root / "project"
    project.mkdir()
    home = SmHome(root / "state")
    async with ScriptedModel(script) as model:
        env = offline_client_env(root / "home", model.url, project)
        server_env = {name: value for name, value in env.items() if name in SERVER_VARIABLES}
        server_env |= {"SM_HOME": str(home.root), "SM_CONFIG": str(root / "config.toml")}
        (root / "config.toml").write_text(configured, encoding="utf-8")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "sm", "server", "run", env=server_env, stderr=asyncio.subprocess.DEVNULL,
            stdin=asyncio.subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            yield await connected(home, process), {**env, "SM_HOME": str(home.root)}, model
        finally:
            await end_server(home, process)


async def connected(home: SmHome, process: asyncio.subprocess.Process) -> Client:
    for _ in range(300):
        record = running_server(home)
        token = read_token(home) if record is not None else None
        if record is not None and token is not None:
            return Client(record.url, token)
        if process.returncode is not None:
            break
        await asyncio.sleep(POLL_INTERVAL_S)
    words = home.server_log.read_text(errors="replace").splitlines()[-1:] if home.server_log.exists() else []
    raise error("start_failed", f"The demo's server did not start. {' '.join(words)}", "sm doctor")


async def end_server(home: SmHome, process: asyncio.subprocess.Process) -> None:
    """End the server, then tmux, and with it every client."""
    with suppress(ProcessLookupError):
        process.terminate()
    await output_within(process, STOP_TIMEOUT_S)
    tmux = shutil.which("tmux") or "tmux"
    socket = str(socket_path(home.root, TMUX_SOCKET))
    killer = await asyncio.create_subprocess_exec(
        tmux, "-S", socket, "kill-server", stderr=asyncio.subprocess.DEVNULL, stdin=asyncio.subprocess.DEVNULL
    )
    await output_within(killer, STOP_TIMEOUT_S)


async def output_within(process: asyncio.subprocess.Process, seconds: float) -> bytes:
    """Return a process's standard output at its end; kill it after `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            return (await process.communicate())[0] or b""
    except TimeoutError:
        return b""
    finally:
        with suppress(ProcessLookupError):
            process.kill()


async def end_processes(home: Path) -> None:
    """End all processes with that home: first SIGTERM, then SIGKILL."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + GRACE_S
    number = signal.SIGTERM
    while left := pids_with_variable("HOME", str(home)):
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        await asyncio.sleep(POLL_INTERVAL_S)
        number = signal.SIGTERM if loop.time() < deadline else signal.SIGKILL


async def client_version(client: str) -> str:
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(client, "--version", stdin=nothing, stdout=pipe, stderr=nothing)
    output = await output_within(process, VERSION_TIMEOUT_S)
    lines = output.decode("utf-8", "replace").strip().splitlines() or ["unknown client"]
    return lines[0][:60]


async def enter_pressed() -> None:
    """Wait for a line from the user, in a thread that delays neither a signal nor the end of the program."""
    loop, pressed = asyncio.get_running_loop(), asyncio.Event()

    def read() -> None:
        with suppress(OSError):
            os.read(0, 1)
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(pressed.set)

    threading.Thread(target=read, daemon=True).start()
    await pressed.wait()
