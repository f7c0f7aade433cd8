"""One run of `sm`: limited in time and output, and ended from another thread."""

import socket

import pytest

from sm.agent_tools import command
from sm.agent_tools.command import Command


@pytest.fixture
def hung(monkeypatch):
    """A session whose server accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("CLAUDE_SESSION_MANAGER_ID", "0123abcd")
        monkeypatch.setenv("SM_URL", f"http://127.0.0.1:{listener.getsockname()[1]}")
        monkeypatch.setenv("SM_SESSION_TOKEN", "t")
        yield


def test_a_command_that_takes_too_long_is_ended(hung, monkeypatch):
    monkeypatch.setattr(command, "TIMEOUT_S", 0.5)
    run = Command()
    assert run.run(["inbox"], b"") == ("", -9)
    assert (run.timed_out, run.cancelled) == (True, False)


def test_a_command_that_was_cancelled_before_its_start_is_ended(hung, monkeypatch):
    monkeypatch.setattr(command, "TIMEOUT_S", 20.0)
    run = Command()
    run.cancel()
    assert run.run(["inbox"], b"") == ("", -9)
    assert (run.timed_out, run.cancelled) == (False, True)


def test_of_a_long_output_the_beginning_is_kept(monkeypatch):
    whole = Command().run(["send", "--help"], b"")[0]
    monkeypatch.setattr(command, "MAX_OUTPUT_BYTES", 20)
    text, code = Command().run(["send", "--help"], b"")
    assert (text, code) == (f"{whole[:20]}\n({len(whole.encode()) - 20:,} more bytes are left out)", 0)
