"""A real tmux on a private socket for each test, ended by its process id."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from sm.tmux.client import TmuxClient, TmuxServerSettings
from tests.tmux.rig import ENVIRONMENT, Rig


@pytest.fixture
async def rig():
    home = Path(tempfile.mkdtemp(prefix="sm-"))
    settings = TmuxServerSettings(home / "s", ENVIRONMENT, umask=0o022, reply_timeout=60.0)
    restarts = []
    client = TmuxClient(settings, on_restart=restarts.append)
    try:
        async with client:
            await client.command("list-sessions")
            yield Rig(home, settings, client, restarts)
    finally:
        for pid in {identity.pid for identity in [client.identity, *restarts]}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while home.exists():  # what the server has started may still write there
            shutil.rmtree(home, ignore_errors=True)
