"""`sm send`, `sm inbox` and `sm message` as people and agents call them."""

import os
import pty
import re
import sys

import pytest

LOADED = """import sys
before = {{*sys.modules}}
from sm.cli import guarded
guarded({!r})
print(*{{*sys.modules}} - before)
"""


@pytest.fixture
async def two(desk):
    return await desk.api.new("worker"), await desk.api.new("b")


async def body_of(desk, message):
    return await desk.api.engine.ports.store.body(message)


@pytest.mark.parametrize("words", [["look", "at", "it"], ["/clear"], ["!ls"], ["naïve 🙂"], ["a\nb"], ['"q" \\ {x}']])
async def test_an_agent_sends_what_it_says_and_is_told_id_and_state(desk, two, words):
    ran = await desk.run("send", "b", *words, session=two[0])
    assert (ran.code, ran.err, re.fullmatch(r"[0-9a-f]{12} queued\n", ran.out) is not None) == (0, "", True)
    assert await body_of(desk, ran.out.split()[0]) == " ".join(words)


async def test_the_plain_form_does_without_the_command_parser(desk, two):
    code = LOADED.format(["send", "b", "hello"])
    ran = await desk.run("-c", code, session=two[0], command=(sys.executable, "-I"))
    loaded = ran.out.splitlines()[-1].split()
    assert not {"click", "json", "dataclasses", "socket"} & set(loaded)


@pytest.mark.parametrize("option", ["--expires=0", "--expires=nan", "--expires=inf", "--wait=0.5", "--wait=nan"])
async def test_a_time_that_is_none_is_a_wrong_usage(desk, two, option):
    ran = await desk.run("send", "b", option, "hello", session=two[0])
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"Error: Invalid value for '{option.partition('=')[0]}'")


async def test_options_reach_the_message(desk, two):
    ran = await desk.run(
        "send", "b", "--important", "--notify-on-stop", "--wait", "5", "--json", "hello", session=two[0]
    )
    shown = (await desk.run("message", ran.data[0]["id"], "--json", session=two[0])).data
    assert (shown["mode"], shown["notify_on_stop"], shown["wait"]) == ("important", True, 5.0)


async def test_several_targets_are_told_each_with_its_name_and_one_that_fails_makes_it_fail(desk, two):
    ran = await desk.run("send", "b,nobody,worker", "hello")
    assert (ran.code, [line.split()[1:] for line in ran.out.splitlines()]) == (
        1,
        [["queued", "b"], ["queued", "worker"]],
    )
    assert "nobody: Session nobody not found" in ran.err


async def test_text_from_standard_input_is_sent_as_it_is(desk, two):
    ran = await desk.run("send", "b", "-", stdin=b"- item one\n--help\n", session=two[0])
    assert await body_of(desk, ran.out.split()[0]) == "- item one\n--help"


async def test_an_empty_standard_input_and_a_terminal_are_refused(desk, two):
    ran = await desk.run("send", "b", "-", stdin=b" \n", session=two[0])
    assert (ran.code, "empty" in ran.err) == (2, True)
    controller, terminal = pty.openpty()
    process = await desk.start("send", "b", "-", session=two[0], stdin=terminal)
    _, err = await process.communicate()
    os.close(controller)
    os.close(terminal)
    assert (process.returncode, b"reads the text from standard input" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("send", "nobody", "hello"), 1, "Session nobody not found"),
        (("send", "b"), 2, "empty"),
        (("send", "b", "  "), 2, "empty"),
        (("send", "b", "--steer", "x"), 1, "--steer needs a running turn"),
        (("send", "parent", "x"), 1, "has no parent"),
        (("message", "nothing"), 1, "No such message: nothing\nhint: "),
    ],
)
async def test_what_is_refused_says_why(desk, two, arguments, code, words):
    ran = await desk.run(*arguments, session=two[0])
    assert (ran.code, words in ran.err, ran.out) == (code, True, "")


async def test_an_inbox_and_a_receipt_say_what_waits_and_from_whom(desk, two):
    assert (await desk.run("inbox", session=two[1])).out == "No queued messages\n"
    sent = (await desk.run("send", "b", "look\nat it", session=two[0])).out.split()[0]
    line = (await desk.run("inbox", "b")).out
    assert re.fullmatch(rf"{sent} queued sequential \d+\w worker \({two[0]}\): look\n  b is starting\n", line)
    assert (await desk.run("inbox", session=two[1])).out == line
    assert (await desk.run("inbox", "b", "--dead")).out == "No undelivered messages\n"
    short = (await desk.run("send", "b", "--expires", "5", "too late", session=two[0])).out.split()[0]
    desk.api.clock.advance(6)
    await desk.api.engine.ports.store.expire_messages()
    lost = (await desk.run("inbox", "--dead", session=two[0])).out
    end = rf"{short} expired sequential \d+\w worker \({two[0]}\): too late\n  to {two[1]}: expired before delivery\n"
    assert re.fullmatch(end, lost)
    receipt = (await desk.run("message", sent, session=two[1])).out
    assert receipt.startswith(
        f"{sent} queued: b is starting\nworker ({two[0]}) to b ({two[1]}), sequential, 10 bytes, "
    )
    sent = (await desk.run("send", "b", "x", session=two[0])).out.split()[0]
    assert ", sequential, 1 byte, " in (await desk.run("message", sent)).out


async def test_two_that_are_paused_are_shown_once_in_the_list(desk, two):
    (desk.root / "config.toml").write_text("[limits]\nexchanges = 2\n")
    await desk.run("send", "b", "ping", session=two[0])
    await desk.run("send", "worker", "pong", session=two[1])
    notes = [line for line in (await desk.run("list")).err.splitlines() if "are paused" in line]
    assert len(notes) == 1
    assert set(notes[0].removeprefix("Messages between ").split(" are paused")[0].split(" and ")) == {"worker", "b"}
