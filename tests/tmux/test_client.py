import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from sm.tmux.client import ConnectionLostError, TmuxClient, TmuxError, TmuxServerSettings
from sm.tmux.panes import PaneGoneError
from sm.tmux.protocol import Reply
from tests.tmux.rig import ENVIRONMENT, until


async def value(rig, template):
    return (await rig.client.command("display-message", "-p", template)).text


async def clients_of(rig):
    """Processes of ours that talk to the rig's server; the server itself is no child of ours."""
    listing = await asyncio.create_subprocess_exec("ps", "-A", "-o", "pid=,ppid=,args=", stdout=asyncio.subprocess.PIPE)
    lines = (await listing.communicate())[0].decode().splitlines()
    ours = [line.split() for line in lines if str(rig.settings.socket) in line]
    return [int(pid) for pid, parent, *_ in ours if int(parent) == os.getpid()]


async def two_clients(rig):
    return len(await clients_of(rig)) == 2


async def kill_connection(rig):
    [pid] = await clients_of(rig)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not rig.client.connected)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("history-limit", "100000"),
        ("default-size", "200x50"),
        ("remain-on-exit", "on"),
        ("mouse", "on"),
        ("status", "on"),
        ("focus-events", "on"),
        ("extended-keys", "on"),
        ("exit-empty", "off"),
        ("allow-rename", "off"),
        ("automatic-rename", "off"),
        ("base-index", "0"),
        ("default-terminal", "tmux-256color"),
        ("prefix", "C-b"),
        ("set-clipboard", "external"),
        ("update-environment", ""),
    ],
)
async def test_the_server_runs_with_our_options(rig, option, expected):
    scope = ("-sv", "-gv", "-gwv")
    shown = [await rig.client.command("show-options", flags, "-q", option) for flags in scope]
    assert expected in {reply.text for reply in shown}


async def test_every_outer_terminal_gets_true_colour(rig):
    assert "*:RGB" in (await rig.client.command("show-options", "-sv", "terminal-features")).text


async def test_connecting_again_leaves_the_options_as_they_are(rig):
    before = (await rig.client.command("show-options", "-s")).text
    await kill_connection(rig)
    assert (await rig.client.command("show-options", "-s")).text == before


async def test_a47_the_persons_own_configuration_does_not_matter(rig):
    (rig.home / ".tmux.conf").write_text("set -g base-index 1\nset -g history-limit 5\nset -g prefix C-a\n")
    settings = replace(rig.settings, socket=rig.home / "other", environment=ENVIRONMENT | {"HOME": str(rig.home)})
    async with TmuxClient(settings) as client:
        reply = await client.command("show-options", "-gv", "base-index")
        await client.kill_server()
    assert reply.text == "0"


async def test_an_error_names_the_subcommand_and_what_tmux_said(rig):
    with pytest.raises(TmuxError, match="tmux kill-session: can't find session: job-1") as caught:
        await rig.client.command("kill-session", "-t", "=job-1")
    assert caught.value.subcommand == "kill-session"


async def test_a_sequence_ends_at_its_first_error_and_the_next_reply_is_the_right_one(rig):
    with pytest.raises(TmuxError, match="tmux delete-buffer:"):
        await rig.client.sequence(
            ("set-buffer", "-b", "x", "one"), ("delete-buffer", "-b", "no"), ("set-buffer", "-b", "x", "two")
        )
    assert (await rig.client.command("show-buffer", "-b", "x")).text == "one"


async def test_a_syntax_error_is_an_error_of_its_command_only(rig):
    with pytest.raises(TmuxError, match="parse error"):
        await rig.client.sequence(("set-buffer", "-b", "x", "one"), ("no-such-command",))
    assert await value(rig, "still here") == "still here"


async def test_many_callers_each_get_their_own_reply(rig):
    texts = [f"text {number}" for number in range(500)]
    assert await asyncio.gather(*(value(rig, text) for text in texts)) == texts


async def test_a_cancelled_caller_does_not_shift_the_replies(rig):
    await value(rig, "")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(value(rig, str(number))) for number in range(20)]
        await asyncio.sleep(0)
        tasks[3].cancel()
    assert [task.result() for task in tasks if not task.cancelled()] == [str(n) for n in range(20) if n != 3]


async def test_a_body_of_megabytes_comes_whole(rig):
    text = "é日\n" * 300_000
    await rig.client.command("set-buffer", "-b", "x", "--", text)
    assert (await rig.client.command("show-buffer", "-b", "x")).text.rstrip("\n") == text.rstrip("\n")


async def test_what_is_pending_when_the_server_dies_fails(rig):
    await value(rig, "")
    os.kill(rig.client.identity.pid, signal.SIGSTOP)
    async with asyncio.TaskGroup() as group:
        outcomes = group.create_task(gathered(value(rig, "x") for _ in range(50)))
        await asyncio.sleep(0)
        os.kill(rig.client.identity.pid, signal.SIGKILL)
    assert {type(outcome) for outcome in outcomes.result()} == {ConnectionLostError}


async def gathered(calls):
    return await asyncio.gather(*calls, return_exceptions=True)


async def test_kill_server_among_commands_leaves_none_waiting_and_the_next_starts_another(rig):
    pane = await rig.start("cat")
    first = rig.client.identity
    outcomes = await gathered(
        [value(rig, "x"), rig.client.command("kill-server"), *(value(rig, "x") for _ in range(50))]
    )
    assert {type(outcome) for outcome in outcomes if outcome != "x"} <= {ConnectionLostError, Reply}
    await until(lambda: not rig.client.connected)
    with pytest.raises(PaneGoneError):
        await rig.panes.facts(pane.pane_id)
    assert rig.restarts == [rig.client.identity]
    assert rig.client.identity != first


async def test_a_server_that_was_killed_hard_is_replaced(rig):
    await value(rig, "")
    os.kill(rig.client.identity.pid, signal.SIGKILL)
    await until(lambda: not rig.client.connected)
    assert await value(rig, "back") == "back"
    assert len(rig.restarts) == 1


async def test_a_killed_connection_is_replaced_and_the_panes_live(rig):
    pane = await rig.start("cat")
    await kill_connection(rig)
    assert (await rig.panes.facts(pane.pane_id)).pid == pane.pid
    assert rig.restarts == []


async def test_kill_server_returns_when_a_new_one_can_be_started(rig):
    for _ in range(3):
        await rig.client.kill_server()
        assert await value(rig, "new") == "new"


async def test_a_person_who_closes_the_anchor_does_no_harm(rig):
    pane = await rig.start("cat")
    await rig.client.command("kill-session", "-t", "=anchor")
    await until(lambda: not rig.client.connected)
    assert (await rig.panes.facts(pane.pane_id)).pid == pane.pid


async def test_a_server_that_hangs_is_an_error_and_not_a_wait_for_ever(rig):
    await value(rig, "")
    pid = rig.client.identity.pid
    rig.client.settings = replace(rig.settings, reply_timeout=0.2)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(ConnectionLostError, match="no reply"):
            await value(rig, "x")
    finally:
        os.kill(pid, signal.SIGCONT)


async def test_a_server_that_hangs_does_not_hold_us_when_we_leave(rig):
    await value(rig, "")
    async with TmuxClient(rig.settings) as client:
        await client.command("list-sessions")
        os.kill(rig.client.identity.pid, signal.SIGSTOP)
    os.kill(rig.client.identity.pid, signal.SIGCONT)
    assert await value(rig, "back") == "back"


async def test_our_restart_finds_the_same_server_and_its_panes(rig):
    pane = await rig.start("cat")
    async with TmuxClient(rig.settings) as other:
        listed = await other.command("list-panes", "-a", "-F", "#{pane_id}")
        assert pane.pane_id in listed.text
        assert other.identity == rig.client.identity
    assert (await rig.panes.facts(pane.pane_id)).pid == pane.pid


async def test_an_error_of_the_body_goes_on_as_it_is(rig):
    async def work():
        async with TmuxClient(rig.settings) as client:
            await client.command("list-sessions")
            raise KeyError

    with pytest.raises(KeyError):
        await work()


async def test_cancelling_the_body_ends_the_client(rig):
    async def work():
        async with TmuxClient(rig.settings) as client:
            await client.command("list-sessions")
            await asyncio.Event().wait()

    await value(rig, "")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work())
        await until(lambda: two_clients(rig))
        task.cancel()
    assert len(await clients_of(rig)) == 1


async def test_a_closed_client_starts_nothing(rig):
    async with TmuxClient(rig.settings) as client:
        pass
    with pytest.raises(ConnectionLostError, match="closed"):
        await client.command("list-sessions")


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"binary": "no-such-tmux"}, "cannot start no-such-tmux"), ({"socket": Path("/" + "x" * 120)}, "too long")],
)
async def test_says_why_it_cannot_start(rig, settings, message):
    async with TmuxClient(replace(rig.settings, **settings)) as client:
        with pytest.raises(TmuxError, match=message):
            await client.command("list-sessions")


async def test_a46_panes_get_the_callers_environment_and_never_the_servers(rig, monkeypatch):
    monkeypatch.setenv("SM_SECRET_OF_THE_SERVER", "leak")
    await rig.start("sh", "-c", "env; echo DONE; cat", session_id="00000001", V="third", MULTI="a\nb;$X#{pid}")
    pane = await rig.start("sh", "-c", "env; echo DONE; cat", session_id="00000002", V="other")
    await until(lambda: all(b"DONE" in (rig.home / f"0000000{n}.log").read_bytes() for n in (1, 2)))
    first = (rig.home / "00000001.log").read_text().replace("\r", "")
    assert "V=third\n" in first
    assert "MULTI=a\nb;$X#{pid}\n" in first
    assert "leak" not in first
    assert "V=other" in (await rig.panes.snapshot(pane.pane_id)).text


async def test_no_value_of_the_environment_is_in_anybodys_arguments(rig):
    await rig.start("cat", SM_SESSION_TOKEN="hush-hush")
    ps = await asyncio.create_subprocess_exec("ps", "-A", "-ww", "-o", "args=", stdout=asyncio.subprocess.PIPE)
    assert b"hush-hush" not in (await ps.communicate())[0]


async def test_panes_have_the_persons_umask(rig):
    before = os.umask(0o077)
    try:
        pane = await rig.start("sh", "-c", "umask; cat")
    finally:
        os.umask(before)
    await rig.shows(pane, "0022")


async def test_one_connection_watches_a_hundred_panes(rig):
    for number in range(100):
        await rig.start("cat", session_id=f"{number:08x}")
    client = await clients_of(rig)
    for _ in range(20):
        assert len(await rig.panes.list()) == 100
        await asyncio.gather(*(rig.panes.snapshot(facts.pane_id) for facts in await rig.panes.list()))
    assert await clients_of(rig) == client


def test_settings_name_what_nobody_may_inherit():
    settings = TmuxServerSettings(Path("/s"), {"TMUX": "x", "TMUX_PANE": "%1", "PATH": "/bin"}, umask=0o22)
    assert settings.inherited() == {"PATH": "/bin"}


async def test_leaving_waits_for_no_connection_that_a_hung_server_has_not_answered_yet(rig):
    os.kill(rig.client.identity.pid, signal.SIGSTOP)
    async with TmuxClient(replace(rig.settings, reply_timeout=3600)) as client:
        connecting = asyncio.ensure_future(client.command("list-sessions"))
        await until(lambda: two_clients(rig))
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
    assert len(await clients_of(rig)) == 1
