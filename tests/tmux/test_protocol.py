import itertools
import shlex

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sm.tmux.names import literal, literal_time
from sm.tmux.protocol import ControlParser, Exit, Notification, Reply, command_line, quote

ON_A_SERVER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
SYNTAX = st.text("#{}[](),:;%\\\"'$~ \n\t-abdSH=&|é\x1b\r")

STREAM = (
    b"%begin 1795841226 260 0\n%end 1795841226 260 0\n%window-add @0\n%session-changed $0 anchor\n"
    b"%begin 1795841226 266 1\n%0\n%begin 1 2 1\n%end 1795841226 265 1\n\xe2\x9d\xaf \n\n%end 1795841226 266 1\n"
    b"%begin 1795841227 267 1\ncan't find pane: %9\n%error 1795841227 267 1\n%exit server exited\n"
)

MESSAGES = [
    Reply(260, ok=True, lines=(), ours=False),
    Notification("window-add", "@0"),
    Notification("session-changed", "$0 anchor"),
    Reply(266, ok=True, lines=(b"%0", b"%begin 1 2 1", b"%end 1795841226 265 1", "\u276f ".encode(), b"")),
    Reply(267, ok=False, lines=(b"can't find pane: %9",)),
    Exit("server exited"),
]


def test_reads_replies_notifications_and_the_end():
    assert ControlParser().receive(STREAM) == MESSAGES


@given(st.lists(st.integers(0, len(STREAM))))
def test_the_size_of_the_pieces_changes_nothing(cuts):
    edges = [0, *sorted(cuts), len(STREAM)]
    parser = ControlParser()
    pieces = [STREAM[start:end] for start, end in itertools.pairwise(edges)]
    assert [message for piece in pieces for message in parser.receive(piece)] == MESSAGES


@given(st.binary())
def test_no_input_breaks_the_parser(data):
    parser = ControlParser()
    parser.receive(data)
    parser.receive(b"\n%end 1 2 1\n")


def test_a_block_of_another_shape_is_not_taken_for_ours():
    *_, reply = ControlParser().receive(b"%begin 1 2\nx\n%end 1 2\n%begin 1 3 1\n%end 1 3 1\n")
    assert reply == Reply(3, ok=True, lines=())


def test_text_is_read_as_utf8_and_the_rest_replaced():
    assert Reply(1, ok=True, lines=("é".encode(), b"\xff")).text == "é\n\N{REPLACEMENT CHARACTER}"


def test_a_line_holds_a_sequence_of_quoted_arguments():
    assert command_line(("set-buffer", "a;\n"), (b"list-panes", "-a")) == b'set-buffer "a;\\012" ; list-panes "-a"\n'


@given(TEXT | SYNTAX)
def test_a_command_is_one_line_whatever_is_in_it(text):
    assert command_line(("set-buffer", text)).count(b"\n") == 1


@pytest.mark.parametrize("argument", ["a\0b", b"\0"])
def test_refuses_what_cannot_be_an_argument(argument):
    with pytest.raises(ValueError, match="NUL"):
        quote(argument)


@ON_A_SERVER
@given(text=TEXT.filter(bool) | SYNTAX.filter(bool))
async def test_tmux_reads_a_quoted_argument_back_unchanged(rig, text):
    await rig.client.sequence(
        ("set-buffer", "-b", "x", "--", text), ("save-buffer", "-b", "x", "-a", str(rig.home / "saved"))
    )
    saved = rig.home / "saved"
    assert saved.read_bytes() == text.encode()
    saved.unlink()


@ON_A_SERVER
@given(raw=st.binary(min_size=1).map(lambda raw: raw.replace(b"\0", b"")).filter(bool))
async def test_tmux_reads_quoted_bytes_back_unchanged(rig, raw):
    saved = rig.home / "saved"
    await rig.client.sequence(("set-buffer", "-b", "x", "--", raw), ("save-buffer", "-b", "x", str(saved)))
    assert saved.read_bytes() == raw


@ON_A_SERVER
@given(text=SYNTAX)
async def test_tmux_expands_an_escaped_text_to_itself(rig, text):
    reply = await rig.client.command("display-message", "-p", "--", literal_time(text))
    assert "\n".join(line.decode() for line in reply.lines) == text


@ON_A_SERVER
@given(text=SYNTAX.map("/{}".format))
async def test_tmux_takes_an_escaped_directory_as_it_is(rig, text):
    """A place where tmux expands formats but not the time."""
    *_, shown = await rig.client.sequence(
        ("respawn-pane", "-k", "-t", "=anchor:", "-c", literal(text), "--", "/bin/sh", "-c", ":"),
        ("display-message", "-p", "-t", "=anchor:", "#{pane_start_path}"),
    )
    assert shown.text == text


def test_a_path_for_the_shell_survives_both_quotings():
    path = "/a b/'#(x)'%d"
    assert shlex.split(shlex.quote(path)) == [path]
