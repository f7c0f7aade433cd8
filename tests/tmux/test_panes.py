import os
import shutil
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.core.ports.panes import Key
from sm.tmux.client import Size, TmuxError
from sm.tmux.panes import (
    NewPane,
    PaneDeadError,
    PaneGoneError,
    PasteRefusedError,
    pasteable,
)
from tests.tmux.rig import until

HOSTILE = [
    "#(touch owned)",
    "#{session_name}",
    "#S",
    "a#[b",
    "##",
    "a%dx%H",
    "a:b.c",
    'it\'s "q" $HOME `id` \\',
    "日本 é",
    "two\nlines",
    "~",
    "-c",
    ";",
]


def pasted(text):
    return b"\x1b[200~" + text.encode() + b"\x1b[201~"


async def dead(rig, *argv):
    pane = await rig.start(*argv)
    await until(lambda: is_dead(rig, pane))
    return pane


async def is_dead(rig, pane):
    return (await rig.panes.facts(pane.pane_id)).dead


# What is started


@pytest.mark.parametrize("name", HOSTILE)
async def test_a32_a51_a_name_reaches_tmux_harmless(rig, name):
    pane = await rig.start("cat", name=name)
    facts = await rig.panes.facts(pane.pane_id)
    assert facts.session == pane.session
    assert not list(rig.home.rglob("owned"))


@pytest.mark.parametrize("name", HOSTILE)
async def test_a51_the_program_starts_in_the_literal_directory(rig, name):
    directory = rig.home / name
    directory.mkdir()
    await rig.start("sh", "-c", "readlink /proc/$$/cwd || pwd; echo DONE; cat", directory=directory)
    log = rig.home / "0a1b2c3d.log"
    await until(lambda: b"DONE" in log.read_bytes())
    assert log.read_text().replace("\r", "").startswith(f"{directory}\n")
    assert not list(rig.home.rglob("owned"))


@pytest.mark.parametrize("name", HOSTILE)
async def test_a51_arguments_are_not_read_by_any_shell(rig, name):
    received = rig.home / "argv"
    code = "import sys; open(sys.argv[1], 'w').write(sys.argv[2])"
    await dead(rig, sys.executable, "-c", code, str(received), name)
    assert received.read_text() == name


@pytest.mark.parametrize("name", ["a b", "$(touch owned)", "#(touch owned)", "a'b"])
async def test_a51_a_program_without_arguments_is_not_read_by_a_shell_either(rig, name):
    program = rig.home / name
    program.write_text("#!/bin/sh\necho STARTED\nexec cat\n")
    program.chmod(0o700)
    pane = await rig.start(str(program))
    await rig.shows(pane, "STARTED")


async def test_a_program_is_found_in_the_callers_path(rig):
    (rig.home / "bin").mkdir()
    (rig.home / "bin" / "agent").write_text("#!/bin/sh\necho FOUND\nexec cat\n")
    (rig.home / "bin" / "agent").chmod(0o700)
    pane = await rig.start("agent", PATH=f"{rig.home / 'bin'}:{os.environ['PATH']}")
    await rig.shows(pane, "FOUND")


@pytest.mark.parametrize("directory", ["missing", "file"])
async def test_a51_a_directory_that_cannot_be_entered_is_refused(rig, directory):
    (rig.home / "file").touch()
    with pytest.raises(TmuxError, match="not a directory that can be entered"):
        await rig.start("cat", directory=rig.home / directory)
    assert await rig.panes.list() == ()


async def test_nothing_to_start_is_refused(rig):
    with pytest.raises(TmuxError, match="no program"):
        await rig.start()


async def test_a_pane_nobody_looks_at_has_the_size_asked_for(rig):
    pane = await rig.start("cat")
    other = await rig.panes.create(NewPane("00000002", "b", rig.program("cat"), Size(90, 30)))
    sizes = {facts.pane_id: (facts.width, facts.height) for facts in await rig.panes.list()}
    assert sizes == {pane.pane_id: (200, 50), other.pane_id: (90, 30)}


async def test_the_same_session_twice_is_an_error(rig):
    await rig.start("cat")
    with pytest.raises(TmuxError, match="duplicate session"):
        await rig.start("cat")


async def test_panes_are_found_again_by_our_session_id(rig):
    await rig.start("cat", session_id="00000001", name="one")
    gone = await dead(rig, "true")
    await rig.client.command("new-session", "-d", "-s", "somebody", "cat")
    assert {(facts.sm_session, facts.dead) for facts in await rig.panes.list()} == {
        ("00000001", False),
        ("0a1b2c3d", True),
    }
    assert gone.pane_id in {facts.pane_id for facts in await rig.panes.list()}


async def test_a_pane_opened_by_the_person_is_not_taken_for_an_agent(rig):
    pane = await rig.start("cat")
    await rig.client.command("split-window", "-d", "-t", pane.pane_id, "cat")
    assert [facts.pane_id for facts in await rig.panes.list()] == [pane.pane_id]


async def test_a_process_cannot_forge_a_second_pane_by_its_name(rig):
    renamed = "import os, sys; os.execv(sys.argv[1], [sys.argv[2]])"
    pane = await rig.start(sys.executable, "-c", renamed, shutil.which("cat"), "x\n%9\tforged")

    async def listed():
        return [facts for facts in await rig.panes.list() if "forged" in facts.command]

    [facts] = await until(listed)
    assert facts.pane_id == pane.pane_id


# Which pane


async def test_a33_a_name_that_begins_alike_is_not_touched(rig):
    pane = await rig.start("cat", session_id="10")
    with pytest.raises(PaneGoneError):
        await rig.panes.kill(f"{pane.pane_id}7")
    assert not await is_dead(rig, pane)


@pytest.mark.parametrize("target", ["%42", "0a1b2c3d:%1"])
async def test_a34_every_act_on_a_pane_that_is_not_there_is_an_error(rig, target):
    panes = rig.panes
    for act in (
        panes.type_text(target, "hi"),
        panes.press(target, Key.ENTER),
        panes.snapshot(target),
        panes.facts(target),
        panes.kill(target),
        panes.rename(target, "a", "00000001"),
    ):
        with pytest.raises(PaneGoneError):
            await act


async def test_a_target_that_names_no_pane_id_is_refused(rig):
    pane = await rig.start("cat")
    with pytest.raises(PaneGoneError):
        await rig.panes.kill(pane.session)
    assert not await is_dead(rig, pane)


async def test_renaming_changes_the_name_and_not_the_pane(rig):
    pane = await rig.start("cat")
    session = await rig.panes.rename(pane.pane_id, "#(x).y", "0a1b2c3d")
    assert session == "x_y-0a1b2c3d"
    assert (await rig.panes.facts(pane.pane_id)).session == session


async def test_killing_ends_the_pane_and_hangs_up_its_process(rig):
    told = rig.home / "told"
    pane = await rig.start("sh", "-c", f"trap 'echo > {told}; exit' HUP; echo READY; while :; do sleep 0.01; done")
    await rig.shows(pane, "READY")
    await rig.panes.kill(pane.pane_id)
    assert await rig.panes.list() == ()
    await until(told.exists)


# Typing


@pytest.mark.parametrize(
    "text",
    [
        "-foo bar",
        "--help",
        "Enter",
        "C-c",
        "hello;",
        ";",
        "a\\",
        "\\",
        "$HOME `id` #{pid} #(touch x) %d",
        "'\"",
        "~",
        "é\u276f日本🎉",
    ],
)
async def test_a36_every_text_arrives_as_text(rig, text):
    pane, file = await rig.recorder()
    await rig.panes.type_text(pane.pane_id, text)
    await rig.received((pane, file), pasted(text))


async def test_a37_several_lines_are_one_paste_without_the_last_newline(rig):
    pane, file = await rig.recorder()
    await rig.panes.type_text(pane.pane_id, "l1\nl2\n")
    await rig.panes.press(pane.pane_id, Key.ENTER)
    await rig.received((pane, file), pasted("l1\rl2") + b"\r")


async def test_a37_several_lines_are_refused_where_they_would_be_several_prompts(rig):
    pane, file = await rig.recorder(bracketed=False)
    with pytest.raises(PasteRefusedError, match="bracketed paste"):
        await rig.panes.type_text(pane.pane_id, "l1\nl2")
    await rig.panes.type_text(pane.pane_id, "one line\n")
    await rig.received((pane, file), b"one line")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\x1b[201~b\n/quit", "ab\n/quit"),
        ("\x9b201~x", "x"),
        ("\x1b[2\x1b[201~01~x", "[201~x"),
        ("a\x03b\x7f\x00\x1b[A", "ab[A"),
        ("a\r\nb\rc\n\n", "a\nb\nc"),
        ("tab\tstays", "tab\tstays"),
        ("half \ud83d", "half \N{REPLACEMENT CHARACTER}"),
    ],
)
def test_text_loses_what_a_terminal_would_act_on(text, expected):
    assert pasteable(text) == expected


@given(st.text(st.sampled_from("\x1b[201~\x9b\r\n\x00ab\ud800")) | st.text())
def test_safe_text_holds_no_control_character_and_stays_as_it_is(text):
    safe = pasteable(text)
    assert not [character for character in safe if character < " " and character not in "\n\t"]
    assert pasteable(safe) == safe


async def test_a_hostile_text_does_not_end_the_paste(rig):
    pane, file = await rig.recorder()
    await rig.panes.type_text(pane.pane_id, "a\x1b[201~\rrm -rf\x03")
    await rig.received((pane, file), pasted("a\rrm -rf"))


@pytest.mark.parametrize("text", ["", "\n", "\x1b"])
async def test_nothing_to_type_types_nothing(rig, text):
    pane, file = await rig.recorder()
    await rig.panes.type_text(pane.pane_id, text)
    await rig.received((pane, file), b"")


async def test_four_hundred_kilobytes_arrive_whole(rig):
    pane, file = await rig.recorder()
    text = "".join(f"line {number} é;\\\n" for number in range(25_000))
    await rig.panes.type_text(pane.pane_id, text)
    await rig.received((pane, file), pasted(text.rstrip("\n").replace("\n", "\r")))


async def test_no_buffer_is_left_behind(rig):
    pane, _ = await rig.recorder()
    await rig.panes.type_text(pane.pane_id, "x")
    with pytest.raises(PaneGoneError):
        await rig.panes.type_text("%42", "x")
    assert (await rig.client.command("list-buffers")).text == ""


async def test_a38_a_person_who_scrolled_back_is_brought_back_before_text_is_typed(rig):
    pane, file = await rig.recorder()
    await rig.client.command("copy-mode", "-t", pane.pane_id)
    assert (await rig.panes.facts(pane.pane_id)).in_mode
    await rig.panes.type_text(pane.pane_id, "hello")
    await rig.received((pane, file), pasted("hello"))


@pytest.mark.parametrize("mode", ["copy-mode", "clock-mode", "choose-tree"])
async def test_a38_keys_reach_the_application_whatever_mode_is_shown(rig, mode):
    pane, file = await rig.recorder()
    await rig.client.command(mode, "-t", pane.pane_id)
    await rig.panes.press(pane.pane_id, "Escape")
    await rig.received((pane, file), b"\x1b")


async def test_keys_are_pressed_in_order_and_as_often_as_asked(rig):
    pane, file = await rig.recorder()
    await rig.panes.press(pane.pane_id, "C-x", "C-s")
    await rig.panes.press(pane.pane_id, Key.BACKSPACE, times=300)
    await rig.panes.press(pane.pane_id, Key.LEFT)
    await rig.received((pane, file), b"\x18\x13" + b"\x7f" * 300 + b"\x1b[D")


@pytest.mark.parametrize("key", ["C-c", "-X", "Enter Enter", "q"])
async def test_no_other_key_is_pressed(rig, key):
    pane, file = await rig.recorder()
    with pytest.raises(ValueError, match="never pressed"):
        await rig.panes.press(pane.pane_id, Key.ENTER, key)
    await rig.panes.press(pane.pane_id, Key.LEFT)
    await rig.received((pane, file), b"\x1b[D")


async def test_a39_nothing_is_typed_to_a_dead_pane(rig):
    pane = await dead(rig, "sh", "-c", "exit 3")
    with pytest.raises(PaneDeadError, match="has ended"):
        await rig.panes.type_text(pane.pane_id, "touch owned; echo hi")
    with pytest.raises(PaneDeadError):
        await rig.panes.press(pane.pane_id, Key.ENTER)


async def test_a39_the_process_in_front_is_told(rig):
    pane = await rig.start("sleep", "1000")

    async def named():
        return (await rig.panes.facts(pane.pane_id)).command == "sleep"

    await until(named)


@pytest.mark.parametrize(("script", "status", "signal"), [("exit 3", 3, None), ("kill -9 $$", None, 9)])
async def test_a39_how_it_ended_is_told(rig, script, status, signal):
    pane = await rig.start("sh", "-c", script)

    async def ended():
        facts = await rig.panes.facts(pane.pane_id)
        return facts.dead and (facts.exit_status, facts.exit_signal)

    await until(lambda: holds(ended, (status, signal)))


async def test_how_it_ended_is_told_for_every_one_of_many(rig):
    for number in range(60):
        await rig.start("sh", "-c", "exit 3", session_id=f"{number:08x}")

    async def all_told():
        return {facts.exit_status for facts in await rig.panes.list()} == {3}

    await until(all_told)


async def holds(asked, expected):
    return await asked() == expected


# Looking


async def test_a43_a_wrapped_line_is_joined(rig):
    line = "MARKER: git push blocked: denied"
    program = rig.program("sh", "-c", f"echo '{line}'; echo READY; cat")
    pane = await rig.panes.create(NewPane("00000001", "narrow", program, Size(20, 10)))
    await rig.shows(pane, "READY")
    assert line in (await rig.panes.snapshot(pane.pane_id)).text
    assert line not in (await rig.panes.snapshot(pane.pane_id, joined=False)).text


async def test_a44_the_history_limit_holds_from_the_first_line(rig):
    pane = await rig.start("sh", "-c", "seq -f 'line %g.' 3000; echo READY; cat")
    await rig.shows(pane, "READY")
    screen = await rig.panes.snapshot(pane.pane_id, history=True)
    assert screen.text.startswith("line 1.\n")
    assert (screen.facts.history_limit, screen.facts.alternate_on) == (100_000, False)


async def test_a45_a_full_screen_program_is_seen_to_have_no_scrollback(rig):
    pane = await rig.start("sh", "-c", "printf '\\033[?1049h'; seq 500; echo READY; cat")
    await rig.shows(pane, "READY")
    screen = await rig.panes.snapshot(pane.pane_id, history=True)
    assert (screen.facts.alternate_on, screen.facts.history_size) == (True, 0)
    assert len(screen.text.split("\n")) == screen.facts.height


async def test_a_snapshot_keeps_colours_only_if_asked(rig):
    pane = await rig.start("sh", "-c", "printf '\\033[31mred READY'; cat")
    await rig.shows(pane, "READY")
    assert "\x1b[31mred" in (await rig.panes.snapshot(pane.pane_id, escapes=True)).text
    assert "\x1b" not in (await rig.panes.snapshot(pane.pane_id)).text


async def test_the_cursor_is_where_the_program_left_it(rig):
    pane = await rig.start("sh", "-c", "printf 'one\\nREADY'; exec cat")
    await rig.shows(pane, "READY")
    facts = await rig.panes.facts(pane.pane_id)
    assert (facts.cursor_x, facts.cursor_y) == (5, 1)


async def test_nobody_attached_is_seen(rig):
    pane = await rig.start("cat")
    facts = await rig.panes.facts(pane.pane_id)
    assert (facts.attached, facts.last_activity) == (0, None)


async def test_keys_and_text_go_to_our_pane_alone_where_a_person_has_synchronized_the_window(rig):
    """C31: an Enter of ours must not run what stands in the shell beside the agent."""
    pane = await rig.start("cat")
    client = rig.panes._client
    beside = (
        await client.command("split-window", "-P", "-F", "#{pane_id}", "-t", pane.pane_id, "--", "sh", "-c", "exec cat")
    ).text
    await client.command("send-keys", "-t", beside, "-l", "half a")
    await client.command("set-option", "-w", "-t", pane.pane_id, "synchronize-panes", "on")
    await rig.panes.type_text(pane.pane_id, "hello there")
    await rig.panes.press(pane.pane_id, Key.ENTER)
    await rig.shows(pane, "hello there\nhello there")
    await client.command("set-option", "-w", "-t", pane.pane_id, "synchronize-panes", "off")
    await client.command("send-keys", "-t", beside, "-l", " line")
    await until(lambda: ends(rig, beside, "line"))
    assert (await rig.panes.snapshot(beside)).text.strip() == "half a line"


async def ends(rig, pane_id, text):
    return (await rig.panes.snapshot(pane_id)).text.strip().endswith(text)


async def test_the_line_below_a_pane_says_what_it_is_given_and_expands_none_of_it(rig):
    pane = await rig.start("cat")
    await rig.panes.label(pane.pane_id, "docs #[fg=red] #(date) #{pid} %H · 62%")
    named = await rig.client.command("display-message", "-p", "-t", pane.pane_id, "#{window_name}")
    assert named.text == "docs [fg=red] (date) {pid} %H · 62%"
    with pytest.raises(PaneGoneError):
        await rig.panes.label("%99", "x")
