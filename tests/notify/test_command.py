"""The user's command: JSON on its standard input, a bounded time, an allow-listed environment."""

import asyncio
import json
import os
import sys

import pytest

from sm.core.model.notification import TEST, Episode, UserNotification
from sm.core.model.notify_rules import NotificationKind
from sm.core.ports.notifier import ChannelError
from sm.notify import process
from sm.notify.command import CommandChannel
from sm.processes import alive

FOUND = Episode("e1", NotificationKind.ASK, "a" * 8, "a", 1.0, "said", 'rm -rf "$HOME"')
SENT = UserNotification("sm: a waits for you", '"x"; $(touch /tmp/never)', (FOUND,))
ENVIRON = {"PATH": os.environ["PATH"], "SM_SESSION_TOKEN": "secret", "SM_HOME": "/h", "AWS_SECRET": "p", "LANG": "C"}


def runs(code, *arguments):
    return CommandChannel((sys.executable, "-c", code, *arguments), ENVIRON)


async def test_it_reads_the_notification_as_json_and_nothing_in_its_arguments(tmp_path):
    kept = tmp_path / "kept.json"
    code = "import json, sys; open(sys.argv[1], 'w').write(json.dumps([sys.argv[2:], sys.stdin.read()]))"
    await runs(code, str(kept), "fixed").send(SENT)
    arguments, given = json.loads(kept.read_text())
    assert arguments == ["fixed"]
    assert json.loads(given) == {
        "title": SENT.title,
        "text": SENT.text,
        "episodes": [
            {"kind": "ask", "session": "a" * 8, "name": "a", "since": 1.0, "said": "said", "quoted": 'rm -rf "$HOME"'}
        ],
        "schema": 1,
    }


async def test_its_environment_has_what_is_allowed_and_nothing_else(tmp_path):
    kept = tmp_path / "kept.json"
    code = "import json, os, sys; open(sys.argv[1], 'w').write(json.dumps(dict(os.environ)))"
    await runs(code, str(kept)).send(TEST)
    found = json.loads(kept.read_text())
    assert {"PATH": ENVIRON["PATH"], "LANG": "C"}.items() <= found.items()
    assert not {"SM_SESSION_TOKEN", "SM_HOME", "AWS_SECRET"} & found.keys()


async def test_one_that_does_not_read_is_no_fault():
    await CommandChannel(("true",), ENVIRON).send(UserNotification("t", "x" * 1_000_000))


async def test_one_that_fails_says_why():
    with pytest.raises(ChannelError, match=r"ended with exit code 3: x+ no such channel$"):
        await runs("import sys; sys.stderr.write('x' * 100_000 + ' no such\\nchannel'); sys.exit(3)").send(TEST)


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("/nowhere/at-all",), "no such program; give its whole path"),
        (("nosuch",), "no such program; give its whole path"),
        (("/etc/passwd",), "it is not executable"),
        (("",), ""),
        (("a\0b",), "embedded null byte"),
    ],
)
async def test_one_that_cannot_be_started_says_so(argv, why):
    with pytest.raises(ChannelError, match=f"cannot be started: {why}") as failed:
        await CommandChannel(argv, ENVIRON).send(TEST)
    assert "Errno" not in str(failed.value)


async def test_one_that_does_not_end_is_ended_with_all_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "TIMEOUT_S", 1.0)
    kept = tmp_path / "pid"
    code = "import subprocess, sys, time; p = subprocess.Popen(['sleep', '600']);"
    code += "open(sys.argv[1], 'w').write(str(p.pid)); time.sleep(600)"
    with pytest.raises(ChannelError, match="did not end within 1 s"):
        await runs(code, str(kept)).send(TEST)
    async with asyncio.timeout(5):
        while alive(int(kept.read_text())):
            await asyncio.sleep(0.01)


async def test_one_that_runs_when_the_server_stops_is_ended(tmp_path):
    kept = tmp_path / "pid"
    code = "import os, sys, time; open(sys.argv[1], 'w').write(f'{os.getpid()} '); time.sleep(600)"
    sending = asyncio.ensure_future(runs(code, str(kept)).send(TEST))
    async with asyncio.timeout(20):
        while not (kept.exists() and kept.read_text().endswith(" ")):
            await asyncio.sleep(0.01)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert not alive(int(kept.read_text()))


async def test_one_that_floods_its_standard_error_is_ended_at_once(monkeypatch):
    monkeypatch.setattr(process, "TIMEOUT_S", 5.0)
    with pytest.raises(ChannelError, match="it wrote more than 1 MB to standard error"):
        await CommandChannel(("sh", "-c", "yes >&2"), ENVIRON).send(TEST)


async def test_what_it_leaves_running_keeps_no_one_waiting():
    await runs("import subprocess; subprocess.Popen(['sleep', '600'])").send(TEST)
